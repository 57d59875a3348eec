//! Presets of SillyTavern's chat completion: the parts of a prompt and their order.

use serde::Serialize;
use serde_json::{Map, Value};

use tambour::error::Result;

use super::super::lore::MessageRole;
use super::super::macros::may_contain_macros;
use super::fields::{CardFields, describe_type};
use super::model::read_role;

/// Parts of a prompt in order, with token limits and texts around the parts.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PromptPreset {
    /// Enabled parts, in order.
    pub items: Vec<PresetItem>,
    /// Maximum number of tokens of the context.
    pub max_context: Option<u32>,
    /// Maximum number of tokens of the reply.
    pub max_tokens: Option<u32>,
    /// Template around the scenario, with macros; empty means the scenario alone.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub scenario_format: String,
    /// Template around the personality; empty means the personality alone.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub personality_format: String,
    /// System text before the history.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub new_chat: String,
    /// Text before each example dialogue; macros in it are not run.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub new_example: String,
}

/// A part of a prompt.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PresetItem {
    /// Identifier in the preset: `main`, `charDescription`, `chatHistory`, …
    pub id: String,
    /// Name for people.
    pub name: String,
    /// Role of the message.
    pub role: MessageRole,
    /// Text with macros; empty for a placeholder.
    pub text: String,
    /// True for a placeholder that stands for the character, the world info or the history.
    pub marker: bool,
    /// Number of messages after the part, if it is inserted among the messages.
    pub depth: Option<u32>,
}

/// Returns true if a file is a preset: a list of prompts with identifiers.
pub(super) fn is_preset(map: &Map<String, Value>) -> bool {
    let items = map.get("prompts").and_then(Value::as_array);
    items.is_some_and(|items| items.iter().any(|item| item.get("identifier").is_some()))
}

/// Reads the enabled parts in the order of `prompt_order`, or of the file if it has none. Ids without a part
/// are reported and dropped.
pub(super) fn read_preset(fields: &CardFields<'_>) -> Result<PromptPreset> {
    let mut items = Vec::new();
    for (index, item) in fields.list("prompts")?.iter().enumerate() {
        let path = fields.full_name(&format!("prompts[{index}]"));
        let Value::Object(map) = item else {
            return Err(fields
                .file
                .refuse(&format!("`{path}` should be an object, but is {}", describe_type(item))));
        };
        let item_fields = CardFields::new(fields.file, map, &path);
        // 1 inserts the part among the messages; 0, the default, keeps it in place.
        let is_at_depth = item_fields.count("injection_position")? == Some(1);
        let role_value = item_fields.get("role");
        items.push((
            PresetItem {
                id: item_fields.text("identifier")?,
                name: item_fields.text("name")?,
                role: match role_value {
                    None => MessageRole::System,
                    Some(value) => read_role(value)
                        .ok_or_else(|| item_fields.type_error("role", "system, user or assistant", value))?,
                },
                text: item_fields.text("content")?,
                marker: item_fields.flag("marker")?.unwrap_or(false),
                // Four messages is SillyTavern's default.
                depth: if is_at_depth {
                    Some(item_fields.count("injection_depth")?.unwrap_or(4))
                } else {
                    None
                },
            },
            item_fields.flag("enabled")?.unwrap_or(true),
        ));
    }
    let items = match read_order(fields)? {
        None => items.into_iter().filter(|(_, is_enabled)| *is_enabled).map(|(item, _)| item).collect(),
        Some(order) => {
            let find_item =
                |id: &str| items.iter().find(|(item, _)| item.id == id).map(|(item, _)| item.clone());
            let missing_ids: Vec<_> = order.iter().filter(|id| find_item(id).is_none()).collect();
            for id in missing_ids {
                fields.warn("prompt_order", &format!("names `{id}`, which is not among the prompts"));
            }
            order.iter().filter_map(|id| find_item(id)).collect()
        }
    };
    // Default values have no effect, so they need no warning.
    for (key, default, reason) in [
        ("wi_format", "{0}", "world info is written as elements"),
        ("assistant_prefill", "", "not every model continues its own message"),
    ] {
        let text = fields.text(key)?;
        if !text.trim().is_empty() && text.trim() != default {
            fields.warn(key, &format!("is kept and not used: {reason}"));
        }
    }
    let new_example = fields.text("new_example_chat_prompt")?;
    if may_contain_macros(&new_example) {
        fields.warn("new_example_chat_prompt", "has macros, which stay as they are written");
    }
    Ok(PromptPreset {
        scenario_format: fields.text("scenario_format")?,
        personality_format: fields.text("personality_format")?,
        new_chat: fields.text("new_chat_prompt")?,
        new_example,
        items,
        max_context: fields.count("openai_max_context")?,
        max_tokens: fields.count("openai_max_tokens")?,
    })
}

/// Returns the ids of the enabled parts in order, from the last list of `prompt_order`, which applies to all
/// characters; `None` if there is no list.
fn read_order(fields: &CardFields<'_>) -> Result<Option<Vec<String>>> {
    let lists = fields.list("prompt_order")?;
    let Some(last_list) = lists.last() else { return Ok(None) };
    let path = fields.full_name(&format!("prompt_order[{}]", lists.len() - 1));
    let Value::Object(map) = last_list else {
        return Err(fields
            .file
            .refuse(&format!("`{path}` should be an object, but is {}", describe_type(last_list))));
    };
    let list_fields = CardFields::new(fields.file, map, &path);
    let mut ids = Vec::new();
    for (index, item) in list_fields.list("order")?.iter().enumerate() {
        let path = list_fields.full_name(&format!("order[{index}]"));
        let Value::Object(map) = item else {
            return Err(fields
                .file
                .refuse(&format!("`{path}` should be an object, but is {}", describe_type(item))));
        };
        let item_fields = CardFields::new(fields.file, map, &path);
        if item_fields.flag("enabled")?.unwrap_or(true) {
            ids.push(item_fields.text("identifier")?);
        }
    }
    Ok(Some(ids))
}
