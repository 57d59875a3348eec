//! Repairs of broken replies before a dialect reads them. Each repair is reported.

pub mod json;
#[doc(hidden)]
pub mod rules;
