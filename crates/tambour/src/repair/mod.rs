//! What is mended before a dialect sees it, and the data that guides the mending. Each repair is a report.

pub mod expected;
pub mod json;
pub mod rules;
