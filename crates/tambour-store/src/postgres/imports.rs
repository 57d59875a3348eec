//! Rows of imported cards and lorebooks, with their original files.

use async_trait::async_trait;

use super::responses::delete_responses_mentioning;
use super::{PostgresStore, lock};
use crate::fail;
use crate::{ImportKind, ImportQuota, ImportRow, Imports, StoreError};

/// Beginning of a query of [`ImportRow`]s.
macro_rules! select_row {
    () => {
        "select id, name, file, version, entries, created, size from imports where owner = $1 and kind = $2 "
    };
}

#[async_trait]
impl Imports for PostgresStore {
    async fn insert_imports(
        &self,
        owner: &str,
        imports: &[(ImportKind, ImportRow, Vec<u8>)],
        quota: ImportQuota,
    ) -> Result<bool, StoreError> {
        fail::point("import.before");
        let mut transaction = self.pool().begin().await?;
        lock(&mut transaction, &format!("imports:{owner}")).await?;
        let query = sqlx::query_as(
            "select count(*), cast(coalesce(sum(size), 0) as bigint) from imports where owner = $1",
        );
        let present: (i64, i64) = query.bind(owner).fetch_one(&mut *transaction).await?;
        if !quota.admits(present, imports) {
            return Ok(false);
        }
        for (kind, row, bytes) in imports {
            let query = sqlx::query(
                "insert into imports (id, owner, kind, name, file, version, entries, created, size, bytes) \
                 values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
            );
            let query = query.bind(&row.id).bind(owner).bind(kind.db_name()).bind(&row.name).bind(&row.file);
            let query = query.bind(&row.version).bind(i64::from(row.entries)).bind(&row.created);
            let query = query.bind(i64::try_from(row.size).unwrap_or(i64::MAX)).bind(bytes);
            query.execute(&mut *transaction).await?;
            fail::point("import.amid");
        }
        transaction.commit().await?;
        fail::point("import.after");
        Ok(true)
    }

    async fn imports(&self, owner: &str, kind: ImportKind) -> Result<Vec<ImportRow>, StoreError> {
        let query = sqlx::query_as(concat!(select_row!(), "order by number desc"));
        Ok(query.bind(owner).bind(kind.db_name()).fetch_all(self.pool()).await?)
    }

    async fn import(&self, owner: &str, kind: ImportKind, id: &str) -> Result<Option<ImportRow>, StoreError> {
        let query = sqlx::query_as(concat!(select_row!(), "and id = $3"));
        Ok(query.bind(owner).bind(kind.db_name()).bind(id).fetch_optional(self.pool()).await?)
    }

    async fn import_bytes(
        &self,
        owner: &str,
        kind: ImportKind,
        id: &str,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let query =
            sqlx::query_scalar("select bytes from imports where owner = $1 and kind = $2 and id = $3");
        Ok(query.bind(owner).bind(kind.db_name()).bind(id).fetch_optional(self.pool()).await?)
    }

    async fn delete_import(&self, owner: &str, kind: ImportKind, id: &str) -> Result<bool, StoreError> {
        let mut transaction = self.pool().begin().await?;
        let query = sqlx::query("delete from imports where owner = $1 and kind = $2 and id = $3");
        let result = query.bind(owner).bind(kind.db_name()).bind(id).execute(&mut *transaction).await?;
        let was_found = result.rows_affected() > 0;
        if was_found {
            // The responses kept for repeated requests may still name the import.
            delete_responses_mentioning(&mut transaction, &[id.to_owned()]).await?;
        }
        transaction.commit().await?;
        fail::point("deletion.after");
        Ok(was_found)
    }
}
