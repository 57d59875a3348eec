//! `POST /api/v1/imports`: imports cards and lorebooks of other programs, and converts presets of such
//! programs. Either all files of a request are imported or none.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::{Extension, Json};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use multer::Multipart;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tambour::limits::ImportLimits;
use tambour_prompt::card::{ImportedFile, ImportedFileKind, import_file};
use tambour_prompt::skein::from_import;

use super::cards::id_field;
use super::keys::Caller;
use crate::base::cpu_pool::DropFlag;
use crate::base::ids;
use crate::base::problem::{Problem, parse_body};
use crate::http::app::App;
use crate::store::{ImportKind, ImportQuota, ImportRow};

/// Path of the operation, whose bodies may be longer than others.
pub(super) const PATH: &str = "/api/v1/imports";
/// Maximum number of files of one request.
const MAX_FILES: usize = 50;
/// Maximum length of a file's name in bytes.
const MAX_NAME_BYTES: usize = 255;
/// Maximum number and total size of an owner's imported files.
const IMPORT_QUOTA: ImportQuota = ImportQuota { files: 2000, bytes: 1 << 30 };

/// Body of `POST /api/v1/imports`.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewImports {
    /// Files to import.
    files: Vec<NewFile>,
}

/// File, as JSON or bytes.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewFile {
    /// Name of the file, used in messages and as the name of a lorebook without one.
    name: String,
    /// Card, lorebook or preset.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    json: Option<Box<RawValue>>,
    /// Bytes of a JSON, PNG or CHARX file, in base64.
    #[serde(default)]
    base64: Option<String>,
}

/// File as received.
struct ReceivedFile {
    name: String,
    bytes: Vec<u8>,
}

/// File with its parsed content.
struct ParsedFile {
    file: ReceivedFile,
    imported: ImportedFile,
}

/// `POST /api/v1/imports`: files as `multipart/form-data` or JSON.
pub(super) async fn create(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    bytes: Bytes,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let content_type =
        headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let files = match multer::parse_boundary(content_type) {
        Ok(boundary) => multipart_files(bytes, boundary).await?,
        Err(multer::Error::NoBoundary) => return Err(malformed_body("the multipart body has no `boundary`")),
        // Not multipart.
        Err(_) => app.cpu_pool.run(&caller.owner, move || json_files(&bytes)).await??,
    };
    if !(1..=MAX_FILES).contains(&files.len()) {
        let detail = format!("a request must import 1 to {MAX_FILES} files, not {}", files.len());
        return Err(Problem::invalid("invalid_field", detail).with("field", "files"));
    }
    let has_bad_name = |file: &&ReceivedFile| file.name.is_empty() || file.name.len() > MAX_NAME_BYTES;
    if let Some(file) = files.iter().find(has_bad_name) {
        let detail =
            format!("the name of a file must have 1 to {MAX_NAME_BYTES} bytes, not {}", file.name.len());
        return Err(Problem::invalid("invalid_field", detail).with("field", "name"));
    }
    // Set when this handler is dropped because the client has disconnected.
    let drop_flag = DropFlag::default();
    let is_abandoned = Arc::clone(&drop_flag.0);
    // Parsed and converted in one job of the pool: parsed files are large and should not pile up.
    let (rows, reports) =
        app.cpu_pool.run(&caller.owner, move || parse_files(files, &is_abandoned).map(to_rows)).await??;
    let (task_app, owner) = (app.clone(), caller.owner);
    app.run_to_completion(async move {
        if !task_app.store.insert_imports(&owner, &rows, IMPORT_QUOTA).await? {
            let detail = format!(
                "an owner may have at most {} cards and books, of {} bytes in all; remove some first",
                IMPORT_QUOTA.files, IMPORT_QUOTA.bytes
            );
            return Err(Problem::invalid("too_many_imports", detail));
        }
        Ok((StatusCode::CREATED, Json(json!({ "data": reports }))))
    })
    .await
}

/// Problem: the body cannot be read.
fn malformed_body(detail: impl Into<String>) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "malformed_request", detail)
}

/// Returns the files of a multipart body. Each part is a file, whatever the name of its field.
async fn multipart_files(bytes: Bytes, boundary: String) -> Result<Vec<ReceivedFile>, Problem> {
    let body = futures_util::stream::iter([Ok::<Bytes, Infallible>(bytes)]);
    let mut parts = Multipart::new(body, boundary);
    let multipart_problem =
        |error: multer::Error| malformed_body(format!("the multipart body cannot be read: {error}"));
    let mut files = Vec::new();
    while let Some(part) = parts.next_field().await.map_err(multipart_problem)? {
        // One file beyond the limit is enough to refuse the request.
        if files.len() > MAX_FILES {
            break;
        }
        let name = part.file_name().or(part.name()).unwrap_or("file").to_owned();
        files.push(ReceivedFile { name, bytes: part.bytes().await.map_err(multipart_problem)?.to_vec() });
    }
    Ok(files)
}

