//! Identity of the server in its database, and its epochs.

use sqlx::SqlitePool;

use crate::ServerIdentity;
use crate::{fail, ids};

/// Returns `true` if no server has used the database yet.
pub(super) async fn is_new_database(pool: &SqlitePool) -> sqlx::Result<bool> {
    sqlx::query_scalar("select not exists (select 1 from server)").fetch_one(pool).await
}

/// Begins the next epoch; the first one creates the id of the server.
pub(super) async fn begin_epoch(pool: &SqlitePool) -> sqlx::Result<ServerIdentity> {
    fail::point("epoch.before");
    let query = sqlx::query_as(
        "insert into server (id, epoch, created) \
         values (coalesce((select id from server limit 1), ?), 1, ?) \
         on conflict (id) do update set epoch = epoch + 1 returning id, epoch",
    );
    let (server, epoch) = query.bind(ids::new_id("srv")).bind(ids::now()).fetch_one(pool).await?;
    fail::point("epoch.after");
    Ok(ServerIdentity { server, epoch })
}
