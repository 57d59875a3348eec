//! Tests of the shared parts of the packages for other languages.

mod json;
mod layers;
mod options;
mod state;
mod types;
