//! Errors as problem documents (RFC 9457), each with a stable `code`.

use axum::body::Bytes;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize as _;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Map, Value, json};
use tambour::texts::{closest_names, explain_parse_error, list_names};

use tambour_store::StoreError;

use crate::base::cpu_pool::{OFFLOAD_BYTES, run_in_place};

/// Error response to a request.
#[derive(Debug)]
pub(crate) struct Problem(Box<ProblemDocument>);

#[derive(Debug)]
struct ProblemDocument {
    status: StatusCode,
    /// Stable name of the kind of error, for programs.
    code: &'static str,
    /// Explanation of this error, for people.
    detail: String,
    /// Further members of the JSON document.
    members: Map<String, Value>,
    /// Seconds after which the request may be repeated, for the `Retry-After` header.
    retry_after: Option<u64>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Problem {
        Problem(Box::new(ProblemDocument {
            status,
            code,
            detail: detail.into(),
            members: Map::new(),
            retry_after: None,
        }))
    }

    pub(crate) fn not_found(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, "not_found", detail)
    }

    /// Internal failure of the server.
    pub(crate) fn internal() -> Problem {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", "the server failed")
    }

    /// Well-formed request that cannot be processed.
    pub(crate) fn invalid(code: &'static str, detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, code, detail)
    }

    /// Unknown name of a thing of this kind. The detail lists known names; member `close` has similar ones.
    pub(crate) fn unknown<'a>(
        code: &'static str,
        (kind, name): (&str, &str),
        known_names: impl IntoIterator<Item = &'a str> + Clone,
    ) -> Problem {
        let list = list_names(name, known_names.clone());
        let hint = if list.is_empty() { "none is defined".to_owned() } else { format!("known: {list}") };
        let problem = Problem::invalid(code, format!("there is no {kind} `{name}`; {hint}"));
        problem.with("close", closest_names(name, known_names))
    }

    /// Returns the stable code.
    pub(crate) fn code(&self) -> &'static str {
        self.0.code
    }

    /// Returns the detail text.
    pub(crate) fn detail(&self) -> &str {
        &self.0.detail
    }

    /// Returns `true` if the same request may succeed later.
    pub(crate) fn is_retryable(&self) -> bool {
        let ProblemDocument { status, code, .. } = &*self.0;
        let transient_statuses = [StatusCode::SERVICE_UNAVAILABLE, StatusCode::TOO_MANY_REQUESTS];
        transient_statuses.contains(status) || *code == "internal_error"
    }

    /// Adds a member to the JSON document.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Problem {
        self.0.members.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a `Retry-After` header.
    pub(crate) fn retry_after(mut self, seconds: u64) -> Problem {
        self.0.retry_after = Some(seconds);
        self
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let document = *self.0;
        let title = document.status.canonical_reason().unwrap_or("error");
        let mut body = json!({
            "type": format!("urn:tambour:problem:{}", document.code),
            "title": title,
            "status": document.status.as_u16(),
            "code": document.code,
            "detail": document.detail,
        });
        if let Value::Object(body) = &mut body {
            body.extend(document.members);
        }
        let headers = [(header::CONTENT_TYPE, "application/problem+json")];
        let mut response = (document.status, headers, body.to_string()).into_response();
        if let Some(seconds) = document.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

impl Problem {
    /// Conflict with the current state.
    pub(crate) fn conflict(code: &'static str, detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::CONFLICT, code, detail)
    }

    /// Limit exceeded; the caller may retry later.
    pub(crate) fn too_many(code: &'static str, detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::TOO_MANY_REQUESTS, code, detail).retry_after(1)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Problem {
        if let StoreError::Unstorable = error {
            return Problem::invalid("invalid_field", error.to_string());
        }
        tracing::error!(%error, "the store failed");
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "store_unavailable", "the store does not answer")
            .retry_after(1)
    }
}

/// Deserializes an optional object. Refuses a list, which serde would read as the fields in order.
pub(crate) fn deserialize_object<'de, D, T>(reader: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: DeserializeOwned,
{
    use serde::de::Error;
    let fields = Option::<serde_json::Map<String, Value>>::deserialize(reader)?;
    fields.map(|fields| T::deserialize(Value::Object(fields)).map_err(D::Error::custom)).transpose()
}

/// Rewrites an error of the JSON parser in words of JSON instead of Rust types. Leaves out the names of
/// internal fields, which clients may not send.
fn plain_message(message: &str) -> String {
    let internal_fields = [", `named_model`", ", `as_response`", ", `in_place_of`"];
    explain_parse_error(
        &internal_fields.iter().fold(message.to_owned(), |message, field| message.replace(field, "")),
    )
}

/// Parses a JSON body that is an object.
///
/// # Errors
/// The body is not JSON, or not the expected object; the problem names the field.
pub(crate) fn parse_body<T: DeserializeOwned>(bytes: &Bytes) -> Result<T, Problem> {
    run_in_place_if_long(bytes, || parse_object(bytes))
}

/// Runs a parser of `bytes`; above `OFFLOAD_BYTES` with [`run_in_place`], so that other tasks are not
/// blocked.
pub(crate) fn run_in_place_if_long<T>(bytes: &[u8], parse: impl FnOnce() -> T) -> T {
    if bytes.len() > OFFLOAD_BYTES { run_in_place(parse) } else { parse() }
}

fn parse_object<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    // A leading byte order mark is ignored.
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    // Serde would accept a list as the fields in order.
    if bytes.trim_ascii_start().starts_with(b"[") && serde_json::from_slice::<IgnoredAny>(bytes).is_ok() {
        return Err(Problem::invalid("invalid_field", "the body is a list: expected an object"));
    }
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let result = serde_path_to_error::deserialize(&mut reader);
    let (path, error) = match result {
        Ok(value) => match reader.end() {
            Ok(()) => return Ok(value),
            Err(error) => (String::new(), error),
        },
        Err(error) => (error.path().to_string(), error.into_inner()),
    };
    if !error.is_data() {
        let problem =
            Problem::new(StatusCode::BAD_REQUEST, "malformed_json", format!("the body is not JSON: {error}"));
        return Err(problem.with("line", error.line()).with("column", error.column()));
    }
    let detail = plain_message(&error.to_string());
    let field_after = |prefix: &str| detail.strip_prefix(prefix)?.split('`').next().map(str::to_owned);
    let (code, field) = match (field_after("unknown field `"), field_after("missing field `")) {
        (Some(field), _) => ("unknown_field", Some(field)),
        (None, Some(field)) => ("missing_field", Some(field)),
        // The path is empty or `.` if the error is about the body as a whole.
        (None, None) => ("invalid_field", Some(path).filter(|path| !matches!(path.as_str(), "" | "."))),
    };
    let problem = Problem::invalid(code, detail);
    Err(match field {
        Some(field) => problem.with("field", field),
        None => problem,
    })
}
