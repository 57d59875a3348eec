//! Reader of JSON written by models: incremental, repairs faults in the same pass, and accepts any text
//! around values.
//!
//! [`Reader`] takes text in chunks and passes [`JsonEvent`]s to a [`JsonSink`] as soon as they are known;
//! [`Builder`] builds values from them. [`find`] returns the one value of a chatty text. [`strict`] repairs
//! nothing. [`find_text`] and [`strict_text`] return the value as text, of any size and with all digits.
//!
//! The meaning of a value does not belong here, nor the choice among candidates, which dialects make.
//!
//! # Reading of faults
//!
//! - A quote ends its string if the following text fits: in an object a closing bracket, or a comma and a key
//!   with its colon; in an array a closing bracket or a comma. Otherwise it is text. A quote that is text at
//!   a place where a key of the same object would begin ends the string before the comma in front of it.
//! - A closing bracket that matches no open one is dropped; one that matches an outer bracket closes the
//!   inner ones too.
//! - A text that ends early is closed: half a string is kept, half a literal completed (`tru`), a key without
//!   value gets `null`, half an escape is dropped. [`End::closed_by_us`] records it (P-027).
//! - An unquoted string in an object ends before a comma or line break that a key follows, in an array at
//!   either.
//! - Numbers with leading zeros are kept as strings, since the zeros carry meaning; so are numbers beyond the
//!   range of a double, unless the reader keeps digits ([`Reader::exact`]).

mod bare;
mod bare_key;
mod bracket;
mod build;
mod candidates;
mod direct;
mod doubt;
mod escape;
mod event;
mod find;
mod keys;
mod make;
mod members;
mod mend;
mod number;
mod outside;
mod peek;
mod print;
mod quote;
mod reader;
mod starts;
mod state;
mod string;
mod structure;
mod word;

pub use build::{Builder, Built, Values};
pub use doubt::{Doubts, PathStep, ValueDoubt};
pub use event::{Closing, End, JsonEvent, JsonSink, KeyPlace, Origin, Start, ThoughtMark, TopKey};
pub use find::{Found, find, find_in_string, find_shown, find_text, strict, strict_found, strict_text};
pub use keys::Duplicate;
pub use members::{Member, Members, Stand};
pub use reader::{HELD, Reader};
