//! Texts with versions in the database: dialogue scripts and prompt templates.

use async_trait::async_trait;

use super::StoreError;

/// What a document is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentKind {
    /// A dialogue script.
    Script,
    /// A prompt template.
    Template,
}

impl DocumentKind {
    pub(super) fn word(self) -> &'static str {
        match self {
            DocumentKind::Script => "script",
            DocumentKind::Template => "template",
        }
    }
}

/// A document without its texts.
#[derive(Clone, Debug)]
pub struct Document {
    /// Unique among those of its owner and kind.
    pub id: String,
    /// A name for people.
    pub name: String,
    /// RFC 3339 time.
    pub created: String,
    /// RFC 3339 time of the last change.
    pub changed: String,
    /// The version in use.
    pub published: Option<u32>,
    /// The last version.
    pub latest: u32,
}

/// One version of a document.
#[derive(Clone, Debug)]
pub struct Version {
    /// Its number, from 1.
    pub version: u32,
    /// RFC 3339 time.
    pub created: String,
    /// SHA-256 of its text.
    pub hash: String,
    /// Its text.
    pub text: String,
}

/// Terms on which a version is stored.
#[derive(Clone, Copy, Debug)]
pub struct Put {
    /// Set to publish it at once.
    pub publish: bool,
    /// Set when an editor stores it by itself. It takes the place of the autosave that it is based on, unless that one is published or was
    /// stored in an earlier ten minutes.
    pub autosave: bool,
    /// Documents of the kind that an owner may have.
    pub most: u32,
    /// The last version that its author knew, 0 for none; absent: whatever is there.
    pub based_on: Option<u32>,
}

/// Outcome of storing a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutOutcome {
    /// It has this number.
    Stored(u32),
    /// Its owner has too many documents.
    TooMany,
    /// Another version than the known one is the last; nothing was stored.
    Changed,
}

/// Outcome of a change of a document that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentChange {
    /// It was made.
    Done,
    /// There is no such document, or version.
    Missing,
    /// Another version than the known one is the last; nothing was changed.
    Changed,
}

/// What is looked for: owner and kind.
pub type OfKind<'a> = (&'a str, DocumentKind);

/// Documents of a store.
#[async_trait]
pub trait Documents: Send + Sync {
    /// The documents of an owner, by id.
    ///
    /// # Errors
    /// The database failed.
    async fn documents(&self, of: OfKind<'_>) -> Result<Vec<Document>, StoreError>;

    /// One document.
    ///
    /// # Errors
    /// The database failed.
    async fn document(&self, of: OfKind<'_>, id: &str) -> Result<Option<Document>, StoreError>;

    /// Stores the next version of a document, which is made if need be, in one step with the look at what is there.
    ///
    /// # Errors
    /// The database failed.
    async fn put_document(
        &self,
        of: OfKind<'_>,
        document: &Document,
        text: &Version,
        put: Put,
    ) -> Result<PutOutcome, StoreError>;

    /// Takes a version into use, while the last version is the one that it is based on, if one is given.
    ///
    /// # Errors
    /// The database failed.
    async fn publish(
        &self,
        of: OfKind<'_>,
        id: &str,
        version: u32,
        based_on: Option<u32>,
        now: &str,
    ) -> Result<DocumentChange, StoreError>;

    /// The versions of a document, the last one first.
    ///
    /// # Errors
    /// The database failed.
    async fn versions(&self, of: OfKind<'_>, id: &str) -> Result<Vec<Version>, StoreError>;

    /// One version with its text.
    ///
    /// # Errors
    /// The database failed.
    async fn version(&self, of: OfKind<'_>, id: &str, version: u32) -> Result<Option<Version>, StoreError>;

    /// The texts in use of an owner, by id.
    ///
    /// # Errors
    /// The database failed.
    async fn published(&self, of: OfKind<'_>) -> Result<Vec<(String, String)>, StoreError>;

    /// Removes a document with its versions, while the last version is the one that this is based on, if one is given.
    ///
    /// # Errors
    /// The database failed.
    async fn delete_document(
        &self,
        of: OfKind<'_>,
        id: &str,
        based_on: Option<u32>,
    ) -> Result<DocumentChange, StoreError>;
}
