//! Class `PartialReader`: steps by which the JSON value of a reply grows.

use std::sync::{Mutex, PoisonError};

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use tambour::Profile;
use tambour_bindings::partial::{self, ValueStep};

use crate::chunk::with_chunk;
use crate::pipeline::read_options;
use crate::values::write_number;

/// Reads the JSON value of a reply while it arrives, with repairs.
///
/// A step is a number, followed in the list by its value if it has one: see `tambour._partial`.
#[pyclass(module = "tambour._native")]
pub(crate) struct PartialReader {
    /// Only reached through `&mut`, so it is never locked.
    reader: Mutex<partial::PartialReader>,
}

#[pymethods]
impl PartialReader {
    /// `options` are those of the pipeline that reads the same reply; their limits count here too.
    #[new]
    #[pyo3(signature = (options=None))]
    fn new(py: Python<'_>, options: Option<&Bound<'_, PyDict>>) -> PyResult<PartialReader> {
        let options = read_options(py, options, Profile::Lenient)?;
        Ok(PartialReader { reader: Mutex::new(partial::PartialReader::new(&options.limits)) })
    }

    /// Reads the next chunk; returns the steps.
    fn push<'py>(&mut self, chunk: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let reader = self.reader.get_mut().unwrap_or_else(PoisonError::into_inner);
        let steps = with_chunk(chunk, |chunk| reader.push(chunk.as_bytes()))?;
        write_steps(chunk.py(), &steps)
    }

    /// Ends the reply; returns the last steps.
    fn finish<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let reader = self.reader.get_mut().unwrap_or_else(PoisonError::into_inner);
        write_steps(py, &reader.finish())
    }
}

fn write_steps<'py>(py: Python<'py>, steps: &[ValueStep]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for step in steps {
        let (code, value) = match step {
            ValueStep::Start => (0, None),
            ValueStep::ObjectStart => (1, None),
            ValueStep::ArrayStart => (2, None),
            ValueStep::End => (3, None),
            ValueStep::Key(key) => (4, Some(PyString::new(py, key).into_any())),
            ValueStep::StringStart => (5, None),
            ValueStep::StringDelta(text) => (6, Some(PyString::new(py, text).into_any())),
            ValueStep::StringEnd => (7, None),
            ValueStep::Number(number) => (8, Some(write_number(py, number)?)),
            ValueStep::Bool(flag) => (8, Some(flag.into_bound_py_any(py)?)),
            ValueStep::Null => (8, Some(py.None().into_bound(py))),
            ValueStep::Complete => (9, None),
        };
        list.append((code, value))?;
    }
    Ok(list)
}
