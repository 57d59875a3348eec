//! Fifty hostile requests at once, of every kind: memory stays bounded, and a plain chat beside them is answered at once.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::Stream;
use crate::mock::{Mock, reply};
use crate::server_process::ServerProcess;

/// Most anonymous memory of the server, in KiB.
const MEMORY: u64 = 1 << 20;
/// Time to the first text that two of three chats keep: not all, since the tests share the machine with other processes.
const FIRST_TEXT: Duration = Duration::from_millis(100);
/// Multiple of the time of a chat alone, measured right before, that is allowed instead where it is more. The siege keeps both cores
/// busy, so that a chat gets a share of one; an unoptimised build, or a machine in other use, takes longer for the chat and for the
/// siege alike. A chat blocked behind a request, as it would be without turns or the pool, takes hundreds of times as long as one
/// alone.
const TIMES_ALONE: u32 = 20;
/// Chats that are measured, alone and beside the siege.
const CHATS: usize = 15;

/// Templates each of which would take memory or time without bound.
const TEMPLATES: [&str; 10] = [
    "{{ (['x'*1000000]*100000)|join }}",
    "{{ [1]*100000000 }}",
    "{{ ('a\n'*1000)|indent(10000000) }}",
    "{{ format('{}'*10000, *(['b'*1000000]*10000)) }}",
    "{{ [[[1]]]|tojson(indent=3000000000) }}",
    "{{ [[1]*10000]*10000 }}",
    "{{ ([[1]*10000]*10000)|tojson|length }}",
    "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
    "{{ ('x'*1000000)|replace('x', 'y'*1000000)|length }}",
    "{{ range(100000)|map('string')|list|join('x'*10000) }}",
];

