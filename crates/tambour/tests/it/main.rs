//! Tests of the library through its public interface.

mod json;
