//! One test binary for the library.

mod checker;
mod corpus;
mod fixtures;
mod layers;
mod privacy;
mod queries;
