//! `response_format`: a client gets JSON that satisfies its schema, or an error with a code.

use serde_json::{Value, json};

use crate::mock::{MockServer, Step, delta_step, finish_steps, reply_script};
use crate::server::{Answer, TestServer};

fn reply_schema() -> Value {
    json!({
        "type": "object", "additionalProperties": false, "required": ["title", "count", "tags", "inner"],
        "properties": {
            "title": {"type": "string", "minLength": 1},
            "count": {"type": "integer", "minimum": 0},
            "tags": {"type": "array", "items": {"type": "string"}},
            "inner": {"type": "object", "required": ["ok"], "properties": {"ok": {"type": "boolean"}, "at": {"type": "number"}}},
        },
    })
}

fn request_body(fields: &Value) -> Value {
    let mut request = json!({
        "model": "openai/m", "messages": [{"role": "user", "content": "x"}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "strict": true, "schema": reply_schema()}},
    });
    request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    request
}

/// An answer as a client of chat completions takes it: the content, or the code of the error.
fn client_outcome(answer: &Answer) -> Result<String, String> {
    let code = |error: &Value| error["error"]["code"].as_str().expect("a code").to_owned();
    if answer.status != 200 {
        assert_eq!(answer.headers["x-should-retry"], "false", "{}", answer.text);
        return Err(code(&answer.json));
    }
    if !answer.text.starts_with("data: ") {
        assert_eq!(answer.json["choices"][0]["finish_reason"], "stop", "{}", answer.text);
        return Ok(answer.json["choices"][0]["message"]["content"].as_str().expect("a text").to_owned());
    }
    let mut text = String::new();
    for line in answer.text.lines().filter_map(|line| line.strip_prefix("data: ")) {
        if line == "[DONE]" {
            return Ok(text);
        }
        let chunk: Value = serde_json::from_str(line).expect("JSON");
        if chunk.get("error").is_some() {
            assert_eq!(text, "", "nothing of an answer that fails is sent");
            return Err(code(&chunk));
        }
        text += chunk["choices"][0]["delta"]["content"].as_str().unwrap_or_default();
    }
    panic!("the stream has no end: {}", answer.text)
}

/// Pseudo-random numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len())]
    }
}

/// Possible outcomes of a broken reply.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Outcome {
    /// The value as it was meant.
    Repaired,
    /// The value, or an error; never another value.
    Doubtful,
    /// An error.
    ErrorOnly,
}

/// A value, a broken reply of it, how its stream ended, and the outcomes allowed.
fn broken_reply(seed: u64) -> (Value, String, &'static str, Outcome) {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let words = ["Rain", "say \"no\"", "路上", "a\nb", "C:\\x", "{x}", "</think>", "it's", "50%", "😀"];
    let value = json!({
        "title": format!("{} {}", random.pick(&words), random.pick(&words)),
        "count": random.below(1000),
        "tags": (0..random.below(4)).map(|_| random.pick(&words)).collect::<Vec<_>>(),
        "inner": {"ok": random.below(2) == 0, "at": 0.5},
    });
    let text =
        if random.below(2) == 0 { value.to_string() } else { serde_json::to_string_pretty(&value).unwrap() };
    let plain = !text.contains(['\'', '\\']);
    let at = 1 + random.below(text.len() - 2);
    let at = text.ceil_char_boundary(at);
    use Outcome::{Doubtful, ErrorOnly, Repaired};
    let (reply, end, kind) = match seed % 20 {
        0 => (text, "stop", Repaired),
        1 => (format!("```json\n{text}\n```"), "stop", Repaired),
        2 => (format!("Sure! Here you are:\n\n```\n{text}\n```\nAnything else?"), "stop", Repaired),
        3 => (format!("<think>Perhaps {{\"title\": \"no\"}}?</think>\n{text}"), "stop", Repaired),
        4 => (format!("{},}}", &text[..text.len() - 1]), "stop", Repaired),
        5 => (text.replacen("\"count\":", "// how many\n\"count\":", 1), "stop", Repaired),
        6 => (text.replacen("\"count\"", "count", 1), "stop", Repaired),
        7 if plain => (text.replace('"', "'"), "stop", Repaired),
        8 => (text.replacen("true", "True", 1).replacen("false", "False", 1), "stop", Repaired),
        9 => (text[..at].to_owned(), "length", ErrorOnly),
        10 => (text[..at].to_owned(), "stop", ErrorOnly),
        11 => (format!("{text}\n\n{}", text.replacen("\"ok\":", "\"at\":1,\"ok\":", 1)), "stop", Doubtful),
        12 => (text.replacen("\"count\"", "\"counts\"", 1), "stop", ErrorOnly),
        13 => {
            let mut other = value.clone();
            other["count"] = json!("many");
            (other.to_string(), "stop", ErrorOnly)
        }
        14 => ("I would rather not say.".to_owned(), "stop", ErrorOnly),
        15 => (format!("[{text}, ...]"), "stop", ErrorOnly),
        16 => (format!("{}, ...}}", &text[..text.len() - 1]), "stop", ErrorOnly),
        17 => (text.replacen("0.5", "NaN", 1), "stop", ErrorOnly),
        18 => (format!("{text}\nAs you can s"), "length", Repaired),
        _ => {
            // A sign is lost somewhere.
            let sign = random.pick(&["\"", ",", ":", "{", "}", "[", "]"]);
            (text.replacen(sign, "", 1), "stop", Doubtful)
        }
    };
    (value, reply, end, kind)
}

