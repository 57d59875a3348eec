//! Settings, and the output protocol that follows from them.

use serde_json::{Value, json};

use crate::client::{names, text};
use crate::mock::{GOOD, Gate, Mock, Step, reply};
use crate::server::Tambour;

fn ask() -> Value {
    json!({"text": "x", "dialect": "thinkingml"})
}

fn protocol(name: &str) -> Value {
    json!({"llm_app_settings": {"app_output_protocol": name}})
}

#[tokio::test]
async fn legacy_unless_the_setting_or_the_request_says_otherwise() {
    let mock = Mock::start(vec![reply(GOOD, 9)]).await;
    let server = Tambour::with(&mock).await;
    let shown = server.get("/api/v1/settings").await.json;
    assert_eq!(shown["llm_app_settings"]["app_output_protocol"], "legacy"); // J-032
    let legacy = server.stream(&ask()).await.whole().await;
    assert_eq!(names(&legacy), ["content_delta", "completed"]); // J-032
    assert_eq!(text(&legacy, "content_delta"), GOOD);
    assert_eq!(legacy.last().unwrap().data["reply"], GOOD);
    let mut asked = ask();
    asked["output_protocol"] = "jsonseq_v1".into();
    assert!(names(&server.stream(&asked).await.whole().await).contains(&"final_end")); // J-032
    // An unknown value is stored, and means the legacy protocol.
    assert_eq!(server.put("/api/v1/settings", &protocol("ag_ui_v7")).await.status, 200);
    assert_eq!(names(&server.stream(&ask()).await.whole().await), ["content_delta", "completed"]); // J-032
    let changed = server.put("/api/v1/settings", &protocol("jsonseq_v1")).await.json;
    assert_eq!(changed["llm_app_settings"]["app_output_protocol"], "jsonseq_v1");
    assert!(names(&server.stream(&ask()).await.whole().await).contains(&"final_end")); // J-032
    asked["output_protocol"] = "legacy".into();
    assert_eq!(names(&server.stream(&asked).await.whole().await), ["content_delta", "completed"]); // J-032
    // The setting survives a restart.
    let folder = server.stopped().await;
    let mut config = crate::server::config(&folder);
    config.add_upstream(&mock.url(), None).unwrap();
    let server = Tambour::serve(folder, config).await;
    assert!(names(&server.stream(&ask()).await.whole().await).contains(&"final_end"));
}

#[tokio::test]
async fn a_running_stream_keeps_its_protocol() {
    let gate = Gate::new();
    let mut script = reply(GOOD, 9);
    script.insert(10, Step::Wait(gate.clone()));
    let mock = Mock::start(vec![script]).await;
    let server = Tambour::with(&mock).await;
    let mut stream = server.stream(&ask()).await;
    let mut events = stream.until("content_delta").await;
    server.put("/api/v1/settings", &protocol("jsonseq_v1")).await;
    // A later reader gets the same protocol.
    let late = server.follow(&crate::client::message(&events), &[]).await;
    gate.open();
    events.extend(stream.rest().await);
    crate::client::check(&events);
    assert_eq!(names(&events), ["content_delta", "completed"]); // J-033
    assert_eq!(names(&late.whole().await), ["content_delta", "completed"]); // J-033
}

#[tokio::test]
async fn all_of_a_change_or_nothing() {
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let server = Tambour::with(&mock).await;
    let before = server.get("/api/v1/settings").await.json;
    for (change, code, field) in [
        (json!({"text_language": "en", "colour": "red"}), "unknown_field", "colour"),
        (json!({"text_language": "en", "llm_app_settings": {"x": 1}}), "unknown_field", "llm_app_settings.x"),
        (json!({"text_language": "en", "thought_display": "loud"}), "invalid_field", "thought_display"),
        (json!({"text_language": "fr"}), "invalid_field", "text_language"),
        (json!({"texts": {"fallback": " "}}), "invalid_field", "texts.fallback"),
        (json!({"upstreams": [{"name": "x", "api_key": "secret"}]}), "unknown_field", "upstreams"),
        (json!({"limits": {"input": 1}}), "unknown_field", "limits.input"),
    ] {
        let answer = server.put("/api/v1/settings", &change).await;
        assert_eq!((answer.status, answer.problem()), (422, code), "{change}");
        assert_eq!(answer.json["field"], field);
    }
    assert_eq!(server.get("/api/v1/settings").await.json, before);
    assert_eq!(before["thought_display"], "collapsed");
    assert_eq!(before["text_language"], "zh");
    assert_eq!(before["upstreams"][1]["kind"], "openai");
}

#[tokio::test]
async fn changes_of_settings_are_based_on_what_was_seen() {
    let server = Tambour::with(&Mock::start(vec![]).await).await;
    let tag = |answer: &crate::server::Answer| answer.headers["etag"].to_str().unwrap().to_owned();
    let put = async |language: &str, based_on: &str| {
        let body = json!({"text_language": language}).to_string();
        server.call_with("PUT", "/api/v1/settings", Some(&body), &[("if-match", based_on)]).await
    };
    let seen = tag(&server.get("/api/v1/settings").await);
    let changed = put("en", &seen).await;
    assert_eq!(changed.status, 200, "{}", changed.text);
    assert_eq!(tag(&changed), tag(&server.get("/api/v1/settings").await));
    let stale = put("zh", &seen).await;
    assert_eq!((stale.status, stale.problem()), (412, "changed_meanwhile"), "{}", stale.text);
    assert_eq!(
        (&stale.json["present"]["text_language"], &stale.json["sent"]["text_language"]),
        (&json!("en"), &json!("zh"))
    );
    assert_eq!(put("zh", &tag(&changed)).await.status, 200);
    assert_eq!(put("en", "\"x\"").await.status, 400);
}
