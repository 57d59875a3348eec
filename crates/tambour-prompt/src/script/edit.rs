//! Edits fields in the text of a script and preserves comments, order and everything else (S-014).
//!
//! The library that edits YAML, `yaml-edit`, is young. So its output is parsed again after every change and
//! compared with the requested data.

use std::str::FromStr;

use serde_json::{Map, Value};
use yaml_edit::{Document, Mapping, Sequence, YamlNode};

use super::node::parse_yaml;
use tambour::error::{Error, Result};
use tambour::limits::Limits;
use tambour::texts::Language;

/// Editor for the text of a script.
///
/// ```
/// use serde_json::json;
/// use tambour::limits::Limits;
/// use tambour_prompt::script::ScriptEditor;
///
/// let text = "sessions:\n  - session: s # the only one\n    phases: []\n";
/// let mut editor = ScriptEditor::new(text, &Limits::default())?;
/// editor.set("sessions[0].session", &json!("介绍"))?;
/// assert_eq!(editor.text(), "sessions:\n  - session: 介绍 # the only one\n    phases: []\n");
/// # Ok::<(), tambour::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ScriptEditor {
    text: String,
    /// Data that `text` parses to.
    value: Value,
    limits: Limits,
}

/// Step of a path: the key of a field, or the index of a list item.
enum FieldStep<'a> {
    Key(&'a str),
    Index(usize),
}

impl ScriptEditor {
    /// Creates an editor of a text.
    ///
    /// # Errors
    /// The text is not valid YAML for a script.
    pub fn new(text: &str, limits: &Limits) -> Result<ScriptEditor> {
        Ok(ScriptEditor { text: text.to_owned(), value: parse_value(text, limits)?, limits: limits.clone() })
    }

    /// Returns the current text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Sets a field by its path, such as `sessions[0].phases[0].steps[0].actions[0].max_rounds`. A new field
    /// is added after the others.
    ///
    /// # Errors
    /// There is no such place, or the change cannot be written; the text is then unchanged.
    pub fn set(&mut self, path: &str, value: &Value) -> Result<()> {
        self.change_field(path, Some(value))
    }

    /// Removes a field. A missing field is not an error.
    ///
    /// # Errors
    /// There is no such place, or the change cannot be written; the text is then unchanged.
    pub fn remove(&mut self, path: &str) -> Result<()> {
        self.change_field(path, None)
    }

    /// Sets a field, or removes it if `value` is `None`.
    fn change_field(&mut self, path: &str, value: Option<&Value>) -> Result<()> {
        let steps = parse_path(path)?;
        let Some((FieldStep::Key(field), parents)) = steps.split_last() else {
            return Err(Error::invalid(format!("`{path}` names no field")));
        };
        let missing_error = || Error::invalid(format!("there is no `{path}` in the script"));
        let mut target_value = self.value.clone();
        let target = parents.iter().try_fold(&mut target_value, |value, step| match step {
            FieldStep::Key(key) => value.get_mut(*key),
            FieldStep::Index(index) => value.get_mut(*index),
        });
        let fields = target.and_then(Value::as_object_mut).ok_or_else(missing_error)?;
        match value {
            Some(value) => drop(fields.insert((*field).to_owned(), value.clone())),
            None if fields.shift_remove(*field).is_none() => return Ok(()),
            None => {}
        }
        let edit_error = |reason: &str| Error::invalid(format!("`{path}` cannot be changed here: {reason}"));
        let document = Document::from_str(&self.text).map_err(|error| edit_error(&error.to_string()))?;
        let mapping = find_mapping(&document, parents).ok_or_else(missing_error)?;
        match value {
            Some(value) => set_field(&mapping, field, value),
            None => drop(mapping.remove(*field)),
        }
        let text = document.to_string();
        // The written text must parse to the requested data.
        match parse_value(&text, &self.limits) {
            Ok(written_value) if written_value == target_value => {}
            _ => return Err(edit_error("the text around it cannot be preserved")),
        }
        (self.text, self.value) = (text, target_value);
        Ok(())
    }
}

