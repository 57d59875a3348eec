//! Protocols that `<use_protocol>` of a prompt can name (F-007). Each adds tags to the expected structure of
//! a reply, and has instructions for a model and an example, in Chinese and in English.
//!
//! ```
//! use serde_json::json;
//! use tambour::protocol::ProtocolRegistry;
//! use tambour::options::Language;
//!
//! let mut registry = ProtocolRegistry::builtin();
//! registry.add(&json!({
//!     "id": "weather_v1", "tags": [{"name": "weather", "body": "json"}], "dependency": {"weather": "content"},
//!     "instruction": {"en": "<weather> holds the forecast as JSON."}, "examples": ["<weather>{\"rain\": true}</weather>"],
//! }))?;
//! let (expected, warnings) = registry.expected_structure(["variable_update_v2", "weather_v1", "moon_v9"]);
//! let names: Vec<&str> = expected.names().collect();
//! assert_eq!(names, ["thought", "content", "variable_update", "weather"]);
//! assert_eq!(warnings[0].protocol, "moon_v9");
//! assert_eq!(registry.examples(["weather_v1"], Language::En).len(), 2);
//! # Ok::<(), tambour::Error>(())
//! ```
//!
//! Reading files and parsing replies do not belong here.

mod builtin;

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::finding::clip;
use crate::structure::{ElementName, ExpectedElement, ExpectedStructure, parse_tag_names};
use crate::texts::Language;

/// Minimum similarity to a known name, in percent, at which that name is suggested.
const SUGGESTION_THRESHOLD: u8 = 60;

/// Id of the protocol that is always active: `thought` and `content`.
#[doc(hidden)]
pub const CORE_PROTOCOL: &str = "core";

/// One protocol of a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PromptProtocol {
    /// Unique id.
    pub id: String,
    /// Version as written; may be empty.
    pub version: String,
    /// Elements that the protocol adds at the top level of a reply, with the elements that they must follow.
    pub elements: Vec<ExpectedElement>,
    /// Instructions for a model, in Chinese and in English.
    pub instruction: [String; 2],
    /// Example parts of a reply, in Chinese and in English.
    pub examples: [Vec<String>; 2],
}

/// Protocols by id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtocolRegistry(Vec<PromptProtocol>);

/// A problem with the protocols of a prompt. The part in question is ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProtocolWarning {
    /// Id of the protocol in question.
    pub protocol: String,
    /// Description of the problem and its consequence.
    pub message: String,
}

impl Default for ProtocolRegistry {
    fn default() -> ProtocolRegistry {
        ProtocolRegistry::builtin()
    }
}

impl ProtocolRegistry {
    /// Returns the protocols of this library: `core`, `variable_update_v2`, and one for each other reply tag,
    /// with the name of the tag as its id.
    #[must_use]
    pub fn builtin() -> ProtocolRegistry {
        ProtocolRegistry(builtin::builtin_protocols())
    }

    /// Adds a protocol, or a list of them. A protocol replaces an existing one with the same id.
    ///
    /// A protocol is an object of `id`, `version`, `tags` (names, or objects as
    /// [`ExpectedElement::from_json`] reads them, with `mandatory`), `dependency` (maps a tag to the tag or
    /// tags it must follow), and `instruction` and `examples`, each for both languages or split into `zh` and
    /// `en`.
    ///
    /// # Errors
    /// The value does not have this form. The error names the protocol and the expected form; nothing is
    /// added.
    pub fn add(&mut self, value: &Value) -> Result<()> {
        let entries = match value {
            Value::Array(list) => list.iter().map(PromptProtocol::from_json).collect::<Result<Vec<_>>>()?,
            single => vec![PromptProtocol::from_json(single)?],
        };
        for entry in entries {
            match self.0.iter_mut().find(|protocol| protocol.id == entry.id) {
                Some(protocol) => *protocol = entry,
                None => self.0.push(entry),
            }
        }
        Ok(())
    }

