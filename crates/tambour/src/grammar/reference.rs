//! References within a schema, and schemas whose root is one.

use std::borrow::Cow;

use serde_json::Value;

use super::json::{MAX_LEVELS, is_annotation, weight};
use super::merge::merge;
use super::{GrammarBuilder, NoteKind};
use crate::error::{Error, Result};

impl GrammarBuilder {
    /// Returns a schema with what `$ref` and `allOf` at its root lead to, joined to one schema. The references
    /// within it still lead into `schema`. Keywords that cannot be joined are noted, and left to the checker.
    ///
    /// # Errors
    /// A reference leads nowhere or to itself, or there are too many parts or levels.
    pub(crate) fn flatten<'a>(&mut self, schema: &'a Value) -> Result<Cow<'a, Value>> {
        let mut flattener = Flattener { builder: self, root: schema, path: Vec::new() };
        flattener.flatten(schema, "#", 0)
    }

    /// Notes keywords of the schema at `place` that a conjunction has lost.
    pub(super) fn note_lost(&mut self, lost: &[String], place: &str) {
        for key in lost {
            let text = format!("`{key}`: it is joined with another one, and the checker tests it");
            self.note(NoteKind::UncheckedKeyword, &format!("{place}/{key}"), &text);
        }
    }
}

/// Join of a schema with those that its root leads to.
struct Flattener<'a, 'b> {
    builder: &'b mut GrammarBuilder,
    root: &'a Value,
    /// References on the way.
    path: Vec<&'a str>,
}

impl<'a> Flattener<'a, '_> {
    fn flatten(&mut self, schema: &'a Value, place: &str, level: usize) -> Result<Cow<'a, Value>> {
        let reference = schema.get("$ref").and_then(Value::as_str);
        let branches = schema.get("allOf").and_then(Value::as_array);
        if reference.is_none() && branches.is_none() {
            return Ok(Cow::Borrowed(schema));
        }
        if level > MAX_LEVELS {
            return Err(Error::invalid(format!(
                "the root of the schema leads through more than {MAX_LEVELS} others at {place}: a grammar needs fewer"
            )));
        }
        // Definitions are found from the root.
        let fields = schema.as_object().into_iter().flatten();
        let own = fields.filter(|(key, _)| !matches!(&***key, "$ref" | "allOf" | "$defs" | "definitions"));
        let mut joined = Value::Object(own.map(|(key, value)| (key.clone(), value.clone())).collect());
        if let Some(reference) = reference {
            if self.path.contains(&reference) {
                return Err(Error::invalid(format!(
                    "the reference `{reference}` leads to itself: a schema that contains itself does so within an \
                     array or an object"
                )));
            }
            let target = resolve(self.root, reference, place)?;
            self.path.push(reference);
            self.join(&mut joined, target, reference, level)?;
            self.path.pop();
        }
        for (index, branch) in branches.into_iter().flatten().enumerate() {
            self.join(&mut joined, branch, &format!("{place}/allOf/{index}"), level)?;
        }
        Ok(Cow::Owned(joined))
    }

    /// Joins `joined` with the schema at `place`.
    fn join(&mut self, joined: &mut Value, schema: &'a Value, place: &str, level: usize) -> Result<()> {
        let flat = self.flatten(schema, place, level + 1)?;
        let is_plain = joined.as_object().is_some_and(|fields| fields.keys().all(|key| is_annotation(key)));
        // Two schemas of which one is large are copied as a whole.
        self.builder.count(weight(&flat) + weight(joined), place)?;
        let (merged, lost) = if is_plain { (flat.into_owned(), Vec::new()) } else { merge(joined, &flat) };
        self.builder.note_lost(&lost, "#");
        *joined = merged;
        Ok(())
    }
}

/// Schema that a reference of the schema at `place` leads to.
///
/// # Errors
/// It leads nowhere, or out of `root`.
pub(super) fn resolve<'a>(root: &'a Value, reference: &str, place: &str) -> Result<&'a Value> {
    target(root, reference).ok_or_else(|| {
        Error::invalid(format!(
            "the reference `{reference}` at {place} leads to no place in this schema: a grammar follows only \
             references such as `#/$defs/name`"
        ))
    })
}

/// Schema that a reference leads to, if it is in `root`.
pub(crate) fn target<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    root.pointer(&percent_decode(reference.strip_prefix('#')?))
}

/// Decodes `%` escapes in a fragment.
fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let digits =
            after.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
