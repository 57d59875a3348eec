//! A reply that is arriving over HTTP: its bytes, and how long they are waited for.

use std::sync::Arc;

use axum::http::Response;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tambour::End;
use tokio::time::{Instant, Sleep, sleep_until};

use super::decode::Decoder;
use super::kind::Kind;
use super::{Item, Timeouts, failure};
use crate::apart::Apart;

/// A reply that is arriving.
pub(super) struct Stream {
    bytes: Incoming,
    timeouts: Timeouts,
    /// Whether the first byte has come.
    begun: bool,
    /// When something came last.
    last: Instant,
    /// Ends when nothing has come for too long. Set anew only when it ends, not for each chunk.
    alarm: Apart<Sleep>,
    decoder: Decoder,
}

impl Stream {
    pub(super) fn new(
        kind: Kind,
        response: Response<Incoming>,
        timeouts: Timeouts,
        deadline: Instant,
        message: &Arc<str>,
    ) -> Stream {
        Stream {
            bytes: response.into_body(),
            timeouts,
            begun: false,
            last: Instant::now(),
            alarm: Apart::new(sleep_until(deadline)),
            decoder: Decoder::new(kind, message),
        }
    }

    pub(super) async fn next(&mut self, items: &mut Vec<Item>) {
        while items.is_empty() {
            let next = tokio::select! {
                biased;
                next = self.bytes.frame() => next,
                () = &mut self.alarm => {
                    let until = self.last + self.timeouts.silence();
                    if self.begun && until > Instant::now() {
                        self.alarm = Apart::new(sleep_until(until));
                        continue;
                    }
                    let message =
                        if self.begun { "the upstream fell silent" } else { "the upstream sent nothing in time" };
                    items.push(Item::End(End::Failed(failure("upstream_timeout", message, true))));
                    return;
                }
            };
            match next {
                Some(Ok(frame)) => {
                    // Trailers say nothing here.
                    let Ok(chunk) = frame.into_data() else { continue };
                    self.last = Instant::now();
                    if !self.begun {
                        self.begun = true;
                        self.alarm = Apart::new(sleep_until(self.last + self.timeouts.silence()));
                    }
                    self.decoder.push(&chunk, items);
                }
                Some(Err(_)) => {
                    let broken = failure("upstream_closed", "the connection to the upstream broke", true);
                    items.push(Item::End(End::Failed(broken)));
                }
                None => self.decoder.finish(items),
            }
        }
    }
}
