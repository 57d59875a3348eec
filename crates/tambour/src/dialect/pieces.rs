//! JSON strings written from several pieces of text, without joining these first.

use std::fmt;

use serde::{Serialize, Serializer};

/// Pieces of one text.
pub(super) struct TextPieces<I>(pub(super) I);

impl<'a, I: Iterator<Item = &'a str> + Clone> TextPieces<I> {
    /// Appends the text as a JSON string.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        serde_json::to_writer(out, self).expect("a text can be written, and bytes take all");
    }
}

impl<'a, I: Iterator<Item = &'a str> + Clone> fmt::Display for TextPieces<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.clone().try_for_each(|piece| f.write_str(piece))
    }
}

impl<'a, I: Iterator<Item = &'a str> + Clone> Serialize for TextPieces<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Converts written bytes to a string.
pub(super) fn utf8_string(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("JSON and names are text")
}
