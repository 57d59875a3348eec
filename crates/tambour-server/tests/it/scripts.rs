//! Scripts and templates over HTTP: versions, publishing, errors.

use serde_json::{Value, json};

use crate::mock::{MockServer, reply_script};
use crate::server::{Folder, TestServer, test_config};

const SCRIPT: &str = "# kept as it is\nsessions:\n  - session: s\n    phases:\n      - phase: p\n        steps:\n          - topic: t\n            \
                      actions:\n              - {type: ai_say, content: \"Hello {name}\", max_rounds: 2}\n";

async fn server() -> TestServer {
    TestServer::start_default(&MockServer::start(vec![reply_script("x", 1)]).await).await
}

fn fault_codes(faults: &Value) -> Vec<&str> {
    faults.as_array().unwrap().iter().map(|fault| fault["code"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn scripts_have_versions() {
    let server = server().await;
    let response = server.post("/api/v1/scripts", &json!({"name": "first", "yaml": SCRIPT})).await;
    assert_eq!((response.status, &response.json["version"]), (201, &json!(1)), "{}", response.text);
    // Warnings do not keep a script from running (S-038).
    assert!(fault_codes(&response.json["warnings"]).iter().all(|code| *code == "variable_unresolved"));
    let id = response.json["script_id"].as_str().unwrap();
    let place = format!("/api/v1/scripts/{id}");
    let script = server.get(&place).await.json;
    assert_eq!(
        (&script["yaml"], &script["version"], &script["published"]),
        (&json!(SCRIPT), &json!(1), &json!(1))
    ); // S-014
    let second = SCRIPT.replace("Hello", "Hi");
    let new_version =
        server.call("put", &format!("{place}?draft=true"), Some(&json!({"yaml": second}).to_string())).await;
    assert_eq!((new_version.status, &new_version.json["version"]), (200, &json!(2)), "{}", new_version.text);
    assert_eq!(server.get(&place).await.json["version"], 1);
    assert_eq!(server.get(&format!("{place}?version=2")).await.json["yaml"], json!(second));
    let publication = server.post(&format!("{place}/publish"), &json!({"version": 2})).await;
    assert_eq!((publication.status, &publication.json["version"]), (200, &json!(2)));
    assert_eq!(server.get(&place).await.json["version"], 2);
    let versions = server.get(&format!("{place}/versions")).await.json;
    let listing: Vec<_> = versions["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|version| (&version["version"], &version["published"]))
        .collect();
    assert_eq!(listing, [(&json!(2), &json!(true)), (&json!(1), &json!(false))]);
    let diff = server.get(&format!("{place}/diff?from=1&to=2")).await.json["diff"].clone();
    let diff = diff.as_str().unwrap();
    assert!(
        diff.contains("-              - {type: ai_say, content: \"Hello")
            && diff.contains("+              - {type: ai_say, content: \"Hi"),
        "{diff}"
    );
    assert_eq!(server.get(&format!("{place}/diff")).await.json["from"], 1);
    // Publishing an older version again.
    server.post(&format!("{place}/publish"), &json!({"version": 1})).await;
    assert_eq!(server.get(&place).await.json["version"], 1);
    for (path, body) in [("publish", Some(json!({"version": 9}).to_string())), ("diff?from=1&to=9", None)] {
        let method = if body.is_some() { "post" } else { "get" };
        let answer = server.call(method, &format!("{place}/{path}"), body.as_deref()).await;
        assert_eq!((answer.status, answer.problem_code()), (404, "not_found"), "{path}");
    }
    // A wrong query is refused by field, as a body is.
    for (path, field, code) in [
        ("diff?from=-1", "from", "invalid_field"),
        ("diff?from=1&to=x", "to", "invalid_field"),
        ("diff?to=99999999999", "to", "invalid_field"),
        ("diff?form=1", "form", "unknown_field"),
        ("versions?limit=-1", "limit", "invalid_field"),
    ] {
        let answer = server.get(&format!("{place}/{path}")).await;
        assert_eq!(
            (answer.status, answer.problem_code(), &answer.json["field"]),
            (422, code, &json!(field)),
            "{path}"
        );
        let detail = answer.json["detail"].as_str().unwrap();
        assert!(code == "unknown_field" || detail.contains("a whole number"), "{detail}");
    }
    let all = server.get("/api/v1/scripts").await.json;
    assert_eq!((&all["data"][0]["name"], &all["data"][0]["latest"]), (&json!("first"), &json!(2)));
    assert_eq!(server.call("delete", &place, None).await.status, 204);
    assert_eq!(server.get(&place).await.status, 404);
    assert_eq!(server.get("/api/v1/scripts").await.json["data"], json!([]));
}

#[tokio::test]
async fn a_script_that_cannot_run_is_refused_with_all_its_faults() {
    let server = server().await;
    let broken = SCRIPT
        .replace("max_rounds: 2", "max_rounds: 99, mood: calm")
        .replace("content: \"Hello {name}\", ", "");
    let refusal = server.post("/api/v1/scripts", &json!({"name": "s", "yaml": broken})).await;
    assert_eq!((refusal.status, refusal.problem_code()), (422, "invalid_script")); // S-004
    assert_eq!(fault_codes(&refusal.json["errors"]), ["content_required", "field_range"]); // S-004, S-006
    let warnings = fault_codes(&refusal.json["warnings"]);
    let (template_faults, field_faults): (Vec<_>, Vec<_>) =
        warnings.iter().partition(|code| **code == "variable_unresolved");
    // Warnings are reported along with the errors.
    assert_eq!((template_faults.len(), field_faults), (3, vec![&"field_unknown"])); // S-012, S-043
    let fault = &refusal.json["errors"][1];
    assert_eq!(fault["path"], "sessions[0].phases[0].steps[0].actions[0].max_rounds"); // S-001
    assert_eq!((&fault["line"], &fault["column"]), (&json!(9), &json!(44))); // S-001
    let verdict = server.post("/api/v1/scripts/validate", &json!({"yaml": broken})).await;
    assert_eq!((verdict.status, &verdict.json["valid"]), (200, &json!(false)));
    assert_eq!(verdict.json["errors"], refusal.json["errors"]);
    let verdict = server.post("/api/v1/scripts/validate", &json!({"yaml": SCRIPT})).await.json;
    assert_eq!((&verdict["valid"], &verdict["errors"]), (&json!(true), &json!([])));
    let nameless = server.post("/api/v1/scripts", &json!({"yaml": SCRIPT})).await;
    assert_eq!((nameless.status, nameless.problem_code()), (422, "missing_field"));
    let long = server.post("/api/v1/scripts", &json!({"name": "s", "yaml": "x".repeat(2 << 20)})).await;
    assert_eq!((long.status, long.problem_code()), (422, "invalid_field"));
}

#[tokio::test]
async fn what_is_wrong_is_told_in_the_language_of_who_reads_it() {
    let server = server().await;
    let broken = SCRIPT.replace("max_rounds: 2", "max_rounds: 99");
    // The texts are Chinese, and so is the script's template, whatever the language of the findings.
    for (accept_language, expected_text, template_text) in [
        (
            json!("en"),
            "from 1 to 20",
            "the template `ai-say-mainline-a-introduce-concept` uses `{教育背景}`, which has no value",
        ),
        (json!("zh"), "20", "模板 `ai-say-mainline-a-introduce-concept` 用到了 `{教育背景}`，它没有值"),
        (Value::Null, "20", "模板 `ai-say-mainline-a-introduce-concept` 用到了 `{教育背景}`，它没有值"),
    ] {
        let body = json!({"name": "s", "yaml": broken, "text_language": accept_language});
        let refusal = server.post("/api/v1/scripts", &body).await;
        assert_eq!((refusal.status, refusal.problem_code()), (422, "invalid_script"));
        let detail = refusal.json["detail"].as_str().unwrap();
        let english = accept_language == json!("en");
        assert_eq!(detail.starts_with("the script cannot run: "), english, "{detail}");
        assert!(detail.contains(expected_text), "{detail}");
        let verdict = server
            .post("/api/v1/scripts/validate", &json!({"yaml": broken, "text_language": accept_language}))
            .await;
        assert_eq!(verdict.json["errors"], refusal.json["errors"], "{}", verdict.text);
        let warnings = verdict.json["warnings"].as_array().unwrap();
        assert!(warnings.iter().any(|warning| warning["message"] == template_text), "{warnings:?}");
    }
    let wrong =
        server.post("/api/v1/scripts/validate", &json!({"yaml": broken, "text_language": "fr"})).await;
    assert_eq!(wrong.status, 422, "{}", wrong.text);
}

#[tokio::test]
async fn a_script_is_made_once() {
    let server = server().await;
    let body = json!({"name": "s", "yaml": SCRIPT}).to_string();
    let create = async |body: &str| {
        server.call_with("post", "/api/v1/scripts", Some(body), &[("idempotency-key", "k1")]).await
    };
    let (first, second) = (create(&body).await, create(&body).await);
    assert_eq!((first.status, second.status), (201, 201));
    assert_eq!(first.json, second.json);
    assert_eq!(server.get("/api/v1/scripts").await.json["data"].as_array().unwrap().len(), 1);
    let other = create(&json!({"name": "t", "yaml": SCRIPT}).to_string()).await;
    assert_eq!((other.status, other.problem_code()), (422, "idempotency_key_reused"));
}

#[tokio::test]
async fn templates_are_looked_up_in_order() {
    const TEMPLATE_ID: &str = "ai-say-mainline-a-introduce-concept";
    let folder = Folder::new();
    let prompts = folder.0.join("config/prompts/ai-say");
    std::fs::create_dir_all(&prompts).unwrap();
    let mut config = test_config(&folder);
    config.config_dir = folder.0.join("config");
    config.add_upstream(&MockServer::start(vec![reply_script("x", 1)]).await.url(), None).unwrap();
    let server = TestServer::serve(folder, config).await;
    let place = format!("/api/v1/templates/{TEMPLATE_ID}");
    let builtin_template = server.get(&place).await.json;
    assert_eq!(builtin_template["source"], "builtin"); // S-045
    assert!(builtin_template["text"].as_str().unwrap().starts_with("现时间 {%time%}，你是 {%who%}。")); // S-045
    assert_eq!(
        builtin_template["variables"]["script"],
        json!(["topic_content", "教育背景", "心理学知识", "学习风格"])
    );
    // A new file counts at once, and a stored template takes precedence over it.
    std::fs::write(prompts.join("mainline-a-introduce-concept.md"), "file {x}").unwrap();
    let file = server.get(&place).await.json;
    assert_eq!((&file["source"], &file["text"]), (&json!("file"), &json!("file {x}"))); // S-045, S-104
    let response = server.put(&place, &json!({"text": "stored {x} {%time%}"})).await;
    assert_eq!(
        (response.status, &response.json["version"], &response.json["variables"]["system"]),
        (200, &json!(1), &json!(["time"]))
    );
    let stored_template = server.get(&place).await.json;
    assert_eq!(
        (&stored_template["source"], &stored_template["text"], &stored_template["hash"]),
        (&json!("stored"), &json!("stored {x} {%time%}"), &response.json["hash"])
    ); // S-044
    assert_eq!(std::fs::read_to_string(prompts.join("mainline-a-introduce-concept.md")).unwrap(), "file {x}");
    server.put(&format!("{place}?draft=true"), &json!({"text": "draft"})).await;
    assert_eq!(server.get(&place).await.json["version"], 1);
    assert_eq!(server.post(&format!("{place}/publish"), &json!({"version": 2})).await.status, 200);
    assert_eq!(server.get(&place).await.json["text"], "draft");
    assert_eq!(server.get(&format!("{place}/versions")).await.json["data"].as_array().unwrap().len(), 2);
    assert!(server.get(&format!("{place}/diff")).await.json["diff"].as_str().unwrap().contains("+draft"));
    let listing = server.get("/api/v1/templates").await.json;
    let sources: Vec<_> = listing["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|template| (template["template_id"].as_str().unwrap(), template["source"].as_str().unwrap()))
        .collect();
    assert!(
        sources.contains(&(TEMPLATE_ID, "stored")) && sources.contains(&("ai-ask-default", "builtin")),
        "{sources:?}"
    );
    let missing = server.get("/api/v1/templates/nothing").await;
    assert_eq!((missing.status, missing.problem_code()), (404, "template_not_found")); // S-022
    let wrong = server.put("/api/v1/templates/a%20b", &json!({"text": "x"})).await;
    assert_eq!((wrong.status, wrong.problem_code()), (422, "invalid_field"));
}

/// Refuses a write based on an older version with both texts, and stores nothing.
#[tokio::test]
async fn a_stale_write_has_both_versions() {
    let server = server().await;
    let response = server.post("/api/v1/scripts", &json!({"name": "two", "yaml": SCRIPT})).await;
    assert_eq!(response.headers["etag"], "\"1\"");
    let place = format!("/api/v1/scripts/{}", response.json["script_id"].as_str().unwrap());
    assert_eq!(server.get(&place).await.headers["etag"], "\"1\"");
    let yaml = |greeting: &str| SCRIPT.replace("Hello", greeting);
    let write = |greeting: &str, tag: &'static str| {
        let (server, path, body) =
            (&server, format!("{place}?draft=true"), json!({"yaml": yaml(greeting)}).to_string());
        async move { server.call_with("put", &path, Some(&body), &[("if-match", tag)]).await }
    };
    let first = write("Hi", "\"1\"").await;
    assert_eq!((first.status, &first.json["version"]), (200, &json!(2)), "{}", first.text);
    assert_eq!(first.headers["etag"], "\"2\"");
    let stale = write("Ho", "\"1\"").await;
    assert_eq!((stale.status, stale.problem_code()), (412, "changed_meanwhile"), "{}", stale.text);
    assert_eq!(stale.json["present"]["version"], 2);
    assert_eq!(stale.json["present"]["published"], 1);
    assert_eq!(stale.json["present"]["yaml"], json!(yaml("Hi")));
    assert_eq!(stale.json["sent"]["yaml"], json!(yaml("Ho")));
    assert_eq!(server.get(&format!("{place}/versions")).await.json["data"].as_array().unwrap().len(), 2);
    // The tag is that of the latest version, whichever is read; publishing does not change the text.
    assert_eq!(server.get(&format!("{place}?version=1")).await.headers["etag"], "\"2\"");
    server.post(&format!("{place}/publish"), &json!({"version": 2})).await;
    assert_eq!(write("Ho", "\"2\"").await.status, 200);
    assert_eq!(write("Hu", "*").await.json["version"], 4);
    for tag in ["3", "W/\"4\"", "\"x\"", "\"\"", "\"4\", \"5\""] {
        let body = json!({"yaml": SCRIPT}).to_string();
        let wrong = server.call_with("put", &place, Some(&body), &[("if-match", tag)]).await;
        assert_eq!((wrong.status, wrong.problem_code()), (400, "malformed_request"), "{tag}");
    }
}

/// Stores one of many writes based on the same version.
#[tokio::test]
async fn one_of_many_writes_at_once_is_stored() {
    let server = server().await;
    let response = server.post("/api/v1/scripts", &json!({"name": "many", "yaml": SCRIPT})).await;
    let place = format!("/api/v1/scripts/{}", response.json["script_id"].as_str().unwrap());
    let writes = (0..12).map(|number| {
        let (server, place) = (&server, &place);
        let body = json!({"yaml": SCRIPT.replace("Hello", &format!("Hello {number}"))}).to_string();
        async move { server.call_with("put", place, Some(&body), &[("if-match", "\"1\"")]).await.status }
    });
    let mut statuses = futures_util::future::join_all(writes).await;
    statuses.sort_unstable();
    assert_eq!(statuses[0], 200);
    assert!(statuses[1..].iter().all(|status| *status == 412), "{statuses:?}");
    assert_eq!(server.get(&place).await.json["latest"], 2);
}

#[tokio::test]
async fn a_template_is_not_overwritten_either() {
    let server = server().await;
    let place = "/api/v1/templates/ai-ask-default";
    let builtin_template = server.get(place).await;
    assert_eq!(builtin_template.headers["etag"], "\"0\"");
    let write = |text: &str, tag: &'static str| {
        let (server, body) = (&server, json!({"text": text}).to_string());
        async move { server.call_with("put", place, Some(&body), &[("if-match", tag)]).await }
    };
    assert_eq!(write("one", "\"0\"").await.headers["etag"], "\"1\"");
    let stale = write("two", "\"0\"").await;
    assert_eq!((stale.status, stale.problem_code()), (412, "changed_meanwhile"));
    assert_eq!((&stale.json["present"]["text"], &stale.json["sent"]["text"]), (&json!("one"), &json!("two")));
    server.call("delete", place, None).await;
    let removed = write("three", "\"1\"").await;
    assert_eq!((removed.status, &removed.json["present"]), (412, &Value::Null));
    assert_eq!(removed.json["sent"]["text"], "three");
}

#[tokio::test]
async fn removing_and_publishing_rest_on_the_version_that_was_read() {
    let server = server().await;
    let response = server.post("/api/v1/scripts", &json!({"name": "s", "yaml": SCRIPT})).await.json;
    let script = format!("/api/v1/scripts/{}", response["script_id"].as_str().unwrap());
    let template = "/api/v1/templates/mine".to_owned();
    let body_of = |place: &str| match place.contains("scripts") {
        true => json!({ "yaml": SCRIPT }),
        false => json!({ "text": "{x}" }),
    };
    assert_eq!(server.put(&template, &body_of(&template)).await.status, 200);
    let call_with_tag = async |method: &str, place: &str, body: Option<&str>, tag: &str| {
        server.call_with(method, place, body, &[("if-match", tag)]).await
    };
    for place in [&script, &template] {
        assert_eq!(server.put(place, &body_of(place)).await.status, 200);
        let publish = format!("{place}/publish");
        let version = Some("{\"version\": 1}");
        let stale = call_with_tag("post", &publish, version, "\"1\"").await;
        assert_eq!((stale.status, stale.problem_code()), (412, "changed_meanwhile"), "{}", stale.text);
        assert_eq!(
            (&stale.json["present"]["version"], &stale.json["sent"]),
            (&json!(2), &json!({"version": 1}))
        );
        assert_eq!(stale.json["present"]["published"], 2, "nothing was published");
        let good = call_with_tag("post", &publish, version, "\"2\"").await;
        assert_eq!((good.status, good.headers["etag"].to_str().unwrap()), (200, "\"2\""), "{}", good.text);
        assert_eq!(server.get(place).await.json["version"], 1);
        let unknown_version = call_with_tag("post", &publish, Some("{\"version\": 9}"), "\"2\"").await;
        assert_eq!(unknown_version.status, 404, "{}", unknown_version.text);
        let stale = call_with_tag("delete", place, None, "\"1\"").await;
        assert_eq!((stale.status, stale.problem_code()), (412, "changed_meanwhile"), "{}", stale.text);
        assert_eq!((&stale.json["present"]["version"], &stale.json["sent"]), (&json!(2), &json!(null)));
        let malformed = call_with_tag("delete", place, None, "2").await;
        assert_eq!((malformed.status, malformed.problem_code()), (400, "malformed_request"));
        assert_eq!(call_with_tag("delete", place, None, "\"2\"").await.status, 204);
        assert_eq!(call_with_tag("delete", place, None, "\"2\"").await.status, 404);
    }
}

#[tokio::test]
async fn autosaves_of_ten_minutes_are_one_version() {
    let server = TestServer::start_default(&MockServer::start(vec![]).await).await;
    let response = server.post("/api/v1/scripts", &json!({"name": "a", "yaml": SCRIPT})).await;
    let place = format!("/api/v1/scripts/{}", response.json["script_id"].as_str().unwrap());
    let save = async |query: &str, text: &str, based_on: Option<u32>| {
        let tag = based_on.map(|version| format!("\"{version}\""));
        let headers: Vec<(&str, &str)> = tag.iter().map(|tag| ("if-match", tag.as_str())).collect();
        let body = json!({"yaml": format!("{SCRIPT}\n# {text}\n")}).to_string();
        server.call_with("PUT", &format!("{place}?{query}"), Some(&body), &headers).await
    };
    let versions = async || -> Vec<u64> {
        let listing = server.get(&format!("{place}/versions")).await.json;
        listing["data"].as_array().unwrap().iter().map(|row| row["version"].as_u64().unwrap()).collect()
    };
    // Two in the same ten minutes, whenever the test runs: at most one boundary is between them.
    let autosave = "draft=true&autosave=true";
    let mut latest = 1;
    for text in ["a", "b", "c", "d"] {
        let save_answer = save(autosave, text, Some(latest)).await;
        assert_eq!(save_answer.status, 200, "{}", save_answer.text);
        latest = u32::try_from(save_answer.json["version"].as_u64().unwrap()).unwrap();
    }
    assert_eq!(latest, 5, "numbers rise");
    let remaining = versions().await;
    assert!(remaining.len() <= 3 && remaining.contains(&5) && remaining.contains(&1), "{remaining:?}");
    assert_eq!(server.get(&format!("{place}?version=5")).await.json["yaml"], format!("{SCRIPT}\n# d\n"));
    // The remaining two, whatever their numbers.
    let diff = server.get(&format!("{place}/diff")).await;
    assert_eq!((diff.status, &diff.json["to"]), (200, &json!(5)), "{}", diff.text);
    // Versions saved by hand or published stay, and so does one of an unknown kind.
    assert_eq!(save("draft=true", "by hand", Some(5)).await.json["version"], 6);
    assert_eq!(save(autosave, "e", Some(6)).await.json["version"], 7);
    let publication = server.post(&format!("{place}/publish"), &json!({"version": 7})).await;
    assert_eq!(publication.status, 200, "{}", publication.text);
    assert_eq!(save(autosave, "f", Some(7)).await.json["version"], 8);
    assert_eq!(save(autosave, "g", None).await.json["version"], 9);
    let restored = server.post(&format!("{place}/publish"), &json!({"version": 1})).await;
    assert_eq!(restored.status, 200);
    let remaining = versions().await;
    assert!([1, 5, 6, 7, 8, 9].iter().all(|version| remaining.contains(version)), "{remaining:?}");
    // A version that a dialogue runs stays, too.
    let run = json!({"script_id": response.json["script_id"], "version": 9});
    let dialogue = server.post("/api/v1/dialogues", &run).await;
    assert_eq!(dialogue.status, 201, "{}", dialogue.text);
    assert_eq!(save(autosave, "h", Some(9)).await.json["version"], 10);
    assert!(versions().await.contains(&9));
    let stale = save(autosave, "stale", Some(5)).await;
    assert_eq!((stale.status, stale.problem_code()), (412, "changed_meanwhile"));
    let conflict = save("autosave=true", "i", Some(10)).await;
    assert_eq!((conflict.status, &conflict.json["field"]), (422, &json!("autosave")), "{}", conflict.text);
}
