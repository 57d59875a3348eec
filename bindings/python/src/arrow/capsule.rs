//! Arrow arrays and streams in capsules, as the PyCapsule interface passes them between packages.

#![expect(unsafe_code, reason = "the Arrow C data interface is structures behind pointers")]

use std::ffi::CStr;

use arrow_array::ffi::{from_ffi, to_ffi};
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{Array, RecordBatch, RecordBatchReader, StructArray, make_array};
use arrow_data::ffi::FFI_ArrowArray;
use arrow_schema::{ArrowError, DataType, Field, Schema, ffi::FFI_ArrowSchema};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

const ARRAY_NAME: &CStr = c"arrow_array";
const SCHEMA_NAME: &CStr = c"arrow_schema";
const STREAM_NAME: &CStr = c"arrow_array_stream";

/// Two capsules: schema and array.
pub(super) type ArrayCapsules<'py> = (Bound<'py, PyCapsule>, Bound<'py, PyCapsule>);

/// Takes the batch out of an object with `__arrow_c_array__`. An array that is no struct becomes a batch with
/// one column, called `name`.
///
/// # Errors
/// The object raises an exception, or its capsules are not those of the interface.
pub(super) fn import_batch(object: &Bound<'_, PyAny>, name: &str) -> PyResult<RecordBatch> {
    let capsules = object.call_method0("__arrow_c_array__")?;
    let Ok((schema, array)) = capsules.extract::<(Bound<'_, PyCapsule>, Bound<'_, PyCapsule>)>() else {
        return Err(PyTypeError::new_err("`__arrow_c_array__` must return two capsules"));
    };
    let schema = schema.pointer_checked(Some(SCHEMA_NAME))?.cast::<FFI_ArrowSchema>();
    let array = array.pointer_checked(Some(ARRAY_NAME))?.cast::<FFI_ArrowArray>();
    // SAFETY: capsules of these names hold these structures, and live as long as `capsules`; moving out of
    // them is how the interface passes ownership. The producer answers for the content, as it does for any
    // consumer in this process.
    let (data, field) = unsafe {
        let schema = FFI_ArrowSchema::from_raw(schema.as_ptr());
        let array = FFI_ArrowArray::from_raw(array.as_ptr());
        if schema.release().is_none() || array.is_released() {
            return Err(PyValueError::new_err("the capsules have been used already"));
        }
        (from_ffi(array, &schema).map_err(arrow_error)?, Field::try_from(&schema).map_err(arrow_error)?)
    };
    let array = make_array(data);
    if let DataType::Struct(_) = array.data_type() {
        let array = StructArray::from(array.to_data());
        if array.null_count() > 0 {
            return Err(PyValueError::new_err("the batch is an array of structs of which some are null"));
        }
        let DataType::Struct(fields) = field.data_type().clone() else {
            return Err(PyValueError::new_err("the schema of the batch is no struct"));
        };
        let schema = Schema::new_with_metadata(fields, field.metadata().clone());
        let (_, columns, _) = array.into_parts();
        return RecordBatch::try_new(schema.into(), columns).map_err(arrow_error);
    }
    let schema = Schema::new(vec![Field::new(name, array.data_type().clone(), true)]);
    RecordBatch::try_new(schema.into(), vec![array]).map_err(arrow_error)
}

/// Takes the stream out of an object with `__arrow_c_stream__`.
///
/// # Errors
/// The object raises an exception, its capsule is not that of the interface, or the stream is not one of
/// batches.
pub(super) fn import_stream(object: &Bound<'_, PyAny>) -> PyResult<RecordBatchStreamReader> {
    let capsule = object.call_method0("__arrow_c_stream__")?;
    let Ok(capsule) = capsule.cast::<PyCapsule>() else {
        return Err(PyTypeError::new_err("`__arrow_c_stream__` must return a capsule"));
    };
    let stream = capsule.pointer_checked(Some(STREAM_NAME))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: as in `import_batch`.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr()) };
    if stream.release().is_none() {
        return Err(PyValueError::new_err("the capsule has been used already"));
    }
    // Reading the schema may need the interpreter, in another thread too.
    object.py().detach(|| RecordBatchStreamReader::try_new(stream)).map_err(arrow_error)
}

/// Puts a batch into capsules.
pub(super) fn export_batch<'py>(py: Python<'py>, batch: &RecordBatch) -> PyResult<ArrayCapsules<'py>> {
    let data = StructArray::from(batch.clone()).into_data();
    let (array, _) = to_ffi(&data).map_err(arrow_error)?;
    Ok((export_schema(py, &batch.schema())?, PyCapsule::new_with_value(py, array, ARRAY_NAME)?))
}

/// Puts a schema into a capsule.
pub(super) fn export_schema<'py>(py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema).map_err(arrow_error)?;
    PyCapsule::new_with_value(py, schema, SCHEMA_NAME)
}

/// Puts a stream into a capsule.
pub(super) fn export_stream<'py>(
    py: Python<'py>,
    reader: Box<dyn RecordBatchReader + Send>,
) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), STREAM_NAME)
}

/// Exception for an error of Arrow.
#[expect(clippy::needless_pass_by_value, reason = "an argument of `map_err`")]
pub(super) fn arrow_error(error: ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}
