//! Versioned texts: dialogue scripts and prompt templates.

use async_trait::async_trait;

use super::StoreError;

/// Kind of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentKind {
    /// Dialogue script.
    Script,
    /// Prompt template.
    Template,
}

impl DocumentKind {
    /// Returns the name used in the database.
    pub(super) fn db_name(self) -> &'static str {
        match self {
            DocumentKind::Script => "script",
            DocumentKind::Template => "template",
        }
    }
}

/// Document without its texts.
#[derive(Clone, Debug)]
pub struct Document {
    /// Id, unique per owner and kind.
    pub id: String,
    /// Display name.
    pub name: String,
    /// RFC 3339 time of creation.
    pub created: String,
    /// RFC 3339 time of the last change.
    pub changed: String,
    /// Number of the published version; `None` if none is published.
    pub published: Option<u32>,
    /// Number of the latest version.
    pub latest: u32,
}

/// Version of a document.
#[derive(Clone, Debug)]
pub struct DocumentVersion {
    /// Number of the version, from 1.
    pub version: u32,
    /// RFC 3339 time of creation.
    pub created: String,
    /// SHA-256 of the text.
    pub hash: String,
    /// Text of the version; empty in listings.
    pub text: String,
}

/// Options for storing a version.
#[derive(Clone, Copy, Debug)]
pub struct PutOptions {
    /// True if the version is published at once.
    pub is_published: bool,
    /// True if an editor saved the version automatically. Such an autosave replaces the autosave that it is
    /// based on, unless the replaced autosave is published, is run by a dialogue, or belongs to an earlier
    /// ten-minute interval.
    pub is_autosave: bool,
    /// Maximum number of documents of the kind per owner.
    pub max_documents: u32,
    /// Latest version that the author knew, 0 for none. It must still be the latest one; not checked if
    /// absent.
    pub based_on: Option<u32>,
}

/// Result of storing a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutOutcome {
    /// Stored as the version with this number.
    Stored(u32),
    /// The owner has too many documents.
    TooMany,
    /// The latest version is not the one that this version is based on; nothing was stored.
    Outdated,
}

/// Result of changing an existing document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentChange {
    /// Changed.
    Done,
    /// The document or version does not exist.
    Missing,
    /// The latest version is not the one that the change is based on; nothing was changed.
    Outdated,
}

/// Owner and kind of the documents that a call reads or writes.
pub type DocumentScope<'a> = (&'a str, DocumentKind);

/// Storage of documents.
#[async_trait]
pub trait Documents: Send + Sync {
    /// Lists the documents of an owner by id.
    ///
    /// # Errors
    /// The database failed.
    async fn documents(&self, owner_and_kind: DocumentScope<'_>) -> Result<Vec<Document>, StoreError>;

    /// Returns one document.
    ///
    /// # Errors
    /// The database failed.
    async fn document(
        &self,
        owner_and_kind: DocumentScope<'_>,
        id: &str,
    ) -> Result<Option<Document>, StoreError>;

    /// Stores the next version of a document, creating the document if needed; checks and writes atomically.
    /// Only id, name and time of the last change of `document` are read, and the store assigns the number of
    /// `new_version`.
    ///
    /// # Errors
    /// The database failed.
    async fn put_document(
        &self,
        owner_and_kind: DocumentScope<'_>,
        document: &Document,
        new_version: &DocumentVersion,
        options: PutOptions,
    ) -> Result<PutOutcome, StoreError>;

    /// Publishes a version, if `based_on` is absent or the latest version. `now` becomes the time of the last
    /// change (RFC 3339).
    ///
    /// # Errors
    /// The database failed.
    async fn publish(
        &self,
        owner_and_kind: DocumentScope<'_>,
        id: &str,
        version: u32,
        based_on: Option<u32>,
        now: &str,
    ) -> Result<DocumentChange, StoreError>;

    /// Lists the versions of a document without their texts, latest first.
    ///
    /// # Errors
    /// The database failed.
    async fn versions(
        &self,
        owner_and_kind: DocumentScope<'_>,
        id: &str,
    ) -> Result<Vec<DocumentVersion>, StoreError>;

    /// Returns one version with its text.
    ///
    /// # Errors
    /// The database failed.
    async fn version(
        &self,
        owner_and_kind: DocumentScope<'_>,
        id: &str,
        version: u32,
    ) -> Result<Option<DocumentVersion>, StoreError>;

    /// Returns the owner's published texts with the ids of their documents, in no particular order.
    ///
    /// # Errors
    /// The database failed.
    async fn published_texts(
        &self,
        owner_and_kind: DocumentScope<'_>,
    ) -> Result<Vec<(String, String)>, StoreError>;

    /// Deletes a document with its versions, if `based_on` is absent or the latest version.
    ///
    /// # Errors
    /// The database failed.
    async fn delete_document(
        &self,
        owner_and_kind: DocumentScope<'_>,
        id: &str,
        based_on: Option<u32>,
    ) -> Result<DocumentChange, StoreError>;
}