/// A request: method, path, body.
type Hostile = (&'static str, String, String);

fn templates() -> Vec<Hostile> {
    let render = |text: &&str| {
        let body = json!({"skein": {"blocks": [{"tag": "a", "text": text}]}});
        ("POST", "/api/v1/prompts/render".to_owned(), body.to_string())
    };
    TEMPLATES.iter().map(render).collect()
}

fn schemas() -> Vec<Hostile> {
    let mut all = Vec::new();
    for (word, levels) in [("anyOf", 18), ("oneOf", 18), ("anyOf", 14), ("oneOf", 12), ("allOf", 15)] {
        let schema = crate::schemas::tower(word, levels);
        let options = json!({"json_value.schema": schema});
        let check = json!({"reply": "{\"a\": 1}", "contract": "json_value", "options": options});
        all.push(("POST", "/api/v1/check".to_owned(), check.to_string()));
        let format = json!({"type": "json_schema", "json_schema": {"name": "n", "schema": schema}});
        let chat = json!({"model": "openai/m", "messages": [{"role": "user", "content": "x"}], "response_format": format});
        all.push(("POST", "/v1/chat/completions".to_owned(), chat.to_string()));
    }
    all
}

/// Replies, cards, scripts and bodies at their limits.
fn bodies(conversation: &str) -> Vec<Hostile> {
    let mut all = Vec::new();
    let deep = "[".repeat(100_000);
    let tags = "<a ".repeat(300_000);
    for reply in [deep.as_str(), tags.as_str()] {
        for dialect in ["auto", "thinkingml", "filament"] {
            let body = json!({"reply": reply, "dialect": dialect});
            all.push(("POST", "/api/v1/decode".to_owned(), body.to_string()));
        }
    }
    let sets = vec![r#"["SET", "a", 1]"#; 150_000].join(",");
    let operations = format!("/api/v1/conversations/{conversation}/state/operations");
    for _ in 0..6 {
        all.push(("POST", operations.clone(), format!("{{\"operations\":[{sets}]}}")));
    }
    for _ in 0..4 {
        let entries: Vec<Value> = (0..15_000)
            .map(
                |at| json!({"keys": [format!("key{at}")], "content": "{{trim}}".repeat(20), "enabled": true}),
            )
            .collect();
        let card = json!({"spec": "chara_card_v2", "spec_version": "2.0", "data": {
            "name": "x", "description": "{{trim}}".repeat(1000), "character_book": {"entries": entries},
        }});
        let files = json!({"files": [{"name": "card.json", "json": card}]});
        all.push(("POST", "/api/v1/imports".to_owned(), files.to_string()));
    }
    for _ in 0..4 {
        let actions = "              - {type: ai_say, content: \"{a} {%b%}\"}\n".repeat(15_000);
        let yaml = format!(
            "sessions:\n  - session: s\n    phases:\n      - phase: p\n        steps:\n          - topic: t\n            actions:\n{actions}"
        );
        all.push(("POST", "/api/v1/scripts".to_owned(), json!({"name": "s", "yaml": yaml}).to_string()));
    }
    for _ in 0..4 {
        let text = "{{random::a::b}} {{setvar::x::{{getvar::y}}}} ".repeat(20_000);
        all.push(("POST", "/api/v1/macros/migrate".to_owned(), json!({ "text": text }).to_string()));
    }
    all
}

/// Bodies of a few megabytes that take hundreds as values.
fn values(conversation: &str) -> Vec<(Hostile, usize)> {
    let objects = |count: usize| vec![r#"{"a":0}"#; count].join(",");
    let many = objects(450_000);
    let chat = |more: String| {
        let body = format!(r#"{{"model":"openai/m","messages":[{{"role":"user","content":"x"}}],{more}}}"#);
        ("POST", "/v1/chat/completions".to_owned(), body)
    };
    let format = |schema: String| {
        chat(format!(
            r#""response_format":{{"type":"json_schema","json_schema":{{"name":"n","schema":{schema}}}}}"#
        ))
    };
    let any = vec![r#"{"properties":{"a":{}}}"#; 150_000].join(",");
    let state = format!("/api/v1/conversations/{conversation}/state/operations");
    let skein = r#""skein":{"blocks":[{"tag":"a","text":"x"}]}"#;
    let post = |path: &str, body: String| ("POST", path.to_owned(), body);
    vec![
        (chat(format!(r#""zzz":[{many}]"#)), 4),
        (chat(format!(r#""tambour":{{"upstream_fields":{{"zzz":[{many}]}}}}"#)), 3),
        (
            chat(format!(
                r#""tools":[{{"type":"function","function":{{"name":"a","parameters":{{"a":[{many}]}}}}}}]"#
            )),
            3,
        ),
        (format(format!(r#"{{"anyOf":[{any}]}}"#)), 6),
        (format(format!(r#"{{"anyOf":[{}]}}"#, vec!["{}"; 1_300_000].join(","))), 6),
        (post("/api/v1/prompts/render", format!(r#"{{{skein},"context":{{"x":[{many}]}}}}"#)), 4),
        (
            post("/api/v1/prompts/render", format!(r#"{{{skein},"context":{{"x":[{}]}}}}"#, objects(11_000))),
            8,
        ),
        (
            post(
                "/api/v1/messages",
                format!(r#"{{"text":"x","upstream_fields":{{"zzz":[{}]}}}}"#, objects(11_000)),
            ),
            8,
        ),
        (post("/api/v1/messages", format!(r#"{{"text":"x","zzz":[{many}]}}"#)), 3),
        (post("/api/v1/conversations", format!(r#"{{"metadata":[{many}]}}"#)), 3),
        (post(&state, format!(r#"{{"operations":[["SET","a",[{many}]]]}}"#)), 4),
        (post(&state, format!(r#"{{"operations":[["SET","a",[{}]]]}}"#, objects(11_000))), 4),
        (
            post(
                "/api/v1/decode",
                json!({"reply": "<a>".repeat(1_200_000), "dialect": "filament"}).to_string(),
            ),
            2,
        ),
        (post("/api/v1/macros/migrate", json!({"text": "{{ a }}".repeat(550_000)}).to_string()), 2),
        (post("/api/v1/macros/migrate", json!({"text": "\\{".repeat(1_000_000)}).to_string()), 4),
        (post("/api/v1/macros/migrate", json!({"text": "{{a{%b}}%}".repeat(390_000)}).to_string()), 4),
    ]
}

/// Sends a request and reads its answer; returns the status with the path.
async fn send(address: std::net::SocketAddr, (method, path, body): Hostile) -> (String, u16) {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let request = client.request(method.parse().unwrap(), format!("http://{address}{path}"));
    let answer = request.header("content-type", "application/json").body(body).send().await;
    let status = match answer {
        Ok(answer) => {
            let status = answer.status().as_u16();
            let _ = answer.bytes().await;
            status
        }
        Err(_) => 0,
    };
    (path, status)
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_hostile_requests_at_once_stop_and_freeze_nothing() {
    let mock = Mock::start(vec![reply("{\"a\": 1}", 9)]).await;
    let apart = ServerProcess::start(&mock, false);
    let made = apart.server.post("/api/v1/conversations", &json!({})).await.json;
    let conversation = made["conversation_id"].as_str().unwrap().to_owned();
    // Conversations to delete meanwhile.
    let mut doomed = Vec::new();
    for _ in 0..6 {
        let made = apart.server.post("/api/v1/conversations", &json!({})).await.json;
        let id = made["conversation_id"].as_str().unwrap().to_owned();
        for _ in 0..3 {
            let ask =
                json!({"text": "x".repeat(200_000), "dialect": "plain", "conversation_id": id, "wait": true});
            assert_eq!(apart.server.post("/api/v1/messages", &ask).await.status, 200);
        }
        doomed.push(("DELETE", format!("/api/v1/conversations/{id}"), String::new()));
    }
    let all = templates().into_iter().chain(schemas()).chain(bodies(&conversation)).chain(doomed);
    besieged(&apart, all.collect()).await;
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_bodies_of_many_values_at_once_stop_and_freeze_nothing() {
    let mock = Mock::start(vec![reply("{\"a\": 1}", 9)]).await;
    let apart = ServerProcess::start(&mock, false);
    let made = apart.server.post("/api/v1/conversations", &json!({})).await.json;
    let all = values(made["conversation_id"].as_str().unwrap());
    let all = all.into_iter().flat_map(|(request, times)| std::iter::repeat_n(request, times));
    besieged(&apart, all.collect()).await;
}

/// Memory of a request beyond sixteen times its bytes, in KiB.
const OWN: u64 = 32 << 10;

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_costs_at_most_sixteen_times_its_bytes() {
    let mock = Mock::start(vec![reply("{\"a\": 1}", 9)]).await;
    let apart = ServerProcess::start(&mock, false);
    let made = apart.server.post("/api/v1/conversations", &json!({})).await.json;
    // The tables of a tokenizer stay in memory, whatever is asked.
    let one = json!({"skein": {"blocks": [{"tag": "a", "text": "x"}]}});
    assert_eq!(apart.server.post("/api/v1/prompts/render", &one).await.status, 200);
    let mut told = Vec::new();
    for (request, _) in values(made["conversation_id"].as_str().unwrap()) {
        let before = apart.memory().unwrap();
        let (path, bytes) = (request.1.clone(), request.2.len() as u64 / 1024);
        let start = request.2[..request.2.len().min(150)].to_owned();
        let mut sent = std::pin::pin!(send(apart.server.address, request));
        let mut peak = before;
        let status = loop {
            tokio::select! {
                (_, status) = sent.as_mut() => break status,
                () = tokio::time::sleep(Duration::from_millis(2)) => peak = peak.max(apart.memory().unwrap()),
            }
        };
        assert!(status != 0 && status != 500, "{path}: {status}");
        told.push((path, status, bytes, peak - before, start));
    }
    for (path, status, bytes, cost, start) in &told {
        println!("{path} {status}: {bytes} KiB cost {cost} KiB, {} times; {start}", cost / bytes.max(&1));
    }
    assert!(told.iter().all(|(_, _, bytes, cost, _)| *cost <= 16 * bytes + OWN), "{told:#?}");
}

/// Sends all of them at once, and checks memory and a chat beside them against their bounds.
#[cfg(target_os = "linux")]
async fn besieged(apart: &ServerProcess, all: Vec<Hostile>) {
    let address = apart.server.address;
    assert!(all.len() >= 50, "{}", all.len());
    let alone = first_texts(apart, &mut 0).await[CHATS / 2];
    let hostile: Vec<_> = all.into_iter().map(|request| tokio::spawn(send(address, request))).collect();
    let mut peak = 0;
    let beside = first_texts(apart, &mut peak).await;
    let under_way = hostile.iter().filter(|one| !one.is_finished()).count();
    let watched = async {
        let mut statuses = Vec::new();
        for request in hostile {
            statuses.push(request.await.unwrap());
        }
        statuses
    };
    let mut watched = std::pin::pin!(tokio::time::timeout(Duration::from_secs(120), watched));
    let statuses = loop {
        tokio::select! {
            statuses = watched.as_mut() => break statuses.expect("they end in time"),
            () = tokio::time::sleep(Duration::from_millis(10)) => {
                peak = peak.max(apart.memory().expect("the server lives"));
            }
        }
    };
    assert!(
        statuses.iter().all(|(_, status)| *status != 0 && *status != 500),
        "each is answered: {statuses:?}"
    );
    assert!(peak < MEMORY, "{peak} KiB");
    println!("{alone:?} alone; {beside:?} beside, with {under_way} under way at the end; {peak} KiB");
    assert!(under_way > 0, "the siege was over before the chats were");
    let most = FIRST_TEXT.max(alone * TIMES_ALONE);
    assert!(beside[CHATS * 2 / 3 - 1] < most, "two of three within {most:?}, {alone:?} alone: {beside:?}");
}

/// Sorted times to the first text of chats, one after the other; `peak` becomes the most memory of the server meanwhile.
#[cfg(target_os = "linux")]
async fn first_texts(apart: &ServerProcess, peak: &mut u64) -> Vec<Duration> {
    let ask = json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1", "stream": true});
    let mut times = Vec::new();
    for _ in 0..CHATS {
        let begun = Instant::now();
        let mut stream =
            Stream::open(apart.server.address, "POST", "/api/v1/messages", &[], Some(&ask.to_string())).await;
        stream.until("final_delta").await;
        times.push(begun.elapsed());
        *peak = (*peak).max(apart.memory().expect("the server lives"));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    times.sort_unstable();
    times
}
