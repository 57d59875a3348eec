//! `Idempotency-Key`: the same request of the same owner is answered once, and the answer given again for a day.
//!
//! A message is found again by its own row ([`key`]). For any other operation that makes something, [`once`] stands
//! before the handler; the table of operations says which, and whether its answer may be on the disk.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::keys::{Caller, TOKEN};
use super::problem::Problem;
use crate::app::{App, AppState};
use crate::ids;
use crate::store::{Claim, Kept, Sent};

/// Bytes of a key.
pub(super) const MOST: usize = 255;
/// Hours for which an answer is given again.
pub(crate) const HOURS: i64 = 24;
/// Answers of one owner that are kept in memory; the oldest go first.
const IN_MEMORY: usize = 1000;

/// Where the answer of an operation is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// In the database: also behind a restart.
    Stored,
    /// In memory only, since it holds a secret, as long as that is good for something.
    Secret(Duration),
}

/// The answer has a secret that stays valid.
pub(super) const SECRET: Keep = Keep::Secret(Duration::from_secs(HOURS.unsigned_abs() * 3600));
/// The answer has a token of an event stream.
pub(super) const OF_STREAM: Keep = Keep::Secret(TOKEN);

/// Answers that are in memory only.
#[derive(Default)]
pub(crate) struct Claims {
    memory: Mutex<HashMap<String, VecDeque<InMemory>>>,
}

struct InMemory {
    sent: Sent,
    kept: Kept,
    until: Instant,
}

/// A request that nobody else carries out, as long as this lives.
pub(super) struct Held {
    app: AppState,
    sent: Sent,
}

/// The key of a request, if it has one.
pub(super) fn key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(given) = headers.get("idempotency-key") else { return Ok(None) };
    match given.to_str() {
        Ok(key) if !key.is_empty() && key.len() <= MOST => Ok(Some(key.to_owned())),
        _ => {
            let detail = format!("an `Idempotency-Key` has 1 to {MOST} visible ASCII characters");
            Err(Problem::invalid("invalid_idempotency_key", detail))
        }
    }
}

/// Takes a request to carry it out: nobody else does meanwhile. Its answer if it was carried out before.
pub(super) async fn claim(app: &AppState, sent: Sent) -> Result<Result<Held, Kept>, Problem> {
    match app.store.claim_answer(&sent, &since()).await? {
        Claim::Taken => {}
        Claim::Answered(kept) => return Ok(Err(kept)),
        Claim::UnderWay => return Err(under_way()),
    }
    let held = Held { app: app.clone(), sent };
    Ok(app.claims.found(&held.sent).map_or(Ok(held), Err))
}

/// The same request is being carried out.
pub(crate) fn under_way() -> Problem {
    Problem::conflict("request_under_way", "a request with this `Idempotency-Key` is under way")
}

/// Another request came with the same key before.
pub(super) fn reused() -> Problem {
    Problem::invalid("idempotency_key_reused", "this `Idempotency-Key` was sent with another request")
}

/// The RFC 3339 time before which answers are not given again.
pub(crate) fn since() -> String {
    let day = SignedDuration::from_hours(HOURS);
    Timestamp::now().checked_sub(day).map(|time| format!("{time:.3}")).unwrap_or_default()
}

