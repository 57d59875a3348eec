//! Markup tokens: text, tags, comment marks and literal marks; on request also reasoning marks that are not
//! tags.
//!
//! `<` starts a tag only if `/` or an ASCII letter follows directly and `>` closes valid tag syntax (T-028);
//! anything else is text. A tag contains no second `<`, so no byte is ever read twice.
//!
//! This is the strict syntax. [`Tolerant`] also accepts misspelled tags of known names (F-205).

mod head;
mod lexer;
mod names;
mod slip;
mod step;
mod token;
mod tolerant;

pub use lexer::Markup;
pub use names::{Names, is_name};
pub use slip::{Slip, Slips};
pub use token::{Attribute, Tag, TagKind, Token};
pub use tolerant::Tolerant;
