//! Structured replies of language models as one typed, repaired, contract-checked event stream.

pub mod error;
pub mod event;
pub mod finding;
pub(crate) mod lex;
pub mod limits;
pub mod options;
pub mod repair;
pub mod span;
