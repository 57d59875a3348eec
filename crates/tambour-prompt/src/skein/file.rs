//! Reads and writes prompts as YAML files.

use serde_json::{Map, Value, json};

use tambour::error::{Error, Result};
use tambour::structure::ExpectedStructure;
use tambour::yaml::{self, YamlLimits};

use super::super::lore::{LoreEntry, MessageRole, ScanSettings};
use super::super::name;
use super::{BlockBody, BlockFormat, BlockPriority, Skein, SkeinBlock, SkeinSlot};

/// Keys of the file.
const FILE_KEYS: [&str; 6] =
    ["blocks", "use_protocol", "max_context", "expected_structure", "metadata", "scan"];

/// Keys of a block.
const BLOCK_KEYS: [&str; 9] =
    ["tag", "role", "priority", "format", "attributes", "data", "text", "slot", "lore"];

impl Skein {
    /// Reads a prompt from YAML. `source_name` names the source in errors.
    ///
    /// # Errors
    /// The text is not YAML, or does not have the form that [`Skein::from_value`] reads.
    pub fn from_yaml(source_name: &str, text: &str) -> Result<Skein> {
        let mut limits = YamlLimits::default();
        // Room for a book of twenty thousand entries.
        (limits.bytes, limits.nodes) = (32 << 20, 1_000_000);
        Skein::from_value(&yaml::parse_with(source_name, text, &limits)?)
    }

    /// Reads a prompt from its data: `blocks`, a list of `{tag, role?, priority?, format?, attributes?, data?
    /// | text? | slot?, lore?}`, and optionally `use_protocol`, `max_context`, `expected_structure`,
    /// `metadata`, `scan`.
    ///
    /// # Errors
    /// The data has another form; the message names the block and the key.
    pub fn from_value(value: &Value) -> Result<Skein> {
        let Value::Object(fields) = value else {
            return Err(Error::invalid("a prompt must be a mapping with `blocks`"));
        };
        check_keys(fields, "a prompt", &FILE_KEYS)?;
        let blocks = match fields.get("blocks") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(blocks)) => blocks
                .iter()
                .enumerate()
                .map(|(index, block)| self::read_block(index + 1, block))
                .collect::<Result<Vec<_>>>()?,
            Some(_) => return Err(Error::invalid("`blocks` must be a list of blocks")),
        };
        let use_protocol = match fields.get("use_protocol") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::String(name)) => vec![name.clone()],
            Some(Value::Array(names)) => {
                let text = |name: &Value| name.as_str().map(str::to_owned);
                let names = names.iter().map(text).collect::<Option<Vec<_>>>();
                names.ok_or_else(|| Error::invalid("`use_protocol` must be a list of protocol names"))?
            }
            Some(_) => return Err(Error::invalid("`use_protocol` must be a list of protocol names")),
        };
        let max_context = match fields.get("max_context") {
            None | Some(Value::Null) => None,
            Some(number) => match number.as_u64().and_then(|number| usize::try_from(number).ok()) {
                Some(number) if number > 0 => Some(number),
                _ => return Err(Error::invalid("`max_context` must be a number of tokens, at least 1")),
            },
        };
        let expected_structure = fields.get("expected_structure").filter(|value| !value.is_null());
        let metadata = match fields.get("metadata") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(metadata)) => metadata.clone(),
            Some(_) => {
                return Err(Error::invalid("`metadata` must be a mapping from variable names to values"));
            }
        };
        let scan = match fields.get("scan").filter(|value| !value.is_null()) {
            None => None,
            Some(scan) => Some(
                serde_json::from_value::<ScanSettings>(scan.clone())
                    .map_err(|error| Error::invalid(format!("`scan`: {error}")))?,
            ),
        };
        let skein = Skein {
            blocks,
            use_protocol,
            max_context,
            expected_structure: expected_structure.cloned(),
            metadata,
            scan,
        };
        if let Some(structure) = skein.structure_adjustments() {
            ExpectedStructure::from_json(&super::expected::complete_adjustments(structure))
                .map_err(|error| Error::invalid(format!("`expected_structure`: {error}")))?;
        }
        Ok(skein)
    }

    /// Returns the prompt as YAML.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        yaml::print(&self.to_value())
    }

    /// Returns the data that [`Skein::from_value`] reads.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut out = Map::new();
        if let Some(max) = self.max_context {
            out.insert("max_context".into(), max.into());
        }
        if !self.use_protocol.is_empty() {
            out.insert("use_protocol".into(), self.use_protocol.clone().into());
        }
        if let Some(structure) = &self.expected_structure {
            out.insert("expected_structure".into(), structure.clone());
        }
        if let Some(scan) = &self.scan {
            out.insert("scan".into(), non_default_fields(scan, &ScanSettings::default()));
        }
        if !self.metadata.is_empty() {
            out.insert("metadata".into(), self.metadata.clone().into());
        }
        out.insert("blocks".into(), self.blocks.iter().map(SkeinBlock::to_value).collect());
        out.into()
    }
}

