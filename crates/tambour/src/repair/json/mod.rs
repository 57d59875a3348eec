//! Reads the JSON of models: incrementally, mending faults in the same pass, in any text around it.
//!
//! [`Reader`] takes text in pieces and hands [`JsonEvent`]s to a [`JsonSink`] as they are known; [`Builder`] makes
//! values of them. [`find`] is the whole case: the one value of a chatty text. [`strict`] mends nothing. [`find_text`] and
//! [`strict_text`] give the value as text, of any size and with all digits.
//!
//! What does not belong here: what a value means, or which of several candidates a dialect takes.
//!
//! # How faults are read
//!
//! - A quote ends its string if what follows fits the place: in an object a closing bracket, or a comma and a key with
//!   its colon; in an array a closing bracket or a comma. Otherwise it is text. A quote that is text where a key of the
//!   same object would begin ends the string before the comma in front of it.
//! - A closing bracket that fits no open one is left out, one that fits an outer one closes what is inside.
//! - A text that ends early is closed: half a string is kept, half a literal completed (`tru`), a key without value gets
//!   `null`, half an escape is left out. [`End::closed_by_us`] says so (P-027).
//! - An unquoted text in an object ends before a comma or line break that a key follows, in an array at either.
//! - Numbers with leading zeros are kept as strings, since the zeros say something; so are numbers no double can hold,
//!   unless the reader keeps digits ([`Reader::exact`]).

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
