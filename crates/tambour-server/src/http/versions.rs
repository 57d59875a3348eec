//! Versions of documents (scripts and templates): storing, publishing, listing and comparing them.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Value, json};
use similar::TextDiff;

use super::if_match::{self, ETagHeader, etag};
use super::keys::Caller;
use super::page::{self, QueryParams};
use crate::base::ids;
use crate::base::problem::{Problem, parse_body};
use crate::http::app::App;
use crate::run::dialogues::hash_text;
use crate::store::{Document, DocumentChange, DocumentKind, DocumentVersion, PutOptions, PutOutcome};

/// Maximum number of documents of one kind per owner.
const MAX_DOCUMENTS: u32 = 1000;
/// Maximum length in bytes of a document's text.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// Query of a request that stores a script or template.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DraftQuery {
    /// Stores the version without publishing it.
    #[serde(default)]
    draft: bool,
    /// Marks an automatic save of an editor; for drafts only.
    #[serde(default)]
    autosave: bool,
}

impl DraftQuery {
    /// Checks that the fields fit together.
    ///
    /// # Errors
    /// The version is an autosave but not a draft.
    fn check(&self) -> Result<(), Problem> {
        if self.autosave && !self.draft {
            let detail = "`autosave` needs `draft`: a version that is published at once is not an autosave";
            return Err(Problem::invalid("invalid_field", detail).with("field", "autosave"));
        }
        Ok(())
    }
}

/// Query of the versions to compare.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VersionPair {
    /// Number of the older version; the version before `to` when absent.
    #[serde(default)]
    from: Option<u32>,
    /// Number of the newer version; the latest one when absent.
    #[serde(default)]
    to: Option<u32>,
}

/// Query of the version to read.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VersionQuery {
    /// Number of the version; the published one when absent, or the latest one of a script that has none
    /// published.
    #[serde(default)]
    pub(super) version: Option<u32>,
}

/// Body of `.../publish`.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Publish {
    /// Version to use from now on; an earlier one undoes a change.
    version: u32,
}

/// Returns the name of the field with the id of a document.
fn id_field(kind: DocumentKind) -> &'static str {
    match kind {
        DocumentKind::Script => "script_id",
        DocumentKind::Template => "template_id",
    }
}

/// Returns the name of the field with the text of a document.
fn text_field(kind: DocumentKind) -> &'static str {
    match kind {
        DocumentKind::Script => "yaml",
        DocumentKind::Template => "text",
    }
}

/// Returns the name of several documents of this kind.
fn plural_name(kind: DocumentKind) -> &'static str {
    match kind {
        DocumentKind::Script => "scripts",
        DocumentKind::Template => "templates",
    }
}

/// Problem: the owner has no document with this id.
pub(super) fn missing_document(kind: DocumentKind, id: &str) -> Problem {
    let kind_name = match kind {
        DocumentKind::Script => "script",
        DocumentKind::Template => "stored template",
    };
    Problem::not_found(format!("there is no {kind_name} `{id}`"))
}

/// Problem: the document has no version of this number.
fn missing_version(id: &str, version: u32) -> Problem {
    Problem::not_found(format!("`{id}` has no version {version}"))
}

/// Checks the length of a text.
pub(super) fn check_length(text: &str, field: &'static str) -> Result<(), Problem> {
    if text.len() <= MAX_TEXT_BYTES {
        return Ok(());
    }
    let detail = format!("`{field}` may have at most {MAX_TEXT_BYTES} bytes, not {}", text.len());
    Err(Problem::invalid("invalid_field", detail).with("field", field))
}

/// Checks a display name.
pub(super) fn check_name(name: &str) -> Result<(), Problem> {
    if (1..=200).contains(&name.chars().count()) && !name.trim().is_empty() {
        return Ok(());
    }
    Err(Problem::invalid("invalid_field", "`name` must have 1 to 200 characters").with("field", "name"))
}

/// Returns the document with that id if it is the owner's.
pub(super) async fn find_owned(
    app: &App,
    owner: &str,
    kind: DocumentKind,
    id: &str,
) -> Result<Document, Problem> {
    app.store.document((owner, kind), id).await?.ok_or_else(|| missing_document(kind, id))
}

/// Returns the number of the version in `If-Match`; `None` for `*` or no header, which match any version.
fn base_version_number(headers: &HeaderMap) -> Result<Option<u32>, Problem> {
    // A larger number becomes `u32::MAX`, which matches no document: no document has that many versions.
    Ok(if_match::base_number(headers)?.map(|version| u32::try_from(version).unwrap_or(u32::MAX)))
}