    /// Returns the protocol with this id; `None` for an unknown id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&PromptProtocol> {
        self.0.iter().find(|protocol| protocol.id == id)
    }

    /// Iterates over all protocols, in order.
    pub fn iter(&self) -> impl Iterator<Item = &PromptProtocol> {
        self.0.iter()
    }

    /// Returns the structure of replies under the protocols `ids` and the core (F-200), and warnings.
    #[must_use]
    pub fn expected_structure<'a>(
        &self,
        ids: impl IntoIterator<Item = &'a str>,
    ) -> (ExpectedStructure, Vec<ProtocolWarning>) {
        let (active, mut warnings) = self.select(ids);
        let mut expected = ExpectedStructure::default();
        for protocol in &active {
            for element in &protocol.elements {
                let Some(expected_element) = expected
                    .elements
                    .iter_mut()
                    .find(|expected_element| expected_element.name == element.name)
                else {
                    expected.elements.push(ExpectedElement { predecessors: Vec::new(), ..element.clone() });
                    continue;
                };
                expected_element.is_mandatory |= element.is_mandatory;
                expected_element.is_repeatable &= element.is_repeatable;
            }
        }
        for protocol in &active {
            for ExpectedElement { name, predecessors, .. } in &protocol.elements {
                for predecessor in predecessors {
                    add_dependency(&mut expected, protocol, name, predecessor, &mut warnings);
                }
            }
        }
        (expected, warnings)
    }

    /// Returns the instructions for the core and the protocols `ids`, one or more lines each.
    #[must_use]
    pub fn instructions<'a>(&self, ids: impl IntoIterator<Item = &'a str>, language: Language) -> Vec<&str> {
        let (active, _) = self.select(ids);
        let texts = active.into_iter().map(|protocol| &*protocol.instruction[language_index(language)]);
        texts.filter(|text| !text.is_empty()).collect()
    }

    /// Returns example parts for the core and the protocols `ids`. Concatenated, they form a complete reply.
    #[must_use]
    pub fn examples<'a>(&self, ids: impl IntoIterator<Item = &'a str>, language: Language) -> Vec<&str> {
        let (active, _) = self.select(ids);
        active
            .into_iter()
            .flat_map(|protocol| &protocol.examples[language_index(language)])
            .map(String::as_str)
            .collect()
    }

    /// Returns the core and the protocols `ids`, in this order and without duplicates. An unknown id gives a
    /// warning.
    fn select<'a>(
        &self,
        ids: impl IntoIterator<Item = &'a str>,
    ) -> (Vec<&PromptProtocol>, Vec<ProtocolWarning>) {
        let (mut active, mut warnings): (Vec<&PromptProtocol>, _) = (Vec::new(), Vec::new());
        for id in std::iter::once(CORE_PROTOCOL).chain(ids) {
            let id = id.trim();
            match self.get(id) {
                Some(protocol) if active.iter().any(|selected| selected.id == protocol.id) => {}
                Some(protocol) => active.push(protocol),
                None => {
                    let known_names: Vec<&str> = self.0.iter().map(|protocol| protocol.id.as_str()).collect();
                    let likeness =
                        |name: &&&str| (strsim::normalized_damerau_levenshtein(id, name) * 100.0) as u8;
                    let suggestion = known_names
                        .iter()
                        .max_by_key(likeness)
                        .filter(|name| likeness(name) >= SUGGESTION_THRESHOLD);
                    let suggestion =
                        suggestion.map(|name| format!("; perhaps `{name}` is meant")).unwrap_or_default();
                    let message = format!(
                        "unknown protocol `{}`; known: {}{suggestion}; nothing is changed",
                        clip(id, 60),
                        known_names.join(", ")
                    );
                    warnings.push(ProtocolWarning { protocol: id.to_owned(), message });
                }
            }
        }
        (active, warnings)
    }
}

/// Makes `name` follow `predecessor`, or warns if the predecessor is not active or a cycle would arise.
fn add_dependency(
    expected: &mut ExpectedStructure,
    protocol: &PromptProtocol,
    name: &ElementName,
    predecessor: &ElementName,
    warnings: &mut Vec<ProtocolWarning>,
) {
    let is_cycle = name == predecessor || expected.must_follow(predecessor, name);
    if is_cycle || expected.get(predecessor).is_none() {
        let reason =
            if is_cycle { "forms a cycle with other protocols" } else { "names a tag that is not active" };
        let message = format!("the dependency of `{name}` on `{predecessor}` {reason}; it is left out");
        warnings.push(ProtocolWarning { protocol: protocol.id.clone(), message });
    } else if let Some(element) = expected.elements.iter_mut().find(|element| element.name == *name)
        && !element.predecessors.contains(predecessor)
    {
        element.predecessors.push(predecessor.clone());
    }
}

/// Index of the texts of a language: Chinese, then English.
fn language_index(language: Language) -> usize {
    usize::from(language == Language::En)
}

