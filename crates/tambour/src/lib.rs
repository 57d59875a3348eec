//! Structured replies of language models as one typed, repaired, contract-checked event stream.

pub mod contract;
pub mod error;
pub mod event;
pub mod finding;
pub mod limits;
pub mod options;
pub mod privacy;
pub mod span;
