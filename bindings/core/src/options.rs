//! Reading options from names and values.

use serde_json::{Map, Value};
use tambour::error::{Error, Result};
use tambour::settings::all_settings;
use tambour::{Options, Profile};

/// Option of programs that run tools themselves, which command and server do not have: name, and purpose.
pub const TOOL_LOOP: (&str, &str) = (
    "tool_loop",
    "the program runs the calls of the reply: `finish` leaves the stream open for their results (X-004); default false",
);

/// Builds options from values by public name. Languages whose argument names have no dots may write `_`
/// instead: `plain_reasoning` stands for `plain.reasoning`. The value of `tools` may also be a list of tools
/// as model services take them.
///
/// # Errors
/// A name is unknown, or an option does not accept its value.
pub fn build_options(values: &Map<String, Value>, default_profile: Profile) -> Result<Options> {
    let mut options = Options::default();
    options.profile = default_profile;
    for (name, value) in values {
        let name = resolve_name(name);
        if name == "tools"
            && let Value::Array(tools) = value
        {
            options.set(name, read_service_tools(tools)?)?;
        } else if name == TOOL_LOOP.0 {
            options.tool_loop = value
                .as_bool()
                .ok_or_else(|| Error::invalid(format!("`{name}` is true or false, not {value}")))?;
        } else {
            options.set(name, value.clone())?;
        }
    }
    Ok(options)
}

/// Public name of an option; an unknown name stays as it is.
fn resolve_name(name: &str) -> &str {
    let is_same = |known: &str| {
        known.len() == name.len()
            && known.bytes().zip(name.bytes()).all(|(a, b)| a == b || (a, b) == (b'.', b'_'))
    };
    all_settings().map(|(_, setting)| setting.name).find(|known| is_same(known)).unwrap_or(name)
}

/// Converts tools as model services take them (`{"type": "function", "function": {...}}`, `{"name": ...,
/// "input_schema": ...}`) to a registry, tool name to JSON Schema.
fn read_service_tools(tools: &[Value]) -> Result<Value> {
    let mut registry = Map::new();
    for (index, tool) in tools.iter().enumerate() {
        let function = tool.get("function").unwrap_or(tool);
        let name = function.get("name").and_then(Value::as_str).ok_or_else(|| {
            Error::invalid(format!(
                "tools[{index}] has no `name`; a tool is an object with a name and a schema"
            ))
        })?;
        let schema = ["parameters", "input_schema", "inputSchema"].iter().find_map(|key| function.get(*key));
        let mut schema = schema.cloned().unwrap_or_else(|| serde_json::json!({ "type": "object" }));
        if let (Some(fields), Some(about)) = (schema.as_object_mut(), function.get("description"))
            && !fields.contains_key("description")
        {
            fields.insert("description".to_owned(), about.clone());
        }
        if registry.insert(name.to_owned(), schema).is_some() {
            return Err(Error::invalid(format!("tools[{index}]: there is a tool `{name}` already")));
        }
    }
    Ok(Value::Object(registry))
}
