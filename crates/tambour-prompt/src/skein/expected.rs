//! The expected structure of a reply (F-200): that of the protocols that the prompt names with
//! `<use_protocol>`, with manual adjustments.

use serde_json::{Map, Value};

use tambour::error::{Error, Result};
use tambour::protocol::{ProtocolRegistry, ProtocolWarning};
use tambour::structure::{ExpectedStructure, is_same_element};

use super::file::empty_structure;
use super::{BlockBody, Skein};

/// Key of the adjustments in a file, and in the data of a `system_instruction`.
pub(super) const STRUCTURE_KEY: &str = "expected_structure";

impl Skein {
    /// Returns the manual adjustments: those of the file, else those in the data of a `system_instruction`.
    pub(super) fn structure_adjustments(&self) -> Option<&Value> {
        let from_blocks = || {
            self.blocks.iter().filter(|block| block.tag == "system_instruction").find_map(
                |block| match &block.body {
                    BlockBody::Data(Value::Object(data)) => data.get(STRUCTURE_KEY),
                    _ => None,
                },
            )
        };
        self.expected_structure.as_ref().or_else(from_blocks).filter(|value| !value.is_null())
    }

    /// Returns the structure of a reply from the prompt's protocols and the adjustments; `None` if the prompt has
    /// neither. An unknown protocol causes a warning and changes nothing (F-007).
    ///
    /// # Errors
    /// The adjustments are inconsistent, such as a tag that must follow itself.
    pub fn expected_structure(
        &self,
        registry: &ProtocolRegistry,
    ) -> Result<(Option<ExpectedStructure>, Vec<ProtocolWarning>)> {
        let protocols = self.protocols();
        let (generated, warnings) = registry.expected_structure(protocols.iter().map(String::as_str));
        let Some(adjustments) = self.structure_adjustments() else {
            return Ok(((!protocols.is_empty()).then_some(generated), warnings));
        };
        let base = if protocols.is_empty() { empty_structure() } else { generated.to_json() };
        let expected = ExpectedStructure::from_json(&merge_structures(&base, adjustments))
            .map_err(|error| Error::invalid(format!("`{STRUCTURE_KEY}`: {error}")))?;
        Ok((Some(expected), warnings))
    }
}

/// Completes adjustments, so that they can be checked as a structure without the protocols: tags that are
/// named only in `dependency` are added as optional, because a protocol may add them.
pub(super) fn complete_adjustments(adjustments: &Value) -> Value {
    let mut completed = adjustments.clone();
    let Some(fields) = completed.as_object_mut() else { return completed };
    let listed_tags: Vec<String> = ["mandatory", "optional"]
        .iter()
        .filter_map(|key| fields.get(*key)?.as_array())
        .flatten()
        .filter_map(item_name)
        .map(str::to_owned)
        .collect();
    let mut missing_tags = Vec::new();
    if let Some(Value::Object(dependency)) = fields.get("dependency") {
        for (tag, predecessors) in dependency {
            // Tags that must come before `tag`: one, or a list.
            let predecessors = match predecessors {
                Value::Array(list) => list.iter().filter_map(item_name).collect(),
                value => item_name(value).into_iter().collect::<Vec<_>>(),
            };
            for tag in predecessors.into_iter().chain([tag.as_str()]) {
                if !listed_tags.iter().any(|listed_tag| is_same_element(listed_tag, tag))
                    && !missing_tags.contains(&Value::from(tag))
                {
                    missing_tags.push(tag.into());
                }
            }
        }
    }
    if !missing_tags.is_empty()
        && let Value::Array(optional) = fields.entry("optional").or_insert_with(|| Value::Array(Vec::new()))
    {
        optional.extend(missing_tags);
    }
    completed
}

/// Merges `adjustments` into `base`: a tag of the adjustments replaces the same tag of the base, and so does
/// the dependency of a tag.
fn merge_structures(base: &Value, adjustments: &Value) -> Value {
    let items =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let is_adjusted = |tag: &str| {
        ["mandatory", "optional"].iter().any(|key| {
            items(adjustments, key)
                .iter()
                .any(|item| item_name(item).is_some_and(|adjusted_tag| is_same_element(adjusted_tag, tag)))
        })
    };
    let base_item = |tag: &str| -> Option<Value> {
        let mut base_items = ["mandatory", "optional"].into_iter().flat_map(|key| items(base, key));
        base_items.find(|item| item_name(item) == Some(tag))
    };
    let merge_lists = |key: &str| -> Value {
        let base_items =
            items(base, key).into_iter().filter(|item| item_name(item).is_none_or(|tag| !is_adjusted(tag)));
        let adjusted_items = items(adjustments, key).into_iter().map(|item| match &item {
            // A tag given only by name keeps its properties from the protocol.
            Value::String(tag) => base_item(tag).unwrap_or(item),
            _ => item,
        });
        base_items.chain(adjusted_items).collect()
    };
    let mut dependency = base.get("dependency").and_then(Value::as_object).cloned().unwrap_or_default();
    if let Some(Value::Object(dependencies)) = adjustments.get("dependency") {
        dependency.extend(dependencies.iter().map(|(tag, predecessors)| (tag.clone(), predecessors.clone())));
    }
    let mut out = Map::new();
    out.insert("mandatory".into(), merge_lists("mandatory"));
    out.insert("optional".into(), merge_lists("optional"));
    out.insert("dependency".into(), dependency.into());
    for (key, value) in adjustments.as_object().into_iter().flatten() {
        out.entry(key.clone()).or_insert_with(|| value.clone());
    }
    out.into()
}

/// Returns the tag of an item: the item itself, or its `name`.
fn item_name(item: &Value) -> Option<&str> {
    item.as_str().or_else(|| item.get("name").and_then(Value::as_str))
}
