//! Services with the chat completions interface, and what they do differently from each other.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use reqwest::header::CONTENT_TYPE;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tambour::End;
use tambour::event::{Failure, FinishReason};
use tambour::lex::sse::{Frame, Frames};

use super::{Ask, Item, Timeouts, failure, retry};

/// One configured service.
pub struct OpenAi {
    client: reqwest::Client,
    url: String,
    model: Option<String>,
    key: Option<String>,
    timeouts: Timeouts,
}

/// Bytes of one frame.
const FRAME: usize = 1 << 20;

impl OpenAi {
    /// A service below `base`, such as `http://127.0.0.1:9100/v1`.
    ///
    /// # Errors
    /// The client cannot be made.
    pub fn new(
        base: &str,
        model: Option<String>,
        key: Option<String>,
        timeouts: Timeouts,
    ) -> Result<OpenAi, reqwest::Error> {
        let client = reqwest::Client::builder()
            .connect_timeout(Duration::from_millis(timeouts.connect_ms))
            .tcp_nodelay(true)
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        let url = format!("{}/chat/completions", base.trim_end_matches('/'));
        Ok(OpenAi { client, url, model, key, timeouts })
    }

    /// Asks, and asks again while nothing has come and it is worth it.
    pub(super) async fn open(&self, ask: &Ask) -> Result<Stream, Failure> {
        let body = self.body(ask);
        let mut attempt = 1;
        loop {
            let (failure, wait) = match self.send(&body).await {
                Ok(response) if response.status().is_success() => {
                    return Stream::new(response, self.timeouts);
                }
                Ok(response) => {
                    let status = response.status();
                    let wait = retry::worth(status)
                        .then(|| retry::wait(attempt + 1, Some(response.headers())))
                        .flatten();
                    (refused(status, response).await, wait)
                }
                Err(failure) => {
                    let wait = failure.retryable.then(|| retry::wait(attempt + 1, None)).flatten();
                    (failure, wait)
                }
            };
            let Some(wait) = wait else { return Err(failure) };
            tracing::debug!(attempt, wait_ms = wait.as_millis(), code = %failure.code, "asking the upstream again");
            tokio::time::sleep(wait).await;
            attempt += 1;
        }
    }

    fn body(&self, ask: &Ask) -> Value {
        let mut body = json!({
            "messages": ask.messages,
            "stream": true,
            "stream_options": {"include_usage": true},
        });
        if let Some(model) = ask.model.as_ref().or(self.model.as_ref()) {
            body["model"] = json!(model);
        }
        if let Some(temperature) = ask.temperature {
            body["temperature"] = json!(temperature);
        }
        if let Some(max_tokens) = ask.max_tokens {
            body["max_tokens"] = json!(max_tokens);
        }
        body
    }

    async fn send(&self, body: &Value) -> Result<reqwest::Response, Failure> {
        let mut request = self.client.post(&self.url).header("accept", "text/event-stream").json(body);
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        match tokio::time::timeout(self.timeouts.first_byte(), request.send()).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) if error.is_connect() && error.is_timeout() => {
                Err(failure("upstream_timeout", "the upstream did not accept the connection in time", true))
            }
            Ok(Err(error)) if error.is_connect() => {
                Err(failure("upstream_unreachable", "the upstream cannot be reached", true))
            }
            Ok(Err(_)) => Err(failure("upstream_closed", "the upstream closed the connection", true)),
            // The request may be at work: asking again could pay twice.
            Err(_) => Err(failure("upstream_timeout", "the upstream sent nothing in time", false)),
        }
    }
}

/// The failure behind an error status. The service's own words are kept, shortened.
async fn refused(status: reqwest::StatusCode, response: reqwest::Response) -> Failure {
    let body = tokio::time::timeout(Duration::from_secs(5), limited(response)).await.unwrap_or_default();
    let said = serde_json::from_slice::<Value>(&body).ok().and_then(|body| error_text(&body));
    let (code, retryable) = match status.as_u16() {
        401 | 403 => ("upstream_unauthorized", false),
        429 => ("upstream_rate_limited", true),
        500.. => ("upstream_error", true),
        _ => ("upstream_refused", false),
    };
    let said = said.map_or_else(String::new, |said| format!(": {said}"));
    failure(code, format!("the upstream answered {}{said}", status.as_u16()), retryable)
}

/// At most 16 KiB of an error body.
async fn limited(mut response: reqwest::Response) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk);
        if body.len() > 16 << 10 {
            break;
        }
    }
    body
}

/// The message of `{"error": {...}}` or `{"error": "..."}`.
fn error_text(body: &Value) -> Option<String> {
    let error = body.get("error")?;
    let text = error.as_str().or_else(|| error.get("message")?.as_str())?;
    Some(text.chars().take(300).collect())
}

/// A reply that is arriving.
pub struct Stream {
    bytes: BoxStream<'static, reqwest::Result<Bytes>>,
    frames: Frames,
    /// The service answered with one JSON body although a stream was asked for.
    whole: Option<Vec<u8>>,
    timeouts: Timeouts,
    started: bool,
    finish: Option<FinishReason>,
    done: bool,
}

