//! JSON values to and from Python.

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use serde_json::{Map, Number, Value};

/// Maximum nesting of a value from Python.
const MAX_DEPTH: usize = 128;
/// Maximum number of values within a value from Python. A list that occurs twice counts twice.
const MAX_ITEMS: usize = 1 << 20;

/// Converts a JSON-like object: `None`, `bool`, `int`, `float`, `str`, `list`, `tuple`, or `dict` with keys of
/// text.
///
/// # Errors
/// Another type, a number that JSON does not hold, a surrogate, or a value that is too large or contains
/// itself.
pub(crate) fn read_value(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    let mut items_left = MAX_ITEMS;
    read_nested(object, MAX_DEPTH, &mut items_left)
}

/// Converts a dictionary; `None` is an empty one.
pub(crate) fn read_map(object: Option<&Bound<'_, PyDict>>) -> PyResult<Map<String, Value>> {
    match object.map(|dict| read_value(dict.as_any())).transpose()? {
        Some(Value::Object(map)) => Ok(map),
        _ => Ok(Map::new()),
    }
}

fn read_nested(object: &Bound<'_, PyAny>, depth_left: usize, items_left: &mut usize) -> PyResult<Value> {
    *items_left = items_left
        .checked_sub(1)
        .ok_or_else(|| PyValueError::new_err(format!("the value has more than {MAX_ITEMS} values")))?;
    if object.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(flag) = object.cast::<PyBool>() {
        return Ok(Value::Bool(flag.is_true()));
    }
    if object.is_instance_of::<PyInt>() {
        let number = object.extract::<i64>().map(Number::from);
        let number = number.or_else(|_| object.extract::<u64>().map(Number::from));
        return number
            .map(Value::Number)
            .map_err(|_| PyValueError::new_err("a whole number must be from -2**63 to 2**64 - 1"));
    }
    if let Ok(number) = object.cast::<PyFloat>() {
        let number = Number::from_f64(number.value());
        let not_finite = || PyValueError::new_err("JSON has no infinite numbers and no NaN");
        return number.map(Value::Number).ok_or_else(not_finite);
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(Value::String(text.to_str()?.to_owned()));
    }
    let Some(depth_left) = depth_left.checked_sub(1) else {
        let message = format!("the value is nested deeper than {MAX_DEPTH} levels, or contains itself");
        return Err(PyValueError::new_err(message));
    };
    if let Ok(dict) = object.cast::<PyDict>() {
        let mut map = Map::new();
        for item in dict.items() {
            let (key, value) = item.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
            let Ok(key) = key.cast::<PyString>() else {
                let name = key.get_type().name()?;
                return Err(PyTypeError::new_err(format!("keys of a dict must be str, not {name}")));
            };
            map.insert(key.to_str()?.to_owned(), read_nested(&value, depth_left, items_left)?);
        }
        return Ok(Value::Object(map));
    }
    if let Ok(list) = object.cast::<PyList>() {
        let items = list.iter().map(|item| read_nested(&item, depth_left, items_left));
        return items.collect::<PyResult<_>>().map(Value::Array);
    }
    if let Ok(tuple) = object.cast::<PyTuple>() {
        let items = tuple.iter().map(|item| read_nested(&item, depth_left, items_left));
        return items.collect::<PyResult<_>>().map(Value::Array);
    }
    let name = object.get_type().name()?;
    Err(PyTypeError::new_err(format!(
        "a JSON value is None, bool, int, float, str, list or dict, not {name}"
    )))
}

/// Converts a value to Python objects. Its depth is bounded by what made it.
pub(crate) fn write_value<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    ObjectWriter { py, keys: [const { None }; KEY_SLOTS] }.write(value)
}

/// Number of slots of the cache of keys.
const KEY_SLOTS: usize = 64;

/// Writer of one value. Objects of a list mostly have the same keys, whose strings are made once.
struct ObjectWriter<'a, 'py> {
    py: Python<'py>,
    /// Last key of each slot, with its string.
    keys: [Option<(&'a str, Bound<'py, PyString>)>; KEY_SLOTS],
}

impl<'a, 'py> ObjectWriter<'a, 'py> {
    fn write(&mut self, value: &'a Value) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        match value {
            Value::Null => Ok(py.None().into_bound(py)),
            Value::Bool(flag) => flag.into_bound_py_any(py),
            Value::Number(number) => write_number(py, number),
            Value::String(text) => Ok(PyString::new(py, text).into_any()),
            Value::Array(items) => {
                let items = items.iter().map(|item| self.write(item)).collect::<PyResult<Vec<_>>>()?;
                Ok(PyList::new(py, items)?.into_any())
            }
            Value::Object(fields) => {
                let dict = PyDict::new(py);
                for (key, value) in fields {
                    let key = self.write_key(key);
                    dict.set_item(key, self.write(value)?)?;
                }
                Ok(dict.into_any())
            }
        }
    }

    fn write_key(&mut self, key: &'a str) -> Bound<'py, PyString> {
        let bytes = key.as_bytes();
        let (first, last) = (bytes.first().copied(), bytes.last().copied());
        let hash = usize::from(first.unwrap_or_default()) * 7 + usize::from(last.unwrap_or_default());
        let slot = &mut self.keys[(hash + bytes.len() * 31) % KEY_SLOTS];
        match slot {
            Some((known, string)) if *known == key => string.clone(),
            _ => {
                let string = PyString::new(self.py, key);
                *slot = Some((key, string.clone()));
                string
            }
        }
    }
}

/// Converts a number to `int` or `float`.
pub(crate) fn write_number<'py>(py: Python<'py>, number: &Number) -> PyResult<Bound<'py, PyAny>> {
    if let Some(number) = number.as_i64() {
        return number.into_bound_py_any(py);
    }
    match number.as_u64() {
        Some(number) => number.into_bound_py_any(py),
        None => number.as_f64().unwrap_or_default().into_bound_py_any(py),
    }
}