/// Makes several changes: `value` sets a field, `None` removes it. Either all changes are made or none.
///
/// # Errors
/// Fails as [`ScriptEditor::new`], [`ScriptEditor::set`] and [`ScriptEditor::remove`] do.
pub fn edit_script(text: &str, changes: &[(&str, Option<Value>)], limits: &Limits) -> Result<String> {
    let mut editor = ScriptEditor::new(text, limits)?;
    changes.iter().try_for_each(|(path, value)| editor.change_field(path, value.as_ref()))?;
    Ok(editor.text)
}

/// Parses the text of a script as plain data.
fn parse_value(text: &str, limits: &Limits) -> Result<Value> {
    parse_yaml(text, limits, Language::En)
        .map(|node| node.to_value())
        .map_err(|problem| Error::invalid(problem.report.message))
}

/// Parses a path such as `sessions[0].session`.
fn parse_path(path: &str) -> Result<Vec<FieldStep<'_>>> {
    let path_error = || Error::invalid(format!("`{path}` is not the path of a field"));
    let mut steps = Vec::new();
    for segment in path.split('.') {
        let (key, indexes) = segment.find('[').map_or((segment, ""), |bracket| segment.split_at(bracket));
        if key.is_empty() {
            return Err(path_error());
        }
        steps.push(FieldStep::Key(key));
        for index in indexes.split_terminator(']') {
            let index =
                index.strip_prefix('[').and_then(|index| index.parse().ok()).ok_or_else(path_error)?;
            steps.push(FieldStep::Index(index));
        }
    }
    Ok(steps)
}

/// Returns the mapping at a path of the document; `None` if there is none.
fn find_mapping(document: &Document, path: &[FieldStep<'_>]) -> Option<Mapping> {
    let root = document.as_mapping()?;
    let Some((FieldStep::Key(first_key), further_steps)) = path.split_first() else { return Some(root) };
    let start = root.get(*first_key)?;
    let target = further_steps.iter().try_fold(start, |node, step| match (step, &node) {
        (FieldStep::Key(key), YamlNode::Mapping(mapping)) => mapping.get(*key),
        (FieldStep::Index(index), YamlNode::Sequence(list)) => list.get(*index),
        _ => None,
    })?;
    target.as_mapping().cloned()
}

/// Sets a field of a mapping.
fn set_field(mapping: &Mapping, field: &str, value: &Value) {
    match value {
        Value::Null => mapping.set(field, None::<bool>),
        Value::Bool(flag) => mapping.set(field, *flag),
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(number), _, _) => mapping.set(field, number),
            (_, Some(number), _) => mapping.set(field, number),
            (_, _, number) => mapping.set(field, number.unwrap_or_default()),
        },
        Value::String(text) => mapping.set(field, text.as_str()),
        Value::Array(items) => mapping.set(field, to_sequence(items)),
        Value::Object(fields) => mapping.set(field, to_mapping(fields)),
    }
}

/// Converts a list to YAML.
fn to_sequence(items: &[Value]) -> Sequence {
    let list = Sequence::new();
    for item in items {
        match item {
            Value::Null => list.push(None::<bool>),
            Value::Bool(flag) => list.push(*flag),
            Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(number), _) => list.push(number),
                (_, number) => list.push(number.unwrap_or_default()),
            },
            Value::String(text) => list.push(text.as_str()),
            Value::Array(items) => list.push(self::to_sequence(items)),
            Value::Object(fields) => list.push(to_mapping(fields)),
        }
    }
    list
}

/// Converts an object to YAML.
fn to_mapping(fields: &Map<String, Value>) -> Mapping {
    let mapping = Mapping::new();
    for (name, value) in fields {
        set_field(&mapping, name, value);
    }
    mapping
}
