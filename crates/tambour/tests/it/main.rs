//! One test binary for the library.

mod checker;
mod chunking;
mod corpus;
mod fixtures;
mod fuzz;
mod hostile;
mod layers;
mod privacy;
mod properties;
mod queries;
