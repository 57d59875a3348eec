//! Bytes to tokens. Knows no dialect and mends nothing.

pub(crate) mod json;
