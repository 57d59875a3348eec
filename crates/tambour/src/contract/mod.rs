//! What a stream is held to.

mod examples;
mod policy;

pub use examples::{Example, examples};
pub use policy::Policy;
