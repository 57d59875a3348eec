//! Markup tokens: text, tags, comment marks and literal marks; on request also the marks of reasoning that are no tags.
//!
//! `<` starts a tag only if `/` or an ASCII letter follows directly and `>` closes valid tag syntax (T-028);
//! anything else is text. A tag holds no second `<`, so no byte is ever read twice.

mod lexer;
mod step;
mod token;

pub use lexer::Markup;
pub use token::{Attribute, Tag, TagKind, Token};