/// Builds the problem of a write that is based on an outdated version, with the stored content and the
/// content that was `sent`.
async fn outdated_problem(
    app: &App,
    owner: &str,
    kind: DocumentKind,
    id: &str,
    sent: Value,
) -> Result<Problem, Problem> {
    let field = text_field(kind);
    let present = match app.store.document((owner, kind), id).await? {
        Some(document) => {
            let version = load_version(app, owner, kind, &document, Some(document.latest)).await?;
            json!({
                "version": version.version,
                "created": version.created,
                "hash": version.hash,
                "published": document.published,
                "name": document.name,
                field: version.text,
            })
        }
        None => Value::Null,
    };
    let detail = match present["version"].as_u64() {
        Some(version) => format!("`{id}` has changed in the meantime: its last version is {version}"),
        None => format!("`{id}` has been removed in the meantime"),
    };
    Ok(if_match::outdated_problem(detail, present, sent))
}

/// Text of a version, with the id and name of its document.
pub(super) struct NewVersion {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) text: String,
}

/// Stores the next version of a document, and creates the document if needed. Returns the number of the
/// version. With `If-Match` in `headers`, the version is stored only if `If-Match` names the latest version.
pub(super) async fn store_version(
    app: &Arc<App>,
    owner: &str,
    headers: &HeaderMap,
    kind: DocumentKind,
    NewVersion { id, name, text }: NewVersion,
    draft_query: &DraftQuery,
) -> Result<u32, Problem> {
    draft_query.check()?;
    let options = PutOptions {
        is_published: !draft_query.draft,
        is_autosave: draft_query.autosave,
        max_documents: MAX_DOCUMENTS,
        based_on: base_version_number(headers)?,
    };
    let now = ids::now();
    let document =
        Document { id, name, created: now.clone(), changed: now.clone(), published: None, latest: 0 };
    let version = DocumentVersion { version: 0, created: now, hash: hash_text(&text), text };
    let (task_app, owner) = (app.clone(), owner.to_owned());
    app.run_to_completion(async move {
        match task_app.store.put_document((&owner, kind), &document, &version, options).await? {
            PutOutcome::Stored(number) => Ok(number),
            PutOutcome::Outdated => {
                let sent = json!({ text_field(kind): version.text });
                Err(outdated_problem(&task_app, &owner, kind, &document.id, sent).await?)
            }
            PutOutcome::TooMany => {
                let detail = format!(
                    "an owner may have at most {MAX_DOCUMENTS} {}; remove one first",
                    plural_name(kind)
                );
                Err(Problem::invalid("too_many", detail))
            }
        }
    })
    .await
}

/// Returns a version with its text: the requested one, otherwise the published one, otherwise the latest.
pub(super) async fn load_version(
    app: &App,
    owner: &str,
    kind: DocumentKind,
    document: &Document,
    version: Option<u32>,
) -> Result<DocumentVersion, Problem> {
    let number = version.or(document.published).unwrap_or(document.latest);
    let loaded_version = app.store.version((owner, kind), &document.id, number).await?;
    loaded_version.ok_or_else(|| missing_version(&document.id, number))
}

/// Describes a document, without its text.
pub(super) fn document_json(kind: DocumentKind, document: &Document) -> Value {
    json!({
        id_field(kind): document.id,
        "name": document.name,
        "created": document.created,
        "changed": document.changed,
        "published": document.published,
        "latest": document.latest,
    })
}

/// Publishes a version. With `If-Match` in `headers`, only if `If-Match` names the latest version.
async fn publish(
    app: &App,
    owner: &str,
    headers: &HeaderMap,
    kind: DocumentKind,
    id: &str,
    bytes: &Bytes,
) -> Result<(ETagHeader, Json<Value>), Problem> {
    let Publish { version } = parse_body(bytes)?;
    let based_on = base_version_number(headers)?;
    let document = find_owned(app, owner, kind, id).await?;
    match app.store.publish((owner, kind), id, version, based_on, &ids::now()).await? {
        DocumentChange::Done => {}
        DocumentChange::Missing => return Err(missing_version(id, version)),
        DocumentChange::Outdated => {
            return Err(outdated_problem(app, owner, kind, id, json!({ "version": version })).await?);
        }
    }
    // With `If-Match`, `based_on` has just been compared with the latest version.
    let answer = json!({ id_field(kind): id, "version": version });
    Ok((etag(based_on.unwrap_or(document.latest)), Json(answer)))
}

