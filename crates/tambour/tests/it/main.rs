//! One test binary for the library.

mod checker;
mod privacy;
mod queries;
