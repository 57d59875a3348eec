//! A preset of SillyTavern's chat completion: the parts of a prompt and their order.

use serde::Serialize;
use serde_json::{Map, Value};

use tambour::error::Result;

use super::super::lore::Role;
use super::super::macros::may_hold;
use super::fields::{Fields, kind};
use super::model::role;

/// Parts of a prompt in their order.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Preset {
    /// The parts that are switched on, in order.
    pub items: Vec<Item>,
    /// Tokens of the context.
    pub max_context: Option<u32>,
    /// Tokens of the reply.
    pub max_tokens: Option<u32>,
    /// The text around the scenario, with macros; empty: the scenario alone.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub scenario_format: String,
    /// The text around the personality.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub personality_format: String,
    /// What the system says before the history.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub new_chat: String,
    /// What stands before each dialogue that is an example.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub new_example: String,
}

/// One part.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Item {
    /// Its name in the preset: `main`, `charDescription`, `chatHistory`, …
    pub id: String,
    /// What people call it.
    pub name: String,
    /// Who says it.
    pub role: Role,
    /// Its text, with macros; empty for a place that something else fills.
    pub text: String,
    /// Something else fills it: the character, the world info, the history.
    pub marker: bool,
    /// It stands among the messages, that many from the end.
    pub depth: Option<u32>,
}

/// Whether a file is a preset.
pub(super) fn is(map: &Map<String, Value>) -> bool {
    let items = map.get("prompts").and_then(Value::as_array);
    items.is_some_and(|items| items.iter().any(|item| item.get("identifier").is_some()))
}

/// The parts that are switched on, in the order the file gives them; those it does not order are left out with a warning.
pub(super) fn read(fields: &Fields<'_>) -> Result<Preset> {
    let mut items = Vec::new();
    for (at, item) in fields.list("prompts")?.iter().enumerate() {
        let path = fields.name(&format!("prompts[{at}]"));
        let Value::Object(map) = item else {
            return Err(fields.file.refuse(&format!("`{path}` should be an object, it is {}", kind(item))));
        };
        let own = Fields::new(fields.file, map, &path);
        let at_depth = own.count("injection_position")? == Some(1);
        let said = own.get("role");
        items.push((
            Item {
                id: own.text("identifier")?,
                name: own.text("name")?,
                role: match said {
                    None => Role::System,
                    Some(value) => {
                        role(value).ok_or_else(|| own.wrong("role", "system, user or assistant", value))?
                    }
                },
                text: own.text("content")?,
                marker: own.flag("marker")?.unwrap_or(false),
                depth: if at_depth { Some(own.count("injection_depth")?.unwrap_or(4)) } else { None },
            },
            own.flag("enabled")?.unwrap_or(true),
        ));
    }
    let items = match order(fields)? {
        None => items.into_iter().filter(|(_, enabled)| *enabled).map(|(item, _)| item).collect(),
        Some(order) => {
            let find = |id: &str| items.iter().find(|(item, _)| item.id == id).map(|(item, _)| item.clone());
            let missing: Vec<_> = order.iter().filter(|id| find(id).is_none()).collect();
            for id in missing {
                fields.warn("prompt_order", &format!("names `{id}`, which is not among the prompts"));
            }
            order.iter().filter_map(|id| find(id)).collect()
        }
    };
    // Those that change nothing are usual.
    for (key, usual, what) in [
        ("wi_format", "{0}", "world info stands as elements"),
        ("assistant_prefill", "", "not every model goes on from a message of its own"),
    ] {
        let text = fields.text(key)?;
        if !text.trim().is_empty() && text.trim() != usual {
            fields.warn(key, &format!("is kept and not used: {what}"));
        }
    }
    let new_example = fields.text("new_example_chat_prompt")?;
    if may_hold(&new_example) {
        fields.warn("new_example_chat_prompt", "has macros, which stay as they are written");
    }
    Ok(Preset {
        scenario_format: fields.text("scenario_format")?,
        personality_format: fields.text("personality_format")?,
        new_chat: fields.text("new_chat_prompt")?,
        new_example,
        items,
        max_context: fields.count("openai_max_context")?,
        max_tokens: fields.count("openai_max_tokens")?,
    })
}

/// Names of the parts that are switched on, in order: those of the last list, which is the one for all characters.
fn order(fields: &Fields<'_>) -> Result<Option<Vec<String>>> {
    let lists = fields.list("prompt_order")?;
    let Some(last) = lists.last() else { return Ok(None) };
    let path = fields.name(&format!("prompt_order[{}]", lists.len() - 1));
    let Value::Object(map) = last else {
        return Err(fields.file.refuse(&format!("`{path}` should be an object, it is {}", kind(last))));
    };
    let list = Fields::new(fields.file, map, &path);
    let mut names = Vec::new();
    for (at, item) in list.list("order")?.iter().enumerate() {
        let path = list.name(&format!("order[{at}]"));
        let Value::Object(map) = item else {
            return Err(fields.file.refuse(&format!("`{path}` should be an object, it is {}", kind(item))));
        };
        let item = Fields::new(fields.file, map, &path);
        if item.flag("enabled")?.unwrap_or(true) {
            names.push(item.text("identifier")?);
        }
    }
    Ok(Some(names))
}
