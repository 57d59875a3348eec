//! Tests of the studio's addresses, headers and caching, with made-up files instead of the embedded ones.

use std::borrow::Cow;

use axum::body::to_bytes;
use axum::http::{HeaderMap, HeaderName, Method, header};
use axum::response::Response;
use rust_embed::{EmbeddedFile, Metadata};

use super::{content_policy, page_response, respond};

/// `go()`, by gzip.
const GO: &[u8] =
    b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x4b\xcf\xd7\xd0\x04\x00\x7d\xaa\xd1\xdb\x04\x00\x00\x00";

/// Looks up a file in a studio for tests; one of its files is there compressed.
fn find_test_file(name: &str) -> Option<EmbeddedFile> {
    let data: &'static [u8] = match name {
        "index.html" => b"<meta name=\"csp-nonce\" content=\"__CSP_NONCE__\">",
        "assets/app-1a2b.js.gz" => GO,
        "icon.svg" => b"<svg/>",
        ".gitignore" => b"*",
        _ => return None,
    };
    Some(EmbeddedFile {
        data: Cow::Borrowed(data),
        // The same hash for all files.
        metadata: Metadata::__rust_embed_new([7; 32], None, None),
    })
}

fn header_map(headers: &[(HeaderName, &'static str)]) -> HeaderMap {
    headers.iter().map(|(name, value)| (name.clone(), value.parse().expect("a header"))).collect()
}

fn get(path: &str, headers: &[(HeaderName, &'static str)]) -> Response {
    respond(find_test_file, &Method::GET, path, &header_map(headers))
}

/// Returns a header of a response; empty if it is absent.
fn header_of(response: &Response, name: HeaderName) -> &str {
    response.headers().get(name).map_or("", |value| value.to_str().expect("text"))
}

async fn text(response: Response) -> String {
    let bytes = to_bytes(response.into_body(), 10_000).await.expect("a body");
    String::from_utf8(bytes.to_vec()).expect("text")
}

const BROWSER: (HeaderName, &str) = (header::ACCEPT, "text/html,application/xhtml+xml,*/*;q=0.8");

#[tokio::test]
async fn addresses_within_the_studio_return_its_page() {
    for path in ["/scripts", "/scripts/a.b/steps/1", "/settings"] {
        let response = get(path, &[BROWSER]);
        assert_eq!(response.status(), 200, "{path}");
        assert_eq!(header_of(&response, header::CACHE_CONTROL), "no-cache");
        let policy = header_of(&response, header::CONTENT_SECURITY_POLICY).to_owned();
        let nonce = policy
            .split("'nonce-")
            .nth(1)
            .and_then(|after_prefix| after_prefix.split('\'').next())
            .expect("a nonce");
        assert_eq!(nonce.len(), 32);
        assert_eq!(text(response).await, format!("<meta name=\"csp-nonce\" content=\"{nonce}\">"));
    }
}

#[tokio::test]
async fn each_response_with_the_page_has_a_different_nonce() {
    let page = page_response(find_test_file).expect("a page");
    let second_page = page_response(find_test_file).expect("a page");
    assert_ne!(
        page.headers().get(header::CONTENT_SECURITY_POLICY),
        second_page.headers().get(header::CONTENT_SECURITY_POLICY)
    );
}

#[test]
fn only_scripts_of_this_server_run() {
    let policy = content_policy("n");
    assert!(policy.contains("default-src 'none'"), "{policy}");
    assert!(policy.contains("script-src 'self' 'wasm-unsafe-eval';"), "{policy}");
    assert!(
        !policy.contains("http") && !policy.contains("'unsafe-eval'") && !policy.contains('*'),
        "{policy}"
    );
    let unsafe_inline = policy.split("; ").filter(|part| part.contains("unsafe-inline")).collect::<Vec<_>>();
    assert_eq!(unsafe_inline, ["style-src-attr 'unsafe-inline'"]);
}

#[test]
fn requests_that_match_neither_a_file_nor_the_page_get_404() {
    for path in ["/api/v1/nothing", "/v1/nothing", "/ag-ui/x", "/assets/gone-1.js"] {
        assert_eq!(get(path, &[BROWSER]).status(), 404, "{path}");
    }
    assert_eq!(get("/scripts", &[]).status(), 404);
    assert_eq!(get("/scripts", &[(header::ACCEPT, "application/json")]).status(), 404);
    assert_eq!(get("/scripts", &[(header::ACCEPT, "text/html;q=0")]).status(), 404);
    assert_eq!(respond(find_test_file, &Method::POST, "/scripts", &header_map(&[BROWSER])).status(), 404);
    for hidden in ["/.gitignore", "/assets/../.gitignore", "/assets/app-1a2b.js.gz"] {
        assert_eq!(get(hidden, &[]).status(), 404, "{hidden}");
    }
}

#[tokio::test]
async fn only_files_with_hashed_names_are_cached_without_asking_again() {
    let script = get("/assets/app-1a2b.js", &[]);
    assert_eq!(header_of(&script, header::CONTENT_TYPE), "text/javascript; charset=utf-8");
    assert_eq!(header_of(&script, header::CACHE_CONTROL), "public, max-age=31536000, immutable");
    assert_eq!(text(script).await, "go()");
    let icon = get("/icon.svg", &[]);
    assert_eq!(header_of(&icon, header::CACHE_CONTROL), "no-cache");
    let tag: &'static str = Box::leak(header_of(&icon, header::ETAG).to_owned().into_boxed_str());
    let repeat = get("/icon.svg", &[(header::IF_NONE_MATCH, tag)]);
    assert_eq!(repeat.status(), 304);
    assert_eq!(text(repeat).await, "");
    assert_eq!(get("/icon.svg", &[(header::IF_NONE_MATCH, "W/\"other\"")]).status(), 200);
}

#[tokio::test]
async fn files_are_compressed_for_clients_that_accept_gzip() {
    let path = "/assets/app-1a2b.js";
    let compressed = get(path, &[(header::ACCEPT_ENCODING, "br, gzip")]);
    assert_eq!(header_of(&compressed, header::CONTENT_ENCODING), "gzip");
    assert_eq!(header_of(&compressed, header::VARY), "accept-encoding");
    let tag: &'static str = Box::leak(header_of(&compressed, header::ETAG).to_owned().into_boxed_str());
    let bytes = to_bytes(compressed.into_body(), 10_000).await.expect("a body");
    assert_eq!(bytes, GO);
    let known = [(header::ACCEPT_ENCODING, "gzip"), (header::IF_NONE_MATCH, tag)];
    assert_eq!(get(path, &known).status(), 304);
    for encoding in ["br", "gzip;q=0"] {
        let unpacked = get(path, &[(header::ACCEPT_ENCODING, encoding)]);
        assert_eq!(header_of(&unpacked, header::CONTENT_ENCODING), "");
        assert_eq!(text(unpacked).await, "go()");
    }
    let plain = get("/icon.svg", &[(header::ACCEPT_ENCODING, "gzip")]);
    assert_eq!(header_of(&plain, header::CONTENT_ENCODING), "");
    assert_eq!(text(plain).await, "<svg/>");
}
