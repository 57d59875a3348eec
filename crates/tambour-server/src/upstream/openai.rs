//! Services with the chat completions interface, and what they do differently from each other.

use std::borrow::Cow;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tambour::End;
use tambour::event::{Failure, FinishReason};
use tambour::lex::sse::{Frame, Frames};
use tokio::time::{Instant, Sleep};

use super::redact::redacted;
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
        // The one provider of the process; a second client in it finds it installed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut client = reqwest::Client::builder()
            .connect_timeout(Duration::from_millis(timeouts.connect_ms))
            .tcp_nodelay(true)
            .redirect(reqwest::redirect::Policy::none());
        let host = reqwest::Url::parse(base).ok().and_then(|url| url.host_str().map(str::to_owned));
        if host.is_some_and(|host| is_local(&host)) {
            // A proxy of the environment is for the world outside.
            client = client.no_proxy();
        }
        let client = client.build()?;
        let url = format!("{}/chat/completions", base.trim_end_matches('/'));
        Ok(OpenAi { client, url, model, key, timeouts })
    }

    /// Asks, and asks again while nothing has come and it is worth it. Each attempt that fails is told, with the time until the
    /// next one, if there is one.
    pub(super) async fn open(
        &self,
        ask: &Ask,
        mut failed: impl FnMut(&Failure, Option<Duration>),
    ) -> Result<Stream, Failure> {
        let body = self.body(ask);
        let mut attempt = 1;
        loop {
            let deadline = Instant::now() + self.timeouts.first_byte();
            let (failure, wait) = match self.send(&body, deadline).await {
                Ok(response) if response.status().is_success() => {
                    return Ok(Stream::new(response, self.timeouts, deadline));
                }
                Ok(response) => {
                    let status = response.status();
                    let wait = retry::worth(status)
                        .then(|| retry::wait(attempt + 1, Some(response.headers()), &self.timeouts))
                        .flatten();
                    (refused(status, response).await, wait)
                }
                Err(failure) => {
                    let wait =
                        failure.retryable.then(|| retry::wait(attempt + 1, None, &self.timeouts)).flatten();
                    (failure, wait)
                }
            };
            failed(&failure, wait);
            let Some(wait) = wait else { return Err(failure) };
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
        let fields = [
            ("temperature", ask.temperature.map(Value::from)),
            ("max_tokens", ask.max_tokens.map(Value::from)),
            ("top_p", ask.top_p.map(Value::from)),
            ("stop", ask.stop.clone()),
            ("seed", ask.seed.map(Value::from)),
            ("response_format", ask.response_format.clone()),
        ];
        for (name, value) in fields {
            if let Some(value) = value {
                body[name] = value;
            }
        }
        // What we rest on is not theirs to change.
        for (name, value) in &ask.more {
            if body.get(name).is_none() {
                body[name] = value.clone();
            }
        }
        body
    }

    async fn send(&self, body: &Value, deadline: Instant) -> Result<reqwest::Response, Failure> {
        let mut request = self.client.post(&self.url).header("accept", "text/event-stream").json(body);
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        match tokio::time::timeout_at(deadline, request.send()).await {
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

/// The failure behind an error status. The service's own words are kept, shortened and without secrets.
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
    Some(redacted(text))
}

/// A reply that is arriving.
pub(super) struct Stream {
    bytes: BoxStream<'static, reqwest::Result<Bytes>>,
    form: Form,
    timeouts: Timeouts,
    /// Whether the first byte has come.
    begun: bool,
    /// When something came last.
    last: Instant,
    /// Ends when nothing has come for too long. Set anew only when it ends, not for each chunk.
    alarm: Pin<Box<Sleep>>,
    reading: Reading,
}

/// What the bytes are. Found out from the first of them, since content types are not to be trusted.
enum Form {
    /// Nothing but blanks has come.
    Unknown,
    /// Frames of a stream.
    Frames(Frames),
    /// One JSON body, although a stream was asked for.
    Whole(Vec<u8>),
}

/// What was learnt from the frames so far.
#[derive(Default)]
struct Reading {
    finish: Option<FinishReason>,
    /// `[DONE]` has come.
    done: bool,
    /// Whether bytes have come, and whether a frame of them could be read.
    some: bool,
    understood: bool,
}

impl Stream {
    fn new(response: reqwest::Response, timeouts: Timeouts, deadline: Instant) -> Stream {
        Stream {
            bytes: response.bytes_stream().boxed(),
            form: Form::Unknown,
            timeouts,
            begun: false,
            last: Instant::now(),
            alarm: Box::pin(tokio::time::sleep_until(deadline)),
            reading: Reading::default(),
        }
    }

    pub(super) async fn next(&mut self, items: &mut Vec<Item>) {
        while items.is_empty() {
            let next = tokio::select! {
                biased;
                next = self.bytes.next() => next,
                () = self.alarm.as_mut() => {
                    let until = self.last + self.timeouts.silence();
                    if self.begun && until > Instant::now() {
                        self.alarm.as_mut().reset(until);
                        continue;
                    }
                    let message =
                        if self.begun { "the upstream fell silent" } else { "the upstream sent nothing in time" };
                    items.push(Item::End(End::Failed(failure("upstream_timeout", message, true))));
                    return;
                }
            };
            match next {
                Some(Ok(chunk)) => {
                    self.last = Instant::now();
                    if !self.begun {
                        self.begun = true;
                        self.alarm.as_mut().reset(self.last + self.timeouts.silence());
                    }
                    self.read(&chunk, items);
                }
                Some(Err(_)) => {
                    let broken = failure("upstream_closed", "the connection to the upstream broke", true);
                    items.push(Item::End(End::Failed(broken)));
                }
                None => self.finish(items),
            }
        }
    }

    fn read(&mut self, chunk: &[u8], items: &mut Vec<Item>) {
        let mut chunk = chunk;
        if matches!(self.form, Form::Unknown) {
            // A byte order mark and blanks may come before anything.
            chunk = chunk.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(chunk).trim_ascii_start();
            self.form = match chunk.first() {
                None => return,
                Some(b'{' | b'[') => Form::Whole(Vec::new()),
                Some(_) => Form::Frames(Frames::new(FRAME)),
            };
        }
        self.reading.some = true;
        let Stream { form, reading, .. } = self;
        match form {
            Form::Unknown => {}
            Form::Whole(whole) if whole.len() + chunk.len() > FRAME * 16 => {
                let failure = failure("upstream_error", "the answer is too long", false);
                items.push(Item::End(End::Failed(failure)));
            }
            Form::Whole(whole) => whole.extend_from_slice(chunk),
            Form::Frames(frames) => {
                frames.push(chunk, &mut |frame| reading.frame(&frame, items));
                if reading.done && !ended(items) {
                    // Nothing that counts follows `[DONE]`.
                    items.push(Item::End(reading.end()));
                }
            }
        }
    }

    fn finish(&mut self, items: &mut Vec<Item>) {
        let Stream { form, reading, .. } = self;
        match form {
            Form::Unknown => {}
            Form::Whole(whole) => reading.frame(&Frame { name: "", data: whole, cut: false }, items),
            Form::Frames(frames) => frames.finish(&mut |frame| reading.frame(&frame, items)),
        }
        if !ended(items) {
            items.push(Item::End(reading.end()));
        }
    }
}

/// Whether the end is among the items.
fn ended(items: &[Item]) -> bool {
    items.iter().any(|item| matches!(item, Item::End(_)))
}

impl Reading {
    /// The end of a clean stream.
    fn end(&self) -> End {
        if self.some && !self.understood && !self.done {
            let message = "the upstream sent something that is no reply";
            return End::Failed(failure("upstream_malformed", message, false));
        }
        match (self.finish, self.done) {
            (Some(reason), _) => End::Finished(reason),
            (None, true) => End::stop(),
            (None, false) => End::Unknown,
        }
    }

    /// One frame to items. A frame that is no JSON is passed over: the rest of the reply is still good.
    fn frame(&mut self, frame: &Frame<'_>, items: &mut Vec<Item>) {
        let data = frame.data.trim_ascii();
        if self.done || ended(items) || data.is_empty() {
            return;
        }
        if data == b"[DONE]" {
            self.done = true;
            return;
        }
        let chunk: Chunk<'_> = match serde_json::from_slice(data) {
            Ok(chunk) => chunk,
            Err(error) => {
                let bytes = data.len();
                tracing::warn!(%error, bytes, "a frame of the upstream is not what it should be; passed over");
                return;
            }
        };
        self.understood = true;
        let error = chunk.error.filter(|error| error.get() != "null");
        if error.is_some() || frame.name == "error" {
            // It stays an error whatever follows, `[DONE]` too.
            let said = match error {
                Some(error) => error_text(&json!({ "error": error })),
                None => serde_json::from_slice(data)
                    .ok()
                    .and_then(|body: Value| error_text(&json!({ "error": body }))),
            };
            let said = said.unwrap_or_else(|| "no reason given".to_owned());
            let failed = failure("upstream_error", format!("the upstream failed: {said}"), true);
            items.push(Item::End(End::Failed(failed)));
            return;
        }
        if let Some(usage) = chunk.usage.filter(Value::is_object) {
            items.push(Item::Usage(usage));
        }
        let Some(choice) = chunk.choices.and_then(|choices| choices.into_iter().next()) else { return };
        let delta = choice.delta.or(choice.message).unwrap_or_default();
        let Delta { content, reasoning_content, reasoning, reasoning_details } = delta;
        // All names of the field mean the same; a service that sends several sends the same text several times.
        let named = [reasoning_content, reasoning].into_iter().flatten().find(|text| !text.is_empty());
        let reasoning = named.map(Cow::into_owned).or_else(|| detailed(&reasoning_details?));
        if let Some(text) = reasoning {
            items.push(Item::Reasoning(text));
        }
        if let Some(text) = content.filter(|text| !text.is_empty()) {
            items.push(Item::Text(text.into_owned()));
        }
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
            self.finish = Some(match reason.as_ref() {
                "length" | "max_tokens" => FinishReason::Length,
                "content_filter" => FinishReason::ContentFilter,
                "tool_calls" | "function_call" => FinishReason::ToolCalls,
                _ => FinishReason::Stop,
            });
        }
    }
}

/// The text of `reasoning_details`, a list of objects.
fn detailed(details: &Value) -> Option<String> {
    let parts =
        details.as_array()?.iter().filter_map(|part| part["text"].as_str().or(part["summary"].as_str()));
    Some(parts.collect::<String>()).filter(|text| !text.is_empty())
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
    #[serde(default)]
    reasoning_details: Option<Value>,
}

/// Whether a host is this machine.
fn is_local(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}
