//! YAML as a tree of values with their places. The script reader walks it and reports all faults at once.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::options::MergeKeyPolicy;
use serde_saphyr::{Location, Spanned};

use super::model::SourceSpot;
use super::problem::{self, ScriptProblem};
use super::rules;
use tambour::finding::{FindingReport, clip};
use tambour::limits::Limits;
use tambour::span::Place;
use tambour::texts::format_count;
use tambour::texts::{Language, bilingual};

/// A value with its place.
#[derive(Clone, Debug)]
pub(super) struct SpannedNode {
    /// Value, with its type.
    pub(super) kind: NodeValue,
    pub(super) spot: SourceSpot,
}

/// Value of a node.
#[derive(Clone, Debug)]
pub(super) enum NodeValue {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<SpannedNode>),
    Map(Vec<NodeField>),
}

/// Field of a mapping with the place of its key.
#[derive(Clone, Debug)]
pub(super) struct NodeField {
    pub(super) key: String,
    pub(super) spot: SourceSpot,
    pub(super) value: SpannedNode,
}

/// Maximum number of anchors, and of aliases. None are allowed: a few aliases could expand one line to
/// megabytes.
const MAX_ALIASES: usize = 0;

/// Parses the text of a script as YAML.
///
/// # Errors
/// The text is not YAML, or exceeds a limit.
pub(super) fn parse_yaml(
    text: &str,
    limits: &Limits,
    language: Language,
) -> Result<SpannedNode, Box<ScriptProblem>> {
    if text.len() > limits.input {
        let message = match language {
            Language::Zh => format!("脚本超过了 `limits.input`（{} 字节）", limits.input),
            Language::En => {
                format!("the script is longer than `limits.input`, {}", format_count(limits.input, "byte"))
            }
        };
        let report = FindingReport::new(rules::LIMIT_EXCEEDED, Place::START, 0, message);
        return Err(Box::new(ScriptProblem::new("", report)));
    }
    serde_saphyr::from_str_with_options(text, yaml_options(limits))
        .map_err(|error| Box::new(problem::yaml_problem(text, &error, language)))
}

/// Returns the options of the parser: limits, refused constructs, and values that are read as text.
fn yaml_options(limits: &Limits) -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_aliases: MAX_ALIASES,
            max_anchors: MAX_ALIASES,
            max_depth: limits.depth.min(MAX_DEPTH),
            max_nodes: limits.items,
            // A node takes a few events of the parser, such as the start and the end of a list.
            max_events: limits.items.saturating_mul(4),
            max_documents: 1,
            flow_nesting_limit: limits.depth.min(MAX_DEPTH),
        },
        merge_keys: MergeKeyPolicy::Error,
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    }
}

/// Maximum nesting depth, even if the limits allow more, because parsing recurses.
const MAX_DEPTH: usize = 64;

/// Converts a place of the YAML parser. A missing byte offset becomes 0.
fn location_spot(location: &Location) -> SourceSpot {
    let to_u32 = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let to_offset = |byte: Option<u64>| byte.and_then(|byte| usize::try_from(byte).ok()).unwrap_or_default();
    let offset = to_offset(location.span().byte_offset());
    let place =
        Place { offset, line: to_u32(location.line().max(1)), column: to_u32(location.column().max(1)) };
    SourceSpot { place, end: offset + to_offset(location.span().byte_len()) }
}

impl SpannedNode {
    /// Describes the value for messages.
    pub(super) fn describe(&self, language: Language) -> String {
        match &self.kind {
            NodeValue::Null => bilingual!(language, "空值", "nothing"),
            NodeValue::Bool(flag) => flag.to_string(),
            NodeValue::Number(number) => number.to_string(),
            NodeValue::Text(text) => bilingual!(language, "文本 {:?}", "the text {:?}", clip(text, 40)),
            NodeValue::List(_) => bilingual!(language, "列表", "a list"),
            NodeValue::Map(_) => bilingual!(language, "映射", "a map"),
        }
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self.kind, NodeValue::Null)
    }

    /// Converts the value to JSON, without the places.
    pub(super) fn to_value(&self) -> Value {
        match &self.kind {
            NodeValue::Null => Value::Null,
            NodeValue::Bool(flag) => Value::Bool(*flag),
            NodeValue::Number(number) => Value::Number(number.clone()),
            NodeValue::Text(text) => Value::String(text.clone()),
            NodeValue::List(items) => items.iter().map(SpannedNode::to_value).collect(),
            NodeValue::Map(entries) => Value::Object(to_object(entries.iter())),
        }
    }
}

/// Converts fields to a JSON object.
pub(super) fn to_object<'a>(entries: impl IntoIterator<Item = &'a NodeField>) -> Map<String, Value> {
    entries.into_iter().map(|entry| (entry.key.clone(), entry.value.to_value())).collect()
}

impl<'de> Deserialize<'de> for SpannedNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SpannedNode, D::Error> {
        let spanned = Spanned::<UnplacedValue>::deserialize(deserializer)?;
        Ok(SpannedNode { kind: spanned.value.0, spot: location_spot(&spanned.referenced) })
    }
}

/// A value whose place is not known yet.
struct UnplacedValue(NodeValue);

impl<'de> Deserialize<'de> for UnplacedValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<UnplacedValue, D::Error> {
        deserializer.deserialize_any(NodeVisitor).map(UnplacedValue)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = NodeValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<NodeValue, E> {
        Ok(NodeValue::Null)
    }

    fn visit_none<E>(self) -> Result<NodeValue, E> {
        Ok(NodeValue::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<NodeValue, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<NodeValue, E> {
        Ok(NodeValue::Bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<NodeValue, E> {
        Ok(NodeValue::Number(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<NodeValue, E> {
        Ok(NodeValue::Number(number.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<NodeValue, E> {
        Number::from_f64(number).map(NodeValue::Number).ok_or_else(|| E::custom("not a finite number"))
    }

    fn visit_str<E>(self, text: &str) -> Result<NodeValue, E> {
        Ok(NodeValue::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<NodeValue, E> {
        Ok(NodeValue::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<NodeValue, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(NodeValue::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<NodeValue, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = fields.next_key::<Spanned<UnplacedValue>>()? {
            let name = match key.value.0 {
                NodeValue::Text(text) => text,
                NodeValue::Number(number) => number.to_string(),
                NodeValue::Bool(flag) => flag.to_string(),
                NodeValue::Null | NodeValue::List(_) | NodeValue::Map(_) => {
                    return Err(A::Error::custom("a key must be a text"));
                }
            };
            entries.push(NodeField {
                key: name,
                spot: location_spot(&key.referenced),
                value: fields.next_value()?,
            });
        }
        Ok(NodeValue::Map(entries))
    }
}
