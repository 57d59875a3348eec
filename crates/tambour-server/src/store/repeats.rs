//! Answers to requests that may come again, kept for a day.

use super::{Store, StoreError};

/// A request with a key, and its answer.
#[derive(Clone, Debug)]
pub struct Repeat {
    /// Route and body.
    pub request: String,
    /// Status of the answer.
    pub status: u16,
    /// Its body.
    pub answer: String,
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
