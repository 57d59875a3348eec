//! Strict tools: the schemas of offered tools as a constraint on their calls, where a service has such a mode.
//!
//! Sources, read in November 2026: "Function calling" of OpenAI (`strict` of a function; its schema is one of
//! Structured Outputs); "Strict tool use" of Anthropic (`strict` of a tool).

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Value, json};

use super::subset::SchemaSubset;
use crate::ModelRequest;

/// Maximum number of strict tools of a request; Anthropic takes 20.
const MAX_STRICT_TOOLS: usize = 20;

/// Request whose tools are strict as far as the service can take their schemas, and a hash of these tools; `None` if
/// there is no such tool. Schemas are widened to those that the service takes: what is lost, the check of a call
/// finds.
pub(super) fn with_strict_tools(
    request: &ModelRequest,
    schemas: &SchemaSubset,
) -> Option<(ModelRequest, u64)> {
    let mut request = request.clone();
    let mut hasher = DefaultHasher::new();
    let mut count = 0;
    for tool in &mut request.tools {
        let Some(function) = tool.get_mut("function").and_then(Value::as_object_mut) else { continue };
        // A client that says itself what it wants is heard.
        if count == MAX_STRICT_TOOLS || function.contains_key("strict") {
            continue;
        }
        let parameters = function.get("parameters").cloned();
        let parameters =
            parameters.unwrap_or_else(|| json!({"type": "object", "properties": {}, "required": []}));
        if let Some(parameters) = schemas.fit(&parameters).filter(|schema| schema["type"] == "object") {
            parameters.to_string().hash(&mut hasher);
            function.insert("parameters".to_owned(), parameters);
            function.insert("strict".to_owned(), true.into());
            count += 1;
        }
    }
    (count > 0).then(|| (request, hasher.finish()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::subset::OPENAI_SCHEMAS;
    use super::*;

    #[test]
    fn tools_are_strict_where_their_schema_allows_it() {
        let strict = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let optional = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
        let tool = |parameters: &Value| json!({"type": "function", "function": {"name": "f", "parameters": parameters}});
        let mut own = tool(&strict);
        own["function"]["strict"] = false.into();
        let tools = vec![tool(&strict), tool(&optional), own.clone()];
        let request = ModelRequest { tools, ..ModelRequest::default() };
        let (changed, _) = with_strict_tools(&request, &OPENAI_SCHEMAS).expect("one is strict");
        let function = &changed.tools[0]["function"];
        assert_eq!(
            (&function["strict"], &function["parameters"]["additionalProperties"]),
            (&json!(true), &json!(false))
        );
        assert_eq!(changed.tools[1..], [tool(&optional), own]);
        let request = ModelRequest { tools: vec![tool(&optional)], ..ModelRequest::default() };
        assert!(with_strict_tools(&request, &OPENAI_SCHEMAS).is_none());
        // There may be more than a service takes.
        let request = ModelRequest { tools: vec![tool(&strict); 30], ..ModelRequest::default() };
        let (changed, _) = with_strict_tools(&request, &OPENAI_SCHEMAS).expect("some are strict");
        let count = changed.tools.iter().filter(|tool| tool["function"]["strict"] == true).count();
        assert_eq!(count, MAX_STRICT_TOOLS);
    }
}