impl Stream {
    fn new(response: reqwest::Response, timeouts: Timeouts) -> Result<Stream, Failure> {
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("");
        let whole = kind.starts_with("application/json").then(Vec::new);
        Ok(Stream {
            bytes: response.bytes_stream().boxed(),
            frames: Frames::new(FRAME),
            whole,
            timeouts,
            started: false,
            finish: None,
            done: false,
        })
    }

    pub(super) async fn next(&mut self, items: &mut Vec<Item>) {
        while items.is_empty() {
            let wait = if self.started { self.timeouts.silence() } else { self.timeouts.first_byte() };
            match tokio::time::timeout(wait, self.bytes.next()).await {
                Ok(Some(Ok(chunk))) => {
                    self.started = true;
                    self.read(&chunk, items);
                }
                Ok(Some(Err(_))) => {
                    let broken = failure("upstream_closed", "the connection to the upstream broke", true);
                    items.push(Item::End(if self.done { self.end() } else { End::Failed(broken) }));
                }
                Ok(None) => self.finish(items),
                Err(_) => {
                    let silent = failure("upstream_timeout", "the upstream fell silent", true);
                    items.push(Item::End(End::Failed(silent)));
                }
            }
        }
    }

    fn read(&mut self, chunk: &[u8], items: &mut Vec<Item>) {
        if let Some(whole) = &mut self.whole {
            whole.extend_from_slice(chunk);
            // A body that begins like a frame is a stream under a wrong type.
            if !whole.trim_ascii_start().starts_with(b"{") && whole.trim_ascii_start().len() > 5 {
                let body = std::mem::take(whole);
                self.whole = None;
                return self.read(&body, items);
            }
            if whole.len() > FRAME * 16 {
                items.push(Item::End(End::Failed(failure(
                    "upstream_error",
                    "the answer is too long",
                    false,
                ))));
            }
            return;
        }
        let Stream { frames, finish, done, .. } = self;
        frames.push(chunk, &mut |frame| frame_read(&frame, finish, done, items));
        if self.done && !items.iter().any(|item| matches!(item, Item::End(_))) {
            // Nothing that counts follows `[DONE]`.
            items.push(Item::End(self.end()));
        }
    }

    fn finish(&mut self, items: &mut Vec<Item>) {
        if let Some(whole) = self.whole.take() {
            let mut data = whole;
            if data.trim_ascii().is_empty() {
                data = b"{}".to_vec();
            }
            frame_read(&Frame { name: "", data: &data, cut: false }, &mut self.finish, &mut self.done, items);
        } else {
            let Stream { frames, finish, done, .. } = self;
            frames.finish(&mut |frame| frame_read(&frame, finish, done, items));
        }
        if !items.iter().any(|item| matches!(item, Item::End(_))) {
            items.push(Item::End(self.end()));
        }
    }

    /// The end of a clean stream.
    fn end(&self) -> End {
        match (self.finish, self.done) {
            (Some(reason), _) => End::Finished(reason),
            (None, true) => End::stop(),
            (None, false) => End::Unknown,
        }
    }
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(default)]
    usage: Option<Value>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow, default)]
    delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    message: Option<Delta<'a>>,
    #[serde(borrow, default)]
    finish_reason: Option<Cow<'a, str>>,
}

#[derive(Default, Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    content: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    reasoning_content: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    reasoning: Option<Cow<'a, str>>,
}

/// One frame to items. A frame that is no JSON is passed over: the rest of the reply is still good.
fn frame_read(frame: &Frame<'_>, finish: &mut Option<FinishReason>, done: &mut bool, items: &mut Vec<Item>) {
    if items.iter().any(|item| matches!(item, Item::End(_))) || *done {
        return;
    }
    let data = frame.data.trim_ascii();
    if data == b"[DONE]" {
        *done = true;
        return;
    }
    let chunk: Chunk<'_> = match serde_json::from_slice(data) {
        Ok(chunk) => chunk,
        Err(error) => {
            tracing::warn!(%error, bytes = data.len(), "a frame of the upstream is not what it should be; passed over");
            return;
        }
    };
    if let Some(error) = chunk.error.filter(|error| error.get() != "null") {
        let said = error_text(&json!({ "error": error })).unwrap_or_else(|| "no reason given".to_owned());
        items.push(Item::End(End::Failed(failure(
            "upstream_error",
            format!("the upstream failed: {said}"),
            true,
        ))));
        return;
    }
    if let Some(usage) = chunk.usage.filter(|usage| usage.is_object()) {
        items.push(Item::Usage(usage));
    }
    let Some(choice) = chunk.choices.and_then(|choices| choices.into_iter().next()) else { return };
    let delta = choice.delta.or(choice.message).unwrap_or_default();
    // Both names of the field mean the same; a service that sends both sends the same text twice.
    if let Some(text) = delta.reasoning_content.or(delta.reasoning).filter(|text| !text.is_empty()) {
        items.push(Item::Reasoning(text.into_owned()));
    }
    if let Some(text) = delta.content.filter(|text| !text.is_empty()) {
        items.push(Item::Text(text.into_owned()));
    }
    if let Some(reason) = choice.finish_reason {
        *finish = Some(match reason.as_ref() {
            "length" | "max_tokens" => FinishReason::Length,
            "content_filter" => FinishReason::ContentFilter,
            "tool_calls" | "function_call" => FinishReason::ToolCalls,
            _ => FinishReason::Stop,
        });
    }
}
