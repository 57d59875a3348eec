//! One test binary for the library.

mod checker;
mod corpus;
mod fixtures;
mod privacy;
mod queries;
