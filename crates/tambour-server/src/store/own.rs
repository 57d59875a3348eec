//! The server a database is of: an id that it has for ever, and an epoch that rises with each start. A message that runs names
//! both, so that nobody closes what another one runs.

use sqlx::SqlitePool;

use crate::{fail, ids};

/// Who runs what begins now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Own {
    /// Id of the server, kept in its database.
    pub server: String,
    /// How often it has started, this time included.
    pub epoch: i64,
}

/// Begins the next epoch; the first one makes the id.
pub(super) async fn begin(pool: &SqlitePool) -> sqlx::Result<Own> {
    fail::point("epoch.before");
    let query = sqlx::query_as(
        "insert into server (id, epoch, created) \
         values (coalesce((select id from server limit 1), ?), 1, ?) \
         on conflict (id) do update set epoch = epoch + 1 returning id, epoch",
    );
    let (server, epoch) = query.bind(ids::new("srv")).bind(ids::now()).fetch_one(pool).await?;
    fail::point("epoch.after");
    Ok(Own { server, epoch })
}
