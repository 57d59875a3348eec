//! Rows of imported cards and lorebooks, with their original files.

use async_trait::async_trait;
use sqlx::SqliteConnection;

use super::SqliteStore;
use super::responses::delete_responses_mentioning;
use super::transaction::OpenTransaction;
use crate::fail;
use crate::{ImportKind, ImportQuota, ImportRow, Imports, StoreError};

/// Beginning of a query of [`ImportRow`]s.
const SELECT_ROW: &str =
    "select id, name, file, version, entries, created, size from imports where owner = ? and kind = ?";

#[async_trait]
impl Imports for SqliteStore {
    async fn insert_imports(
        &self,
        owner: &str,
        imports: &[(ImportKind, ImportRow, Vec<u8>)],
        quota: ImportQuota,
    ) -> Result<bool, StoreError> {
        fail::point("import.before");
        let mut transaction = OpenTransaction::begin(self.pool()).await?;
        let mut all_fit = false;
        let write_result = insert_files(&mut transaction, owner, imports, quota).await;
        transaction.end(write_result.map(|fit| all_fit = fit)).await?;
        fail::point("import.after");
        Ok(all_fit)
    }

    async fn imports(&self, owner: &str, kind: ImportKind) -> Result<Vec<ImportRow>, StoreError> {
        let statement = sqlx::AssertSqlSafe(format!("{SELECT_ROW} order by number desc"));
        Ok(sqlx::query_as(statement).bind(owner).bind(kind.db_name()).fetch_all(self.pool()).await?)
    }

    async fn import(&self, owner: &str, kind: ImportKind, id: &str) -> Result<Option<ImportRow>, StoreError> {
        let statement = sqlx::AssertSqlSafe(format!("{SELECT_ROW} and id = ?"));
        let query = sqlx::query_as(statement).bind(owner).bind(kind.db_name()).bind(id);
        Ok(query.fetch_optional(self.pool()).await?)
    }

    async fn import_bytes(
        &self,
        owner: &str,
        kind: ImportKind,
        id: &str,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let query = sqlx::query_scalar("select bytes from imports where owner = ? and kind = ? and id = ?");
        Ok(query.bind(owner).bind(kind.db_name()).bind(id).fetch_optional(self.pool()).await?)
    }

    async fn delete_import(&self, owner: &str, kind: ImportKind, id: &str) -> Result<bool, StoreError> {
        let mut transaction = OpenTransaction::begin(self.pool()).await?;
        let mut was_found = false;
        let deletion = delete_file(&mut transaction, owner, kind, id).await;
        transaction.end(deletion.map(|found| was_found = found)).await?;
        fail::point("deletion.after");
        Ok(was_found)
    }
}

/// Inserts files, unless they exceed the quota. Returns `true` if they were inserted.
async fn insert_files(
    connection: &mut SqliteConnection,
    owner: &str,
    imports: &[(ImportKind, ImportRow, Vec<u8>)],
    quota: ImportQuota,
) -> sqlx::Result<bool> {
    let query = sqlx::query_as("select count(*), coalesce(sum(size), 0) from imports where owner = ?");
    let (files, bytes): (i64, i64) = query.bind(owner).fetch_one(&mut *connection).await?;
    if !quota.admits((files, bytes), imports) {
        return Ok(false);
    }
    for (kind, row, bytes) in imports {
        let query = sqlx::query(
            "insert into imports (id, owner, kind, name, file, version, entries, created, size, bytes) \
             values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        );
        let query = query.bind(&row.id).bind(owner).bind(kind.db_name()).bind(&row.name).bind(&row.file);
        let query = query.bind(&row.version).bind(row.entries).bind(&row.created);
        let query = query.bind(i64::try_from(row.size).unwrap_or(i64::MAX)).bind(bytes);
        query.execute(&mut *connection).await?;
        fail::point("import.amid");
    }
    Ok(true)
}

/// Deletes a file; returns `true` if there was one.
async fn delete_file(
    connection: &mut SqliteConnection,
    owner: &str,
    kind: ImportKind,
    id: &str,
) -> sqlx::Result<bool> {
    let query = sqlx::query("delete from imports where owner = ? and kind = ? and id = ?");
    let result = query.bind(owner).bind(kind.db_name()).bind(id).execute(&mut *connection).await?;
    let was_found = result.rows_affected() > 0;
    if was_found {
        // The responses kept for repeated requests may still name the import.
        delete_responses_mentioning(connection, &[id.to_owned()]).await?;
    }
    Ok(was_found)
}
