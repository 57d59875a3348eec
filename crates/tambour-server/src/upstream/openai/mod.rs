//! Services with the chat completions interface: asking them, and the bytes of their answers.

mod frames;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use serde_json::{Value, json};
use tambour::End;
use tambour::event::Failure;
use tambour::lex::sse::{Frame, Frames};
use tokio::time::{Instant, Sleep};

use self::frames::{Reading, ended};
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
                    return Ok(Stream::new(response, self.timeouts, deadline, &ask.message));
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
            ("tools", (!ask.tools.is_empty()).then(|| Value::from(ask.tools.clone()))),
            ("tool_choice", ask.tool_choice.clone()),
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

impl Stream {
    fn new(response: reqwest::Response, timeouts: Timeouts, deadline: Instant, message: &Arc<str>) -> Stream {
        Stream {
            bytes: response.bytes_stream().boxed(),
            form: Form::Unknown,
            timeouts,
            begun: false,
            last: Instant::now(),
            alarm: Box::pin(tokio::time::sleep_until(deadline)),
            reading: Reading::new(message),
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
                    reading.close(items);
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
            reading.close(items);
        }
    }
}

/// Whether a host is this machine.
fn is_local(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}
