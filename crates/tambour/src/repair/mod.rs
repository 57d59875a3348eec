//! Mending what a model wrote before a dialect sees it. Each repair is a report.

pub mod json;
pub mod rules;
