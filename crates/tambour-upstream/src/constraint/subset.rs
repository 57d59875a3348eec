//! Subsets of JSON Schema that servers take. A schema is widened until a server takes it: what is lost, the
//! checker finds.

use serde_json::{Map, Value, json};

/// Schemas that a server takes.
#[derive(Debug)]
pub(super) struct SchemaSubset {
    /// Keywords; others are left out.
    keywords: &'static [&'static str],
    /// True if objects must list their properties and may have no others.
    is_closed: bool,
    /// True if every property must be required.
    is_all_required: bool,
    /// Maximum nesting of values.
    max_depth: usize,
}

/// Deepest schema that is followed.
const MAX_DEPTH: usize = 64;

/// Schemas of llama.cpp, which Ollama uses too. Patterns must be anchored there, so they are left out.
pub(super) const GGML_SCHEMAS: SchemaSubset = SchemaSubset {
    keywords: &[
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "prefixItems",
        "minItems",
        "maxItems",
        "enum",
        "const",
        "anyOf",
        "oneOf",
        "$ref",
        "$defs",
        "definitions",
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
        "description",
    ],
    is_closed: false,
    is_all_required: false,
    max_depth: MAX_DEPTH,
};

/// Schemas of xgrammar, in vLLM and SGLang.
pub(super) const XGRAMMAR_SCHEMAS: SchemaSubset = SchemaSubset {
    keywords: &[
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "prefixItems",
        "minItems",
        "maxItems",
        "enum",
        "const",
        "anyOf",
        "oneOf",
        "$ref",
        "$defs",
        "definitions",
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "description",
        "title",
    ],
    is_closed: false,
    is_all_required: false,
    max_depth: MAX_DEPTH,
};

/// Strict schemas of OpenAI.
pub(super) const OPENAI_SCHEMAS: SchemaSubset = SchemaSubset {
    keywords: &[
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "minItems",
        "maxItems",
        "enum",
        "const",
        "anyOf",
        "$ref",
        "$defs",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "description",
    ],
    is_closed: true,
    is_all_required: true,
    max_depth: 10,
};

/// Schemas of Anthropic's structured outputs, without bounds of numbers, texts and lists.
pub(super) const ANTHROPIC_SCHEMAS: SchemaSubset = SchemaSubset {
    keywords: &[
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "enum",
        "const",
        "anyOf",
        "$ref",
        "$defs",
        "description",
        "title",
    ],
    is_closed: true,
    is_all_required: false,
    max_depth: MAX_DEPTH,
};

/// Schemas of `responseJsonSchema` of Gemini.
pub(super) const GEMINI_SCHEMAS: SchemaSubset = SchemaSubset {
    keywords: &[
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "prefixItems",
        "minItems",
        "maxItems",
        "enum",
        "anyOf",
        "oneOf",
        "$ref",
        "$defs",
        "minimum",
        "maximum",
        "description",
        "title",
    ],
    is_closed: false,
    is_all_required: false,
    max_depth: MAX_DEPTH,
};

impl SchemaSubset {
    /// Widens a schema until it is one of the subset; `None` if no schema of the subset has all its values.
    pub(super) fn fit(&self, schema: &Value) -> Option<Value> {
        self.widen(schema, 0)
    }

    fn widen(&self, schema: &Value, depth: usize) -> Option<Value> {
        if depth > self.max_depth {
            return None;
        }
        let fields = match schema {
            Value::Object(fields) => fields,
            Value::Bool(true) if !self.is_closed => return Some(json!({})),
            _ => return None,
        };
        let mut wide = Map::new();
        let properties = fields.get("properties").and_then(Value::as_object);
        for (keyword, value) in fields {
            // Some servers read only the branches and forget what stands beside them. Branches that need
            // further properties cannot be left out.
            if let (Some(properties), "anyOf" | "oneOf") = (properties, keyword.as_str()) {
                let branches = value.as_array()?.iter().filter_map(|branch| branch["properties"].as_object());
                if branches.flat_map(Map::keys).any(|name| !properties.contains_key(name)) {
                    return None;
                }
                continue;
            }
            if let Some((keyword, value)) = self.widen_keyword(keyword, value, depth)? {
                wide.insert(keyword.to_owned(), value);
            }
        }
        if let (Some(Value::Array(values)), None) = (wide.get("enum"), wide.get("type"))
            && values.iter().all(Value::is_string)
        {
            wide.insert("type".to_owned(), "string".into());
        }
        if self.is_closed {
            self.close(&mut wide)?;
        }
        Some(Value::Object(wide))
    }