/// Gives the answer that the same request got before, and keeps that of a new one. What failed has made nothing, and may be
/// tried again.
pub(super) async fn once(
    State((app, keep)): State<(AppState, Keep)>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let Some(word) = key(request.headers())? else { return Ok(next.run(request).await) };
    let caller = request.extensions().get::<Caller>().cloned().ok_or_else(Problem::internal)?;
    let route = format!("{} {}", request.method(), request.uri().path());
    let query = request.uri().query().unwrap_or_default().to_owned();
    let (parts, body) = request.into_parts();
    // It was read whole before, and is as long as it may be.
    let body = to_bytes(body, usize::MAX).await.map_err(|_| Problem::internal())?;
    // What the query says is a part of what is asked for.
    let digest = Sha256::new().chain_update(query).chain_update(&body).finalize().to_vec();
    let sent = Sent { owner: caller.owner, route, word };
    let held = match claim(&app, sent.clone()).await? {
        Ok(held) => held,
        Err(kept) if kept.digest == digest => return Ok(again(kept)),
        Err(_) => return Err(reused()),
    };
    let request = Request::from_parts(parts, Body::from(body));
    let work = app.clone();
    // Who asked may go away in between and come again.
    app.undisturbed(async move {
        let answer = next.run(request).await;
        let answer = if answer.status().is_success() {
            let (parts, body) = answer.into_parts();
            let body = to_bytes(body, usize::MAX).await.map_err(|_| Problem::internal())?;
            let location = parts.headers.get(header::LOCATION).and_then(|value| value.to_str().ok());
            let (status, location) = (parts.status.as_u16(), location.map(str::to_owned));
            let kept = Kept { digest, status, location, body: body.to_vec(), names: names(&body) };
            store(&work, keep, sent, kept).await;
            Response::from_parts(parts, Body::from(body))
        } else {
            answer
        };
        drop(held);
        Ok(answer)
    })
    .await
}

async fn store(app: &App, keep: Keep, sent: Sent, kept: Kept) {
    let lives = match keep {
        Keep::Secret(lives) => lives,
        Keep::Stored => match app.store.keep(&sent, &kept, &ids::now()).await {
            Ok(()) => return,
            Err(error) => {
                // What was made is there all the same, and is not to be made twice.
                tracing::warn!(%error, "the answer of a request with an `Idempotency-Key` is kept in memory only");
                Duration::from_secs(HOURS.unsigned_abs() * 3600)
            }
        },
    };
    app.claims.remember(sent, kept, lives);
}

fn again(kept: Kept) -> Response {
    let status = StatusCode::from_u16(kept.status).unwrap_or(StatusCode::OK);
    let mut response = (status, kept.body).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(location) = kept.location.and_then(|location| HeaderValue::from_str(&location).ok()) {
        headers.insert(header::LOCATION, location);
    }
    response
}

/// The ids in an answer: texts of fields called `id` or `..._id`, also of what stands in its `data`.
fn names(body: &Bytes) -> Vec<String> {
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    let all = answer["data"].as_array().into_iter().flatten().chain([&answer]);
    let fields = all.filter_map(Value::as_object).flatten();
    let ids = fields.filter(|(name, _)| *name == "id" || name.ends_with("_id"));
    ids.filter_map(|(_, value)| value.as_str().map(str::to_owned)).collect()
}

impl Claims {
    fn memory(&self) -> MutexGuard<'_, HashMap<String, VecDeque<InMemory>>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn found(&self, sent: &Sent) -> Option<Kept> {
        let memory = self.memory();
        let now = Instant::now();
        let mut of_owner = memory.get(&sent.owner)?.iter();
        let found = of_owner.find(|known| known.until > now && known.sent == *sent)?;
        Some(found.kept.clone())
    }

    fn remember(&self, sent: Sent, kept: Kept, lives: Duration) {
        let mut memory = self.memory();
        let of_owner = memory.entry(sent.owner.clone()).or_default();
        of_owner.retain(|known| known.sent != sent);
        of_owner.truncate(IN_MEMORY - 1);
        of_owner.push_front(InMemory { sent, kept, until: Instant::now() + lives });
    }

    /// Forgets answers that are too old, and those that name something that is deleted.
    pub(crate) fn forget(&self, deleted: Option<&str>) {
        let now = Instant::now();
        let named =
            |known: &InMemory| deleted.is_some_and(|id| known.kept.names.iter().any(|name| name == id));
        self.memory().retain(|_, of_owner| {
            of_owner.retain(|known| known.until > now && !named(known));
            !of_owner.is_empty()
        });
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.app.store.release(&self.sent);
    }
}
