//! Rows of dialogues, their turns and their model calls.

use async_trait::async_trait;
use sqlx::SqliteConnection;

use super::SqliteStore;
use super::documents::keep_version;
use super::figures::add_figures;
use super::responses::delete_responses_mentioning;
use super::transaction::OpenTransaction;
use crate::dialogues::input_prefix;
use crate::fail;
use crate::{
    Deletion, DialogueFilter, DialogueProgress, DialogueRow, Dialogues, DocumentKind, InputClaim,
    InputResponse, RecordChange, Retention, RowPage, StoreError,
};

#[async_trait]
impl Dialogues for SqliteStore {
    async fn insert_dialogue(&self, row: &DialogueRow) -> Result<(), StoreError> {
        insert_row(&mut *self.pool().acquire().await?, row).await?;
        Ok(())
    }

    async fn fork_dialogue(&self, row: &DialogueRow, from: &str, before: i64) -> Result<(), StoreError> {
        let mut transaction = OpenTransaction::begin(self.pool()).await?;
        let result = async {
            insert_row(&mut transaction, row).await?;
            for statement in [
                "insert into dialogue_turns (dialogue_id, record) select ?1, record from dialogue_turns \
                 where dialogue_id = ?2 and number < ?3 order by number",
                "insert into rounds (dialogue_id, record) select ?1, record from rounds where dialogue_id = ?2 \
                 and json_extract(record, '$.turn') in (select json_extract(record, '$.turn') from dialogue_turns \
                 where dialogue_id = ?2 and number < ?3) order by number",
            ] {
                let query = sqlx::query(statement).bind(&row.id).bind(from).bind(before);
                query.execute(&mut *transaction).await?;
            }
            Ok(())
        };
        let result = result.await;
        Ok(transaction.end(result).await?)
    }

    async fn dialogue(&self, id: &str) -> Result<Option<DialogueRow>, StoreError> {
        // The row includes what the last turn has changed.
        self.wait_caught_up().await?;
        let query = sqlx::query_as("select * from dialogues where id = ?").bind(id);
        Ok(query.fetch_optional(self.pool()).await?)
    }

    async fn dialogues(
        &self,
        owner: &str,
        filter: DialogueFilter<'_>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<RowPage<DialogueRow>, StoreError> {
        self.wait_caught_up().await?;
        // `1 << 62` is above every number: without `after` the list begins with the newest dialogue.
        let query = sqlx::query_as(
            "select * from dialogues where owner = ?1 \
             and number < coalesce((select number from dialogues where id = ?2 and owner = ?1), 1 << 62) \
             and script_id = coalesce(?4, script_id) and status = coalesce(?5, status) \
             and (?6 is null or session = ?6) order by number desc limit ?3",
        );
        // The additional row, if there is one, shows that more follow.
        let max_rows = i64::from(limit) + 1;
        let query = query.bind(owner).bind(after).bind(max_rows);
        let query = query.bind(filter.script_id).bind(filter.status).bind(filter.session);
        let rows: Vec<DialogueRow> = query.fetch_all(self.pool()).await?;
        Ok(RowPage::from_rows(rows, limit))
    }

    async fn take_input(
        &self,
        row: &DialogueRow,
        claim: Option<&InputClaim>,
        records: &[RecordChange],
    ) -> Result<(), StoreError> {
        // Changes of the last turn must be written before those of this input.
        self.wait_caught_up().await?;
        let mut transaction = OpenTransaction::begin(self.pool()).await?;
        let result = async {
            update_row(&mut transaction, &row.id, (&row.state, &row.status, &row.changed)).await?;
            write_records(&mut transaction, &row.id, records).await?;
            // An earlier input without a response is superseded by this one.
            let query =
                sqlx::query("delete from repeats where status = ?1 and substr(request, 1, length(?2)) = ?2");
            query
                .bind(InputResponse::NO_RESPONSE)
                .bind(input_prefix(&row.id))
                .execute(&mut *transaction)
                .await?;
            match claim {
                Some(claim) => claim.store(&mut transaction, &row.id, None).await,
                None => Ok(()),
            }
        };
        let result = result.await;
        fail::point("dialogue.step");
        transaction.end(result).await?;
        fail::point("dialogue.stepped");
        Ok(())
    }

    async fn step_dialogue(&self, row: &DialogueRow, records: &[RecordChange]) -> Result<(), StoreError> {
        let mut transaction = OpenTransaction::begin(self.pool()).await?;
        let result = async {
            update_row(&mut transaction, &row.id, (&row.state, &row.status, &row.changed)).await?;
            write_records(&mut transaction, &row.id, records).await
        };
        let result = result.await;
        fail::point("dialogue.step");
        transaction.end(result).await?;
        fail::point("dialogue.stepped");
        Ok(())
    }

    async fn call_records(&self, id: &str, after: i64, limit: u32) -> Result<Vec<(i64, String)>, StoreError> {
        let query = sqlx::query_as(
            "select number, record from rounds where dialogue_id = ? and number > ? order by number limit ?",
        );
        Ok(query.bind(id).bind(after).bind(limit).fetch_all(self.pool()).await?)
    }

    async fn dialogue_turns(
        &self,
        id: &str,
        after: i64,
        limit: u32,
    ) -> Result<Vec<(i64, String)>, StoreError> {
        // The records include the end of the last turn.
        self.wait_caught_up().await?;
        let query = sqlx::query_as(
            "select number, record from dialogue_turns where dialogue_id = ? and number > ? order by number limit ?",
        );
        Ok(query.bind(id).bind(after).bind(limit).fetch_all(self.pool()).await?)
    }

