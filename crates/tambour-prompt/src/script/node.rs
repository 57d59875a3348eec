//! YAML as a tree of values with their places. The script reader walks it and reports all faults at once.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::options::MergeKeyPolicy;
use serde_saphyr::{Location, Spanned};

use super::complaint;
use super::model::Spot;
use super::problem::Problem;
use super::rules;
use tambour::finding::{Report, clip};
use tambour::limits::Limits;
use tambour::span::Place;
use tambour::texts::counted;
use tambour::texts::{Language, bilingual};

/// A value with its place.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) spot: Spot,
}

/// Value of a node.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// Field of a mapping.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) spot: Spot,
    pub(super) value: Node,
}

/// Anchors and aliases are not allowed: a few aliases could expand one line to megabytes.
const ALIASES: usize = 0;

/// Parses a text.
///
/// # Errors
/// The text is not YAML, or exceeds a limit.
pub(super) fn parse(text: &str, limits: &Limits, language: Language) -> Result<Node, Box<Problem>> {
    if text.len() > limits.input {
        let message = match language {
            Language::Zh => format!("脚本超过了 `limits.input`（{} 字节）", limits.input),
            Language::En => {
                format!("the script is longer than `limits.input`, {}", counted(limits.input, "byte"))
            }
        };
        let report = Report::new(rules::LIMIT_EXCEEDED, Place::START, 0, message);
        return Err(Box::new(Problem::new("", report)));
    }
    serde_saphyr::from_str_with_options(text, options(limits))
        .map_err(|error| Box::new(complaint::of(text, &error, language)))
}

fn options(limits: &Limits) -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_aliases: ALIASES,
            max_anchors: ALIASES,
            max_depth: limits.depth.min(DEPTH),
            max_nodes: limits.items,
            max_events: limits.items.saturating_mul(4),
            max_documents: 1,
            flow_nesting_limit: limits.depth.min(DEPTH),
        },
        merge_keys: MergeKeyPolicy::Error,
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    }
}

/// Most nesting levels, because parsing recurses.
const DEPTH: usize = 64;

fn spot(location: &Location) -> Spot {
    let number = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let byte = |byte: Option<u64>| byte.and_then(|byte| usize::try_from(byte).ok()).unwrap_or_default();
    let offset = byte(location.span().byte_offset());
    let place =
        Place { offset, line: number(location.line().max(1)), column: number(location.column().max(1)) };
    Spot { place, end: offset + byte(location.span().byte_len()) }
}

impl Node {
    /// Describes the value for messages.
    pub(super) fn what(&self, language: Language) -> String {
        match &self.kind {
            Kind::Null => bilingual!(language, "空值", "nothing"),
            Kind::Bool(flag) => flag.to_string(),
            Kind::Number(number) => number.to_string(),
            Kind::Text(text) => bilingual!(language, "文本 {:?}", "the text {:?}", clip(text, 40)),
            Kind::List(_) => bilingual!(language, "列表", "a list"),
            Kind::Map(_) => bilingual!(language, "映射", "a map"),
        }
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self.kind, Kind::Null)
    }

    /// Converts to JSON.
    pub(super) fn value(&self) -> Value {
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Bool(flag) => Value::Bool(*flag),
            Kind::Number(number) => Value::Number(number.clone()),
            Kind::Text(text) => Value::String(text.clone()),
            Kind::List(items) => items.iter().map(Node::value).collect(),
            Kind::Map(entries) => Value::Object(object(entries.iter())),
        }
    }
}

/// Converts fields to a JSON object.
pub(super) fn object<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Map<String, Value> {
    entries.into_iter().map(|entry| (entry.key.clone(), entry.value.value())).collect()
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        let spanned = Spanned::<Bare>::deserialize(deserializer)?;
        Ok(Node { kind: spanned.value.0, spot: spot(&spanned.referenced) })
    }
}

/// A value whose place is not known yet.
struct Bare(Kind);

impl<'de> Deserialize<'de> for Bare {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bare, D::Error> {
        deserializer.deserialize_any(Reader).map(Bare)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Kind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Kind, E> {
        Ok(Kind::Null)
    }

    fn visit_none<E>(self) -> Result<Kind, E> {
        Ok(Kind::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Kind, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Kind, E> {
        Ok(Kind::Bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Kind, E> {
        Ok(Kind::Number(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Kind, E> {
        Ok(Kind::Number(number.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Kind, E> {
        Number::from_f64(number).map(Kind::Number).ok_or_else(|| E::custom("a number that is none"))
    }

    fn visit_str<E>(self, text: &str) -> Result<Kind, E> {
        Ok(Kind::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Kind, E> {
        Ok(Kind::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Kind, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Kind::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Kind, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = fields.next_key::<Spanned<Bare>>()? {
            let name = match key.value.0 {
                Kind::Text(text) => text,
                Kind::Number(number) => number.to_string(),
                Kind::Bool(flag) => flag.to_string(),
                Kind::Null | Kind::List(_) | Kind::Map(_) => return Err(A::Error::custom("a key is a text")),
            };
            entries.push(Entry { key: name, spot: spot(&key.referenced), value: fields.next_value()? });
        }
        Ok(Kind::Map(entries))
    }
}
