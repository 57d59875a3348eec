//! Column of replies, in any of the types that columns of text have.

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, LargeBinaryArray, StringArray, StringViewArray,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{ArrowError, DataType};

/// Texts of a column, as bytes: what other packages call UTF-8 is checked while it is read.
pub(super) enum Texts {
    Small(BinaryArray),
    Large(LargeBinaryArray),
    View(BinaryViewArray),
    /// All null.
    Null(usize),
    /// Text of each row by its index in `values`.
    Dictionary {
        indices: Vec<usize>,
        nulls: Option<NullBuffer>,
        values: Box<Texts>,
    },
}

impl Texts {
    /// Reads a column called `name`, for messages.
    ///
    /// # Errors
    /// The type of the column is neither text nor bytes.
    pub(super) fn new(column: &ArrayRef, name: &str) -> Result<Texts, ArrowError> {
        Ok(match column.data_type() {
            DataType::Utf8 => Texts::Small(StringArray::from(column.to_data()).into()),
            DataType::LargeUtf8 => Texts::Large(arrow_array::LargeStringArray::from(column.to_data()).into()),
            DataType::Utf8View => Texts::View(StringViewArray::from(column.to_data()).to_binary_view()),
            DataType::Binary => Texts::Small(BinaryArray::from(column.to_data())),
            DataType::LargeBinary => Texts::Large(LargeBinaryArray::from(column.to_data())),
            DataType::BinaryView => Texts::View(BinaryViewArray::from(column.to_data())),
            DataType::Null => Texts::Null(column.len()),
            DataType::Dictionary(..) => {
                let dictionary = column.as_any_dictionary();
                let values = Box::new(Texts::new(dictionary.values(), name)?);
                if values.len() == 0 {
                    return Ok(Texts::Null(column.len()));
                }
                let nulls = dictionary.keys().nulls().cloned();
                Texts::Dictionary { indices: dictionary.normalized_keys(), nulls, values }
            }
            other => {
                let message = format!("column `{name}` is {other}; replies are text or bytes");
                return Err(ArrowError::SchemaError(message));
            }
        })
    }

    /// Number of rows.
    pub(super) fn len(&self) -> usize {
        match self {
            Texts::Small(array) => array.len(),
            Texts::Large(array) => array.len(),
            Texts::View(array) => array.len(),
            Texts::Null(count) => *count,
            Texts::Dictionary { indices, .. } => indices.len(),
        }
    }

    /// Text of a row; `None` if it is null.
    pub(super) fn get(&self, row: usize) -> Option<&[u8]> {
        match self {
            Texts::Small(array) => array.is_valid(row).then(|| array.value(row)),
            Texts::Large(array) => array.is_valid(row).then(|| array.value(row)),
            Texts::View(array) => array.is_valid(row).then(|| array.value(row)),
            Texts::Null(_) => None,
            Texts::Dictionary { indices, nulls, values } => {
                let is_valid = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
                is_valid.then(|| values.get(indices[row])).flatten()
            }
        }
    }

    /// Number of bytes of a row.
    pub(super) fn size(&self, row: usize) -> usize {
        self.get(row).map_or(0, <[u8]>::len)
    }
}
