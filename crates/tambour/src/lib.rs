//! Structured replies of language models as one typed, repaired, contract-checked event stream.

pub mod catalogue;
pub mod contract;
pub mod dialect;
pub mod encode;
pub mod error;
pub mod event;
pub mod exit;
pub mod finding;
pub mod lex;
pub mod limits;
pub mod options;
pub mod pipeline;
pub mod policy;
pub mod privacy;
pub mod repair;
pub mod schema;
pub mod sequence;
pub mod settings;
pub mod span;
pub mod structure;
pub mod texts;
pub mod tool;
pub mod verdict;

pub use error::{Error, Result};
pub use event::{Event, Sink};
pub use finding::{Finding, Profile, Severity};
pub use options::Options;
pub use pipeline::{End, Pipeline};
