//! The OpenAPI document, compared with the server that serves it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::client::EventStream;
use crate::mock::{MockServer, reply_script};
use crate::server::TestServer;

static API: LazyLock<Value> = LazyLock::new(tambour_server::openapi);

/// Operations: path, method, description.
fn operations() -> impl Iterator<Item = (&'static String, &'static String, &'static Value)> {
    let paths = API["paths"].as_object().unwrap().iter();
    paths.flat_map(|(path, methods)| {
        methods.as_object().unwrap().iter().map(move |(method, operation)| (path, method, operation))
    })
}

/// Example body of an operation.
fn example_body(operation: &Value) -> Option<&Value> {
    operation["requestBody"]["content"]["application/json"].get("example")
}

/// Checks that a problem document is described for its operation. Every request of the tests
/// passes through here.
pub(crate) fn assert_problem_described(method: &str, path: &str, status: u16, document: &Value) {
    let Some(code) = document["type"].as_str().and_then(|kind| kind.strip_prefix("urn:tambour:problem:"))
    else {
        return;
    };
    let path = path.split('?').next().unwrap();
    let matches = |template: &str| {
        let (mut parts, mut path_parts) = (template.split('/'), path.split('/'));
        loop {
            match (parts.next(), path_parts.next()) {
                (None, None) => return true,
                (Some(part), Some(path_parts)) if part == path_parts || part.starts_with('{') => {}
                _ => return false,
            }
        }
    };
    let found =
        operations().find(|(template, operation_method, _)| *operation_method == method && matches(template));
    // Other paths and methods have no description.
    let Some((template, _, operation)) = found else { return };
    let schema = &operation["responses"][status.to_string()]["content"]["application/problem+json"]["schema"];
    let codes = schema["allOf"][1]["properties"]["code"]["enum"].as_array();
    let is_described = codes.is_some_and(|codes| codes.iter().any(|known_code| known_code == code));
    assert!(is_described, "{method} {template} gives {status} `{code}`, which is not described: {document}");
}

/// Validator for a schema of the document.
fn validator(schema: &Value) -> jsonschema::Validator {
    let mut root = schema.clone();
    root["components"] = API["components"].clone();
    jsonschema::draft202012::new(&root).unwrap()
}

#[test]
fn every_operation_has_a_name_a_tag_examples_and_problems() {
    let mut names = HashSet::new();
    let tags: Vec<&Value> = API["tags"].as_array().unwrap().iter().map(|tag| &tag["name"]).collect();
    for (path, method, operation) in operations() {
        let place = format!("{method} {path}");
        let name = operation["operationId"].as_str().unwrap_or_else(|| panic!("{place} has a name"));
        assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{place}: {name}");
        assert!(names.insert(name), "{place}: `{name}` is the name of another one");
        assert_eq!(operation["tags"].as_array().map(Vec::len), Some(1), "{place}");
        assert!(tags.contains(&&operation["tags"][0]), "{place}");
        let request = operation.get("requestBody").map(|body| &body["content"]);
        let answers = operation["responses"].as_object().unwrap();
        let success =
            answers.iter().find(|(_, answer)| answer["content"].get("application/problem+json").is_none());
        let success = success.map(|(_, answer)| &answer["content"]);
        for (part, content) in [("request", request), ("answer", success)] {
            let Some((_, content)) = content.and_then(|content| content.as_object()?.iter().next()) else {
                continue;
            };
            let example =
                content.get("example").unwrap_or_else(|| panic!("{place}: an example of the {part}"));
            let faults = validator(&content["schema"]);
            let faults: Vec<String> = faults.iter_errors(example).map(|fault| fault.to_string()).collect();
            assert!(faults.is_empty(), "{place}: the {part}: {faults:?}");
        }
        let needs_key = operation.get("security").is_some();
        assert_eq!(answers.contains_key("401"), needs_key, "{place}");
        assert!(answers.contains_key("422") || request.is_none(), "{place}");
    }
    assert!(names.len() > 30);
}

