//! Bases of writes: entity tags of things that two people may change, and `If-Match`.

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::AppendHeaders;
use serde_json::Value;

use super::problem::Problem;

/// The header that names what is stored now.
pub(super) type Tag = AppendHeaders<[(HeaderName, HeaderValue); 1]>;

/// The entity tag of a version: letters and digits.
pub(super) fn tag(version: impl std::fmt::Display) -> Tag {
    let value = HeaderValue::from_str(&format!("\"{version}\"")).expect("letters and digits are a header");
    AppendHeaders([(header::ETAG, value)])
}

/// The version that a write is based on, without its quotes. `*` and no header are any.
pub(super) fn based_on(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let Some(given) = headers.get(header::IF_MATCH) else { return Ok(None) };
    if given == "*" {
        return Ok(None);
    }
    let tag = given.to_str().ok().and_then(|given| given.trim().strip_prefix('"')?.strip_suffix('"'));
    tag.filter(|tag| !tag.is_empty() && tag.bytes().all(|byte| byte.is_ascii_alphanumeric()))
        .map(Some)
        .ok_or_else(malformed)
}

/// The number of the version that a write is based on.
pub(super) fn number(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    based_on(headers)?.map(|tag| tag.parse().map_err(|_| malformed())).transpose()
}

fn malformed() -> Problem {
    let detail = "`If-Match` is the `ETag` of an answer, such as `\"3\"`, or `*`";
    Problem::new(StatusCode::BAD_REQUEST, "malformed_request", detail).with("field", "If-Match")
}

/// The refusal of a write that is based on another version: what is stored now, and what was sent.
pub(super) fn changed(detail: impl Into<String>, present: Value, sent: Value) -> Problem {
    let problem = Problem::new(StatusCode::PRECONDITION_FAILED, "changed_meanwhile", detail);
    problem.with("present", present).with("sent", sent)
}