    async fn delete_dialogue(&self, id: &str) -> Result<(), StoreError> {
        self.close_conversation(id).await?;
        let deletion = self.delete_closed_dialogue(id).await;
        // Waits for callers that found the dialogue before and are about to begin a turn in it.
        drop(self.shared.begin_lock.write().await);
        self.shared.run_queue.lock_order().reopen(id);
        deletion
    }

    async fn expired_dialogues(&self, retention: Retention<'_>) -> Result<Vec<String>, StoreError> {
        let mut expired_ids = Vec::new();
        if let Some(before) = retention.before {
            let query = sqlx::query_scalar("select id from dialogues where changed < ? order by number");
            expired_ids = query.bind(before).fetch_all(self.pool()).await?;
        }
        if let Some(bytes) = retention.bytes.filter(|_| expired_ids.is_empty()) {
            let query = sqlx::query_scalar(
                "select id from (select id, number, sum(octet_length(script) + octet_length(state) + coalesce( \
                 (select sum(octet_length(record)) from rounds where dialogue_id = dialogues.id), 0) + coalesce( \
                 (select sum(octet_length(record)) from dialogue_turns where dialogue_id = dialogues.id), 0) + coalesce( \
                 (select sum(size) from messages join records on message_id = messages.id \
                 where conversation_id = dialogues.id), 0)) \
                 over (partition by owner order by number desc) as so_far from dialogues) \
                 where so_far > ? order by number",
            );
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            expired_ids = query.bind(bytes).fetch_all(self.pool()).await?;
        }
        Ok(expired_ids)
    }
}

impl SqliteStore {
    /// Returns the owner of a dialogue, if it exists.
    pub(super) async fn dialogue_owner(&self, id: &str) -> Result<Option<String>, StoreError> {
        let query = sqlx::query_scalar("select owner from dialogues where id = ?").bind(id);
        Ok(query.fetch_optional(self.pool()).await?)
    }

    /// Deletes a dialogue that is closed to new turns.
    async fn delete_closed_dialogue(&self, id: &str) -> Result<(), StoreError> {
        self.delete_closed_conversation(id).await?;
        let mut transaction = OpenTransaction::begin(self.pool()).await?;
        let deletion = delete_rows(&mut transaction, id).await;
        transaction.end(deletion).await?;
        fail::point("deletion.after");
        Ok(())
    }
}

/// Stores the dialogue as a turn leaves it, within the transaction of the turn's end.
pub(super) async fn store_progress(
    connection: &mut SqliteConnection,
    id: &str,
    progress: &DialogueProgress,
) -> sqlx::Result<()> {
    let DialogueProgress { status, state, changed: changed_at, records, once } = progress;
    update_row(connection, id, (state, status, changed_at)).await?;
    write_records(connection, id, records).await?;
    match once {
        Some((claim, response)) => claim.store(connection, id, Some(response)).await,
        None => Ok(()),
    }
}

/// Inserts a dialogue, and keeps autosaves from replacing the version of the script that it runs.
async fn insert_row(connection: &mut SqliteConnection, row: &DialogueRow) -> sqlx::Result<()> {
    let query = sqlx::query(
        "insert into dialogues (id, owner, created, changed, script_id, version, script, status, state, session, \
         origin) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    );
    let query = query.bind(&row.id).bind(&row.owner).bind(&row.created).bind(&row.changed);
    let query = query.bind(&row.script_id).bind(row.version).bind(&row.script).bind(&row.status);
    query.bind(&row.state).bind(&row.session).bind(&row.origin).execute(&mut *connection).await?;
    keep_version(connection, (&row.owner, DocumentKind::Script), &row.script_id, row.version).await
}

/// Updates state, status and time of a dialogue.
async fn update_row(
    connection: &mut SqliteConnection,
    id: &str,
    (state, status, changed_at): (&str, &str, &str),
) -> sqlx::Result<()> {
    let query = sqlx::query("update dialogues set state = ?, status = ?, changed = ? where id = ?");
    query.bind(state).bind(status).bind(changed_at).bind(id).execute(connection).await?;
    Ok(())
}

/// Writes changes to call and turn records. A dialogue that was deleted meanwhile gets no records.
async fn write_records(
    connection: &mut SqliteConnection,
    id: &str,
    records: &[RecordChange],
) -> sqlx::Result<()> {
    for change in records {
        if let RecordChange::Figures(figures) = change {
            add_figures(connection, figures).await?;
        }
        if let Some((statement, record)) = change.record_statement() {
            sqlx::query(statement).bind(id).bind(record).execute(&mut *connection).await?;
        }
    }
    Ok(())
}

/// Deletes a dialogue with its records, its stored inputs and the responses that name it.
async fn delete_rows(connection: &mut SqliteConnection, id: &str) -> sqlx::Result<()> {
    for statement in [
        "delete from rounds where dialogue_id = ?",
        "delete from dialogue_turns where dialogue_id = ?",
        "delete from dialogues where id = ?",
    ] {
        sqlx::query(statement).bind(id).execute(&mut *connection).await?;
        fail::point("deletion.amid");
    }
    // The stored requests of the dialogue are its inputs and the request that created it, whose response
    // names its id. `15` is the length of the text with which `substr` is compared.
    let quoted_id = format!("\"{id}\"");
    let query = sqlx::query(
        "delete from repeats where substr(request, 1, length(?1)) = ?1 \
         or (substr(request, 1, 15) = 'POST dialogues ' and instr(answer, ?2) > 0)",
    );
    query.bind(input_prefix(id)).bind(quoted_id).execute(&mut *connection).await?;
    delete_responses_mentioning(connection, &[id.to_owned()]).await
}
