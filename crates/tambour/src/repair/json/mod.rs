//! Reader of JSON written by models: incremental, repairs faults in the same pass, and accepts any text
//! around values.
//!
//! [`JsonReader`] takes text in chunks and passes [`JsonEvent`]s to a [`JsonSink`] as soon as they are known;
//! [`ValueCollector`] builds values from them. [`find`] returns the one value of a text that may have prose
//! around it. [`parse_strict`] repairs nothing. [`find_text`] and [`parse_strict_text`] return the value as
//! text, of any size and with all digits.
//!
//! Values are not interpreted here. If there are several objects, the dialect chooses among them.
//!
//! # Reading of faults
//!
//! - A quote ends its string if the following text fits: in an object a closing bracket, or a comma and a key
//!   with its colon; in an array a closing bracket or a comma. Otherwise it is text. But if the quote
//!   begins the next key, with its colon, the string ended before the comma in front of that quote.
//! - A closing bracket that matches no open one is dropped; one that matches an outer bracket closes the
//!   inner ones too.
//! - A text that ends early is closed: half a string is kept, half a literal completed (`tru`), a key without
//!   value gets `null`, half an escape is dropped. [`ValueEnd::is_auto_closed`] records the closing (P-027).
//! - An unquoted string in an object ends before a comma or line break that a key follows, in an array before
//!   any comma or line break.
//! - Numbers with leading zeros are kept as strings, since the zeros carry meaning; so are numbers beyond the
//!   range of a double, unless the reader keeps digits ([`JsonReader::with_exact_digits`]).

mod bare_text;
mod bracket;
mod builder;
mod candidates;
mod direct_parser;
mod doubt;
mod escape;
mod event;
mod finder;
mod keys;
mod lookahead;
mod members;
mod number;
mod printer;
mod quote;
mod reader;
mod repair_report;
mod state;
mod string;
mod structure;
mod surrounding_text;
mod value_maker;
mod word;

#[doc(hidden)]
pub use builder::ValueBuilder;
pub use builder::{BuiltValue, ValueCollector};
pub use doubt::{PathStep, ValueDoubt, ValueDoubts};
#[doc(hidden)]
pub use event::TopKeyTracker;
pub use event::{
    JsonEvent, JsonSink, ThoughtClosing, ThoughtMark, TokenPlace, ValueEnd, ValueOrigin, ValueStart,
};
pub use finder::{FoundValue, find, find_displayed, find_text, parse_strict, parse_strict_text};
#[doc(hidden)]
pub use finder::{find_in_string, parse_slightly_broken, parse_strict_with_doubts};
#[doc(hidden)]
pub use keys::DuplicateKey;
#[doc(hidden)]
pub use members::{MemberPlace, MemberPlaces};
pub use reader::{JsonReader, MAX_HELD_BYTES};
