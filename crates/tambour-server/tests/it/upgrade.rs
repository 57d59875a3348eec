//! Databases that earlier versions left open and reads as they did.

use std::path::Path;

use crate::client::{check, numbered};
use crate::server::{Folder, Tambour};

/// Left by a killed process whose journal was a table: one message that had ended, one in the middle.
const DATABASE: &str = "../../fixtures/databases/journal-table.sqlite";
/// What a client had seen of the second message.
const SEEN: &str = "../../fixtures/databases/journal-table.sse";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_with_the_journal_in_a_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = Folder::new();
    let data = folder.0.join("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::copy(root.join(DATABASE), data.join("tambour.sqlite")).unwrap();
    let seen = std::fs::read_to_string(root.join(SEEN)).unwrap();
    let seen: Vec<&str> = seen.split("\n\n").filter(|frame| frame.starts_with("id: ")).collect();
    assert!(seen.len() > 10);
    let config = crate::server::config(&folder);
    let mut server = Tambour::serve(folder, config).await;
    for _ in 0..2 {
        let conversations = server.get("/api/v1/conversations").await.json;
        let id = conversations["data"][0]["conversation_id"].as_str().unwrap();
        let shown = server.get(&format!("/api/v1/conversations/{id}")).await.json;
        let messages = shown["messages"].as_array().unwrap();
        assert_eq!(messages.len(), 2);
        let (first, second) = (&messages[0], &messages[1]);
        // The one that had ended, as it was: listed without its events, whole by itself.
        assert_eq!(
            (&first["status"], &first["request"]["text"]),
            (&"completed".into(), &"first question".into())
        );
        assert!(first.get("events").is_none() && !first["reply"].as_str().unwrap().is_empty());
        let path = format!("/api/v1/messages/{}", first["message_id"].as_str().unwrap());
        assert!(server.get(&path).await.json["events"].as_array().unwrap().len() > 3);
        // The one in the middle: everything that was seen, then its end.
        let id = second["message_id"].as_str().unwrap();
        let events = server.follow(id, &[]).await.whole().await;
        check(&events);
        let all = numbered(&events);
        for (was, is) in seen.iter().zip(&all) {
            assert_eq!(*was, is.frame.trim_end(), "what was seen has changed");
        }
        assert!(all.len() > seen.len());
        assert_eq!(all.last().unwrap().data["code"], "interrupted");
        let folder = server.stopped().await;
        let config = crate::server::config(&folder);
        server = Tambour::serve(folder, config).await;
    }
}
