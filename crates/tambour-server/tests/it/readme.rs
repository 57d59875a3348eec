//! Commands of the README work as printed.

use std::path::Path;

use crate::client::{EventStream, event_names};
use crate::server::{Folder, TestServer, test_config};

/// Words of the `curl` commands of a document, split as a shell would.
fn curl_commands(text: &str) -> Vec<Vec<String>> {
    let text = text.replace("\\\n", " ");
    let lines = text.lines().filter_map(|line| line.strip_prefix("$ curl "));
    let shell_words = |line: &str| {
        // Every second part is quoted.
        let parts = line.split('\'').enumerate();
        parts
            .flat_map(|(at, part)| match at % 2 {
                0 => part.split_whitespace().map(str::to_owned).collect(),
                _ => vec![part.to_owned()],
            })
            .collect()
    };
    lines.map(shell_words).collect()
}

#[tokio::test]
async fn the_first_example() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join("README.md")).unwrap();
    let folder = Folder::new();
    let config = test_config(&folder);
    let server = TestServer::serve(folder, config).await;
    let mut answers = Vec::new();
    for words in curl_commands(&text) {
        let after = |flag: &str| {
            words.iter().position(|word| word == flag).and_then(|at| words.get(at + 1)).map(String::as_str)
        };
        let url = words.iter().find(|word| word.starts_with("http://")).expect("a command has a URL");
        let path = url.strip_prefix("http://127.0.0.1:8787").expect("the address that `serve` prints");
        let method = after("-X").unwrap_or(if after("-d").is_some() { "POST" } else { "GET" });
        let header = after("-H").and_then(|header| header.split_once(": "));
        let headers: Vec<(String, String)> =
            header.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        if words.contains(&"-N".to_owned()) {
            let mut stream = EventStream::open(server.address, method, path, &headers, after("-d")).await;
            assert_eq!(stream.status, 200, "{words:?}");
            // The recording takes its time; the README shows its beginning.
            answers.push(stream.read_until("thinking_start").await);
        } else {
            let answer = server.call(method, path, after("-d")).await;
            assert_eq!(answer.status, 200, "{words:?}: {}", answer.text);
        }
    }
    // The README shows how to switch the language of the texts, and the events.
    assert_eq!(server.get("/api/v1/settings").await.json["text_language"], "en");
    let events = answers.pop().expect("one of the commands asks");
    assert_eq!(event_names(&events), ["serp_summary", "thinking_start"]);
    for event in events.iter().filter(|event| event.id.is_some()) {
        let shown_frame = format!("id: {}\nevent: {}\n", event.id.unwrap(), event.name);
        assert!(text.contains(&shown_frame), "{shown_frame}");
        if let Some(delta_text) = event.data["text"].as_str() {
            assert!(text.contains(&format!("data: {{\"text\":\"{delta_text}\"")), "{delta_text}");
        }
    }
}

/// Names in the documents for alerts and log searches exist.
#[test]
fn names_in_the_page_of_operations_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read_file = |file: &str| std::fs::read_to_string(root.join(file)).unwrap();
    let page = read_file("../../docs/operations.md");
    let metrics = ["src/base/metrics.rs", "../tambour-upstream/src/metrics.rs"].map(read_file).concat();
    let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
    let mut names = 0;
    for rest in page.split("tambour_").skip(1) {
        let name = &rest[..rest.find(|c| !is_name(c)).unwrap()];
        let name = ["_total", "_bucket"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
        if name != "server" {
            assert!(metrics.contains(&format!("\"{name}\"")), "there is no metric `{name}`");
            names += 1;
        }
    }
    assert!(names > 8, "{names}");
    let folders = ["src", "../tambour-store/src", "../tambour-upstream/src"].map(|folder| root.join(folder));
    let source: String = folders
        .iter()
        .flat_map(|folder| tambour_fixtures::list_files(folder, "rs").unwrap())
        .map(|file| std::fs::read_to_string(file).unwrap())
        .collect();
    let table = page.split("| text | level | fields |").nth(1).unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let mut lines = 0;
    for text in rows.flat_map(|row| row.split('|').nth(1).unwrap().split('`').skip(1).step_by(2)) {
        assert!(source.contains(&format!("\"{text}\"")), "no line of the log says `{text}`");
        lines += 1;
    }
    assert!(lines > 7, "{lines}");
}
