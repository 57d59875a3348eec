//! Repairs of broken JSON in replies. Each repair is reported.

pub mod json;
#[doc(hidden)]
pub mod rules;