#[test]
fn every_code_is_described_and_every_described_code_is_given() {
    let mut described_codes = HashSet::new();
    for (_, _, operation) in operations() {
        for answer in operation["responses"].as_object().unwrap().values() {
            let schema = &answer["content"]["application/problem+json"]["schema"]["allOf"][1];
            let codes = schema["properties"]["code"]["enum"].as_array().into_iter().flatten();
            described_codes.extend(codes.map(|code| code.as_str().unwrap().to_owned()));
            // Errors of other protocols describe them in prose.
            let lines = answer["description"].as_str().unwrap().lines();
            described_codes.extend(
                lines.filter_map(|line| Some(line.strip_prefix('`')?.split_once("`: ")?.0.to_owned())),
            );
        }
    }
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    // The machine of dialogues has codes of its own.
    let source = folder_source(crate_folder.join("src"))
        + &folder_source(crate_folder.join("../tambour-prompt/src/dialogue"));
    let mut given_codes = HashSet::new();
    for begin in
        ["Problem::invalid(\"", "Problem::conflict(\"", "Problem::too_many(\"", "Problem::new(StatusCode::"]
    {
        for rest in source.split(begin).skip(1) {
            // The code follows a status in calls of `new`.
            let status = |c: char| c.is_ascii_uppercase() || c == '_';
            let rest = match begin.ends_with('"') {
                true => Some(rest),
                false => rest.trim_start_matches(status).strip_prefix(",\""),
            };
            given_codes.extend(rest.and_then(|rest| Some(rest.split_once('"')?.0.to_owned())));
        }
    }
    // Errors of paths and methods that are no operations.
    given_codes.remove("method_not_allowed");
    assert!(given_codes.len() > 30, "{given_codes:?}");
    let missing_codes: Vec<&String> = given_codes.difference(&described_codes).collect();
    assert!(missing_codes.is_empty(), "given and not described: {missing_codes:?}");
    for code in &described_codes {
        assert!(source.contains(&format!("\"{code}\"")), "`{code}` is described and never given");
    }
}

/// Sources of a folder without the tables of operations and codes, without white space.
fn folder_source(folder: PathBuf) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            text.push_str(&folder_source(path));
        } else if path.extension().is_some_and(|kind| kind == "rs")
            && !path.ends_with("routes.rs")
            && !path.ends_with("operation_docs.rs")
        {
            let source_text = std::fs::read_to_string(path).unwrap();
            text.extend(source_text.chars().filter(|c| !c.is_whitespace()));
        }
    }
    text
}

