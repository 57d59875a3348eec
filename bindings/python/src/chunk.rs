//! Text and bytes of the caller.

use pyo3::exceptions::{PyTypeError, PyUnicodeEncodeError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView, PyString};

/// Length in bytes from which the interpreter's lock is released while a chunk is read. Below it, releasing
/// takes longer than reading.
pub(crate) const MIN_DETACHED_BYTES: usize = 2048;

/// A chunk of a reply.
#[derive(Clone, Copy)]
pub(crate) enum Chunk<'a> {
    /// Text.
    Text(&'a str),
    /// Bytes, which may be cut within a character.
    Bytes(&'a [u8]),
}

impl<'a> Chunk<'a> {
    pub(crate) fn as_bytes(self) -> &'a [u8] {
        match self {
            Chunk::Text(text) => text.as_bytes(),
            Chunk::Bytes(bytes) => bytes,
        }
    }
}

/// Calls `read` with the text or bytes of an object: `str`, `bytes`, `bytearray` or `memoryview`. Surrogates
/// in a `str` are invalid bytes, which a reader replaces and reports.
pub(crate) fn with_chunk<R>(object: &Bound<'_, PyAny>, read: impl FnOnce(Chunk<'_>) -> R) -> PyResult<R> {
    if let Ok(text) = object.cast::<PyString>() {
        return match text.to_str() {
            Ok(text) => Ok(read(Chunk::Text(text))),
            Err(error) if error.is_instance_of::<PyUnicodeEncodeError>(object.py()) => {
                let encoded = object.call_method1("encode", ("utf-8", "surrogatepass"))?;
                Ok(read(Chunk::Bytes(encoded.cast::<PyBytes>()?.as_bytes())))
            }
            Err(error) => Err(error),
        };
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(read(Chunk::Bytes(bytes.as_bytes())));
    }
    if object.is_instance_of::<PyByteArray>() || object.is_instance_of::<PyMemoryView>() {
        let copy = object.py().get_type::<PyBytes>().call1((object,))?;
        return Ok(read(Chunk::Bytes(copy.cast::<PyBytes>()?.as_bytes())));
    }
    Err(type_error(object))
}

fn type_error(object: &Bound<'_, PyAny>) -> PyErr {
    match object.get_type().name() {
        Ok(name) => PyTypeError::new_err(format!("a chunk must be str or bytes, not {name}")),
        Err(error) => error,
    }
}

/// Argument of text, in which lone surrogates are replaced: text of a model, or of an exception, may have some.
pub(crate) struct LossyText(pub(crate) String);

impl FromPyObject<'_, '_> for LossyText {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<LossyText> {
        object.cast::<PyString>()?;
        to_text(&object).map(LossyText)
    }
}

/// Owned text of an object that [`with_chunk`] reads; bytes that are not UTF-8 are replaced. Two surrogates
/// of a pair become their character, a lone one is replaced.
pub(crate) fn to_text(object: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = object.cast::<PyString>() {
        return match text.to_str() {
            Ok(text) => Ok(text.to_owned()),
            Err(error) if error.is_instance_of::<PyUnicodeEncodeError>(object.py()) => {
                let encoded = object.call_method1("encode", ("utf-16-le", "surrogatepass"))?;
                let units = encoded.cast::<PyBytes>()?.as_bytes().as_chunks::<2>().0;
                let units = units.iter().map(|unit| u16::from_le_bytes(*unit));
                Ok(char::decode_utf16(units)
                    .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
                    .collect())
            }
            Err(error) => Err(error),
        };
    }
    with_chunk(object, |chunk| match chunk {
        Chunk::Text(text) => text.to_owned(),
        Chunk::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
    })
}
