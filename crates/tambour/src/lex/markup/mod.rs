//! Markup tokens: text, tags, comment marks and literal marks; on request also the marks of reasoning that are no tags.
//!
//! `<` starts a tag only if `/` or an ASCII letter follows directly and `>` closes valid tag syntax (T-028);
//! anything else is text. A tag holds no second `<`, so no byte is ever read twice.
//!
//! That is the strict syntax. [`Tolerant`] reads tags of known names also where they are written wrongly (F-205).

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
