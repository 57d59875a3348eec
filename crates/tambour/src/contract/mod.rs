//! What a stream is held to.

mod policy;

pub use policy::Policy;