/// Returns the files of a JSON body.
fn json_files(bytes: &Bytes) -> Result<Vec<ReceivedFile>, Problem> {
    let NewImports { files } = parse_body(bytes)?;
    files.into_iter().map(json_file).collect()
}

fn json_file(file: NewFile) -> Result<ReceivedFile, Problem> {
    let NewFile { name, json, base64 } = file;
    let bytes = match (json, base64) {
        (Some(json), None) => json.get().as_bytes().to_vec(),
        (None, Some(text)) => BASE64_STANDARD.decode(&text).map_err(|error| {
            Problem::invalid("invalid_field", format!("`base64` of `{name}` is not valid base64: {error}"))
                .with("field", "base64")
        })?,
        _ => {
            let detail = format!("the file `{name}` must have either `json` or `base64`");
            return Err(Problem::invalid("invalid_field", detail).with("field", "files"));
        }
    };
    Ok(ReceivedFile { name, bytes })
}

/// Parses all files, unless `is_abandoned` becomes true.
///
/// # Errors
/// Files are broken, and the problem lists each of them; or `is_abandoned` became true.
fn parse_files(files: Vec<ReceivedFile>, is_abandoned: &AtomicBool) -> Result<Vec<ParsedFile>, Problem> {
    let mut limits = ImportLimits::default();
    // The files of a request share the limits: patterns in equal parts, memory as each file uses it.
    limits.patterns /= files.len().max(1);
    let (mut parsed_files, mut errors) = (Vec::new(), Vec::new());
    for file in files {
        if is_abandoned.load(Ordering::Relaxed) {
            // The client is gone and sees no error.
            return Err(Problem::internal());
        }
        match import_file(&file.name, &file.bytes, &limits) {
            Ok(imported) => {
                limits.memory = limits.memory.saturating_sub(imported.memory);
                parsed_files.push(ParsedFile { file, imported });
            }
            Err(error) => {
                let mut report = json!({ "file": file.name, "message": error.to_string() });
                if let Some(place) = error.location() {
                    report["line"] = place.line.into();
                    report["column"] = place.column.into();
                    report["excerpt"] = place.excerpt.as_str().into();
                }
                errors.push(report);
            }
        }
    }
    if errors.is_empty() {
        return Ok(parsed_files);
    }
    let first_error = errors[0]["message"].as_str().unwrap_or_default().to_owned();
    let problem = Problem::invalid("broken_file", format!("nothing was imported: {first_error}"));
    Err(problem.with("field", "files").with("errors", errors))
}

/// Imported file for the store: its kind, its row and its bytes.
type StoredFile = (ImportKind, ImportRow, Vec<u8>);

/// Converts parsed files to rows for the store and their descriptions for the client.
fn to_rows(parsed_files: Vec<ParsedFile>) -> (Vec<StoredFile>, Vec<Value>) {
    let (mut rows, mut reports) = (Vec::new(), Vec::new());
    for ParsedFile { file: ReceivedFile { name, bytes }, imported: imported_file } in parsed_files {
        let mut report = json!({
            "kind": imported_file.kind,
            "name": imported_file.name,
            "file": name,
            "version": imported_file.version,
            "entry_count": imported_file.entries.len(),
            "warnings": imported_file.warnings,
        });
        let kind = match imported_file.kind {
            ImportedFileKind::Card => ImportKind::Card,
            ImportedFileKind::Lorebook => ImportKind::Lorebook,
            ImportedFileKind::Preset => {
                // A preset is only an order of blocks: its Skein is returned, and nothing is stored.
                report["skein"] = from_import(&imported_file).to_value();
                reports.push(report);
                continue;
            }
        };
        let prefix = if kind == ImportKind::Card { "card" } else { "book" };
        let row = ImportRow {
            id: ids::new_id(prefix),
            name: imported_file.name,
            file: name,
            version: imported_file.version,
            entries: u32::try_from(imported_file.entries.len()).unwrap_or(u32::MAX),
            created: ids::now(),
            size: bytes.len() as u64,
        };
        report[id_field(kind)] = row.id.as_str().into();
        reports.push(report);
        rows.push((kind, row, bytes));
    }
    (rows, reports)
}
