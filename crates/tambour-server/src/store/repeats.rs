//! Answers to requests that may come again, kept for a day.

use sqlx::SqliteConnection;

use super::{Store, StoreError};

/// A request with a key, and its answer.
#[derive(Clone, Debug)]
pub struct Repeat {
    /// Route and body.
    pub request: String,
    /// Status of the answer; [`Repeat::TAKEN`] while there is none.
    pub status: u16,
    /// Its body.
    pub answer: String,
}

impl Repeat {
    /// The request has been taken, and has no answer yet.
    pub const TAKEN: u16 = 0;
}

/// An input of a dialogue that is taken once, whatever becomes of the server.
#[derive(Clone, Debug)]
pub struct Once {
    /// Whose it is.
    pub owner: String,
    /// The client's word for it.
    pub repeat: String,
    /// Route and body.
    pub request: String,
    /// When it came.
    pub created: String,
    /// What came before is forgotten.
    pub since: String,
}

impl Once {
    /// Notes within a transaction that the input of a dialogue has been taken, or its answer, a body of status 200. Nothing if there is no such
    /// dialogue any more.
    pub(super) async fn note(
        &self,
        connection: &mut SqliteConnection,
        dialogue: &str,
        answer: Option<&str>,
    ) -> sqlx::Result<()> {
        let query = sqlx::query("delete from repeats where created < ?").bind(&self.since);
        query.execute(&mut *connection).await?;
        let query = sqlx::query(
            "insert or replace into repeats (owner, repeat, created, request, status, answer) \
             select ?1, ?2, ?3, ?4, ?5, ?6 where exists (select 1 from dialogues where id = ?7)",
        );
        let status = if answer.is_some() { 200 } else { Repeat::TAKEN };
        let query = query.bind(&self.owner).bind(&self.repeat).bind(&self.created).bind(&self.request);
        query.bind(status).bind(answer.unwrap_or_default()).bind(dialogue).execute(connection).await?;
        Ok(())
    }
}

impl Store {
    /// The answer to a request with this key, made after `since`.
    ///
    /// # Errors
    /// The database failed.
    pub async fn repeat(&self, owner: &str, repeat: &str, since: &str) -> Result<Option<Repeat>, StoreError> {
        let query = sqlx::query_as(
            "select request, status, answer from repeats where owner = ? and repeat = ? and created >= ?",
        );
        let found: Option<(String, u16, String)> =
            query.bind(owner).bind(repeat).bind(since).fetch_optional(self.pool()).await?;
        Ok(found.map(|(request, status, answer)| Repeat { request, status, answer }))
    }

    /// Keeps an answer, and forgets those of before `since`.
    ///
    /// # Errors
    /// The database failed.
    pub async fn keep_repeat(
        &self,
        (owner, repeat): (&str, &str),
        kept: &Repeat,
        (now, since): (&str, &str),
    ) -> Result<(), StoreError> {
        sqlx::query("delete from repeats where created < ?").bind(since).execute(self.pool()).await?;
        let query = sqlx::query(
            "insert or replace into repeats (owner, repeat, created, request, status, answer) values (?, ?, ?, ?, ?, ?)",
        );
        let query = query.bind(owner).bind(repeat).bind(now).bind(&kept.request).bind(kept.status);
        query.bind(&kept.answer).execute(self.pool()).await?;
        Ok(())
    }
}