impl SkeinBlock {
    /// Returns the data that [`read_block`] reads.
    fn to_value(&self) -> Value {
        let mut out = Map::new();
        if !self.tag.is_empty() {
            out.insert("tag".into(), self.tag.clone().into());
        }
        if let Some(role) = self.role {
            out.insert("role".into(), role.name().into());
        }
        if let Some(priority) = self.priority {
            out.insert("priority".into(), priority.name().into());
        }
        if let Some(format) = self.format {
            out.insert("format".into(), format.name().into());
        }
        if !self.attributes.is_empty() {
            let attributes = self.attributes.iter().map(|(key, value)| (key.clone(), value.clone().into()));
            out.insert("attributes".into(), Value::Object(attributes.collect()));
        }
        if let Some(lore) = &self.lore {
            out.insert("lore".into(), non_default_fields(lore, &LoreEntry::default()));
        }
        match &self.body {
            BlockBody::Data(value) => out.insert("data".into(), value.clone()),
            BlockBody::Text(text) => out.insert("text".into(), text.clone().into()),
            BlockBody::Slot(slot) => out.insert("slot".into(), slot.name().into()),
        };
        out.into()
    }
}

/// Returns the fields of `value` that differ from `defaults`.
fn non_default_fields<T: serde::Serialize>(value: &T, defaults: &T) -> Value {
    let to_json = |value: &T| serde_json::to_value(value).unwrap_or_default();
    match (to_json(value), to_json(defaults)) {
        (Value::Object(value), Value::Object(defaults)) => value
            .into_iter()
            .filter(|(key, value)| defaults.get(key) != Some(value))
            .collect::<Map<_, _>>()
            .into(),
        (value, _) => value,
    }
}

/// Refuses the first key that is not one of `keys`; `subject` names the mapping in the error.
fn check_keys(fields: &Map<String, Value>, subject: &str, keys: &[&str]) -> Result<()> {
    match fields.keys().find(|key| !keys.contains(&key.as_str())) {
        Some(key) => Err(Error::unknown(&format!("key of {subject}"), key, keys.iter().copied())),
        None => Ok(()),
    }
}

/// Reads a block; `number` is its position in the list, from 1, for errors.
fn read_block(number: usize, value: &Value) -> Result<SkeinBlock> {
    let Value::Object(fields) = value else {
        return Err(Error::invalid(format!("block {number} must be a mapping with `tag`")));
    };
    let subject = format!("block {number}");
    check_keys(fields, &subject, &BLOCK_KEYS)?;
    let block_error = |reason: String| Error::invalid(format!("{subject}: {reason}"));
    let text = |key: &str| match fields.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(block_error(format!("`{key}` must be a text"))),
    };
    let slot = match text("slot")? {
        None => None,
        Some(slot) => Some(SkeinSlot::from_name(slot).ok_or_else(|| {
            let slot_names: Vec<_> = SkeinSlot::fixed_slots().map(|(name, _)| name).into();
            block_error(format!("unknown slot `{slot}`; known: {}, outlet:NAME", slot_names.join(", ")))
        })?),
    };
    let tag = match (text("tag")?, &slot) {
        (Some(tag), _) => tag,
        (None, Some(SkeinSlot::History)) => "conversation_history",
        (None, Some(_)) => "",
        (None, None) => return Err(block_error("`tag` is missing".to_owned())),
    };
    // A slot needs no tag.
    let is_slot_without_tag = tag.is_empty() && slot.is_some();
    if !name::is_name(tag) && !is_slot_without_tag {
        return Err(block_error(format!("`{tag}` is not a valid block tag")));
    }
    let subject = format!("block {number} (`{tag}`)");
    let block_error = |reason: String| Error::invalid(format!("{subject}: {reason}"));
    let meta_tag = MetaTag::read(tag, fields).map_err(block_error)?;
    // A property may be a key, or the attribute of a meta tag; if it is both, they must agree.
    let field_or_attribute = |key: &str| match (text(key)?, meta_tag.value(key)) {
        (Some(text), Some(value)) if text != value => {
            Err(block_error(format!("`{key}` is `{text}`, but `{value}` in its attributes")))
        }
        (text, value) => Ok(text.or(value)),
    };
    let role = parse_name(&MessageRole::NAMES, "role", field_or_attribute("role")?).map_err(block_error)?;
    let priority = parse_name(&BlockPriority::NAMES, "priority", field_or_attribute("priority")?)
        .map_err(block_error)?;
    let format =
        parse_name(&BlockFormat::NAMES, "format", field_or_attribute("format")?).map_err(block_error)?;
    let tag = meta_tag.tag;
    let attributes = match fields.get("attributes") {
        None | Some(Value::Null) => Vec::new(),
        // The only attribute of a meta tag was read as a property.
        Some(Value::Object(_)) if tag == "block" => Vec::new(),
        Some(Value::Object(map)) => map
            .iter()
            .map(|(key, value)| match value {
                _ if !name::is_name(key) => Err(block_error(format!("`{key}` is not an attribute name"))),
                Value::String(text) => Ok((key.clone(), text.clone())),
                Value::Number(_) | Value::Bool(_) => Ok((key.clone(), value.to_string())),
                _ => Err(block_error(format!("the attribute `{key}` must be text, a number, true or false"))),
            })
            .collect::<Result<Vec<_>>>()?,
        Some(_) => return Err(block_error("`attributes` must be a mapping".to_owned())),
    };
    let body = match (fields.get("data"), text("text")?, slot) {
        (None, None, Some(slot)) => BlockBody::Slot(slot),
        (None, Some(text), None) => BlockBody::Text(text.to_owned()),
        (Some(data), None, None) => BlockBody::Data(data.clone()),
        (None, None, None) if tag == "conversation_history" => BlockBody::Slot(SkeinSlot::History),
        (None, None, None) => return Err(block_error("`data`, `text` or `slot` is missing".to_owned())),
        _ => return Err(block_error("it has more than one of `data`, `text` and `slot`".to_owned())),
    };
    if tag == "use_protocol" && !matches!(body, BlockBody::Text(_)) {
        return Err(block_error("`text` must be the name of a protocol".to_owned()));
    }
    // A `block` holds data only if its format is declared.
    let has_data_format = format.is_some() && matches!(body, BlockBody::Data(_));
    if tag == "block" && !has_data_format && !matches!(body, BlockBody::Text(_)) {
        return Err(block_error("a `block` needs `text`".to_owned()));
    }
    let lore = match fields.get("lore").filter(|lore| !lore.is_null()) {
        None => None,
        Some(lore) => Some(
            serde_json::from_value::<LoreEntry>(lore.clone())
                .map_err(|error| block_error(format!("`lore`: {error}")))?,
        ),
    };
    Ok(SkeinBlock { tag: tag.to_owned(), role, priority, format, attributes, body, lore })
}