    /// Returns a keyword and its value in the subset, `None` within if it is left out; `None` if the schema
    /// would then be no schema of the subset.
    fn widen_keyword<'a>(
        &self,
        keyword: &'a str,
        value: &Value,
        depth: usize,
    ) -> Option<Option<(&'a str, Value)>> {
        let has = |keyword: &str| self.keywords.contains(&keyword);
        let list = |value: &Value| -> Option<Value> {
            value.as_array()?.iter().map(|schema| self.widen(schema, depth)).collect()
        };
        Some(match keyword {
            "const" if !has("const") => Some(("enum", json!([value]))),
            "oneOf" if !has("oneOf") => Some(("anyOf", list(value)?)),
            _ if !has(keyword) => None,
            "properties" | "$defs" | "definitions" => {
                let depth = depth + usize::from(keyword == "properties");
                let schemas = value.as_object()?.iter();
                let schemas: Option<Map<String, Value>> =
                    schemas.map(|(name, schema)| Some((name.clone(), self.widen(schema, depth)?))).collect();
                Some((keyword, Value::Object(schemas?)))
            }
            "items" if value.is_object() => Some((keyword, self.widen(value, depth + 1)?)),
            "additionalProperties" if value.is_object() => {
                if self.is_closed {
                    return None;
                }
                Some((keyword, self.widen(value, depth + 1)?))
            }
            "anyOf" | "oneOf" | "prefixItems" => Some((keyword, list(value)?)),
            _ => Some((keyword, value.clone())),
        })
    }

    /// Closes the objects of a schema; `None` if they cannot be closed, or the schema names no type.
    fn close(&self, schema: &mut Map<String, Value>) -> Option<()> {
        let is_object = match schema.get("type") {
            Some(Value::String(name)) => name == "object",
            Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
            _ => schema.contains_key("properties"),
        };
        if is_object {
            let names: Vec<Value> =
                schema.get("properties")?.as_object()?.keys().map(|name| json!(name)).collect();
            if schema.get("additionalProperties").is_some_and(|others| *others != Value::Bool(false)) {
                return None;
            }
            if self.is_all_required {
                let required = schema.get("required").and_then(Value::as_array)?;
                if names.iter().any(|name| !required.contains(name)) {
                    return None;
                }
            }
            schema.insert("additionalProperties".to_owned(), false.into());
            schema.entry("type").or_insert_with(|| "object".into());
        }
        let has_type =
            ["type", "enum", "const", "anyOf", "$ref"].iter().any(|name| schema.contains_key(*name));
        has_type.then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_are_widened_to_what_a_server_takes() {
        let schema = json!({
            "$schema": "x", "type": "object", "required": ["a", "b"],
            "properties": {
                "a": {"type": "string", "pattern": "\\S", "minLength": 2},
                "b": {"const": "x"},
            },
            "oneOf": [{"properties": {"b": {"const": "x"}}}],
        });
        let closed = json!({
            "type": "object", "required": ["a", "b"], "additionalProperties": false,
            "properties": {"a": {"type": "string"}, "b": {"const": "x"}},
        });
        assert_eq!(OPENAI_SCHEMAS.fit(&schema), Some(closed.clone()));
        assert_eq!(ANTHROPIC_SCHEMAS.fit(&schema), Some(closed));
        assert_eq!(
            GEMINI_SCHEMAS.fit(&schema),
            Some(json!({
                "type": "object", "required": ["a", "b"],
                "properties": {"a": {"type": "string"}, "b": {"enum": ["x"], "type": "string"}},
            }))
        );
        assert_eq!(
            GGML_SCHEMAS.fit(&schema).expect("a schema")["properties"]["a"],
            json!({"type": "string", "minLength": 2})
        );
    }

    #[test]
    fn schemas_that_a_server_cannot_take_are_none() {
        let optional = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        assert_eq!(OPENAI_SCHEMAS.fit(&optional), None);
        assert!(ANTHROPIC_SCHEMAS.fit(&optional).is_some());
        for open in [
            json!({"type": "object"}),
            json!({"type": "object", "properties": {}, "required": [], "additionalProperties": true}),
            json!({"type": "object", "properties": {"a": true}, "required": ["a"]}),
            json!({"type": "array", "items": {"description": "anything"}}),
        ] {
            assert_eq!(OPENAI_SCHEMAS.fit(&open), None, "{open}");
            assert!(GGML_SCHEMAS.fit(&open).is_some(), "{open}");
        }
        // A branch has a property of its own.
        let branches = json!({
            "type": "object", "required": ["a"], "properties": {"a": {"enum": ["x", "y"]}},
            "oneOf": [{"properties": {"b": {"type": "string"}}, "required": ["b"]}],
        });
        assert_eq!(GGML_SCHEMAS.fit(&branches), None);
        let mut deep = json!({"type": "string"});
        for _ in 0..12 {
            deep = json!({"type": "object", "properties": {"a": deep}, "required": ["a"]});
        }
        assert_eq!(OPENAI_SCHEMAS.fit(&deep), None);
        assert!(XGRAMMAR_SCHEMAS.fit(&deep).is_some());
    }
}
