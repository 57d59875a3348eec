//! Cards and lorebooks over HTTP, and prompts built from them.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use sqlx::SqlitePool;
use sqlx::sqlite::SqliteConnectOptions;
use tambour_fixtures::imports::{png_file, zip_file};

use crate::deletion::wait_until_erased;
use crate::mock::{MockServer, reply_script};
use crate::server::{Answer, TestServer};

const IMPORTS: &str = "/api/v1/imports";
const RENDER: &str = "/api/v1/prompts/render";

fn card_file(name: &str) -> Value {
    json!({"spec": "chara_card_v3", "spec_version": "3.0", "data": {
        "name": name, "description": "{{char}} mends bells for {{user}}.", "first_mes": "Hm?", "tags": ["bells"],
        "extensions": {"of_another_program": {"kept": [1, 2]}},
    }})
}

fn lorebook_file() -> Value {
    json!({"entries": {"0": {"uid": 0, "key": ["reef"], "comment": "Reef", "content": "The reef is hollow.", "order": 1}}})
}

async fn server() -> TestServer {
    TestServer::start_default(&MockServer::start(vec![reply_script("x", 1)]).await).await
}

/// Imports one file of JSON; returns its report.
async fn import_file(server: &TestServer, name: &str, file: &Value) -> Value {
    let response = server.post(IMPORTS, &json!({"files": [{"name": name, "json": file}]})).await;
    assert_eq!(response.status, 201, "{}", response.text);
    response.json["data"][0].clone()
}

async fn import_count(server: &TestServer) -> usize {
    let count = async |path: &str| server.get(path).await.json["data"].as_array().unwrap().len();
    count("/api/v1/cards").await + count("/api/v1/lorebooks").await
}

fn id_field<'a>(answer: &'a Value, field: &str) -> &'a str {
    answer[field].as_str().unwrap_or_else(|| panic!("`{field}` in {answer}"))
}

