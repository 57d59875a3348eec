//! Bare mapper: the server that Tambour is compared with. It turns each frame of a chat completion stream
//! into an event of Tambour's own protocol. It checks, repairs and stores nothing, so it shows the minimum
//! cost of a server between a model and a client.

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde::Deserialize;
use tokio::net::TcpListener;

/// Body of a request to the bare mapper.
#[derive(Deserialize)]
struct BareRequest<'a> {
    text: &'a str,
    model: &'a str,
}

/// Chunk of a chat completion stream; only the fields that are read.
#[derive(Deserialize)]
struct UpstreamChunk<'a> {
    #[serde(borrow)]
    choices: Vec<UpstreamDeltaChoice<'a>>,
}

#[derive(Deserialize)]
struct UpstreamDeltaChoice<'a> {
    #[serde(borrow)]
    delta: UpstreamDelta<'a>,
}

#[derive(Deserialize)]
struct UpstreamDelta<'a> {
    #[serde(borrow)]
    content: Option<std::borrow::Cow<'a, str>>,
}

type UpstreamClient = Client<HttpConnector, Full<Bytes>>;

/// Serves the bare mapper on a free port. `upstream` is the address of the model service.
pub(crate) async fn serve_bare(upstream: String) -> anyhow::Result<()> {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client: UpstreamClient = Client::builder(TokioExecutor::new()).build(connector);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    crate::process::announce(listener.local_addr()?);
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let (client, upstream) = (client.clone(), upstream.clone());
        tokio::spawn(async move {
            let service = service_fn(|request| answer_request(request, &client, &upstream));
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(socket), service)
                .await;
        });
    }
}

/// Calls the upstream and answers with the events of its reply.
async fn answer_request(
    request: Request<Incoming>,
    client: &UpstreamClient,
    upstream: &str,
) -> anyhow::Result<Response<StreamBody<impl stream::Stream<Item = Result<Frame<Bytes>, Infallible>> + use<>>>>
{
    let request_bytes = request.into_body().collect().await?.to_bytes();
    let bare_request: BareRequest<'_> = serde_json::from_slice(&request_bytes)?;
    let body = serde_json::json!({
        "model": bare_request.model,
        "messages": [{"role": "user", "content": bare_request.text}],
        "stream": true,
    });
    let upstream_request = Request::post(format!("http://{upstream}/v1/chat/completions"))
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body.to_string())))?;
    let reply = client.request(upstream_request).await?.into_body();
    let mapper = FrameMapper { reply, pending_bytes: Vec::new(), event_count: 0, is_ended: false };
    let frames = stream::unfold(mapper, async |mut mapper| {
        Some((Ok(Frame::data(mapper.next_events().await?)), mapper))
    });
    Ok(Response::builder().header("content-type", "text/event-stream").body(StreamBody::new(frames))?)
}

/// Mapper of the frames of one reply.
struct FrameMapper {
    reply: Incoming,
    /// Bytes of the frame that has not arrived completely.
    pending_bytes: Vec<u8>,
    /// Number of events written, which is the id of the last one.
    event_count: u64,
    /// True once the upstream has ended the reply.
    is_ended: bool,
}

impl FrameMapper {
    /// Reads the reply until it yields at least one event, and returns the events; `None` after the last one.
    async fn next_events(&mut self) -> Option<Bytes> {
        let mut out = Vec::new();
        if self.event_count == 0 {
            // The first event does not wait for the reply.
            self.write_event("thinking_start", "", &mut out);
        }
        while out.is_empty() && !self.is_ended {
            match self.reply.frame().await {
                Some(Ok(frame)) => {
                    if let Some(data) = frame.data_ref() {
                        self.read_frames(data, &mut out);
                    }
                }
                Some(Err(_)) | None => self.is_ended = true,
            }
            if self.is_ended {
                self.write_event("final_end", "", &mut out);
                self.write_event("completed", "", &mut out);
            }
        }
        (!out.is_empty()).then(|| out.into())
    }

    /// Maps each complete frame of `data`, and keeps the incomplete last one in `pending_bytes`.
    fn read_frames(&mut self, data: &[u8], out: &mut Vec<u8>) {
        let joined_bytes;
        let mut data = if self.pending_bytes.is_empty() {
            data
        } else {
            self.pending_bytes.extend_from_slice(data);
            joined_bytes = std::mem::take(&mut self.pending_bytes);
            &joined_bytes
        };
        while let Some(end) = data.windows(2).position(|pair| pair == b"\n\n") {
            let frame = &data[..end];
            data = &data[end + 2..];
            let Some(json) = frame.strip_prefix(b"data: ") else { continue };
            let Ok(chunk) = serde_json::from_slice::<UpstreamChunk<'_>>(json) else { continue };
            if let Some(text) = chunk.choices.first().and_then(|choice| choice.delta.content.as_deref()) {
                self.write_event("final_delta", text, out);
            }
        }
        self.pending_bytes.extend_from_slice(data);
    }

    /// Writes an event with its id and a text; all events have the same fields.
    fn write_event(&mut self, name: &str, text: &str, out: &mut Vec<u8>) {
        use std::io::Write;
        self.event_count += 1;
        let _ = write!(out, "id: {}\nevent: {name}\ndata: {{\"text\":", self.event_count);
        let _ = serde_json::to_writer(&mut *out, text);
        out.extend_from_slice(
            b",\"message_id\":\"msg_0123456789abcdef0123456789abcdef\",\"request_id\":\"req_0123456789abcdef0123456789abcdef\"}\n\n",
        );
    }
}
