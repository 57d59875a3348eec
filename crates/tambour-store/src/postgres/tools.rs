//! Rows of tools.

use async_trait::async_trait;

use super::{PostgresStore, lock};
use crate::fail;
use crate::{StoreError, ToolRow, Tools};

#[async_trait]
impl Tools for PostgresStore {
    async fn tools(&self, owner: &str) -> Result<Vec<ToolRow>, StoreError> {
        let query = sqlx::query_as("select * from tools where owner = $1 order by name");
        Ok(query.bind(owner).fetch_all(self.pool()).await?)
    }

    async fn tool(&self, owner: &str, name: &str) -> Result<Option<ToolRow>, StoreError> {
        let query = sqlx::query_as("select * from tools where owner = $1 and name = $2");
        Ok(query.bind(owner).bind(name).fetch_optional(self.pool()).await?)
    }

    async fn put_tool(&self, row: &ToolRow, max_tools: u32) -> Result<bool, StoreError> {
        fail::point("tool.before");
        let mut transaction = self.pool().begin().await?;
        lock(&mut transaction, &format!("tools:{}", row.owner)).await?;
        // Inserts or changes no row if the owner has too many other tools.
        let query = sqlx::query(
            "insert into tools (owner, name, created, changed, definition, secret) select $1, $2, $3, $4, $5, $6 \
             where (select count(*) from tools where owner = $1 and name <> $2) < $7 \
             on conflict (owner, name) do update set changed = excluded.changed, definition = excluded.definition, \
             secret = excluded.secret",
        );
        let query = query.bind(&row.owner).bind(&row.name).bind(&row.created).bind(&row.changed);
        let query = query.bind(&row.definition).bind(&row.secret).bind(i64::from(max_tools));
        let result = query.execute(&mut *transaction).await?;
        transaction.commit().await?;
        fail::point("tool.after");
        Ok(result.rows_affected() > 0)
    }

    async fn delete_tool(&self, owner: &str, name: &str) -> Result<bool, StoreError> {
        let query = sqlx::query("delete from tools where owner = $1 and name = $2");
        let result = query.bind(owner).bind(name).execute(self.pool()).await?;
        Ok(result.rows_affected() > 0)
    }
}
