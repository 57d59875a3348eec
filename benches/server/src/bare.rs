//! Bare mapper: hyper on both sides, chat completion frames in, JSONSeq frames out. It checks, repairs and
//! stores nothing: the least cost of a server between a model and a reader.

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

#[derive(Deserialize)]
struct Asked<'a> {
    text: &'a str,
    model: &'a str,
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Delta<'a>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Option<std::borrow::Cow<'a, str>>,
}

type Upstream = Client<HttpConnector, Full<Bytes>>;

pub(crate) async fn serve(upstream: String) -> anyhow::Result<()> {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client: Upstream = Client::builder(TokioExecutor::new()).build(connector);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    crate::process::announce(listener.local_addr()?);
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let (client, upstream) = (client.clone(), upstream.clone());
        tokio::spawn(async move {
            let service = service_fn(|request| answer(request, &client, &upstream));
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(socket), service)
                .await;
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    client: &Upstream,
    upstream: &str,
) -> anyhow::Result<Response<StreamBody<impl stream::Stream<Item = Result<Frame<Bytes>, Infallible>> + use<>>>>
{
    let asked = request.into_body().collect().await?.to_bytes();
    let asked: Asked<'_> = serde_json::from_slice(&asked)?;
    let body = serde_json::json!({
        "model": asked.model,
        "messages": [{"role": "user", "content": asked.text}],
        "stream": true,
    });
    let request = Request::post(format!("http://{upstream}/v1/chat/completions"))
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body.to_string())))?;
    let reply = client.request(request).await?.into_body();
    let mapper = Mapper { reply, rest: Vec::new(), number: 0, ended: false };
    let frames =
        stream::unfold(mapper, async |mut mapper| Some((Ok(Frame::data(mapper.next().await?)), mapper)));
    Ok(Response::builder().header("content-type", "text/event-stream").body(StreamBody::new(frames))?)
}

struct Mapper {
    reply: Incoming,
    /// Incomplete frame.
    rest: Vec<u8>,
    number: u64,
    ended: bool,
}

impl Mapper {
    /// Maps the next chunk of the reply to frames.
    async fn next(&mut self) -> Option<Bytes> {
        let mut out = Vec::new();
        if self.number == 0 {
            self.event("thinking_start", "", &mut out);
        }
        while out.is_empty() && !self.ended {
            match self.reply.frame().await {
                Some(Ok(frame)) => {
                    if let Some(data) = frame.data_ref() {
                        self.read(data, &mut out);
                    }
                }
                Some(Err(_)) | None => self.ended = true,
            }
            if self.ended {
                self.event("final_end", "", &mut out);
                self.event("completed", "", &mut out);
            }
        }
        (!out.is_empty()).then(|| out.into())
    }

    fn read(&mut self, data: &[u8], out: &mut Vec<u8>) {
        let kept;
        let mut data = if self.rest.is_empty() {
            data
        } else {
            self.rest.extend_from_slice(data);
            kept = std::mem::take(&mut self.rest);
            &kept
        };
        while let Some(end) = data.windows(2).position(|two| two == b"\n\n") {
            let frame = &data[..end];
            data = &data[end + 2..];
            let Some(json) = frame.strip_prefix(b"data: ") else { continue };
            let Ok(chunk) = serde_json::from_slice::<Chunk<'_>>(json) else { continue };
            if let Some(text) = chunk.choices.first().and_then(|choice| choice.delta.content.as_deref()) {
                self.event("final_delta", text, out);
            }
        }
        self.rest.extend_from_slice(data);
    }

    fn event(&mut self, name: &str, text: &str, out: &mut Vec<u8>) {
        use std::io::Write;
        self.number += 1;
        let _ = write!(out, "id: {}\nevent: {name}\ndata: {{\"text\":", self.number);
        let _ = serde_json::to_writer(&mut *out, text);
        out.extend_from_slice(
            b",\"message_id\":\"msg_0123456789abcdef0123456789abcdef\",\"request_id\":\"req_0123456789abcdef0123456789abcdef\"}\n\n",
        );
    }
}