#[tokio::test]
async fn every_operation_answers_as_described() {
    let mock = MockServer::start(vec![reply_script("Four.", 2)]).await;
    // The examples name an upstream and an alias.
    let mut server = TestServer::start(&mock, |config| {
        config.aliases.insert("sums".into(), serde_json::from_value(json!({"dialect": "plain"})).unwrap());
        let upstream = config.upstreams.remove("openai").unwrap();
        config.upstreams.insert("local".to_owned(), upstream);
        config.default_upstream = Some("local".to_owned());
    })
    .await;
    let api = server.get("/openapi.json").await.json;
    assert_eq!(api, *API);
    let acceptance = server.post("/api/v1/messages", &json!({"text": "x"})).await.json;
    let message = acceptance["message_id"].as_str().unwrap().to_owned();
    server.wait_ended(&message).await;
    let conversation = acceptance["conversation_id"].as_str().unwrap().to_owned();
    let script = server
        .post("/api/v1/scripts", &json!({"name": "s", "yaml": "sessions: [{session: s, phases: []}]"}))
        .await
        .json;
    let script = script["script_id"].as_str().unwrap().to_owned();
    let dialogue = server.post("/api/v1/dialogues", &json!({"script_id": script})).await.json;
    let dialogue = dialogue["dialogue_id"].as_str().unwrap().to_owned();
    let followed_dialogue = server.post("/api/v1/dialogues", &json!({"script_id": script})).await.json;
    let followed_dialogue = followed_dialogue["dialogue_id"].as_str().unwrap().to_owned();
    let input = format!("/api/v1/dialogues/{followed_dialogue}/input");
    let input_body = json!({"text": "x", "stream": true}).to_string();
    let turn =
        EventStream::open(server.address, "POST", &input, &[], Some(&input_body)).await.read_rest().await;
    let turn = crate::client::stream_message_id(&turn);
    let files = json!({"files": [{"name": "a", "json": {"name": "A", "first_mes": "x"}}, {"name": "b", "json": {"entries": {}}}]});
    let files = server.post("/api/v1/imports", &files).await.json;
    let card = files["data"][0]["card_id"].as_str().unwrap().to_owned();
    let book = files["data"][1]["lorebook_id"].as_str().unwrap().to_owned();
    let mut spare_key = String::new();
    // Keys last, since the first one locks the door.
    let mut operations: Vec<(String, String, Value)> = Vec::new();
    for (path, methods) in api["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            operations.push((path.clone(), method.clone(), operation.clone()));
        }
    }
    let order = |method: &str| match method {
        "post" => 0,
        "get" => 1,
        _ => 2,
    };
    // A tool, or a template, exists once it has been put.
    let is_named = |path: &str| path.contains("/tools/") || path.contains("/templates/");
    let tool = |path: &str, method: &str| is_named(path) && method != "put";
    operations.sort_by_key(|(path, method, _)| {
        let deletes = (method == "delete", path.contains("conversations"));
        (path.contains("/keys"), tool(path, method), order(method), deletes)
    });
    for (path, method, operation) in operations {
        let id = match path.as_str() {
            path if path.contains("conversations") => &conversation,
            path if path.contains("keys") => &spare_key,
            path if path.contains("scripts") => &script,
            path if path.contains("/turns/") || path.contains("/forks") => &followed_dialogue,
            path if path.contains("dialogues") => &dialogue,
            path if path.contains("cards") => &card,
            path if path.contains("lorebooks") => &book,
            _ => &message,
        };
        let name = match path.as_str() {
            path if path.contains("/rules/") => "think_unopened",
            path if path.contains("/upstreams/") => "local",
            path if path.contains("/aliases/") => "sums",
            path if path.contains("/contracts/") => "json_value",
            _ => "a-tool",
        };
        let place = path.replace("{id}", id).replace("{name}", name).replace("{turn}", &turn);
        let sent_body = example_body(&operation)
            .map(|body| body.to_string().replace("script_0", &script).replace("turn_0", &turn));
        let answer = server.call(&method, &place, sent_body.as_deref()).await;
        let response_description = &operation["responses"][answer.status.to_string()];
        if path.contains("/tool_") {
            // The example is accepted where a message waits for it; see the tests of tools.
            assert_eq!((answer.status, answer.problem_code()), (409, "message_ended"));
            continue;
        }
        if path.ends_with("/calls") {
            // The example is accepted where a webhook takes the call; see the tests of tools.
            assert_eq!((answer.status, answer.problem_code()), (422, "tool_of_client"));
            continue;
        }
        assert!(response_description.is_object(), "{method} {place}: {} {}", answer.status, answer.text);
        // Examples of the description are accepted.
        let is_accepted = answer.status < 400 || (method != "post" && !path.starts_with("/api/v1/"));
        assert!(is_accepted, "{method} {place}: {} {}", answer.status, answer.text);
        if let Some(content) =
            response_description["content"].as_object().filter(|content| !content.is_empty())
        {
            let (kind, content) = content.iter().next().unwrap();
            assert!(answer.headers["content-type"].to_str().unwrap().starts_with(kind), "{method} {place}");
            assert_fits(&api, &content["schema"], &answer.json, &format!("{method} {place}"));
        }
        if path == "/api/v1/keys" && method == "post" {
            server.set_key(answer.json["key"].as_str());
            let other = server.post("/api/v1/keys", &json!({"name": "y"})).await;
            spare_key = other.json["id"].as_str().unwrap().to_owned();
        }
    }
}

/// Checks recursively that the required fields of a described answer are present.
fn assert_fits(api: &Value, schema: &Value, value: &Value, place: &str) {
    let schema = resolve_reference(api, schema);
    for field in schema["required"].as_array().into_iter().flatten() {
        let field = field.as_str().unwrap();
        assert!(value.get(field).is_some(), "{place}: `{field}` is missing in {value}");
    }
    if schema["additionalProperties"].is_null() && schema["properties"].is_object() && value.is_object() {
        for name in value.as_object().unwrap().keys() {
            assert!(schema["properties"].get(name).is_some(), "{place}: `{name}` is not described");
        }
    }
}

fn resolve_reference<'a>(api: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(reference) => {
            let name = reference.rsplit('/').next().unwrap();
            let found = &api["components"]["schemas"][name];
            assert!(found.is_object(), "the schema `{name}` exists");
            found
        }
        None => schema,
    }
}

#[tokio::test]
async fn metadata_is_described() {
    let mock = MockServer::start(vec![reply_script("Prose.", 2), reply_script("<<ParsingError>>", 2)]).await;
    let server = TestServer::start_default(&mock).await;
    let api = server.get("/openapi.json").await.json;
    let description = &api["components"]["schemas"]["Record"]["properties"]["metadata"];
    for field in ["unused_reason", "fallback_reason"] {
        let request = json!({"text": "x", "dialect": "ai_say", "max_reasks": 0});
        let acceptance = server.post("/api/v1/messages", &request).await.json;
        let record = server.wait_ended(acceptance["message_id"].as_str().unwrap()).await;
        assert!(record["metadata"][field].is_string(), "{field}");
        assert_fits(&api, description, &record["metadata"], "the record");
    }
    let events = api["components"]["schemas"]["Event"]["oneOf"].as_array().unwrap();
    let completed_event =
        events.iter().find(|event| event["properties"]["event"]["const"] == "completed").unwrap();
    assert_eq!(&completed_event["properties"]["data"]["properties"]["metadata"], description);
}