/// Deletes a document with its versions. With `If-Match` in `headers`, only if `If-Match` names the latest
/// version. Returns `false` if there is no such document.
pub(super) async fn delete(
    app: &App,
    owner: &str,
    headers: &HeaderMap,
    kind: DocumentKind,
    id: &str,
) -> Result<bool, Problem> {
    match app.store.delete_document((owner, kind), id, base_version_number(headers)?).await? {
        DocumentChange::Done => Ok(true),
        DocumentChange::Missing => Ok(false),
        // `If-Match` cannot name a version of a document that does not exist.
        DocumentChange::Outdated if app.store.document((owner, kind), id).await?.is_none() => Ok(false),
        DocumentChange::Outdated => Err(outdated_problem(app, owner, kind, id, Value::Null).await?),
    }
}

/// Lists the versions of a document, newest first.
async fn list(
    app: &App,
    owner: &str,
    kind: DocumentKind,
    id: &str,
    query: &page::PageQuery,
) -> Result<Json<Value>, Problem> {
    let document = find_owned(app, owner, kind, id).await?;
    let versions = app.store.versions((owner, kind), id).await?;
    let rows = versions.into_iter().map(|version| {
        let version_json = json!({
            "version": version.version,
            "created": version.created,
            "hash": version.hash,
            "published": document.published == Some(version.version),
        });
        (version.version.to_string(), version_json)
    });
    query.page_of(rows.collect()).map(Json)
}

/// Compares two versions of a document.
async fn diff_versions(
    app: &App,
    owner: &str,
    kind: DocumentKind,
    id: &str,
    pair: &VersionPair,
) -> Result<Json<Value>, Problem> {
    let document = find_owned(app, owner, kind, id).await?;
    let to = pair.to.unwrap_or(document.latest);
    let from = match pair.from {
        Some(from) => from,
        None => {
            // Not `to - 1`: the numbers of replaced autosaves are missing. The first version is compared with
            // itself.
            let versions = app.store.versions((owner, kind), id).await?;
            versions.iter().map(|version| version.version).find(|version| *version < to).unwrap_or(to)
        }
    };
    let before = load_version(app, owner, kind, &document, Some(from)).await?;
    let after = load_version(app, owner, kind, &document, Some(to)).await?;
    let labels = (format!("version {from}"), format!("version {to}"));
    let diff = tokio::task::spawn_blocking(move || {
        // Unrelated texts would take long to compare: after this time the difference is only approximate.
        let mut config = TextDiff::configure();
        config.timeout(std::time::Duration::from_millis(500));
        let diff = config.diff_lines(&before.text, &after.text);
        diff.unified_diff().header(&labels.0, &labels.1).to_string()
    });
    let diff = diff.await.map_err(|_| Problem::internal())?;
    Ok(Json(json!({ id_field(kind): id, "from": from, "to": to, "diff": diff })))
}

/// Defines the handlers that publish, list and compare versions of one kind of document.
macro_rules! handlers {
    ($kind:ident: $publish:ident $versions:ident $diff:ident) => {
        pub(super) async fn $publish(
            State(app): State<Arc<App>>,
            Extension(caller): Extension<Caller>,
            Path(id): Path<String>,
            headers: HeaderMap,
            bytes: Bytes,
        ) -> Result<(ETagHeader, Json<Value>), Problem> {
            publish(&app, &caller.owner, &headers, DocumentKind::$kind, &id, &bytes).await
        }

        pub(super) async fn $versions(
            State(app): State<Arc<App>>,
            Extension(caller): Extension<Caller>,
            Path(id): Path<String>,
            QueryParams(query): QueryParams<page::PageQuery>,
        ) -> Result<Json<Value>, Problem> {
            list(&app, &caller.owner, DocumentKind::$kind, &id, &query).await
        }

        pub(super) async fn $diff(
            State(app): State<Arc<App>>,
            Extension(caller): Extension<Caller>,
            Path(id): Path<String>,
            QueryParams(pair): QueryParams<VersionPair>,
        ) -> Result<Json<Value>, Problem> {
            diff_versions(&app, &caller.owner, DocumentKind::$kind, &id, &pair).await
        }
    };
}

handlers!(Script: publish_script script_versions script_diff);
handlers!(Template: publish_template template_versions template_diff);
