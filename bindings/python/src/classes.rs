//! Classes of events and results, which `tambour._types` defines, and their instances.

use std::collections::HashMap;

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyString, PyType};
use serde::Serialize;
use serde_json::Value;
use tambour::{Event, Finding};
use tambour_bindings::types::{FieldKind, type_definitions};

use crate::values::write_value;

/// All classes, with the instances of events that have no fields.
pub(crate) struct Classes {
    by_name: HashMap<String, PlainClass>,
    /// Names of classes by names of events.
    by_event: HashMap<String, String>,
    final_delta: TextClass,
    draft_delta: TextClass,
    phase_delta: TextClass,
    /// Name of the field `id`.
    id: Py<PyString>,
    thinking_start: Py<PyAny>,
    thinking_end: Py<PyAny>,
    final_end: Py<PyAny>,
}

/// A class of plain data.
struct PlainClass {
    class: Py<PyType>,
    fields: Vec<PlainField>,
    /// True if the last field holds the further fields of the JSON object.
    is_open: bool,
}

struct PlainField {
    name: String,
    attribute: Py<PyString>,
    kind: FieldKind,
}

/// A class of an event with the field `text`.
struct TextClass {
    class: Py<PyType>,
    text: Py<PyString>,
}

static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();

impl Classes {
    /// The classes, loaded when they are first needed.
    pub(crate) fn get(py: Python<'_>) -> PyResult<&Classes> {
        CLASSES.get_or_try_init(py, || Classes::load(py))
    }

    fn load(py: Python<'_>) -> PyResult<Classes> {
        let module = py.import("tambour._types")?;
        let find_class = |name: &str| -> PyResult<Py<PyType>> {
            Ok(module.getattr(name)?.cast_into::<PyType>()?.unbind())
        };
        let (mut by_name, mut by_event) = (HashMap::new(), HashMap::new());
        for definition in type_definitions() {
            let fields = definition.fields.into_iter().map(|field| PlainField {
                attribute: PyString::intern(py, &field.attribute()).unbind(),
                name: field.name,
                kind: field.kind,
            });
            let class = PlainClass {
                class: find_class(&definition.name)?,
                fields: fields.collect(),
                is_open: definition.is_open,
            };
            if let Some(event) = definition.event {
                by_event.insert(event, definition.name.clone());
            }
            by_name.insert(definition.name, class);
        }
        let text_class = |name: &str| -> PyResult<TextClass> {
            Ok(TextClass { class: find_class(name)?, text: PyString::intern(py, "text").unbind() })
        };
        let instance =
            |name: &str| -> PyResult<Py<PyAny>> { Ok(find_class(name)?.bind(py).call0()?.unbind()) };
        Ok(Classes {
            final_delta: text_class("FinalDelta")?,
            draft_delta: text_class("DraftDelta")?,
            phase_delta: text_class("PhaseDelta")?,
            id: PyString::intern(py, "id").unbind(),
            thinking_start: instance("ThinkingStart")?,
            thinking_end: instance("ThinkingEnd")?,
            final_end: instance("FinalEnd")?,
            by_name,
            by_event,
        })
    }

    /// Converts an event.
    pub(crate) fn write_event<'py>(&self, py: Python<'py>, event: &Event<'_>) -> PyResult<Bound<'py, PyAny>> {
        match event {
            Event::FinalDelta { text } => self.final_delta.create(py, text),
            Event::DraftDelta { text } => self.draft_delta.create(py, text),
            Event::PhaseDelta { id, text } => {
                let TextClass { class, text: attribute } = &self.phase_delta;
                let id = id.into_bound_py_any(py)?;
                let text = PyString::new(py, text).into_any();
                instance::create(
                    class.bind(py),
                    [(self.id.bind(py), &id), (attribute.bind(py), &text)].into_iter(),
                )
            }
            Event::ThinkingStart => Ok(self.thinking_start.bind(py).clone()),
            Event::ThinkingEnd => Ok(self.thinking_end.bind(py).clone()),
            Event::FinalEnd => Ok(self.final_end.bind(py).clone()),
            _ => match self.by_event.get(event.name()) {
                Some(name) => self.write_plain(py, name, &event.data()),
                None => Err(missing_class(event.name())),
            },
        }
    }

