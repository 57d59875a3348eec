//! Conditional writes (`ETag` and `If-Match`) of resources that several people may change.

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::AppendHeaders;
use serde_json::Value;

use crate::base::problem::Problem;

/// `ETag` header of the stored version.
pub(super) type ETagHeader = AppendHeaders<[(HeaderName, HeaderValue); 1]>;

/// Builds the `ETag` header of a version, which must consist of letters and digits.
pub(super) fn etag(version: impl std::fmt::Display) -> ETagHeader {
    let value = HeaderValue::from_str(&format!("\"{version}\"")).expect("letters and digits are a header");
    AppendHeaders([(header::ETAG, value)])
}

/// Returns the version in `If-Match`, without quotes; `None` for `*` or no header, which match any version.
pub(super) fn base_version(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let Some(header) = headers.get(header::IF_MATCH) else { return Ok(None) };
    if header == "*" {
        return Ok(None);
    }
    let tag = header.to_str().ok().and_then(|header| header.trim().strip_prefix('"')?.strip_suffix('"'));
    tag.filter(|tag| !tag.is_empty() && tag.bytes().all(|byte| byte.is_ascii_alphanumeric()))
        .map(Some)
        .ok_or_else(malformed_tag)
}

/// Returns the version in `If-Match` as a number; `None` for `*` or no header, which match any version.
pub(super) fn base_number(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    base_version(headers)?.map(|tag| tag.parse().map_err(|_| malformed_tag())).transpose()
}

fn malformed_tag() -> Problem {
    let detail = "`If-Match` must be the `ETag` of a response, such as `\"3\"`, or `*`";
    Problem::new(StatusCode::BAD_REQUEST, "malformed_request", detail).with("field", "If-Match")
}

/// Problem: the write is based on another version than the stored one. Includes the stored content
/// (`present`) and the content that was `sent`.
pub(super) fn outdated_problem(detail: impl Into<String>, present: Value, sent: Value) -> Problem {
    let problem = Problem::new(StatusCode::PRECONDITION_FAILED, "changed_meanwhile", detail);
    problem.with("present", present).with("sent", sent)
}