/// Tag of a block, read as a meta tag if it is one: a tag that describes its content (F-003). A file may use
/// a key instead.
struct MetaTag<'a> {
    /// Tag of the block; `block` in place of a meta tag.
    tag: &'a str,
    /// Key that the meta tag stands for, with its value.
    property: Option<(&'static str, &'a str)>,
}

/// Meta tags, each with its only attribute and the equivalent key.
const META_TAG_ATTRIBUTES: [(&str, &str, &str); 3] =
    [("block", "role", "role"), ("format", "type", "format"), ("priority", "level", "priority")];

impl<'a> MetaTag<'a> {
    /// Reads a tag with the attributes of its block; the error is a reason to refuse the block.
    fn read(tag: &'a str, fields: &'a Map<String, Value>) -> std::result::Result<MetaTag<'a>, String> {
        let Some((_, attribute, key)) = META_TAG_ATTRIBUTES.iter().find(|(name, ..)| *name == tag) else {
            return Ok(MetaTag { tag, property: None });
        };
        let attributes = match fields.get("attributes") {
            Some(Value::Object(attributes)) => Some(attributes),
            _ => None,
        };
        if let Some(other) = attributes.into_iter().flat_map(Map::keys).find(|name| name != attribute) {
            return Err(format!("`{tag}` has no attribute `{other}`, only `{attribute}`"));
        }
        let property = match attributes.and_then(|attributes| attributes.get(*attribute)) {
            Some(Value::String(value)) => Some((*key, value.as_str())),
            Some(_) => return Err(format!("the attribute `{attribute}` must be a text")),
            None if tag == "block" => None,
            None => return Err(format!("the block tag `{tag}` needs its attribute `{attribute}`")),
        };
        Ok(MetaTag { tag: "block", property })
    }

    /// Returns the value of a key, if the meta tag stands for it.
    fn value(&self, key: &str) -> Option<&'a str> {
        self.property.filter(|(name, _)| *name == key).map(|(_, value)| value)
    }
}

/// Returns the value with the name `text`; `None` without a name. The error lists the known names.
fn parse_name<T: Copy>(
    names: &[(&str, T)],
    key: &str,
    text: Option<&str>,
) -> std::result::Result<Option<T>, String> {
    let Some(text) = text else { return Ok(None) };
    match names.iter().find(|(name, _)| *name == text) {
        Some((_, value)) => Ok(Some(*value)),
        None => {
            let known_names: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
            Err(format!("unknown `{key}` `{text}`; known: {}", known_names.join(", ")))
        }
    }
}

/// Returns an empty structure, which adjusts nothing.
pub(super) fn empty_structure() -> Value {
    json!({"mandatory": [], "optional": [], "dependency": {}})
}
