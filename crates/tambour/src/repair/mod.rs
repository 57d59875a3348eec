//! What is mended before a dialect sees it. Each repair is a report.

pub mod json;
pub mod rules;
