//! One test binary for the library.

mod checker;
mod corpus;
mod fixtures;
mod json;
mod layers;
mod privacy;
mod queries;
mod stream;
