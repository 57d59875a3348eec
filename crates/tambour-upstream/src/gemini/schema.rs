//! Check whether a schema fits the older form of Gemini's schemas, which accepts only a part of JSON Schema.

use serde_json::Value;

/// Keywords of the older form whose values are not schemas.
const PLAIN_KEYWORDS: [&str; 16] = [
    "default",
    "description",
    "enum",
    "example",
    "format",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "nullable",
    "pattern",
    "title",
];

/// Returns `true` if a schema fits the older form; otherwise it must be sent as JSON Schema. The recursion is
/// bounded by the depth that requests may have.
pub(super) fn fits_old_form(schema: &Value) -> bool {
    let Value::Object(schema) = schema else { return false };
    schema.contains_key("type")
        && schema.iter().all(|(keyword, value)| match keyword.as_str() {
            "type" => value.is_string(),
            "enum" => is_text_list(value),
            "format" => {
                matches!(value.as_str(), Some("date-time" | "enum" | "int32" | "int64" | "float" | "double"))
            }
            "required" | "propertyOrdering" => is_text_list(value),
            "properties" => value
                .as_object()
                .is_some_and(|schemas| !schemas.is_empty() && schemas.values().all(fits_old_form)),
            "items" => fits_old_form(value),
            "anyOf" => value.as_array().is_some_and(|schemas| schemas.iter().all(fits_old_form)),
            keyword => PLAIN_KEYWORDS.contains(&keyword),
        })
}

/// Returns `true` for a list of strings.
fn is_text_list(value: &Value) -> bool {
    value.as_array().is_some_and(|list| list.iter().all(Value::is_string))
}
