//! Pages of the book with the HTTP interface, from the server's own description.

use serde_json::Value;

use super::rules::inline_code;

/// Writes the page of operations, by tag.
pub(super) fn write_operations(document: &Value) -> String {
    let mut text = String::from(
        "# Operations of the HTTP interface\n\nGenerated from the server's OpenAPI document, which it serves at `/openapi.json` and shows at `/docs`. \
        [HTTP](http-api.md) explains how the operations work together.\n",
    );
    for tag in document["tags"].as_array().into_iter().flatten() {
        let name = word(&tag["name"]);
        text += &format!("\n## {name}\n\n{}\n", word(&tag["description"]));
        for (path, operations) in document["paths"].as_object().into_iter().flatten() {
            for (method, operation) in operations.as_object().into_iter().flatten() {
                let tags = operation["tags"].as_array();
                if tags.is_some_and(|tags| tags.first() == Some(&tag["name"])) {
                    write_operation(&mut text, document, &method.to_uppercase(), path, operation);
                }
            }
        }
    }
    text
}

fn write_operation(text: &mut String, document: &Value, method: &str, path: &str, operation: &Value) {
    *text +=
        &format!("\n### {}\n\n{}\n", inline_code(&format!("{method} {path}")), word(&operation["summary"]));
    let description = word(&operation["description"]);
    if !description.is_empty() {
        *text += &format!("\n{description}\n");
    }
    let parameters: Vec<&Value> = operation["parameters"].as_array().into_iter().flatten().collect();
    if !parameters.is_empty() {
        *text += "\n| parameter | in | type | |\n| --- | --- | --- | --- |\n";
        for parameter in parameters {
            let parameter = resolve(document, parameter);
            let necessity = if parameter["required"] == true { ", required" } else { "" };
            *text += &format!(
                "| {} | {}{necessity} | {} | {} |\n",
                inline_code(word(&parameter["name"])),
                word(&parameter["in"]),
                type_name(&parameter["schema"]),
                cell(word(&parameter["description"])),
            );
        }
    }
    for (media, content) in operation["requestBody"]["content"].as_object().into_iter().flatten() {
        *text += &format!("\nBody ({}): {}\n", inline_code(media), type_name(&content["schema"]));
    }
    *text += "\n| status | response | |\n| --- | --- | --- |\n";
    for (status, response) in operation["responses"].as_object().into_iter().flatten() {
        let response = resolve(document, response);
        let content = response["content"].as_object().into_iter().flatten();
        // Problems have one form, which their description does not repeat.
        let bodies: Vec<String> = content
            .map(|(media, content)| match media.as_str() {
                "application/problem+json" => "[`Problem`](objects.md#problem)".to_owned(),
                "application/json" => type_name(&content["schema"]),
                media => inline_code(media),
            })
            .collect();
        let description = cell(word(&response["description"]));
        *text += &format!("| {status} | {} | {description} |\n", bodies.join(" or "));
    }
}

/// Writes the page of objects: bodies of requests and responses.
pub(super) fn write_objects(document: &Value) -> String {
    let mut text = String::from(
        "# Objects of the HTTP interface\n\nGenerated from the server's OpenAPI document. The [operations](interface.md) name these objects.\n",
    );
    for (name, schema) in document["components"]["schemas"].as_object().into_iter().flatten() {
        text += &format!("\n## {name}\n\n");
        let description = word(&schema["description"]);
        if !description.is_empty() {
            text += &format!("{description}\n\n");
        }
        let Some(properties) = schema["properties"].as_object() else {
            text += &format!("{}\n", type_name(schema));
            continue;
        };
        let required: Vec<&Value> = schema["required"].as_array().into_iter().flatten().collect();
        text += "| field | type | |\n| --- | --- | --- |\n";
        for (field, schema) in properties {
            let necessity = if required.iter().any(|name| *name == field) { ", required" } else { "" };
            let description = cell(word(&schema["description"]));
            text +=
                &format!("| {} | {}{necessity} | {description} |\n", inline_code(field), type_name(schema));
        }
    }
    text
}

/// Definition that a reference names, or the value itself.
fn resolve<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let pointer = value["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
    pointer.and_then(|pointer| document.pointer(pointer)).unwrap_or(value)
}

/// Type of a schema in a few words, with a link to the object that it names.
fn type_name(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next()) {
        return format!("[`{name}`](objects.md#{})", name.to_lowercase());
    }
    for (key, between) in [("oneOf", " or "), ("anyOf", " or "), ("allOf", " and ")] {
        if let Some(schemas) = schema[key].as_array() {
            let mut names: Vec<String> = schemas.iter().map(type_name).collect();
            names.dedup();
            return names.join(between);
        }
    }
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<String> = values.iter().map(|value| inline_code(&value.to_string())).collect();
        return values.join(", ");
    }
    if !schema["const"].is_null() {
        return inline_code(&schema["const"].to_string());
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().map(word).collect::<Vec<_>>().join(" or "),
        kind => word(kind).to_owned(),
    };
    match kind.as_str() {
        "" => "any".to_owned(),
        "array" => format!("array of {}", type_name(&schema["items"])),
        kind => kind.to_owned(),
    }
}

/// Text of a value; nothing if it is no text.
fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Text as a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace("\n", "<br>")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{type_name, write_objects, write_operations};

    #[test]
    fn operations_link_to_their_objects() {
        let document = json!({
            "tags": [{"name": "replies", "description": "Replies"}],
            "paths": {"/check": {"post": {
                "tags": ["replies"], "summary": "Check",
                "parameters": [{"$ref": "#/components/parameters/P"}],
                "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Check"}}}},
                "responses": {"200": {"description": "a | b"}}}}},
            "components": {
                "parameters": {"P": {"name": "after", "in": "query", "required": true, "schema": {"type": "string"}}},
                "schemas": {"Check": {"required": ["reply"], "properties": {"reply": {"type": "string"}}}}},
        });
        let page = write_operations(&document);
        assert!(page.contains("### `POST /check`"), "{page}");
        assert!(page.contains("| `after` | query, required | string |"), "{page}");
        assert!(page.contains("Body (`application/json`): [`Check`](objects.md#check)"), "{page}");
        assert!(page.contains("| 200 |  | a \\| b |"), "{page}");
        assert!(write_objects(&document).contains("## Check\n\n| field"));
    }

    #[test]
    fn types_are_a_few_words() {
        assert_eq!(type_name(&json!({"type": ["string", "null"]})), "string or null");
        assert_eq!(type_name(&json!({"type": "array", "items": {"type": "integer"}})), "array of integer");
        assert_eq!(type_name(&json!({"enum": ["a", "b"]})), "`\"a\"`, `\"b\"`");
        assert_eq!(type_name(&json!({})), "any");
    }
}
