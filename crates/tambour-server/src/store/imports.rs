//! Cards and lorebooks in the database, as their files were.

use async_trait::async_trait;

use super::StoreError;

/// What was imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportKind {
    /// A character.
    Card,
    /// Entries of world info.
    Lorebook,
}

impl ImportKind {
    /// Its word in the database.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            ImportKind::Card => "card",
            ImportKind::Lorebook => "lorebook",
        }
    }
}

/// A file without its bytes.
#[derive(Clone, Debug)]
pub struct ImportRow {
    /// Unique.
    pub id: String,
    /// Name of the character or the book.
    pub name: String,
    /// Name of the file.
    pub file: String,
    /// Version of a card, or layout of a book.
    pub version: String,
    /// Entries of the book, also of that in a card.
    pub entries: u32,
    /// RFC 3339 time.
    pub created: String,
    /// Bytes of the file.
    pub size: u64,
}

/// How much an owner may have.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Files.
    pub files: u32,
    /// Bytes of all of them.
    pub bytes: u64,
}

/// Imports of a store.
#[async_trait]
pub trait Imports: Send + Sync {
    /// Stores files, all or none; whether there was room for them.
    ///
    /// # Errors
    /// The database failed; none is stored.
    async fn insert_imports(
        &self,
        owner: &str,
        imports: &[(ImportKind, ImportRow, Vec<u8>)],
        room: Room,
    ) -> Result<bool, StoreError>;

    /// The files of an owner, newest first.
    ///
    /// # Errors
    /// The database failed.
    async fn imports(&self, owner: &str, kind: ImportKind) -> Result<Vec<ImportRow>, StoreError>;

    /// One file, without its bytes.
    ///
    /// # Errors
    /// The database failed.
    async fn import(&self, owner: &str, kind: ImportKind, id: &str) -> Result<Option<ImportRow>, StoreError>;

    /// The bytes of a file, as they came.
    ///
    /// # Errors
    /// The database failed.
    async fn imported(&self, owner: &str, kind: ImportKind, id: &str) -> Result<Option<Vec<u8>>, StoreError>;

    /// Removes a file, and the answers that name it; whether there was one.
    ///
    /// # Errors
    /// The database failed.
    async fn delete_import(&self, owner: &str, kind: ImportKind, id: &str) -> Result<bool, StoreError>;
}
