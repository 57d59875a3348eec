//! Imported character cards and lorebooks, kept as their original files.

use async_trait::async_trait;

use super::StoreError;

/// Kind of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportKind {
    /// Character card.
    Card,
    /// Lorebook.
    Lorebook,
}

impl ImportKind {
    /// Returns the name used in the database.
    #[must_use]
    pub fn db_name(self) -> &'static str {
        match self {
            ImportKind::Card => "card",
            ImportKind::Lorebook => "lorebook",
        }
    }
}

/// Imported file without its bytes.
#[derive(Clone, Debug)]
pub struct ImportRow {
    /// Unique id.
    pub id: String,
    /// Name of the character or lorebook.
    pub name: String,
    /// Name of the file as uploaded.
    pub file: String,
    /// Version of a card, or layout of a lorebook.
    pub version: String,
    /// Number of lore entries, including those in a card.
    pub entries: u32,
    /// RFC 3339 time of the import.
    pub created: String,
    /// Size of the file in bytes.
    pub size: u64,
}

/// Limits of an owner's imports.
#[derive(Clone, Copy, Debug)]
pub struct ImportQuota {
    /// Maximum number of files, of both kinds together.
    pub files: u32,
    /// Maximum number of bytes of all files together.
    pub bytes: u64,
}

impl ImportQuota {
    /// Returns `true` if an owner who has `files` files of `bytes` bytes in all may add `imports`.
    pub(crate) fn admits(
        self,
        (files, bytes): (i64, i64),
        imports: &[(ImportKind, ImportRow, Vec<u8>)],
    ) -> bool {
        let files = u64::try_from(files).unwrap_or(0) + imports.len() as u64;
        let bytes =
            u64::try_from(bytes).unwrap_or(0) + imports.iter().map(|(_, row, _)| row.size).sum::<u64>();
        files <= u64::from(self.files) && bytes <= self.bytes
    }
}

/// Storage of imports.
#[async_trait]
pub trait Imports: Send + Sync {
    /// Stores files, all or none. Returns `false` if the owner's files would then exceed the quota.
    ///
    /// # Errors
    /// The database failed; nothing is stored.
    async fn insert_imports(
        &self,
        owner: &str,
        imports: &[(ImportKind, ImportRow, Vec<u8>)],
        quota: ImportQuota,
    ) -> Result<bool, StoreError>;

    /// Lists the files of one kind that an owner has, newest first.
    ///
    /// # Errors
    /// The database failed.
    async fn imports(&self, owner: &str, kind: ImportKind) -> Result<Vec<ImportRow>, StoreError>;

    /// Returns one file without its bytes.
    ///
    /// # Errors
    /// The database failed.
    async fn import(&self, owner: &str, kind: ImportKind, id: &str) -> Result<Option<ImportRow>, StoreError>;

    /// Returns the bytes of a file, as uploaded.
    ///
    /// # Errors
    /// The database failed.
    async fn import_bytes(
        &self,
        owner: &str,
        kind: ImportKind,
        id: &str,
    ) -> Result<Option<Vec<u8>>, StoreError>;

    /// Deletes a file and the responses kept for repeated requests that name it; returns `false` if there was
    /// no such file.
    ///
    /// # Errors
    /// The database failed.
    async fn delete_import(&self, owner: &str, kind: ImportKind, id: &str) -> Result<bool, StoreError>;
}
