//! Listings come in pages, and load no more than they show.

use serde_json::{Value, json};

use crate::mock::{MockServer, delta_step, finish_steps};
use crate::server::TestServer;

async fn post_message(server: &TestServer, conversation: &Value, text: &str) -> String {
    let new = json!({"text": text, "dialect": "plain", "conversation_id": conversation});
    let response = server.post("/api/v1/messages", &new).await;
    assert_eq!(response.status, 202, "{}", response.text);
    let id = response.json["message_id"].as_str().unwrap().to_owned();
    server.wait_ended(&id).await;
    id
}

/// Deleting while paging must not silently restart the listing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_behind_what_is_not_there_is_refused() {
    let script = vec![delta_step("a reply")].into_iter().chain(finish_steps("stop")).collect();
    let server = TestServer::start_default(&MockServer::start(vec![script]).await).await;
    let conversation = server.post("/api/v1/conversations", &json!({})).await.json["conversation_id"].clone();
    let path = format!("/api/v1/conversations/{}", conversation.as_str().unwrap());
    let message = post_message(&server, &conversation, "x").await;
    let other = server.post("/api/v1/conversations", &json!({})).await.json["conversation_id"].clone();
    let other = other.as_str().unwrap();
    assert_eq!(server.call("delete", &format!("/api/v1/conversations/{other}"), None).await.status, 204);
    let other_listings = ["scripts", "templates", "dialogues", "cards", "lorebooks", "tools", "keys"];
    let other_listings = other_listings.map(|name| format!("/api/v1/{name}?after=nobody"));
    let lists = [
        format!("/api/v1/conversations?after={other}"),
        format!("/api/v1/conversations?limit=1&after={message}"),
        format!("{path}?after={other}"),
        format!("{path}?after=nobody"),
    ];
    for list in lists.iter().chain(&other_listings) {
        let refusal = server.get(list).await;
        assert_eq!(
            (refusal.status, refusal.problem_code()),
            (400, "unknown_cursor"),
            "{list} {}",
            refusal.text
        );
        assert_eq!(refusal.json["field"], "after");
    }
    assert_eq!(server.get(&format!("{path}?after={message}")).await.json["messages"], json!([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conversations_and_messages_come_in_pages() {
    let script = vec![delta_step("a reply")].into_iter().chain(finish_steps("stop")).collect();
    let server = TestServer::start_default(&MockServer::start(vec![script]).await).await;
    let mut expected_ids = Vec::new();
    for n in 0..5 {
        let new = json!({"title": format!("talk {n}"), "metadata": {"n": n}});
        expected_ids
            .insert(0, server.post("/api/v1/conversations", &new).await.json["conversation_id"].clone());
    }
    let (mut listed_ids, mut after) = (Vec::new(), String::new());
    loop {
        let page = server.get(&format!("/api/v1/conversations?limit=2{after}")).await.json;
        let data = page["data"].as_array().unwrap();
        assert!(data.len() <= 2);
        listed_ids.extend(data.iter().map(|row| row["conversation_id"].clone()));
        if page["has_more"] == false {
            break;
        }
        after = format!("&after={}", listed_ids.last().unwrap().as_str().unwrap());
    }
    assert_eq!(listed_ids, expected_ids);
    let conversation = &expected_ids[0];
    let path = format!("/api/v1/conversations/{}", conversation.as_str().unwrap());
    let mut ids = Vec::new();
    for n in 0..3 {
        ids.push(post_message(&server, conversation, &format!("question {n}")).await);
    }
    let page = server.get(&format!("{path}?limit=2")).await.json;
    assert_eq!(
        (&page["title"], &page["metadata"]["n"], &page["has_more"]),
        (&json!("talk 4"), &json!(4), &json!(true))
    );
    let first: Vec<&Value> =
        page["messages"].as_array().unwrap().iter().map(|row| &row["message_id"]).collect();
    assert_eq!(first, [&ids[0], &ids[1]]);
    assert!(page["messages"][0].get("events").is_none());
    assert_eq!(page["messages"][0]["answer"], "a reply");
    let rest = server.get(&format!("{path}?limit=2&after={}", ids[1])).await.json;
    assert_eq!((&rest["messages"][0]["message_id"], &rest["has_more"]), (&json!(ids[2]), &json!(false)));
    for (wrong, code, field) in [
        ("limit=0", "invalid_field", "limit"),
        ("limit=201", "invalid_field", "limit"),
        ("limit=x", "invalid_field", "limit"),
        ("page=2", "unknown_field", "page"),
    ] {
        let refusal = server.get(&format!("{path}?{wrong}")).await;
        assert_eq!((refusal.status, refusal.problem_code()), (422, code), "{wrong}: {}", refusal.text);
        assert_eq!(refusal.json["field"], field);
    }
    // Title and metadata change one by one.
    let changed_conversation = server.call("patch", &path, Some("{\"title\":null}")).await.json;
    assert_eq!(
        (&changed_conversation["title"], &changed_conversation["metadata"]["n"]),
        (&Value::Null, &json!(4))
    );
    // An export has everything, a line each.
    let export = server.get(&format!("{path}/export")).await;
    let lines: Vec<Value> = export.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[0]["conversation_id"], *conversation);
    assert!(!lines[1]["events"].as_array().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_stops_at_a_budget_of_bytes() {
    let long = "long ".repeat(500_000);
    let script = (0..25).map(|_| delta_step(&long[..100_000])).chain(finish_steps("stop")).collect();
    let server = TestServer::start_default(&MockServer::start(vec![script]).await).await;
    let conversation = server.post("/api/v1/conversations", &json!({})).await.json["conversation_id"].clone();
    for _ in 0..3 {
        post_message(&server, &conversation, "x").await;
    }
    // Each message shows five megabytes, its raw text and its answer.
    let path = format!("/api/v1/conversations/{}", conversation.as_str().unwrap());
    let page = server.get(&path).await.json;
    assert_eq!((page["messages"].as_array().unwrap().len(), &page["has_more"]), (1, &json!(true)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_is_told_the_newest_of_a_long_conversation() {
    let script = vec![delta_step(&"y".repeat(3000))].into_iter().chain(finish_steps("stop")).collect();
    let mock = MockServer::start(vec![script]).await;
    let server = TestServer::start(&mock, |config| config.max_history = 10_000).await;
    let conversation = server.post("/api/v1/conversations", &json!({})).await.json["conversation_id"].clone();
    for n in 0..8 {
        post_message(&server, &conversation, &format!("question {n}")).await;
    }
    let requests = mock.requests();
    let last = requests.last().unwrap().body["messages"].as_array().unwrap();
    assert_eq!(last.last().unwrap()["content"], "question 7");
    let first = last[0]["content"].as_str().unwrap();
    assert!(["question 4", "question 5"].contains(&first), "{first}");
    assert_eq!(last.len() % 2, 1, "whole turns");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_goes_on_behind_messages_that_are_deleted_meanwhile() {
    const MESSAGES: usize = 12;
    // A record larger than the buffers between server and client.
    let long = "long ".repeat(400_000);
    let script =
        (0..20).map(|at| delta_step(&long[at * 100_000..][..100_000])).chain(finish_steps("stop")).collect();
    let server = TestServer::start_default(&MockServer::start(vec![script]).await).await;
    let conversation = server.post("/api/v1/conversations", &json!({})).await.json["conversation_id"].clone();
    let mut all = Vec::new();
    for _ in 0..MESSAGES {
        all.push(post_message(&server, &conversation, "x").await);
    }
    let path =
        format!("http://{}/api/v1/conversations/{}/export", server.address, conversation.as_str().unwrap());
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let mut export = client.get(path).send().await.unwrap();
    let mut text = export.chunk().await.unwrap().unwrap().to_vec();
    // The message that is being written, and some after it.
    for id in &all[..MESSAGES / 2] {
        assert_eq!(server.call("delete", &format!("/api/v1/messages/{id}"), None).await.status, 204);
    }
    while let Some(chunk) = export.chunk().await.unwrap() {
        text.extend(chunk);
    }
    let lines = String::from_utf8(text).unwrap();
    let ids: Vec<String> = lines
        .lines()
        .skip(1)
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["message_id"].as_str().unwrap().to_owned())
        .collect();
    // Each remaining message is listed once, and of the others none twice.
    let (deleted_ids, remaining_ids) = ids.split_at(ids.len() - MESSAGES / 2);
    assert_eq!(remaining_ids, &all[MESSAGES / 2..]);
    let mut deletions = all[..MESSAGES / 2].iter();
    assert!(deleted_ids.iter().all(|id| deletions.any(|deleted_id| deleted_id == id)), "{deleted_ids:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conversations_are_found_by_what_was_said() {
    let script = vec![delta_step("The lantern swings.")].into_iter().chain(finish_steps("stop")).collect();
    let mut server = TestServer::start_default(&MockServer::start(vec![script]).await).await;
    let mut all = Vec::new();
    for (title, text) in [("Über LAMPEN", "hello"), ("two", "Wo ist die Straße?"), ("three", "nothing")] {
        let response = server.post("/api/v1/conversations", &json!({"title": title})).await.json;
        all.push(response["conversation_id"].clone());
        post_message(&server, &response["conversation_id"], text).await;
    }
    let search = async |query: &str| server.get(&format!("/api/v1/conversations?{query}")).await;
    let ids = |answer: &Value| -> Vec<Value> {
        answer["data"].as_array().unwrap().iter().map(|row| row["conversation_id"].clone()).collect()
    };
    let found = search("q=%C3%BCber%20lampen").await.json;
    assert_eq!(ids(&found), [all[0].clone()]);
    assert_eq!(found["data"][0]["found"], json!({"in": "title", "excerpt": "Über LAMPEN"}));
    let found = search("q=stra%C3%9Fe").await.json;
    assert_eq!(ids(&found), [all[1].clone()]);
    assert_eq!((&found["data"][0]["found"]["in"], &found["next"]), (&json!("request"), &Value::Null));
    // Eight characters of an id find it, and for a message its conversation; fewer count as words.
    let id = all[1].as_str().unwrap();
    let found = search(&format!("q={}", &id[id.len() - 8..])).await.json;
    assert_eq!((ids(&found), &found["data"][0]["found"]["in"]), (vec![all[1].clone()], &json!("id")));
    let messages = server.get(&format!("/api/v1/conversations/{id}")).await.json;
    let message = messages["messages"][0]["message_id"].as_str().unwrap();
    let found = search(&format!("q={message}")).await.json;
    assert_eq!(
        (ids(&found), &found["data"][0]["found"]["message_id"]),
        (vec![all[1].clone()], &json!(message))
    );
    assert_eq!(ids(&search("q=conv_").await.json), [] as [Value; 0]);
    // Words of the record outside of the texts are not found.
    assert_eq!(ids(&search("q=output_protocol").await.json), [] as [Value; 0]);
    // Page by page, newest first.
    let page = search("q=lantern&limit=2").await.json;
    assert_eq!((ids(&page), &page["has_more"]), (vec![all[2].clone(), all[1].clone()], &json!(true)));
    assert_eq!(page["data"][0]["found"]["excerpt"], "The lantern swings.");
    let rest = search(&format!("q=lantern&after={}", page["next"].as_str().unwrap())).await.json;
    assert_eq!((ids(&rest), &rest["has_more"]), (vec![all[0].clone()], &json!(false)));
    for bad_query in ["q=".to_owned(), "q=%20".to_owned(), format!("q={}", "x".repeat(201))] {
        let refusal = search(&bad_query).await;
        assert_eq!(
            (refusal.status, refusal.problem_code(), &refusal.json["field"]),
            (422, "invalid_field", &json!("q"))
        );
    }
    // Another owner finds nothing.
    let response = server.post("/api/v1/keys", &json!({"name": "a", "rights": "admin"})).await.json;
    server.set_key(response["key"].as_str());
    let other = server.post("/api/v1/keys", &json!({"name": "b"})).await.json;
    server.set_key(other["key"].as_str());
    assert_eq!(ids(&server.get("/api/v1/conversations?q=lantern").await.json), [] as [Value; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_current_one_of_several_replies_is_told() {
    let script: Vec<_> = vec![delta_step("a reply")].into_iter().chain(finish_steps("stop")).collect();
    let server = TestServer::start_default(&MockServer::start(vec![script; 4]).await).await;
    let conversation = server.post("/api/v1/conversations", &json!({})).await.json["conversation_id"].clone();
    let first = post_message(&server, &conversation, "x").await;
    let mut ids = vec![first];
    for _ in 0..2 {
        let path = format!("/api/v1/messages/{}/regenerate", ids.last().unwrap());
        let response = server.call("post", &path, None).await;
        assert_eq!(response.status, 202, "{}", response.text);
        ids.push(response.json["message_id"].as_str().unwrap().to_owned());
        server.wait_ended(ids.last().unwrap()).await;
    }
    let path = format!("/api/v1/conversations/{}", conversation.as_str().unwrap());
    let page = server.get(&path).await.json;
    let rows: Vec<(&Value, Option<&str>)> = page["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (&row["current"], row["in_place_of"].as_str()))
        .collect();
    let (no, yes) = (json!(false), json!(true));
    assert_eq!(rows, [(&no, None), (&no, Some(ids[0].as_str())), (&yes, Some(ids[1].as_str()))]);
    assert!(page["messages"][2]["request"].get("in_place_of").is_none());
    let refusal = server.post("/api/v1/messages", &json!({"text": "x", "in_place_of": ids[0]})).await;
    assert_eq!((refusal.status, refusal.problem_code()), (422, "unknown_field"), "{}", refusal.text);
    assert!(
        !server.post("/api/v1/messages", &json!({"text": "x", "no": 1})).await.text.contains("in_place_of")
    );
}