#[tokio::test]
async fn other_methods_are_refused() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let server = TestServer::start_default(&mock).await;
    let api = server.get("/openapi.json").await.json;
    for (path, methods) in api["paths"].as_object().unwrap() {
        for method in ["get", "post", "put", "delete", "patch"] {
            if methods.get(method).is_none() {
                let answer =
                    server.call(method, &path.replace("{id}", "x").replace("{name}", "x"), None).await;
                assert_eq!(answer.status, 405, "{method} {path}");
                // Other protocols have errors of their own.
                if !path.starts_with("/v1/") {
                    assert_eq!(answer.problem_code(), "method_not_allowed", "{method} {path}");
                }
            }
        }
    }
}

#[tokio::test]
async fn described_bodies_refuse_what_is_not_described() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let server = TestServer::start_default(&mock).await;
    let api = server.get("/openapi.json").await.json;
    let mut check_count = 0;
    for (path, methods) in api["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            // Other protocols pass unknown fields on.
            let Some(request) = operation.get("requestBody").filter(|_| path.starts_with("/api/v1/")) else {
                continue;
            };
            let schema = resolve_reference(&api, &request["content"]["application/json"]["schema"]);
            assert_eq!(schema["additionalProperties"], false, "{method} {path}");
            let mut sent_body = example_body(operation).unwrap().clone();
            sent_body["not_described"] = 1.into();
            let answer = server.call(method, path, Some(&sent_body.to_string())).await;
            assert_eq!((answer.status, answer.problem_code()), (422, "unknown_field"), "{method} {path}");
            assert_eq!(answer.json["field"], "not_described");
            check_count += 1;
        }
    }
    assert_eq!(check_count, 30);
    // Interfaces name exactly the fields of a message.
    let fields = api["components"]["schemas"]["NewMessage"]["properties"].as_object().unwrap();
    for field in [
        "conversation_id",
        "messages",
        "text",
        "model",
        "dialect",
        "contract",
        "output_protocol",
        "extensions",
        "findings",
        "tools",
        "caller",
        "max_reasks",
        "stream",
    ] {
        assert!(fields.contains_key(field), "{field}");
    }
}

#[tokio::test]
async fn events_are_described() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let server = TestServer::start_default(&mock).await;
    let api = server.get("/openapi.json").await.json;
    let described_events: Vec<&str> = api["components"]["schemas"]["Event"]["oneOf"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["properties"]["event"]["const"].as_str().unwrap())
        .collect();
    for name in [
        "serp_summary",
        "final_end",
        "completed",
        "error",
        "draft_delta",
        "aside",
        "notice",
        "finding",
        "plan",
        "tool_call",
        "tool_start",
        "tool_result",
        "exit_decision",
    ] {
        assert!(described_events.contains(&name), "{name}");
    }
    let page = server.get("/docs").await;
    assert!(page.text.contains("/docs.js") && page.headers.contains_key("content-security-policy"));
}

#[tokio::test]
async fn options_are_listed_with_what_they_take() {
    let mock = MockServer::start(vec![reply_script("Prose.", 1); 40]).await;
    let server = TestServer::start_default(&mock).await;
    let document = server.get("/openapi.json").await.json;
    let options = &document["components"]["schemas"]["Contract"]["properties"]["options"];
    assert_eq!(options["properties"]["aiplan.variant"]["enum"], json!(["v1", "v2"]));
    assert_eq!(options["properties"]["plain.reasoning"]["default"], "auto");
    // Reserved for the server, or with a field of their own in the request.
    for name in ["limits.input", "tools"] {
        assert_eq!(options["properties"].get(name), None, "{name}");
    }
    for (_, setting) in tambour::settings::all_settings() {
        let is_listed = options["properties"].get(setting.name).is_some();
        let value = match (setting.name, setting.default) {
            ("filament.protocols", _) => json!("core"),
            ("filament.structure", _) => json!({"mandatory": ["content"]}),
            ("json_value.schema", _) => json!({"type": "object"}),
            ("grammar.text", _) => json!(200),
            (_, "") => json!("x"),
            (_, default) => json!(default),
        };
        let body = json!({"text": "hi", "contract": {"options": {setting.name: value}}});
        let answer = server.post("/api/v1/messages", &body).await;
        let is_accepted = answer.status == 202 || answer.status == 200;
        assert!(is_accepted == is_listed || setting.name == "round", "{}: {}", setting.name, answer.text);
    }
}