#[tokio::test]
async fn cards_and_books_come_in_json_png_and_charx() {
    let server = server().await;
    let text = card_file("Ada").to_string();
    let picture = png_file(&[("chara", &text)]);
    let archive = zip_file(&[(b"card.json", text.as_bytes(), None), (b"assets/a.png", b"x", None)]);
    let base64 = |bytes: &[u8]| BASE64_STANDARD.encode(bytes);
    let files = json!({"files": [
        {"name": "ada.json", "json": card_file("Ada")},
        {"name": "ada.png", "base64": base64(&picture)},
        {"name": "ada.charx", "base64": base64(&archive)},
        {"name": "reef.json", "json": lorebook_file()},
        {"name": "order.json", "json": {"prompts": [{"identifier": "main", "content": "Play.", "role": "system"}]}},
    ]});
    let response = server.post(IMPORTS, &files).await;
    assert_eq!(response.status, 201, "{}", response.text);
    let data = response.json["data"].as_array().unwrap();
    let kinds: Vec<&str> = data.iter().map(|entry| entry["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["card", "card", "card", "lorebook", "preset"]); // F-013
    for entry in &data[..3] {
        let snapshot = server.get(&format!("/api/v1/cards/{}", id_field(entry, "card_id"))).await.json;
        assert_eq!((&snapshot["name"], &snapshot["version"]), (&json!("Ada"), &json!("v3")));
        assert_eq!(snapshot["card"]["description"], "{{char}} mends bells for {{user}}.");
        assert!(snapshot["skein"]["blocks"].as_array().unwrap().len() > 1, "{snapshot}");
    }
    // The original file, and V3 JSON with all its fields.
    let place = format!("/api/v1/cards/{}", id_field(&data[1], "card_id"));
    let (status, headers, bytes) = server.get_bytes(&format!("{place}?format=original")).await;
    assert_eq!((status, bytes), (200, picture));
    assert_eq!(headers["content-type"], "application/octet-stream");
    assert_eq!(headers["content-disposition"], "attachment");
    assert_eq!(headers["x-content-type-options"], "nosniff");
    let v3 = server.get(&format!("{place}?format=v3")).await.json;
    assert_eq!(v3["data"]["extensions"]["of_another_program"], json!({"kept": [1, 2]})); // F-013
    let refusal = server.get(&format!("{place}?format=webp")).await;
    assert_eq!((refusal.status, &refusal.json["field"]), (422, &json!("format")), "{}", refusal.text);
    let book = server.get(&format!("/api/v1/lorebooks/{}", id_field(&data[3], "lorebook_id"))).await.json;
    assert_eq!(
        (&book["name"], &book["entries"][0]["content"]),
        (&json!("reef"), &json!("The reef is hollow."))
    );
    // A preset becomes an order of blocks; the rest of it is dropped.
    assert_eq!(data[4]["skein"]["blocks"].as_array().map(Vec::is_empty), Some(false), "{}", data[4]);
    assert_eq!(import_count(&server).await, 4);
    // Newest first, in pages.
    let page = server.get("/api/v1/cards?limit=2").await.json;
    assert_eq!((&page["data"][0]["file"], &page["has_more"]), (&json!("ada.charx"), &json!(true)));
    let after = format!("/api/v1/cards?limit=2&after={}", id_field(&page["data"][1], "card_id"));
    let rest = server.get(&after).await.json;
    assert_eq!((&rest["data"][0]["file"], &rest["has_more"]), (&json!("ada.json"), &json!(false)));
}

#[tokio::test]
async fn files_come_in_parts_too() {
    let server = server().await;
    let picture = png_file(&[("ccv3", &card_file("Bo").to_string())]);
    let mut body = Vec::new();
    for (name, bytes) in [("bo.png", &picture[..]), ("reef.json", lorebook_file().to_string().as_bytes())] {
        body.extend(
            format!("--b0\r\ncontent-disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n")
                .bytes(),
        );
        body.extend(bytes);
        body.extend(b"\r\n");
    }
    let open_body = body.clone();
    body.extend(b"--b0--\r\n");
    let response = server.post_bytes(IMPORTS, "multipart/form-data; boundary=b0", body).await;
    assert_eq!(response.status, 201, "{}", response.text);
    assert_eq!(
        (&response.json["data"][0]["name"], &response.json["data"][1]["file"]),
        (&json!("Bo"), &json!("reef.json"))
    );
    // One that broke off imports nothing.
    let cut = server.post_bytes(IMPORTS, "multipart/form-data; boundary=b0", open_body).await;
    assert_eq!((cut.status, cut.problem_code()), (400, "malformed_request"), "{}", cut.text);
    let bare = server.post_bytes(IMPORTS, "multipart/form-data", b"x".to_vec()).await;
    assert_eq!((bare.status, bare.problem_code()), (400, "malformed_request"));
    let refusal =
        server.post_bytes(IMPORTS, "multipart/form-data; boundary=b0", b"--b0--\r\n".to_vec()).await;
    assert_eq!((refusal.status, &refusal.json["field"]), (422, &json!("files")), "{}", refusal.text);
    assert_eq!(import_count(&server).await, 2);
}

#[tokio::test]
async fn a_broken_file_is_refused_and_nothing_of_the_request_stays() {
    let server = server().await;
    let binary_file = |bytes: &[u8]| json!({"name": "it.bin", "base64": BASE64_STANDARD.encode(bytes)});
    let picture = png_file(&[("chara", &card_file("Ada").to_string())]);
    let deep = format!("{{\"name\":\"x\",\"description\":{}{}}}", "[".repeat(90), "]".repeat(90));
    let traversal = zip_file(&[(b"../card.json", b"{}", None)]);
    let bomb = zip_file(&[(b"card.json", b"{}", Some(4 << 28))]);
    for (file, expected_text) in [
        (
            json!({"name": "mia.json", "json": {"name": "Mia", "description": "x", "tags": 5, "spec": "chara_card_v2", "data": 7}}),
            "mia.json",
        ),
        (json!({"name": "no.json", "json": {"colour": "red"}}), "neither a character card"),
        (binary_file(b"not JSON at all"), "not JSON"),
        (binary_file(&picture[..picture.len() / 2]), "cut off"),
        (binary_file(&png_file(&[])), "without a card"),
        (binary_file(&png_file(&[("chara", "{\"name\":")])), "it.bin"),
        (binary_file(b"GIF89a........"), "a picture without a card"),
        (binary_file(deep.as_bytes()), "levels deep"),
        (binary_file(&traversal), "leads outside"),
        (binary_file(&bomb), "unpacks to more than"),
        (binary_file(b""), "it.bin"),
    ] {
        let good = json!({"name": "ada.json", "json": card_file("Ada")});
        let refusal = server.post(IMPORTS, &json!({"files": [good, file]})).await;
        assert_eq!(
            (refusal.status, refusal.problem_code()),
            (422, "broken_file"),
            "{expected_text}: {}",
            refusal.text
        );
        let errors = refusal.json["errors"].as_array().unwrap();
        assert_eq!((errors.len(), &errors[0]["file"]), (1, &file["name"]));
        assert!(
            errors[0]["message"].as_str().unwrap().contains(expected_text),
            "{expected_text}: {}",
            errors[0]
        );
    }
    for (files, field) in [
        (json!([]), "files"),
        (json!([{"name": "a"}]), "files"),
        (json!([{"name": "a", "json": {}, "base64": ""}]), "files"),
        (json!([{"name": "a", "base64": "%%"}]), "base64"),
        (json!([{"name": "", "json": card_file("Ada")}]), "name"),
        (json!([{"name": "n".repeat(256), "json": card_file("Ada")}]), "name"),
        (json!(vec![json!({"name": "a", "json": card_file("Ada")}); 51]), "files"),
    ] {
        let refusal = server.post(IMPORTS, &json!({"files": files})).await;
        assert_eq!((refusal.status, refusal.problem_code()), (422, "invalid_field"), "{}", refusal.text);
        assert_eq!(refusal.json["field"], field, "{}", refusal.text);
    }
    assert_eq!(import_count(&server).await, 0);
}

#[tokio::test]
async fn imports_may_be_longer_than_other_requests_up_to_their_limit() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let server = TestServer::start(&mock, |config| {
        config.max_request = 2_000;
        config.max_import = 20_000;
    })
    .await;
    let long = |length: usize| {
        let mut card = card_file("Ada");
        card["data"]["description"] = "x".repeat(length).into();
        json!({"files": [{"name": "ada.json", "json": card}]})
    };
    assert_eq!(server.post(IMPORTS, &long(10_000)).await.status, 201);
    let refusal = server.post(IMPORTS, &long(30_000)).await;
    assert_eq!((refusal.status, refusal.problem_code()), (413, "too_large"));
    assert!(
        refusal.json["detail"].as_str().unwrap().contains("`max_import`, 20000 bytes"),
        "{}",
        refusal.text
    );
    assert_eq!(server.post("/api/v1/macros/migrate", &json!({"text": "x".repeat(3_000)})).await.status, 413);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_deleted_is_gone_and_made_anew_with_the_same_word() {
    let server = server().await;
    let body = json!({"files": [{"name": "ada.json", "json": card_file("Quixotia-Zephyrine")}]}).to_string();
    let send = async || server.call_with("post", IMPORTS, Some(&body), &[("idempotency-key", "a")]).await;
    let first: Answer = send().await;
    assert_eq!((first.status, send().await.text), (201, first.text.clone()), "once");
    assert_eq!(import_count(&server).await, 1);
    let place = format!("/api/v1/cards/{}", id_field(&first.json["data"][0], "card_id"));
    assert_eq!(server.call("delete", &place, None).await.status, 204);
    assert_eq!(server.get(&place).await.problem_code(), "not_found");
    assert_eq!(server.call("delete", &place, None).await.status, 404);
    wait_until_erased(&server.folder, "Quixotia-Zephyrine").await;
    let repeat = send().await;
    assert_eq!(repeat.status, 201);
    assert_ne!(repeat.json["data"][0]["card_id"], first.json["data"][0]["card_id"]);
}

#[tokio::test]
async fn another_owner_finds_nothing_and_the_first_key_takes_over() {
    let mut server = server().await;
    let (response, reef) = (
        import_file(&server, "a.json", &card_file("Ada")).await,
        import_file(&server, "r.json", &lorebook_file()).await,
    );
    let admin = server.post("/api/v1/keys", &json!({"name": "a", "rights": "admin"})).await.json;
    server.set_key(admin["key"].as_str());
    let other = server.post("/api/v1/keys", &json!({"name": "b"})).await.json;
    assert_eq!(import_count(&server).await, 2);
    server.set_key(other["key"].as_str());
    assert_eq!(import_count(&server).await, 0);
    let (card, book) = (id_field(&response, "card_id"), id_field(&reef, "lorebook_id"));
    for path in [format!("/api/v1/cards/{card}"), format!("/api/v1/lorebooks/{book}")] {
        for method in ["get", "delete"] {
            assert_eq!(server.call(method, &path, None).await.status, 404, "{method} {path}");
        }
    }
    for request in [json!({"card_id": card}), json!({"lorebook_ids": [book]}), json!({"card_id": book})] {
        assert_eq!(server.post(RENDER, &request).await.status, 404, "{request}");
        let mut message = request.clone();
        message["text"] = "x".into();
        assert_eq!(server.post("/api/v1/messages", &message).await.status, 404, "{request}");
    }
}

#[tokio::test]
async fn a_card_and_a_book_become_a_prompt() {
    let server = server().await;
    let (response, reef) = (
        import_file(&server, "a.json", &card_file("Ada")).await,
        import_file(&server, "r.json", &lorebook_file()).await,
    );
    let ids = json!({"card_id": response["card_id"], "lorebook_ids": [reef["lorebook_id"]]});
    let mut request = ids.clone();
    request["context"] =
        json!({"user": "Tom", "history": [{"role": "user", "content": "Where is the reef?"}]});
    let snapshot = server.post(RENDER, &request).await;
    assert_eq!(snapshot.status, 200, "{}", snapshot.text);
    let text = snapshot.json["text"].as_str().unwrap();
    assert!(text.contains("Ada mends bells for Tom.") && text.contains("The reef is hollow."), "{text}"); // F-028
    assert_eq!(snapshot.json["lore"], json!(["Reef"]));
    let messages = snapshot.json["messages"].as_array().unwrap();
    assert_eq!(messages.last().unwrap(), &json!({"role": "user", "content": "Where is the reef?"}));
    assert!(snapshot.json["tokens"].as_u64().unwrap() > 20);
    assert_eq!((&snapshot.json["dropped"], &snapshot.json["over"]), (&json!([]), &json!(false)));
    // Without a mention of the reef its entry is absent.
    request["context"]["history"][0]["content"] = "Good morning.".into();
    assert_eq!(server.post(RENDER, &request).await.json["lore"], json!([]));
    // Custom blocks get the variables and the world info.
    let skein = "blocks:\n  - {tag: who, text: \"{{ char.name }}\"}\n  - {slot: lore_after}\n  - {tag: chatter, priority: low, text: \"la la la la la la\"}\n  - {slot: history}\n";
    request["context"]["history"][0]["content"] = "To the reef!".into();
    request["skein"] = skein.into();
    let full_prompt = server.post(RENDER, &request).await.json;
    assert!(full_prompt["text"].as_str().unwrap().contains("Ada"), "{full_prompt}");
    assert_eq!(full_prompt["lore"], json!(["Reef"]));
    request["max_context"] = (full_prompt["tokens"].as_u64().unwrap() - 3).into();
    let short_prompt = server.post(RENDER, &request).await.json;
    assert_eq!(
        (&short_prompt["dropped"][0]["kind"], &short_prompt["dropped"][0]["tag"]),
        (&json!("block"), &json!("chatter"))
    ); // F-006
    assert!(!short_prompt["text"].as_str().unwrap().contains("la la"), "{short_prompt}");
    request["max_context"] = 1.into();
    assert_eq!(server.post(RENDER, &request).await.json["over"], true);
}

#[tokio::test]
async fn what_cannot_be_rendered_is_told() {
    let server = server().await;
    let skein_of = |text: &str| json!({"blocks": [{"tag": "a", "text": text}]});
    for (request, code, field) in [
        (json!({}), "missing_field", "skein"),
        (json!({"skein": 5}), "invalid_skein", "skein"),
        (json!({"skein": {"blocks": [{"tag": "a", "colour": 1}]}}), "invalid_skein", "skein"),
        (json!({"skein": "blocks:\n  - {tag: a, text: x\n"}), "invalid_skein", "skein"),
        (json!({"skein": skein_of("x"), "lorebook_ids": vec!["x"; 21]}), "invalid_field", "lorebook_ids"),
    ] {
        let refusal = server.post(RENDER, &request).await;
        assert_eq!((refusal.status, refusal.problem_code()), (422, code), "{}", refusal.text);
        assert_eq!(refusal.json["field"], field);
    }
    for request in [
        json!({"skein": skein_of("{% if %}")}),
        json!({"skein": skein_of("{{ missing }}"), "strict": true}),
        json!({"skein": skein_of("x"), "context": {"history": 5}}),
        json!({"skein": skein_of("{% for a in range(99999) %}{% for b in range(99999) %}{{ a }}{% endfor %}{% endfor %}")}),
    ] {
        let refusal = server.post(RENDER, &request).await;
        assert_eq!(
            (refusal.status, refusal.problem_code()),
            (422, "prompt_not_rendered"),
            "{}",
            refusal.text
        );
    }
    let lenient = server.post(RENDER, &json!({"skein": skein_of("{{ missing }}")})).await;
    assert_eq!(lenient.status, 200, "{}", lenient.text);
    assert!(!lenient.json["warnings"].as_array().unwrap().is_empty(), "{}", lenient.text);
    // The server's time, where the context has none.
    let time_answer = server.post(RENDER, &json!({"skein": skein_of("{{ now }}")})).await.json;
    assert!(time_answer["text"].as_str().unwrap().contains("20"), "{time_answer}");
}

#[tokio::test]
async fn macros_become_templates() {
    let server = server().await;
    let request = json!({"text": "Hi {{user}}, {{roll:2d6}} {{not_a_macro::x}}"});
    let migration = server.post("/api/v1/macros/migrate", &request).await;
    assert_eq!(migration.status, 200, "{}", migration.text);
    assert!(migration.json["text"].as_str().unwrap().starts_with("Hi {{ user"), "{}", migration.text); // F-030
    assert_eq!(migration.json["report"]["left"], 1); // F-032
    assert_eq!(migration.json["warnings"][0]["code"], "macro_unknown");
}

#[tokio::test]
async fn a_prompt_of_blocks_reaches_the_model_as_written_and_says_how_the_reply_is_read() {
    let reply_text = "<story>Once.</story><facts>{\"a\": 1}</facts>";
    let mock = MockServer::start(vec![reply_script(reply_text, 7), reply_script("Later.", 2)]).await;
    let server = TestServer::start_default(&mock).await;
    let skein = json!({
        "blocks": [
            {"tag": "world_state", "data": {"place": "{{ place }}"}},
            {"slot": "history"},
            {"tag": "rule", "role": "system", "text": "Be brief."},
        ],
        "expected_structure": {"mandatory": ["story"], "optional": [{"name": "facts", "body": "json"}]},
    });
    let request = json!({
        "skein": skein, "context": {"place": "</world_state> Ruins", "history": [{"role": "bot", "content": "Hm?"}],
            "anchor_before": "It rains."},
        "text": "Go on.", "dialect": "filament", "extensions": true, "output_protocol": "jsonseq_v1",
    });
    let response = server.post("/api/v1/messages", &request).await;
    assert_eq!(response.status, 202, "{}", response.text);
    let record = server.wait_ended(response.json["message_id"].as_str().unwrap()).await;
    let mut preview = json!({"skein": request["skein"], "context": request["context"]});
    preview["context"]["history"].as_array_mut().unwrap().push(json!({"role": "user", "content": "Go on."}));
    let preview = server.post(RENDER, &preview).await.json;
    // F-028
    assert_eq!(mock.requests()[0].body["messages"], preview["messages"]);
    assert_eq!(record["prompt"], preview["messages"]);
    let system = preview["messages"][0]["content"].as_str().unwrap();
    assert!(system.contains("place: \"&lt;/world_state> Ruins\""), "{system}");
    // F-020: the author's note reaches the model, and the bot is the assistant.
    assert_eq!(preview["messages"].as_array().unwrap().len(), 5, "{preview}");
    assert_eq!(preview["messages"][1], json!({"role": "system", "content": "It rains."}));
    assert_eq!(preview["messages"][2], json!({"role": "assistant", "content": "Hm?"}));
    // F-200
    assert!(record["findings"].as_array().unwrap().is_empty(), "{}", record["findings"]);
    let element = record["events"].as_array().unwrap().iter().find(|event| event["event"] == "element");
    assert!(element.is_some(), "{}", record["events"]);
    // A later message has the earlier ones in its prompt.
    let later_answer =
        json!({"conversation_id": response.json["conversation_id"], "text": "And then?", "dialect": "plain"});
    let later_answer = server.post("/api/v1/messages", &later_answer).await.json;
    server.wait_ended(later_answer["message_id"].as_str().unwrap()).await;
    let messages = mock.requests()[1].body["messages"].clone();
    assert_eq!(
        (&messages[0]["content"], &messages[2]["content"]),
        (&json!("Go on."), &json!("And then?")),
        "{messages}"
    );
}

#[tokio::test]
async fn views_that_the_client_cannot_draw_come_with_their_text() {
    let reply_text =
        "<content>\nThe gate.\n</content>\n<ui_component view=\"map.small\">\n{\"zoom\": 2}\n</ui_component>";
    let mock = MockServer::start(vec![reply_script(reply_text, 9)]).await;
    let server = TestServer::start_default(&mock).await;
    for (views, has_fallback) in [(json!(["map.small"]), false), (json!(["map.large"]), true)] {
        let request = json!({"text": "x", "dialect": "filament", "extensions": true, "output_protocol": "jsonseq_v1", "views": views});
        let response = server.post("/api/v1/messages", &request).await.json;
        let record = server.wait_ended(response["message_id"].as_str().unwrap()).await;
        let events = record["events"].as_array().unwrap();
        let component = events.iter().find(|event| event["event"] == "ui_component").unwrap();
        let fallback = component["data"]["fallback_text"].as_str().unwrap_or_default();
        assert_eq!(fallback.contains("zoom"), has_fallback, "{views}: {component}"); // F-133
    }
    let wrong = server.post("/api/v1/messages", &json!({"text": "x", "views": 5})).await;
    assert_eq!(wrong.status, 422);
}

#[tokio::test]
async fn fields_of_a_prompt_need_one() {
    let server = server().await;
    let blocks = json!({"blocks": [{"slot": "history"}]});
    for (request, field) in [
        (json!({"text": "x", "context": {"a": 1}}), "context"),
        (json!({"text": "x", "max_context": 5}), "max_context"),
        (json!({"text": "x", "timed": {}}), "timed"),
        (json!({"skein": blocks, "text": "x", "messages": [{"role": "user", "content": "x"}]}), "text"),
        (json!({"skein": blocks}), "skein"),
        (json!({"skein": blocks, "context": {"history": 5}}), "context"),
        (
            json!({"skein": blocks, "messages": [{"role": "user", "content": [{"type": "image_url"}]}]}),
            "messages",
        ),
        (json!({"skein": blocks, "context": {"history": [{"role": "narrator", "content": "x"}]}}), "context"),
    ] {
        let refusal = server.post("/api/v1/messages", &request).await;
        assert_eq!((refusal.status, refusal.problem_code()), (422, "invalid_field"), "{}", refusal.text);
        assert_eq!(refusal.json["field"], field, "{}", refusal.text);
    }
}

#[tokio::test]
async fn world_info_is_remembered_from_turn_to_turn() {
    // F-013: `sticky` and `cooldown` count messages of the chat.
    let mock = MockServer::start((0..8).map(|_| reply_script("Hm.", 1)).collect()).await;
    let server = TestServer::start_default(&mock).await;
    let entry = json!({"keys": ["gate"], "content": "The gate is old.", "enabled": true, "insertion_order": 1,
        "extensions": {"sticky": 3, "cooldown": 2, "scan_depth": 1}});
    let book = json!({"name": "gates", "entries": [entry]});
    let response = import_file(&server, "gates.json", &json!({"spec": "lorebook_v3", "data": book})).await;
    let skein = json!({"blocks": [{"slot": "lore_before"}, {"slot": "history"}]});
    let chat = |count: usize| {
        let texts =
            ["Open the gate.", "Hm.", "Go on.", "Hm.", "The gate again.", "Hm.", "The gate once more."];
        let line = |(at, text): (usize, &&str)| json!({"role": if at % 2 == 0 { "user" } else { "assistant" }, "content": text});
        json!({"history": texts[..count].iter().enumerate().map(line).collect::<Vec<_>>()})
    };
    let render_request = |count: usize| json!({"skein": skein, "lorebook_ids": [id_field(&response, "lorebook_id")], "context": chat(count)});
    // A client with a chat of its own receives the state and sends it back.
    let mut timed_state = json!({});
    let mut active = Vec::new();
    for count in [1, 3, 5, 7] {
        let mut turn = render_request(count);
        turn["timed"] = timed_state;
        let answer = server.post(RENDER, &turn).await;
        active.push(!answer.json["lore"].as_array().expect(&answer.text).is_empty());
        timed_state = answer.json["timed"].clone();
    }
    // Matched at 1, sticky until 4, in cooldown from 5 to 7.
    assert_eq!(active, [true, true, false, true], "{timed_state}");
    let first_state = server.post(RENDER, &render_request(3)).await.json;
    assert_eq!(first_state["lore"], json!([]), "without it nothing stays");
    // A conversation on the server keeps the state itself.
    let mut conversation = None;
    for (turn, count) in [1, 3, 5, 7].into_iter().enumerate() {
        let mut message = render_request(count);
        message["dialect"] = "plain".into();
        message["conversation_id"] = json!(conversation);
        let response = server.post("/api/v1/messages", &message).await;
        assert_eq!(response.status, 202, "{}", response.text);
        server.wait_ended(id_field(&response.json, "message_id")).await;
        conversation = Some(id_field(&response.json, "conversation_id").to_owned());
        let sent_messages = mock.requests()[turn].body["messages"].to_string();
        assert_eq!(sent_messages.contains("The gate is old."), active[turn], "turn {turn}: {sent_messages}");
    }
    // The state in the request overrides that of the server.
    let mut message = render_request(3);
    (message["dialect"], message["conversation_id"], message["timed"]) =
        ("plain".into(), json!(conversation), json!({}));
    let response = server.post("/api/v1/messages", &message).await.json;
    server.wait_ended(id_field(&response, "message_id")).await;
    assert!(!mock.requests()[4].body["messages"].to_string().contains("The gate is old."));
    let file = crate::server::test_config(&server.folder).database_file().unwrap();
    let pool = SqlitePool::connect_with(SqliteConnectOptions::new().filename(&file)).await.unwrap();
    let stored_state = || async {
        sqlx::query_scalar::<_, i64>("select count(*) from lore").fetch_one(&pool).await.unwrap()
    };
    assert_eq!(stored_state().await, 1);
    let path = format!("/api/v1/conversations/{}", conversation.unwrap());
    assert_eq!(server.call("delete", &path, None).await.status, 204);
    assert_eq!(stored_state().await, 0, "it goes with the conversation");
    for wrong in [json!({"x": {"sticky": 1}}), json!({"x": {"stuck": null}}), json!([])] {
        let mut turn = render_request(1);
        turn["timed"] = wrong;
        assert_eq!(server.post(RENDER, &turn).await.status, 422);
    }
}

#[tokio::test]
async fn an_alias_has_a_prompt_of_blocks() {
    let mock = MockServer::start(vec![reply_script("Four.", 2)]).await;
    let folder = crate::server::Folder::new();
    let file =
        folder.write_file("sums.yaml", "blocks:\n  - {tag: rule, text: \"You sum.\"}\n  - {slot: history}\n");
    let alias = json!({"upstream": "openai", "dialect": "plain", "skein": file});
    let server = TestServer::start(&mock, |config| {
        config.aliases.insert("sums".into(), serde_json::from_value(alias.clone()).unwrap());
    })
    .await;
    let request = json!({"model": "sums", "messages": [{"role": "user", "content": "2 + 2?"}]});
    let answer = server.post("/v1/chat/completions", &request).await;
    assert_eq!(answer.json["choices"][0]["message"]["content"], "Four.", "{}", answer.text);
    let messages = &mock.requests()[0].body["messages"];
    assert_eq!(messages[0], json!({"role": "system", "content": "<rule>\nYou sum.\n</rule>"}), "{messages}");
    assert_eq!(messages[1], json!({"role": "user", "content": "2 + 2?"}));
    // A configuration that cannot work is refused at start.
    for (skein, lines, expected_text) in [
        ("no-such-file.yaml", None, "cannot be read"),
        (folder.write_file("bad.yaml", "blocks: 5\n").to_str().unwrap(), None, "is no prompt"),
        (file.to_str().unwrap(), Some("You sum."), "system_prompt"),
    ] {
        let mut config = crate::server::test_config(&folder);
        let alias = json!({"skein": skein, "system_prompt": lines});
        config.aliases.insert("sums".into(), serde_json::from_value(alias).unwrap());
        let refusal =
            tambour_server::Server::start(config).await.err().map(|error| error.to_string()).unwrap();
        assert!(refusal.contains("aliases.sums.skein") && refusal.contains(expected_text), "{refusal}");
    }
}

#[tokio::test]
async fn hostile_templates_end_soon_and_hold_up_nobody() {
    let server = server().await;
    let render = async |body: &str| {
        let skein = json!({"blocks": [{"tag": "a", "text": body}]});
        server.post(RENDER, &json!({"skein": skein})).await
    };
    for hostile in [
        "{{ (['x'*1000000]*100000)|join }}",
        "{{ [1]*100000000 }}",
        "{{ ('a\n'*1000)|indent(10000000) }}",
        "{{ format('{}'*10000, *(['b'*1000000]*10000)) }}",
        "{{ [[[1]]]|tojson(indent=3000000000) }}",
        "{{ [[1]*10000]*10000 }}",
        "{{ ([[1]*10000]*10000)|tojson|length }}",
    ] {
        let answers = async { (render(hostile).await, render("{{ 1 + 1 }}").await) };
        let (answer, other) =
            tokio::time::timeout(std::time::Duration::from_secs(20), answers).await.unwrap();
        assert_eq!(
            (answer.status, answer.json["code"].as_str()),
            (422, Some("prompt_not_rendered")),
            "{}",
            answer.text
        );
        assert_eq!(other.status, 200, "{}", other.text);
    }
}

#[tokio::test]
async fn a_preview_tells_tokens_of_each_part_and_what_woke_world_info() {
    let server = server().await;
    let skein = "max_context: 100\nscan: {recursive: true}\nblocks:\n  - {tag: rules, text: Be brief., priority: critical}\n  - {slot: lore_before}\n  \
        - {tag: filler, text: \"a b c d e f g h i j k l m n o p q r s t u v w x y z a b c d e f g h i j k l m n o p q r s t u v w x y z\", priority: low}\n  \
        - {tag: gate, text: The gate is of iron. A guard stands there., lore: {title: Gate, keys: [door, gate], position: before_char}}\n  \
        - {tag: guard, text: The guard sleeps., lore: {title: Guard, keys: [guard], position: before_char}}\n  \
        - {tag: sky, text: It rains., lore: {title: Sky, constant: true, position: before_char}}\n  \
        - {tag: luck, text: Luck., lore: {title: Luck, keys: [gate], probability: 0, position: before_char}}\n  \
        - {tag: moon, text: Moon., lore: {title: Moon, keys: [moon], position: before_char}}\n  - {slot: history}\n";
    let history = json!([{"role": "user", "content": "Open the GATE."}]);
    let request = json!({"skein": skein, "context": {"history": history}});
    let snapshot = server.post(RENDER, &request).await;
    assert_eq!(snapshot.status, 200, "{}", snapshot.text);
    let woken_entries = snapshot.json["lore_woken"].as_array().unwrap();
    let woken_entries: Vec<Value> = woken_entries
        .iter()
        .map(|entry| json!([entry["title"], entry["by"], entry["key"], entry["found_in"]]))
        .collect();
    assert_eq!(
        json!(woken_entries),
        json!([
            ["Gate", "key", "gate", "messages"],
            ["Guard", "key", "guard", "entries"],
            ["Sky", "constant", null, null],
        ])
    );
    assert_eq!(snapshot.json["lore_dropped"], json!([{"number": 7, "title": "Luck", "why": "probability"}]));
    let parts = snapshot.json["parts"].as_array().unwrap();
    let parts_of_kind = |kind: &str| parts.iter().filter(|part| part["kind"] == kind).count();
    assert_eq!(
        (parts_of_kind("block"), parts_of_kind("lore"), parts_of_kind("message")),
        (2, 3, 1),
        "{}",
        snapshot.text
    );
    assert!(parts.iter().all(|part| part["tokens"].as_u64() > Some(0)));
    let dropped_parts: Vec<&Value> =
        parts.iter().filter(|part| part["dropped"] == true).map(|part| &part["tag"]).collect();
    assert_eq!(dropped_parts, [&json!("filler")], "{}", snapshot.text);
}
