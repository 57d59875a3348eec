//! `Idempotency-Key`: the same request of the same owner is the same message.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::HeaderMap;

use super::keys::Caller;
use super::problem::Problem;
use crate::app::App;

/// Bytes of a key.
const MOST: usize = 255;

/// Requests with a key that are under way.
#[derive(Default)]
pub(crate) struct Claims(Mutex<HashSet<(String, String)>>);

/// A key that no other request may use, as long as this lives.
pub(super) struct Claim {
    claims: Arc<Claims>,
    of: (String, String),
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

/// Takes the key for this request.
pub(super) fn claim(app: &App, caller: &Caller, key: &str) -> Result<Claim, Problem> {
    let of = (caller.owner.clone(), key.to_owned());
    let mut taken = app.claims.0.lock().unwrap_or_else(PoisonError::into_inner);
    if !taken.insert(of.clone()) {
        return Err(Problem::conflict(
            "request_under_way",
            "a request with this `Idempotency-Key` is under way",
        ));
    }
    drop(taken);
    Ok(Claim { claims: app.claims.clone(), of })
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.claims.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.of);
    }
}
