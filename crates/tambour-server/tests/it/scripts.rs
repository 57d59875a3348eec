//! Scripts and templates over HTTP: versions, publishing, errors.

use serde_json::{Value, json};

use crate::mock::{Mock, reply};
use crate::server::{Folder, Tambour, config};

const SCRIPT: &str = "# kept as it is\nsessions:\n  - session: s\n    phases:\n      - phase: p\n        steps:\n          - topic: t\n            \
                      actions:\n              - {type: ai_say, content: \"Hello {name}\", max_rounds: 2}\n";

async fn server() -> Tambour {
    Tambour::with(&Mock::start(vec![reply("x", 1)]).await).await
}

fn codes(faults: &Value) -> Vec<&str> {
    faults.as_array().unwrap().iter().map(|fault| fault["code"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn scripts_have_versions() {
    let server = server().await;
    let made = server.post("/api/v1/scripts", &json!({"name": "first", "yaml": SCRIPT})).await;
    assert_eq!((made.status, &made.json["version"]), (201, &json!(1)), "{}", made.text);
    // Warnings do not keep a script from running (S-038).
    assert!(codes(&made.json["warnings"]).iter().all(|code| *code == "variable_unresolved"));
    let id = made.json["script_id"].as_str().unwrap();
    let place = format!("/api/v1/scripts/{id}");
    let shown = server.get(&place).await.json;
    assert_eq!(
        (&shown["yaml"], &shown["version"], &shown["published"]),
        (&json!(SCRIPT), &json!(1), &json!(1))
    ); // S-014
    let second = SCRIPT.replace("Hello", "Hi");
    let put =
        server.call("put", &format!("{place}?draft=true"), Some(&json!({"yaml": second}).to_string())).await;
    assert_eq!((put.status, &put.json["version"]), (200, &json!(2)), "{}", put.text);
    assert_eq!(server.get(&place).await.json["version"], 1);
    assert_eq!(server.get(&format!("{place}?version=2")).await.json["yaml"], json!(second));
    let published = server.post(&format!("{place}/publish"), &json!({"version": 2})).await;
    assert_eq!((published.status, &published.json["version"]), (200, &json!(2)));
    assert_eq!(server.get(&place).await.json["version"], 2);
    let versions = server.get(&format!("{place}/versions")).await.json;
    let listed: Vec<_> =
        versions["data"].as_array().unwrap().iter().map(|one| (&one["version"], &one["published"])).collect();
    assert_eq!(listed, [(&json!(2), &json!(true)), (&json!(1), &json!(false))]);
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
    for (path, sent) in [("publish", Some(json!({"version": 9}).to_string())), ("diff?from=1&to=9", None)] {
        let method = if sent.is_some() { "post" } else { "get" };
        let answer = server.call(method, &format!("{place}/{path}"), sent.as_deref()).await;
        assert_eq!((answer.status, answer.problem()), (404, "not_found"), "{path}");
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
            (answer.status, answer.problem(), &answer.json["field"]),
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
    let refused = server.post("/api/v1/scripts", &json!({"name": "s", "yaml": broken})).await;
    assert_eq!((refused.status, refused.problem()), (422, "invalid_script")); // S-004
    assert_eq!(codes(&refused.json["errors"]), ["content_required", "field_range"]); // S-004, S-006
    let warnings = codes(&refused.json["warnings"]);
    let (of_template, of_fields): (Vec<_>, Vec<_>) =
        warnings.iter().partition(|code| **code == "variable_unresolved");
    // Warnings are reported along with the errors.
    assert_eq!((of_template.len(), of_fields), (3, vec![&"field_unknown"])); // S-012, S-043
    let fault = &refused.json["errors"][1];
    assert_eq!(fault["path"], "sessions[0].phases[0].steps[0].actions[0].max_rounds"); // S-001
    assert_eq!((&fault["line"], &fault["column"]), (&json!(9), &json!(44))); // S-001
    let judged = server.post("/api/v1/scripts/validate", &json!({"yaml": broken})).await;
    assert_eq!((judged.status, &judged.json["valid"]), (200, &json!(false)));
    assert_eq!(judged.json["errors"], refused.json["errors"]);
    let judged = server.post("/api/v1/scripts/validate", &json!({"yaml": SCRIPT})).await.json;
    assert_eq!((&judged["valid"], &judged["errors"]), (&json!(true), &json!([])));
    let unnamed = server.post("/api/v1/scripts", &json!({"yaml": SCRIPT})).await;
    assert_eq!((unnamed.status, unnamed.problem()), (422, "missing_field"));
    let long = server.post("/api/v1/scripts", &json!({"name": "s", "yaml": "x".repeat(2 << 20)})).await;
    assert_eq!((long.status, long.problem()), (422, "invalid_field"));
}

#[tokio::test]
async fn what_is_wrong_is_told_in_the_language_of_who_reads_it() {
    let server = server().await;
    let broken = SCRIPT.replace("max_rounds: 2", "max_rounds: 99");
    // The texts are Chinese, and so is the script's template, whatever the language of the findings.
    for (told, said, of_template) in [
        (
            json!("en"),
            "from 1 to 20",
            "the template `ai-say-mainline-a-introduce-concept` uses `{教育背景}`, which has no value",
        ),
        (json!("zh"), "20", "模板 `ai-say-mainline-a-introduce-concept` 用到了 `{教育背景}`，它没有值"),
        (Value::Null, "20", "模板 `ai-say-mainline-a-introduce-concept` 用到了 `{教育背景}`，它没有值"),
    ] {
        let body = json!({"name": "s", "yaml": broken, "text_language": told});
        let refused = server.post("/api/v1/scripts", &body).await;
        assert_eq!((refused.status, refused.problem()), (422, "invalid_script"));
        let detail = refused.json["detail"].as_str().unwrap();
        let english = told == json!("en");
        assert_eq!(detail.starts_with("the script cannot run: "), english, "{detail}");
        assert!(detail.contains(said), "{detail}");
        let judged =
            server.post("/api/v1/scripts/validate", &json!({"yaml": broken, "text_language": told})).await;
        assert_eq!(judged.json["errors"], refused.json["errors"], "{}", judged.text);
        let warnings = judged.json["warnings"].as_array().unwrap();
        assert!(warnings.iter().any(|warning| warning["message"] == of_template), "{warnings:?}");
    }
    let wrong =
        server.post("/api/v1/scripts/validate", &json!({"yaml": broken, "text_language": "fr"})).await;
    assert_eq!(wrong.status, 422, "{}", wrong.text);
}

#[tokio::test]
async fn a_script_is_made_once() {
    let server = server().await;
    let body = json!({"name": "s", "yaml": SCRIPT}).to_string();
    let again = async |body: &str| {
        server.call_with("post", "/api/v1/scripts", Some(body), &[("idempotency-key", "k1")]).await
    };
    let (first, second) = (again(&body).await, again(&body).await);
    assert_eq!((first.status, second.status), (201, 201));
    assert_eq!(first.json, second.json);
    assert_eq!(server.get("/api/v1/scripts").await.json["data"].as_array().unwrap().len(), 1);
    let other = again(&json!({"name": "t", "yaml": SCRIPT}).to_string()).await;
    assert_eq!((other.status, other.problem()), (422, "idempotency_key_reused"));
}

#[tokio::test]
async fn templates_are_looked_up_in_order() {
    const ID: &str = "ai-say-mainline-a-introduce-concept";
    let folder = Folder::new();
    let prompts = folder.0.join("config/prompts/ai-say");
    std::fs::create_dir_all(&prompts).unwrap();
    let mut config = config(&folder);
    config.config_dir = folder.0.join("config");
    config.add_upstream(&Mock::start(vec![reply("x", 1)]).await.url(), None).unwrap();
    let server = Tambour::serve(folder, config).await;
    let place = format!("/api/v1/templates/{ID}");
    let shipped = server.get(&place).await.json;
    assert_eq!(shipped["source"], "builtin"); // S-045
    assert!(shipped["text"].as_str().unwrap().starts_with("现时间 {%time%}，你是 {%who%}。")); // S-045
    assert_eq!(
        shipped["variables"]["script"],
        json!(["topic_content", "教育背景", "心理学知识", "学习风格"])
    );
    // A new file counts at once, and a stored template takes precedence over it.
    std::fs::write(prompts.join("mainline-a-introduce-concept.md"), "file {x}").unwrap();
    let file = server.get(&place).await.json;
    assert_eq!((&file["source"], &file["text"]), (&json!("file"), &json!("file {x}"))); // S-045, S-104
    let put = server.put(&place, &json!({"text": "stored {x} {%time%}"})).await;
    assert_eq!(
        (put.status, &put.json["version"], &put.json["variables"]["system"]),
        (200, &json!(1), &json!(["time"]))
    );
    let stored = server.get(&place).await.json;
    assert_eq!(
        (&stored["source"], &stored["text"], &stored["hash"]),
        (&json!("stored"), &json!("stored {x} {%time%}"), &put.json["hash"])
    ); // S-044
    assert_eq!(std::fs::read_to_string(prompts.join("mainline-a-introduce-concept.md")).unwrap(), "file {x}");
    server.put(&format!("{place}?draft=true"), &json!({"text": "draft"})).await;
    assert_eq!(server.get(&place).await.json["version"], 1);
    assert_eq!(server.post(&format!("{place}/publish"), &json!({"version": 2})).await.status, 200);
    assert_eq!(server.get(&place).await.json["text"], "draft");
    assert_eq!(server.get(&format!("{place}/versions")).await.json["data"].as_array().unwrap().len(), 2);
    assert!(server.get(&format!("{place}/diff")).await.json["diff"].as_str().unwrap().contains("+draft"));
    let listed = server.get("/api/v1/templates").await.json;
    let sources: Vec<_> = listed["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["template_id"].as_str().unwrap(), one["source"].as_str().unwrap()))
        .collect();
    assert!(
        sources.contains(&(ID, "stored")) && sources.contains(&("ai-ask-default", "builtin")),
        "{sources:?}"
    );
    let none = server.get("/api/v1/templates/nothing").await;
    assert_eq!((none.status, none.problem()), (404, "template_not_found")); // S-022
    let wrong = server.put("/api/v1/templates/a%20b", &json!({"text": "x"})).await;
    assert_eq!((wrong.status, wrong.problem()), (422, "invalid_field"));
}

/// Refuses a write based on an older version with both texts, and stores nothing.
#[tokio::test]
async fn a_stale_write_has_both_versions() {
    let server = server().await;
    let made = server.post("/api/v1/scripts", &json!({"name": "two", "yaml": SCRIPT})).await;
    assert_eq!(made.headers["etag"], "\"1\"");
    let place = format!("/api/v1/scripts/{}", made.json["script_id"].as_str().unwrap());
    assert_eq!(server.get(&place).await.headers["etag"], "\"1\"");
    let yaml = |word: &str| SCRIPT.replace("Hello", word);
    let write = |word: &str, tag: &'static str| {
        let (server, path, body) =
            (&server, format!("{place}?draft=true"), json!({"yaml": yaml(word)}).to_string());
        async move { server.call_with("put", &path, Some(&body), &[("if-match", tag)]).await }
    };
    let first = write("Hi", "\"1\"").await;
    assert_eq!((first.status, &first.json["version"]), (200, &json!(2)), "{}", first.text);
    assert_eq!(first.headers["etag"], "\"2\"");
    let stale = write("Ho", "\"1\"").await;
    assert_eq!((stale.status, stale.problem()), (412, "changed_meanwhile"), "{}", stale.text);
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
        assert_eq!((wrong.status, wrong.problem()), (400, "malformed_request"), "{tag}");
    }
}

/// Stores one of many writes based on the same version.
#[tokio::test]
async fn one_of_many_writes_at_once_is_stored() {
    let server = server().await;
    let made = server.post("/api/v1/scripts", &json!({"name": "many", "yaml": SCRIPT})).await;
    let place = format!("/api/v1/scripts/{}", made.json["script_id"].as_str().unwrap());
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
    let shipped = server.get(place).await;
    assert_eq!(shipped.headers["etag"], "\"0\"");
    let write = |text: &str, tag: &'static str| {
        let (server, body) = (&server, json!({"text": text}).to_string());
        async move { server.call_with("put", place, Some(&body), &[("if-match", tag)]).await }
    };
    assert_eq!(write("one", "\"0\"").await.headers["etag"], "\"1\"");
    let stale = write("two", "\"0\"").await;
    assert_eq!((stale.status, stale.problem()), (412, "changed_meanwhile"));
    assert_eq!((&stale.json["present"]["text"], &stale.json["sent"]["text"]), (&json!("one"), &json!("two")));
    server.call("delete", place, None).await;
    let gone = write("three", "\"1\"").await;
    assert_eq!((gone.status, &gone.json["present"]), (412, &Value::Null));
    assert_eq!(gone.json["sent"]["text"], "three");
}

#[tokio::test]
async fn removing_and_publishing_rest_on_the_version_that_was_read() {
    let server = server().await;
    let made = server.post("/api/v1/scripts", &json!({"name": "s", "yaml": SCRIPT})).await.json;
    let script = format!("/api/v1/scripts/{}", made["script_id"].as_str().unwrap());
    let template = "/api/v1/templates/mine".to_owned();
    let sent = |place: &str| match place.contains("scripts") {
        true => json!({ "yaml": SCRIPT }),
        false => json!({ "text": "{x}" }),
    };
    assert_eq!(server.put(&template, &sent(&template)).await.status, 200);
    let with = async |method: &str, place: &str, body: Option<&str>, tag: &str| {
        server.call_with(method, place, body, &[("if-match", tag)]).await
    };
    for place in [&script, &template] {
        assert_eq!(server.put(place, &sent(place)).await.status, 200);
        let publish = format!("{place}/publish");
        let version = Some("{\"version\": 1}");
        let stale = with("post", &publish, version, "\"1\"").await;
        assert_eq!((stale.status, stale.problem()), (412, "changed_meanwhile"), "{}", stale.text);
        assert_eq!(
            (&stale.json["present"]["version"], &stale.json["sent"]),
            (&json!(2), &json!({"version": 1}))
        );
        assert_eq!(stale.json["present"]["published"], 2, "nothing was published");
        let good = with("post", &publish, version, "\"2\"").await;
        assert_eq!((good.status, good.headers["etag"].to_str().unwrap()), (200, "\"2\""), "{}", good.text);
        assert_eq!(server.get(place).await.json["version"], 1);
        let missing = with("post", &publish, Some("{\"version\": 9}"), "\"2\"").await;
        assert_eq!(missing.status, 404, "{}", missing.text);
        let stale = with("delete", place, None, "\"1\"").await;
        assert_eq!((stale.status, stale.problem()), (412, "changed_meanwhile"), "{}", stale.text);
        assert_eq!((&stale.json["present"]["version"], &stale.json["sent"]), (&json!(2), &json!(null)));
        let malformed = with("delete", place, None, "2").await;
        assert_eq!((malformed.status, malformed.problem()), (400, "malformed_request"));
        assert_eq!(with("delete", place, None, "\"2\"").await.status, 204);
        assert_eq!(with("delete", place, None, "\"2\"").await.status, 404);
    }
}

#[tokio::test]
async fn autosaves_of_ten_minutes_are_one_version() {
    let server = Tambour::with(&Mock::start(vec![]).await).await;
    let made = server.post("/api/v1/scripts", &json!({"name": "a", "yaml": SCRIPT})).await;
    let place = format!("/api/v1/scripts/{}", made.json["script_id"].as_str().unwrap());
    let put = async |query: &str, text: &str, based_on: Option<u32>| {
        let tag = based_on.map(|version| format!("\"{version}\""));
        let headers: Vec<(&str, &str)> = tag.iter().map(|tag| ("if-match", tag.as_str())).collect();
        let body = json!({"yaml": format!("{SCRIPT}\n# {text}\n")}).to_string();
        server.call_with("PUT", &format!("{place}?{query}"), Some(&body), &headers).await
    };
    let versions = async || -> Vec<u64> {
        let listed = server.get(&format!("{place}/versions")).await.json;
        listed["data"].as_array().unwrap().iter().map(|one| one["version"].as_u64().unwrap()).collect()
    };
    // Two in the same ten minutes, whenever the test runs: at most one boundary is between them.
    let autosave = "draft=true&autosave=true";
    let mut latest = 1;
    for text in ["a", "b", "c", "d"] {
        let stored = put(autosave, text, Some(latest)).await;
        assert_eq!(stored.status, 200, "{}", stored.text);
        latest = u32::try_from(stored.json["version"].as_u64().unwrap()).unwrap();
    }
    assert_eq!(latest, 5, "numbers rise");
    let left = versions().await;
    assert!(left.len() <= 3 && left.contains(&5) && left.contains(&1), "{left:?}");
    assert_eq!(server.get(&format!("{place}?version=5")).await.json["yaml"], format!("{SCRIPT}\n# d\n"));
    // The remaining two, whatever their numbers.
    let diff = server.get(&format!("{place}/diff")).await;
    assert_eq!((diff.status, &diff.json["to"]), (200, &json!(5)), "{}", diff.text);
    // Versions saved by hand or published stay, and so does one of an unknown kind.
    assert_eq!(put("draft=true", "by hand", Some(5)).await.json["version"], 6);
    assert_eq!(put(autosave, "e", Some(6)).await.json["version"], 7);
    let published = server.post(&format!("{place}/publish"), &json!({"version": 7})).await;
    assert_eq!(published.status, 200, "{}", published.text);
    assert_eq!(put(autosave, "f", Some(7)).await.json["version"], 8);
    assert_eq!(put(autosave, "g", None).await.json["version"], 9);
    let back = server.post(&format!("{place}/publish"), &json!({"version": 1})).await;
    assert_eq!(back.status, 200);
    let left = versions().await;
    assert!([1, 5, 6, 7, 8, 9].iter().all(|version| left.contains(version)), "{left:?}");
    // A version that a dialogue runs stays, too.
    let run = json!({"script_id": made.json["script_id"], "version": 9});
    let dialogue = server.post("/api/v1/dialogues", &run).await;
    assert_eq!(dialogue.status, 201, "{}", dialogue.text);
    assert_eq!(put(autosave, "h", Some(9)).await.json["version"], 10);
    assert!(versions().await.contains(&9));
    let stale = put(autosave, "stale", Some(5)).await;
    assert_eq!((stale.status, stale.problem()), (412, "changed_meanwhile"));
    let none = put("autosave=true", "i", Some(10)).await;
    assert_eq!((none.status, &none.json["field"]), (422, &json!("autosave")), "{}", none.text);
}
