//! What is mended before a dialect sees it, and the data that guides the mending.

pub mod expected;