impl PromptProtocol {
    /// Reads a protocol from its file form; see [`ProtocolRegistry::add`].
    ///
    /// # Errors
    /// The value does not have that form.
    pub(crate) fn from_json(value: &Value) -> Result<PromptProtocol> {
        const KEYS: [&str; 6] = ["id", "version", "tags", "dependency", "instruction", "examples"];
        let Value::Object(fields) = value else {
            return Err(Error::invalid(format!("a protocol must be an object of {}", KEYS.join(", "))));
        };
        let id = match fields.get("id").and_then(Value::as_str).map(str::trim) {
            Some(id) if !id.is_empty() => id.to_owned(),
            _ => return Err(Error::invalid("a protocol must have an `id`, a string that is not empty")),
        };
        let with_id = |error: Error| Error::invalid(format!("protocol `{id}`: {error}"));
        if let Some(key) = fields.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(with_id(Error::unknown("key of a protocol", key, KEYS)));
        }
        let mut elements = read_elements(fields).map_err(with_id)?;
        read_dependency(fields.get("dependency"), &mut elements).map_err(with_id)?;
        let version = match fields.get("version") {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            Some(_) => return Err(with_id(Error::invalid("`version` must be a string or a number"))),
        };
        let instruction = read_both_languages(fields.get("instruction"), "instruction")
            .map_err(with_id)?
            .map(|texts| texts.join("\n"));
        let examples = read_both_languages(fields.get("examples"), "examples").map_err(with_id)?;
        Ok(PromptProtocol { id, version, elements, instruction, examples })
    }
}

/// Reads the tags of a protocol.
fn read_elements(fields: &Map<String, Value>) -> Result<Vec<ExpectedElement>> {
    let list = match fields.get("tags") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(Error::invalid("`tags` must be a list of tags")),
    };
    let mut elements: Vec<ExpectedElement> = Vec::with_capacity(list.len());
    for tag in list {
        let mut tag = tag.clone();
        let mandatory = tag.as_object_mut().and_then(|fields| fields.shift_remove("mandatory"));
        let is_mandatory = match mandatory {
            None | Some(Value::Null) => false,
            Some(Value::Bool(is_on)) => is_on,
            Some(_) => return Err(Error::invalid("`mandatory` of a tag must be true or false")),
        };
        let element = ExpectedElement {
            is_mandatory,
            // A mandatory tag occurs exactly once.
            is_repeatable: !is_mandatory,
            ..ExpectedElement::from_json(&tag)?
        };
        if elements.iter().any(|existing| existing.name == element.name) {
            return Err(Error::invalid(format!("`{}` is listed twice", element.name)));
        }
        elements.push(element);
    }
    Ok(elements)
}

/// Reads the dependencies of a protocol's tags, which may refer to tags of other protocols.
fn read_dependency(value: Option<&Value>, elements: &mut [ExpectedElement]) -> Result<()> {
    let dependencies = match value {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Object(fields)) => fields,
        Some(_) => {
            return Err(Error::invalid(
                "`dependency` must be an object that maps a tag to the tag it must follow",
            ));
        }
    };
    for (name, predecessors) in dependencies {
        let Some(at) = elements.iter().position(|element| element.name == *name) else {
            let known_names = elements.iter().map(|element| &*element.name);
            return Err(Error::unknown("tag in `dependency`", name, known_names));
        };
        elements[at].predecessors =
            parse_tag_names(Some(predecessors), "dependency")?.into_iter().map(Cow::Owned).collect();
    }
    Ok(())
}

/// Reads the texts for each language, Chinese first: a string or list for both, or an object of `zh` and
/// `en`. A language without texts gets those of the other.
fn read_both_languages(value: Option<&Value>, key: &str) -> Result<[Vec<String>; 2]> {
    let shape_error = || {
        Error::invalid(format!("`{key}` must be a string, a list of strings, or an object of `zh` and `en`"))
    };
    let read_texts = |value: &Value| -> Result<Vec<String>> {
        match value {
            Value::Null => Ok(Vec::new()),
            Value::String(text) => Ok(vec![text.clone()]),
            Value::Array(list) => {
                list.iter().map(|text| text.as_str().map(str::to_owned).ok_or_else(shape_error)).collect()
            }
            _ => Err(shape_error()),
        }
    };
    match value {
        None => Ok([Vec::new(), Vec::new()]),
        Some(Value::Object(fields)) => {
            if fields.keys().any(|key| !matches!(key.as_str(), "zh" | "en")) {
                return Err(shape_error());
            }
            let language_texts = |language: &str| fields.get(language).map_or(Ok(Vec::new()), read_texts);
            let (zh, en) = (language_texts("zh")?, language_texts("en")?);
            Ok(match (zh.is_empty(), en.is_empty()) {
                (true, _) => [en.clone(), en],
                (_, true) => [zh.clone(), zh],
                _ => [zh, en],
            })
        }
        Some(value) => read_texts(value).map(|texts| [texts.clone(), texts]),
    }
}
