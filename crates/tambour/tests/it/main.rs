//! One test binary for the library.

mod corpus;
mod fixtures;
