//! Class `State`.

use pyo3::prelude::*;
use pyo3::types::PyList;
use serde_json::{Value, json};
use tambour::state::{AppliedBlock, AttachedState, HistoryPoint};
use tambour_bindings::state::{StateStore, read_point};

use crate::classes::Classes;
use crate::error::ResultExt;
use crate::functions::read_optional;
use crate::values::{read_value, write_value};

/// A JSON tree that replies change, with its history.
///
/// `value` is where it begins, an empty object if absent; `schema` a JSON Schema that it must satisfy after
/// each operation.
///
/// >>> from tambour import State
/// >>> state = State({"trust": 5})
/// >>> [result.ok for result in state.apply([["ADD", "trust", 3], ["POP", "bag"]], message="m1").results]
/// [True, False]
/// >>> state.value
/// {'trust': 8}
/// >>> undone = state.rollback(before="m1")
/// >>> state.value
/// {'trust': 5}
#[pyclass(module = "tambour")]
pub(crate) struct State {
    store: StateStore,
}

#[pymethods]
impl State {
    #[new]
    #[pyo3(signature = (value=None, *, schema=None))]
    fn new(
        py: Python<'_>,
        value: Option<&Bound<'_, PyAny>>,
        schema: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<State> {
        let value = read_optional(value)?.unwrap_or_else(|| json!({}));
        Ok(State { store: StateStore::new(value, read_optional(schema)?).or_raise(py)? })
    }

    /// Restores a state from what `save` returned.
    #[staticmethod]
    fn restore(saved: &Bound<'_, PyAny>) -> PyResult<State> {
        Ok(State { store: StateStore::restore(read_value(saved)?).or_raise(saved.py())? })
    }

    /// Returns the state with its history as a JSON-like value, for `restore`.
    fn save<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        write_value(py, &self.store.save())
    }

    /// A copy of the present state.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        write_value(py, self.store.value())
    }

    /// All known updates in order.
    #[getter]
    fn history<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        Classes::get(py)?.write_records(py, "AppliedUpdate", &self.store.updates())
    }

    /// Applies operations: a list of `[op, path, value]`, or the data of a `StateUpdate` event. Refused ones
    /// change nothing; with `atomic`, all are applied or none.
    #[pyo3(signature = (operations, *, message="", analysis="", atomic=false))]
    fn apply<'py>(
        &mut self,
        operations: &Bound<'py, PyAny>,
        message: &str,
        analysis: &str,
        atomic: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = operations.py();
        // An event of the package stands for its data.
        let operations = match operations.getattr_opt("to_dict")? {
            Some(to_dict) => match read_value(&to_dict.call0()?)? {
                Value::Object(mut fields) => fields.remove("data").unwrap_or(Value::Object(fields)),
                value => value,
            },
            None => read_value(operations)?,
        };
        let store = &mut self.store;
        let update = py.detach(|| store.apply(&operations, message, analysis, atomic)).or_raise(py)?;
        Classes::get(py)?.write_record(py, "AppliedUpdate", &update)
    }

    /// Undoes the updates from a point on, which leave the history; returns them. The point is before or after
    /// a message, or the start.
    #[pyo3(signature = (*, before=None, after=None))]
    fn rollback<'py>(
        &mut self,
        py: Python<'py>,
        before: Option<&str>,
        after: Option<&str>,
    ) -> PyResult<Bound<'py, PyList>> {
        let point = read_point(before, after, HistoryPoint::Start).or_raise(py)?;
        let undone = self.store.rollback(point).or_raise(py)?;
        Classes::get(py)?.write_records(py, "AppliedUpdate", &undone)
    }

    /// Returns the state before or after a message, or the present one.
    #[pyo3(signature = (*, before=None, after=None))]
    fn at<'py>(
        &self,
        py: Python<'py>,
        before: Option<&str>,
        after: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let point = read_point(before, after, HistoryPoint::End).or_raise(py)?;
        write_value(py, &self.store.at(point).or_raise(py)?)
    }

    /// Compares the present state with that before or after a message, or that of the start.
    #[pyo3(signature = (*, before=None, after=None))]
    fn diff<'py>(
        &self,
        py: Python<'py>,
        before: Option<&str>,
        after: Option<&str>,
    ) -> PyResult<Bound<'py, PyList>> {
        let point = read_point(before, after, HistoryPoint::Start).or_raise(py)?;
        let differences = self.store.diff(point, HistoryPoint::End).or_raise(py)?;
        Classes::get(py)?.write_records(py, "StateDifference", &differences)
    }

    /// Removes the updates of a message from the history; the state stays. Returns whether it had any.
    fn forget(&mut self, py: Python<'_>, message: &str) -> PyResult<bool> {
        self.store.forget(message).or_raise(py)
    }

    fn __repr__(&self) -> String {
        let mut text = self.store.value().to_string();
        if text.len() > MAX_SHOWN_BYTES {
            text.truncate(text.floor_char_boundary(MAX_SHOWN_BYTES));
            text.push('…');
        }
        format!("State({text})")
    }
}

/// Bytes of the value that `repr` shows.
const MAX_SHOWN_BYTES: usize = 200;

impl State {
    /// State for the pipeline of the reply of `message`.
    pub(crate) fn attach(&self, message: &str) -> AttachedState {
        self.store.attach(message)
    }

    /// Takes over the updates of a reply; nothing is changed if one does not fit.
    pub(crate) fn absorb(&mut self, updates: &[AppliedBlock]) -> tambour::Result<()> {
        self.store.absorb(updates)
    }
}
