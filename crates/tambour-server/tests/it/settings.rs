//! Settings, and the output protocol that follows from them.

use serde_json::{Value, json};

use crate::client::{event_names, joined_text};
use crate::mock::{GOOD_REPLY, Gate, MockServer, Step, reply_script};
use crate::server::TestServer;

fn request_body() -> Value {
    json!({"text": "x", "dialect": "thinkingml"})
}

fn protocol_setting(name: &str) -> Value {
    json!({"llm_app_settings": {"app_output_protocol": name}})
}

#[tokio::test]
async fn legacy_unless_the_setting_or_the_request_says_otherwise() {
    let mock = MockServer::start(vec![reply_script(GOOD_REPLY, 9)]).await;
    let server = TestServer::start_default(&mock).await;
    let snapshot = server.get("/api/v1/settings").await.json;
    assert_eq!(snapshot["llm_app_settings"]["app_output_protocol"], "legacy"); // J-032
    let legacy = server.open_stream(&request_body()).await.read_checked().await;
    assert_eq!(event_names(&legacy), ["content_delta", "completed"]); // J-032
    assert_eq!(joined_text(&legacy, "content_delta"), GOOD_REPLY);
    assert_eq!(legacy.last().unwrap().data["reply"], GOOD_REPLY);
    let mut request = request_body();
    request["output_protocol"] = "jsonseq_v1".into();
    assert!(event_names(&server.open_stream(&request).await.read_checked().await).contains(&"final_end")); // J-032
    // An unknown value is kept, and means the legacy protocol.
    assert_eq!(server.put("/api/v1/settings", &protocol_setting("ag_ui_v7")).await.status, 200);
    assert_eq!(
        event_names(&server.open_stream(&request_body()).await.read_checked().await),
        ["content_delta", "completed"]
    ); // J-032
    let change = server.put("/api/v1/settings", &protocol_setting("jsonseq_v1")).await.json;
    assert_eq!(change["llm_app_settings"]["app_output_protocol"], "jsonseq_v1");
    assert!(
        event_names(&server.open_stream(&request_body()).await.read_checked().await).contains(&"final_end")
    ); // J-032
    request["output_protocol"] = "legacy".into();
    assert_eq!(
        event_names(&server.open_stream(&request).await.read_checked().await),
        ["content_delta", "completed"]
    ); // J-032
    // It survives a restart.
    let folder = server.stop().await;
    let mut config = crate::server::test_config(&folder);
    config.add_upstream(&mock.url(), None).unwrap();
    let server = TestServer::serve(folder, config).await;
    assert!(
        event_names(&server.open_stream(&request_body()).await.read_checked().await).contains(&"final_end")
    );
}

#[tokio::test]
async fn a_running_stream_keeps_its_protocol() {
    let gate = Gate::new();
    let mut script = reply_script(GOOD_REPLY, 9);
    script.insert(10, Step::Wait(gate.clone()));
    let mock = MockServer::start(vec![script]).await;
    let server = TestServer::start_default(&mock).await;
    let mut stream = server.open_stream(&request_body()).await;
    let mut events = stream.read_until("content_delta").await;
    server.put("/api/v1/settings", &protocol_setting("jsonseq_v1")).await;
    // A later reader gets the same protocol.
    let late = server.follow(&crate::client::stream_message_id(&events), &[]).await;
    gate.open();
    events.extend(stream.read_rest().await);
    crate::client::check_stream(&events);
    assert_eq!(event_names(&events), ["content_delta", "completed"]); // J-033
    assert_eq!(event_names(&late.read_checked().await), ["content_delta", "completed"]); // J-033
}

#[tokio::test]
async fn all_of_a_change_or_nothing() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let server = TestServer::start_default(&mock).await;
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
        assert_eq!((answer.status, answer.problem_code()), (422, code), "{change}");
        assert_eq!(answer.json["field"], field);
    }
    assert_eq!(server.get("/api/v1/settings").await.json, before);
    assert_eq!(before["thought_display"], "collapsed");
    assert_eq!(before["text_language"], "zh");
    assert_eq!(before["upstreams"][1]["kind"], "openai");
}

#[tokio::test]
async fn changes_of_settings_are_based_on_what_was_seen() {
    let server = TestServer::start_default(&MockServer::start(vec![]).await).await;
    let tag = |answer: &crate::server::Answer| answer.headers["etag"].to_str().unwrap().to_owned();
    let change_language = async |language: &str, based_on: &str| {
        let body = json!({"text_language": language}).to_string();
        server.call_with("PUT", "/api/v1/settings", Some(&body), &[("if-match", based_on)]).await
    };
    let first_tag = tag(&server.get("/api/v1/settings").await);
    let change = change_language("en", &first_tag).await;
    assert_eq!(change.status, 200, "{}", change.text);
    assert_eq!(tag(&change), tag(&server.get("/api/v1/settings").await));
    let stale = change_language("zh", &first_tag).await;
    assert_eq!((stale.status, stale.problem_code()), (412, "changed_meanwhile"), "{}", stale.text);
    assert_eq!(
        (&stale.json["present"]["text_language"], &stale.json["sent"]["text_language"]),
        (&json!("en"), &json!("zh"))
    );
    assert_eq!(change_language("zh", &tag(&change)).await.status, 200);
    assert_eq!(change_language("en", "\"x\"").await.status, 400);
}
