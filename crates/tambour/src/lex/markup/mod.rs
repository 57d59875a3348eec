//! Markup lexers. Their tokens are text, tags, comment marks and one literal mark that the caller chooses,
//! such as `<<ParsingError>>`; on request also reasoning marks without angle brackets, such as `[THINK]`.
//!
//! `<` starts a tag only if `/` or an ASCII letter follows directly and `>` closes valid tag syntax (T-028);
//! a `<` that begins no tag, comment or literal mark is text. A tag contains no second `<`, so no byte of a tag
//! is read twice.
//!
//! This is the strict syntax. [`TolerantLexer`] also accepts misspelled tags of known names (F-205).

mod head;
mod lexer;
mod lexer_state;
mod names;
mod token;
mod tolerant_lexer;

pub use lexer::MarkupLexer;
pub use names::{TagNames, is_name};
pub use token::{MarkupTag, MarkupToken, TagAttribute, TagFault, TagFaults, TagKind};
pub use tolerant_lexer::TolerantLexer;
