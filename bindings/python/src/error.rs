//! Errors of the library as exceptions of the package.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// Exception for mistakes of the caller.
static TAMBOUR_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// Converts an error of the library to a `TambourError` with its code and place.
pub(crate) fn convert_error(py: Python<'_>, error: &tambour::Error) -> PyErr {
    let place = error.location().map(|place| (place.line, place.column));
    let build = || -> PyResult<PyErr> {
        let class = TAMBOUR_ERROR.import(py, "tambour._errors", "TambourError")?;
        let exception = class.call1((
            error.to_string(),
            error.code(),
            place.map(|(line, _)| line),
            place.map(|(_, column)| column),
        ))?;
        Ok(PyErr::from_value(exception))
    };
    build().unwrap_or_else(|error| error)
}

/// Exception of a state that cannot take the updates of a reply; its `events` are set by the caller.
pub(crate) fn state_error(py: Python<'_>, message: &str) -> PyErr {
    static STATE_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let build = || -> PyResult<PyErr> {
        let class = STATE_ERROR.import(py, "tambour._errors", "StateError")?;
        Ok(PyErr::from_value(class.call1((message,))?))
    };
    build().unwrap_or_else(|error| error)
}

/// Adds [`ResultExt::or_raise`] to results of the library.
pub(crate) trait ResultExt<T> {
    /// Converts an error to an exception.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> ResultExt<T> for tambour::Result<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| convert_error(py, &error))
    }
}