#[tokio::test]
async fn two_hundred_broken_replies_are_valid_or_an_error() {
    // R-33, X-014: a client gets the value the model meant, valid under its schema, or an error; nothing is truncated silently
    const CASES: u64 = 200;
    let cases: Vec<_> = (0..CASES).map(broken_reply).collect();
    let scripts = cases.iter().enumerate().map(|(at, (_, reply, end, _))| {
        let size = [1, 7, 1000][at % 3];
        let pieces = reply.chars().collect::<Vec<_>>();
        let mut steps: Vec<Step> =
            pieces.chunks(size).map(|piece| delta_step(&piece.iter().collect::<String>())).collect();
        steps.extend(finish_steps(end));
        steps
    });
    let mock = MockServer::start(scripts.collect()).await;
    let server = TestServer::start_default(&mock).await;
    let validator = jsonschema::validator_for(&reply_schema()).unwrap();
    let (mut valid, mut errors) = (0, 0);
    for (at, (value, reply, _, kind)) in cases.iter().enumerate() {
        let fields = json!({"stream": at % 2 == 0, "tambour": {"max_reasks": 0}});
        let answer = server.post("/v1/chat/completions", &request_body(&fields)).await;
        match client_outcome(&answer) {
            Ok(text) => {
                valid += 1;
                let value_received: Value =
                    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{at}: {text}"));
                assert!(validator.is_valid(&value_received), "{at}: {reply} -> {text}");
                assert_ne!(*kind, Outcome::ErrorOnly, "{at}: {reply} -> {text}");
                if *kind == Outcome::Repaired {
                    assert_eq!(value_received, *value, "{at}: {reply}");
                }
            }
            Err(code) => {
                errors += 1;
                assert!(
                    ["json_missing", "json_incomplete", "json_mismatch"].contains(&&*code),
                    "{at}: {code}"
                );
                assert_ne!(*kind, Outcome::Repaired, "{at}: {code}: {reply}");
            }
        }
    }
    assert_eq!(mock.calls().started, cases.len());
    assert!(valid >= 80 && errors >= 70, "{valid} good, {errors} errors");
}

