//! Serves the studio, the web application in `studio/`. Its files are embedded from `studio/dist`, if they
//! were built before this program. They are public; the data that they show comes from the API, which
//! requires a key.

use std::borrow::Cow;
use std::io::Read;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use flate2::read::GzDecoder;
use rust_embed::{Embed, EmbeddedFile};
use uuid::Uuid;

use crate::base::problem::Problem;

/// Files of the studio; none if it was not built.
#[derive(Embed)]
#[folder = "../../studio/dist"]
#[allow_missing = true]
struct StudioFiles;

/// Page that is served at every address within the studio.
const INDEX_PAGE: &str = "index.html";
/// Folder of files whose names change with their content, so that they may be cached forever.
const HASHED_FOLDER: &str = "assets/";
/// Placeholder in the page for the nonce of a response, which marks the style elements that may apply.
const NONCE_PLACEHOLDER: &str = "__CSP_NONCE__";

/// Path prefixes that are never pages of the studio.
const API_PREFIXES: [&str; 3] = ["/api/", "/v1/", "/ag-ui"];

/// Function that looks up a file by name.
type FindFile = fn(&str) -> Option<EmbeddedFile>;

/// Answers requests that match no route: a file of the studio, its page for a browser, or 404.
pub(crate) async fn serve_file(request: axum::extract::Request) -> Response {
    respond(StudioFiles::get, request.method(), request.uri().path(), request.headers())
}

/// `GET /`: the studio, or instructions to build it.
pub(crate) async fn serve_home() -> Response {
    page_response(StudioFiles::get).unwrap_or_else(unbuilt_page)
}

/// Responds with a file, the page, or 404.
fn respond(find: FindFile, method: &Method, path: &str, headers: &HeaderMap) -> Response {
    let missing_page = || Problem::not_found("there is no such page").into_response();
    if !matches!(*method, Method::GET | Method::HEAD)
        || API_PREFIXES.iter().any(|start| path.starts_with(start))
    {
        return missing_page();
    }
    let name = path.trim_start_matches('/');
    // Not sent as files: the page, which needs a nonce; hidden files; and compressed files (`.gz`), which are
    // sent only in place of the file that they compress.
    let is_hidden = name.split('/').any(|part| part.starts_with('.'));
    if name != INDEX_PAGE
        && !is_hidden
        && !name.ends_with(".gz")
        && let Some(file) = StudioFile::find(find, name)
    {
        return file_response(name, file, headers);
    }
    if name.starts_with(HASHED_FOLDER) || !accepts(headers, &header::ACCEPT, "text/html") {
        return missing_page();
    }
    page_response(find).unwrap_or_else(missing_page)
}

/// Returns the page with a fresh nonce, or `None` if the studio was not built. A cache must not reuse the
/// page, since every response has another nonce.
fn page_response(find: FindFile) -> Option<Response> {
    let index = find(INDEX_PAGE)?;
    let nonce = Uuid::new_v4().simple().to_string();
    let page = String::from_utf8_lossy(&index.data).replace(NONCE_PLACEHOLDER, &nonce);
    let mut response = ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], page).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let policy = content_policy(&nonce).try_into().expect("a nonce is hexadecimal");
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    Some(response)
}

/// Builds the Content-Security-Policy: resources come from this server or from the page itself (`data:`,
/// `blob:`). Style attributes are allowed, since replies may colour their text and such attributes load
/// nothing from elsewhere.
fn content_policy(nonce: &str) -> String {
    [
        "default-src 'none'",
        // WebAssembly runs what the scripts of this server load; `eval` stays forbidden.
        "script-src 'self' 'wasm-unsafe-eval'",
        &format!("style-src 'self' 'nonce-{nonce}'"),
        "style-src-attr 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "media-src 'self' blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "worker-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    ]
    .join("; ")
}

/// File of the studio. Large ones are embedded compressed only, so that the program is smaller.
enum StudioFile {
    Plain(EmbeddedFile),
    Compressed(EmbeddedFile),
}

impl StudioFile {
    fn find(find: FindFile, name: &str) -> Option<StudioFile> {
        let compressed = || find(&format!("{name}.gz")).map(StudioFile::Compressed);
        find(name).map(StudioFile::Plain).or_else(compressed)
    }

    /// The first 12 bytes of the hash, which are enough for a tag, in hexadecimal digits.
    fn tag(&self) -> String {
        let (StudioFile::Plain(file) | StudioFile::Compressed(file)) = self;
        file.metadata.sha256_hash()[..12].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Body for a client that takes gzip or not, and whether it is compressed.
    fn body(self, takes_gzip: bool) -> std::io::Result<(Cow<'static, [u8]>, bool)> {
        match self {
            StudioFile::Plain(file) => Ok((file.data, false)),
            StudioFile::Compressed(file) if takes_gzip => Ok((file.data, true)),
            StudioFile::Compressed(file) => {
                let mut plain = Vec::new();
                GzDecoder::new(&*file.data).read_to_end(&mut plain)?;
                Ok((plain.into(), false))
            }
        }
    }
}

/// Responds with a file, compressed if the client accepts that, or with 304 if the client has it.
fn file_response(name: &str, file: StudioFile, headers: &HeaderMap) -> Response {
    // The tag is weak (`W/`), since compressed and plain bytes share it.
    let tag = format!("W/\"{}\"", file.tag());
    let known_tags = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut response = if known_tags
        .flat_map(|tags| tags.split(','))
        .any(|known_tag| matches!(known_tag.trim(), "*") || known_tag.trim() == tag)
    {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let takes_gzip = accepts(headers, &header::ACCEPT_ENCODING, "gzip");
        let Ok((data, is_compressed)) = file.body(takes_gzip) else {
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        };
        let mut response = file_body(data);
        if is_compressed {
            response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type(name)));
        response
    };
    let cache_control =
        if name.starts_with(HASHED_FOLDER) { "public, max-age=31536000, immutable" } else { "no-cache" };
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache_control));
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::ETAG, tag.try_into().expect("a hash is hexadecimal"));
    response
}

/// Builds the body; embedded bytes are not copied.
fn file_body(data: Cow<'static, [u8]>) -> Response {
    match data {
        Cow::Borrowed(bytes) => Body::from(bytes).into_response(),
        Cow::Owned(bytes) => Body::from(bytes).into_response(),
    }
}

/// Returns `true` if a header such as `Accept` lists `wanted` with a weight other than 0. Wildcards do not
/// count.
fn accepts(headers: &HeaderMap, name: &header::HeaderName, wanted: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|value| {
        let (value, weight) = value.split_once(';').unwrap_or((value, ""));
        let weight = weight.trim().strip_prefix("q=").and_then(|weight| weight.parse::<f32>().ok());
        value.trim().eq_ignore_ascii_case(wanted) && weight != Some(0.0)
    })
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("wasm") => "application/wasm",
        Some("woff2") => "font/woff2",
        Some("json" | "map") => "application/json",
        _ => "application/octet-stream",
    }
}

/// Returns a page that says how to build the studio.
fn unbuilt_page() -> Response {
    const PAGE: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Tambour</title>\
        <body style=\"font-family: system-ui; max-width: 40em; margin: 3em auto\">\
        <h1>Tambour</h1><p>The server is running, without the studio: it was not built before this program. With Node 20.19 or \
        newer, <code>cargo xtask serve</code> builds both.</p>\
        <p><a href=\"/docs\">HTTP API</a>, <a href=\"/openapi.json\">OpenAPI document</a>, \
        <a href=\"/metrics\">metrics</a>.</p></html>";
    ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], PAGE).into_response()
}

#[cfg(test)]
mod tests;
