//! The native part of the Python package `tambour`. Names, docstrings of functions and everything that only
//! Python can say are in `python/tambour`.
//!
//! Objects are not shared between threads at the same time: a method that is called while another one of the
//! same object runs raises `RuntimeError`. Different objects run in parallel, since the interpreter's lock is
//! released for every chunk of `MIN_DETACHED_BYTES` and more.

mod arrow;
mod chunk;
mod classes;
mod decoder;
mod dialogue;
mod error;
mod functions;
mod pipeline;
mod sink;
mod state;
mod steps;
mod values;

/// Allocator of the native part: JSON values are many small allocations.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Native part of the package `tambour`.
#[pyo3::pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use crate::arrow::{BatchFunction, BatchResult, StreamResult};
    #[pymodule_export]
    use crate::decoder::Decoder;
    #[pymodule_export]
    use crate::dialogue::{Dialogue, ReplyReader, Script};
    #[pymodule_export]
    use crate::functions::{
        check, check_finish, contract, find_json, import_card, migrate_macros, render_prompt, repair,
        sanitize,
    };
    #[pymodule_export]
    use crate::pipeline::Pipeline;
    #[pymodule_export]
    use crate::state::State;
    #[pymodule_export]
    use crate::steps::PartialReader;

    use pyo3::prelude::*;

    /// Adds the version of the package.
    #[pymodule_init]
    fn add_version(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
