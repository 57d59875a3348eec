//! Fifty hostile requests at once, of every kind: memory stays bounded, and a plain chat beside them is answered at once.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::EventStream;
use crate::mock::{MockServer, reply_script};
use crate::server_process::ServerProcess;

/// Maximum number of anonymous memory of the server, in KiB.
const MAX_MEMORY: u64 = 1 << 20;
/// Time to the first text that two of three chats keep: not all, since the tests share the machine with other processes.
const MAX_FIRST_TEXT: Duration = Duration::from_millis(100);
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
type HostileRequest = (&'static str, String, String);

fn hostile_templates() -> Vec<HostileRequest> {
    let render = |text: &&str| {
        let body = json!({"skein": {"blocks": [{"tag": "a", "text": text}]}});
        ("POST", "/api/v1/prompts/render".to_owned(), body.to_string())
    };
    TEMPLATES.iter().map(render).collect()
}

fn hostile_schemas() -> Vec<HostileRequest> {
    let mut all = Vec::new();
    for (keyword, levels) in [("anyOf", 18), ("oneOf", 18), ("anyOf", 14), ("oneOf", 12), ("allOf", 15)] {
        let schema = crate::schemas::schema_tower(keyword, levels);
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
fn hostile_bodies(conversation: &str) -> Vec<HostileRequest> {
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
fn value_bodies(conversation: &str) -> Vec<(HostileRequest, usize)> {
    let objects = |count: usize| vec![r#"{"a":0}"#; count].join(",");
    let many_objects = objects(450_000);
    let chat = |content: String| {
        let body =
            format!(r#"{{"model":"openai/m","messages":[{{"role":"user","content":"x"}}],{content}}}"#);
        ("POST", "/v1/chat/completions".to_owned(), body)
    };
    let format = |schema: String| {
        chat(format!(
            r#""response_format":{{"type":"json_schema","json_schema":{{"name":"n","schema":{schema}}}}}"#
        ))
    };
    let any_schema = vec![r#"{"properties":{"a":{}}}"#; 150_000].join(",");
    let state = format!("/api/v1/conversations/{conversation}/state/operations");
    let skein = r#""skein":{"blocks":[{"tag":"a","text":"x"}]}"#;
    let post = |path: &str, body: String| ("POST", path.to_owned(), body);
    vec![
        (chat(format!(r#""zzz":[{many_objects}]"#)), 4),
        (chat(format!(r#""tambour":{{"upstream_fields":{{"zzz":[{many_objects}]}}}}"#)), 3),
        (
            chat(format!(
                r#""tools":[{{"type":"function","function":{{"name":"a","parameters":{{"a":[{many_objects}]}}}}}}]"#
            )),
            3,
        ),
        (format(format!(r#"{{"anyOf":[{any_schema}]}}"#)), 6),
        (format(format!(r#"{{"anyOf":[{}]}}"#, vec!["{}"; 1_300_000].join(","))), 6),
        (post("/api/v1/prompts/render", format!(r#"{{{skein},"context":{{"x":[{many_objects}]}}}}"#)), 4),
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
        (post("/api/v1/messages", format!(r#"{{"text":"x","zzz":[{many_objects}]}}"#)), 3),
        (post("/api/v1/conversations", format!(r#"{{"metadata":[{many_objects}]}}"#)), 3),
        (post(&state, format!(r#"{{"operations":[["SET","a",[{many_objects}]]]}}"#)), 4),
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
async fn send(address: std::net::SocketAddr, (method, path, body): HostileRequest) -> (String, u16) {
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
    let mock = MockServer::start(vec![reply_script("{\"a\": 1}", 9)]).await;
    let process = ServerProcess::start(&mock, false);
    let response = process.server.post("/api/v1/conversations", &json!({})).await.json;
    let conversation = response["conversation_id"].as_str().unwrap().to_owned();
    // Conversations to delete meanwhile.
    let mut deletions = Vec::new();
    for _ in 0..6 {
        let response = process.server.post("/api/v1/conversations", &json!({})).await.json;
        let id = response["conversation_id"].as_str().unwrap().to_owned();
        for _ in 0..3 {
            let request =
                json!({"text": "x".repeat(200_000), "dialect": "plain", "conversation_id": id, "wait": true});
            assert_eq!(process.server.post("/api/v1/messages", &request).await.status, 200);
        }
        deletions.push(("DELETE", format!("/api/v1/conversations/{id}"), String::new()));
    }
    let requests = hostile_templates()
        .into_iter()
        .chain(hostile_schemas())
        .chain(hostile_bodies(&conversation))
        .chain(deletions);
    besiege(&process, requests.collect()).await;
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_bodies_of_many_values_at_once_stop_and_freeze_nothing() {
    let mock = MockServer::start(vec![reply_script("{\"a\": 1}", 9)]).await;
    let process = ServerProcess::start(&mock, false);
    let response = process.server.post("/api/v1/conversations", &json!({})).await.json;
    let requests = value_bodies(response["conversation_id"].as_str().unwrap());
    let requests = requests.into_iter().flat_map(|(request, times)| std::iter::repeat_n(request, times));
    besiege(&process, requests.collect()).await;
}

/// Memory of a request beyond sixteen times its bytes, in KiB.
const REQUEST_OVERHEAD: u64 = 32 << 10;

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_costs_at_most_sixteen_times_its_bytes() {
    let mock = MockServer::start(vec![reply_script("{\"a\": 1}", 9)]).await;
    let process = ServerProcess::start(&mock, false);
    let response = process.server.post("/api/v1/conversations", &json!({})).await.json;
    // The tables of a tokenizer stay in memory, whatever is asked.
    let small_render = json!({"skein": {"blocks": [{"tag": "a", "text": "x"}]}});
    assert_eq!(process.server.post("/api/v1/prompts/render", &small_render).await.status, 200);
    let mut costs = Vec::new();
    for (request, _) in value_bodies(response["conversation_id"].as_str().unwrap()) {
        let before = process.memory().unwrap();
        let (path, bytes) = (request.1.clone(), request.2.len() as u64 / 1024);
        let start = request.2[..request.2.len().min(150)].to_owned();
        let mut answer = std::pin::pin!(send(process.server.address, request));
        let mut peak = before;
        let status = loop {
            tokio::select! {
                (_, status) = answer.as_mut() => break status,
                () = tokio::time::sleep(Duration::from_millis(2)) => peak = peak.max(process.memory().unwrap()),
            }
        };
        assert!(status != 0 && status != 500, "{path}: {status}");
        costs.push((path, status, bytes, peak - before, start));
    }
    for (path, status, bytes, cost, start) in &costs {
        println!("{path} {status}: {bytes} KiB cost {cost} KiB, {} times; {start}", cost / bytes.max(&1));
    }
    assert!(costs.iter().all(|(_, _, bytes, cost, _)| *cost <= 16 * bytes + REQUEST_OVERHEAD), "{costs:#?}");
}

/// Sends all of them at once, and checks memory and a chat beside them against their bounds.
#[cfg(target_os = "linux")]
async fn besiege(process: &ServerProcess, requests: Vec<HostileRequest>) {
    let address = process.server.address;
    assert!(requests.len() >= 50, "{}", requests.len());
    let time_alone = first_text_times(process, &mut 0).await[CHATS / 2];
    let tasks: Vec<_> = requests.into_iter().map(|request| tokio::spawn(send(address, request))).collect();
    let mut peak = 0;
    let times_beside = first_text_times(process, &mut peak).await;
    let running = tasks.iter().filter(|task| !task.is_finished()).count();
    let all_done = async {
        let mut statuses = Vec::new();
        for request in tasks {
            statuses.push(request.await.unwrap());
        }
        statuses
    };
    let mut all_done = std::pin::pin!(tokio::time::timeout(Duration::from_secs(120), all_done));
    let statuses = loop {
        tokio::select! {
            statuses = all_done.as_mut() => break statuses.expect("they end in time"),
            () = tokio::time::sleep(Duration::from_millis(10)) => {
                peak = peak.max(process.memory().expect("the server lives"));
            }
        }
    };
    assert!(
        statuses.iter().all(|(_, status)| *status != 0 && *status != 500),
        "each is answered: {statuses:?}"
    );
    assert!(peak < MAX_MEMORY, "{peak} KiB");
    println!(
        "{time_alone:?} alone; {times_beside:?} beside, with {running} under way at the end; {peak} KiB"
    );
    assert!(running > 0, "the siege was over before the chats were");
    // Other tests may have become busier meanwhile.
    let time_alone = time_alone.max(first_text_times(process, &mut 0).await[CHATS / 2]);
    let max_time = MAX_FIRST_TEXT.max(time_alone * TIMES_ALONE);
    assert!(
        times_beside[CHATS * 2 / 3 - 1] < max_time,
        "two of three within {max_time:?}, {time_alone:?} alone: {times_beside:?}"
    );
}

/// Sorted times to the first text of chats, one after the other; `peak` becomes the most memory of the server meanwhile.
#[cfg(target_os = "linux")]
async fn first_text_times(process: &ServerProcess, peak: &mut u64) -> Vec<Duration> {
    let request = json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1", "stream": true});
    let mut times = Vec::new();
    for _ in 0..CHATS {
        let start = Instant::now();
        let mut stream = EventStream::open(
            process.server.address,
            "POST",
            "/api/v1/messages",
            &[],
            Some(&request.to_string()),
        )
        .await;
        stream.read_until("final_delta").await;
        times.push(start.elapsed());
        *peak = (*peak).max(process.memory().expect("the server lives"));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    times.sort_unstable();
    times
}