    /// Converts findings to a list.
    pub(crate) fn write_findings<'py>(
        &self,
        py: Python<'py>,
        findings: &[Finding],
    ) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for finding in findings {
            list.append(self.write_record(py, "Finding", finding)?)?;
        }
        Ok(list)
    }

    /// Converts a result to an instance of the class `name`.
    pub(crate) fn write_record<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        record: &impl Serialize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let value =
            serde_json::to_value(record).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        self.write_plain(py, name, &value)
    }

    /// Converts results to a list.
    pub(crate) fn write_records<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        records: &[impl Serialize],
    ) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for record in records {
            list.append(self.write_record(py, name, record)?)?;
        }
        Ok(list)
    }

    /// Creates an instance of the class `name` from a JSON object; absent fields are `None`.
    fn write_plain<'py>(&self, py: Python<'py>, name: &str, value: &Value) -> PyResult<Bound<'py, PyAny>> {
        let class = self.by_name.get(name).ok_or_else(|| missing_class(name))?;
        let mut values = Vec::with_capacity(class.fields.len());
        for (index, field) in class.fields.iter().enumerate() {
            let is_rest = class.is_open && index + 1 == class.fields.len();
            values.push(match value.get(&field.name) {
                _ if is_rest => write_rest(py, value, &class.fields)?,
                Some(value) => self.write_kind(py, &field.kind, value)?,
                None => py.None().into_bound(py),
            });
        }
        let attributes = class.fields.iter().map(|field| field.attribute.bind(py));
        instance::create(class.class.bind(py), attributes.zip(&values))
    }

    fn write_kind<'py>(
        &self,
        py: Python<'py>,
        kind: &FieldKind,
        value: &Value,
    ) -> PyResult<Bound<'py, PyAny>> {
        match (kind, value) {
            (FieldKind::Object(name), Value::Object(_)) => self.write_plain(py, name, value),
            (FieldKind::List(kind), Value::Array(items)) => {
                let list = PyList::empty(py);
                for item in items {
                    list.append(self.write_kind(py, kind, item)?)?;
                }
                Ok(list.into_any())
            }
            _ => write_value(py, value),
        }
    }
}

impl TextClass {
    fn create<'py>(&self, py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
        let text = PyString::new(py, text).into_any();
        instance::create(self.class.bind(py), std::iter::once((self.text.bind(py), &text)))
    }
}

/// Fields of an object that are not among `fields`.
fn write_rest<'py>(py: Python<'py>, value: &Value, fields: &[PlainField]) -> PyResult<Bound<'py, PyAny>> {
    let rest = PyDict::new(py);
    for (key, value) in value.as_object().into_iter().flatten() {
        if !fields.iter().any(|field| field.name == *key) {
            rest.set_item(key, write_value(py, value)?)?;
        }
    }
    Ok(rest.into_any())
}

fn missing_class(name: &str) -> PyErr {
    PyRuntimeError::new_err(format!(
        "the package has no class for `{name}`; its files are of another version"
    ))
}

/// Instances of frozen classes, without a call of `__init__`.
#[expect(unsafe_code, reason = "the stable interface offers no safe way to fill a frozen object")]
mod instance {
    use pyo3::ffi;
    use pyo3::prelude::*;
    use pyo3::types::{PyString, PyType};

    /// Creates an instance of a class of `tambour._types` with these attributes. `__setattr__` of a frozen
    /// class refuses every change, so attributes are set as `object.__setattr__` does.
    pub(super) fn create<'a, 'py: 'a>(
        class: &Bound<'py, PyType>,
        attributes: impl Iterator<Item = (&'a Bound<'py, PyString>, &'a Bound<'py, PyAny>)>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = class.py();
        // SAFETY: `class` is a type; the result is a new reference, or null with an exception set. The classes
        // have no `__new__` of their own, so an allocated object is complete but for its attributes.
        let object = unsafe {
            let object = ffi::PyType_GenericAlloc(class.as_type_ptr(), 0);
            Bound::from_owned_ptr_or_err(py, object)?
        };
        for (name, value) in attributes {
            // SAFETY: all three are objects that live across the call, which borrows them.
            let status =
                unsafe { ffi::PyObject_GenericSetAttr(object.as_ptr(), name.as_ptr(), value.as_ptr()) };
            if status != 0 {
                return Err(PyErr::fetch(py));
            }
        }
        Ok(object)
    }
}