#[tokio::test]
async fn a_value_that_does_not_fit_is_asked_for_again() {
    // P-034: the model gets the schema, then the error; the client sees nothing of the first reply
    let right = json!({"title": "t", "count": 1, "tags": [], "inner": {"ok": true}}).to_string();
    for stream in [true, false] {
        let mock = MockServer::start(vec![
            reply_script("<think>So</think>{\"title\": \"\"}", 3),
            reply_script(&right, 5),
        ])
        .await;
        let server = TestServer::start_default(&mock).await;
        let answer = server.post("/v1/chat/completions", &request_body(&json!({ "stream": stream }))).await;
        assert_eq!(client_outcome(&answer), Ok(right.clone()), "{}", answer.text);
        let requests = mock.requests();
        let first_prompt = requests[0].body["messages"].to_string();
        assert!(first_prompt.contains("minLength") && first_prompt.contains("JSON"), "{first_prompt}");
        assert_eq!(requests[0].body["response_format"]["type"], "json_schema");
        let reask_prompt =
            requests[1].body["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
        assert!(reask_prompt.contains("json_mismatch") && reask_prompt.contains("count"), "{reask_prompt}");
    }
}

#[tokio::test]
async fn a_json_object_needs_no_schema_and_reasoning_is_shown() {
    let mock = MockServer::start(vec![
        reply_script("<think>Hm.</think>{'a': [1, 2.50]}", 4),
        reply_script("<think>Hm.</think>no JSON", 4),
        reply_script("[1]", 4),
    ])
    .await;
    let server = TestServer::start_default(&mock).await;
    let format =
        json!({"response_format": {"type": "json_object"}, "stream": true, "tambour": {"max_reasks": 0}});
    let answer = server.post("/v1/chat/completions", &request_body(&format)).await;
    assert_eq!(client_outcome(&answer), Ok("{\"a\":[1,2.50]}".to_owned()));
    assert!(answer.text.contains("reasoning_content"), "{}", answer.text);
    // The reasoning was shown; no text of the server replaces the value.
    let answer = server.post("/v1/chat/completions", &request_body(&format)).await;
    assert_eq!(client_outcome(&answer), Err("json_missing".to_owned()));
    let answer = server.post("/v1/chat/completions", &request_body(&format)).await;
    assert_eq!(client_outcome(&answer), Err("json_mismatch".to_owned()));
}

#[tokio::test]
async fn a_format_that_cannot_be_is_refused() {
    let mock = MockServer::start(vec![reply_script("plain words", 4)]).await;
    let server = TestServer::start_default(&mock).await;
    let properties: serde_json::Map<String, Value> =
        (0..70).map(|at| (format!("f{at}"), json!({"pattern": format!("^a{at}")}))).collect();
    for (format, code) in [
        (json!({"type": "xml"}), "invalid_field"),
        (json!({"type": "json_schema", "json_schema": {"name": "n"}}), "invalid_field"),
        (json!({"type": "json_schema", "json_schema": {"schema": {"type": "objekt"}}}), "invalid_option"),
        (
            json!({"type": "json_schema", "json_schema": {"schema": {"properties": properties}}}),
            "schema_limit",
        ),
    ] {
        let answer =
            server.post("/v1/chat/completions", &request_body(&json!({"response_format": format}))).await;
        assert_eq!(
            (answer.status, answer.json["error"]["code"].as_str()),
            (422, Some(code)),
            "{}",
            answer.text
        );
    }
    // A request that names a dialect has it, and `text` changes nothing.
    let text = json!({"response_format": {"type": "text"}});
    assert_eq!(
        client_outcome(&server.post("/v1/chat/completions", &request_body(&text)).await),
        Ok("plain words".to_owned())
    );
    assert_eq!(mock.calls().started, 1);
}

#[tokio::test]
async fn responses_have_the_same_formats() {
    let right = json!({"title": "t", "count": 1, "tags": [], "inner": {"ok": true}}).to_string();
    let mock = MockServer::start(vec![
        reply_script(&format!("```json\n{right}\n```"), 6),
        reply_script("no JSON", 6),
    ])
    .await;
    let server = TestServer::start_default(&mock).await;
    let format = json!({"type": "json_schema", "name": "n", "schema": reply_schema(), "strict": true});
    let body =
        json!({"model": "openai/m", "input": "x", "text": {"format": format}, "tambour": {"max_reasks": 0}});
    let answer = server.post("/v1/responses", &body).await;
    assert_eq!(
        (answer.status, &answer.json["output"].as_array().unwrap().last().unwrap()["content"][0]["text"]),
        (200, &json!(right)),
        "{}",
        answer.text
    );
    let mut stream_body = body.clone();
    stream_body["stream"] = true.into();
    let answer = server.post("/v1/responses", &stream_body).await;
    assert!(
        answer.text.contains("response.failed") && answer.text.contains("json_missing"),
        "{}",
        answer.text
    );
    assert!(!answer.text.contains("output_text.delta"), "{}", answer.text);
}
