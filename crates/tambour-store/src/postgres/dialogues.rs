//! Rows of dialogues, their turns and their model calls.

use super::PostgresStore;
use super::connection::DatabaseConnection;
use super::documents::keep_version;
use super::figures::add_figures;
use super::input_responses::store_input;
use super::responses::delete_responses_mentioning;
use crate::dialogues::input_prefix;
use crate::fail;
use crate::{
    Deletion, DialogueFilter, DialogueProgress, DialogueRow, Dialogues, DocumentKind, InputClaim,
    InputResponse, RecordChange, Retention, RowPage, StoreError,
};
use async_trait::async_trait;

/// SQL expression for the id of the turn that a call or turn record belongs to. PostgreSQL reads no JSON with
/// an escaped NUL, which the answer of a model may contain, so another character takes the place of the NUL.
macro_rules! turn_of_record {
    () => {
        "cast(replace(record, '\\u0000', '\\u0001') as json) ->> 'turn'"
    };
}

#[async_trait]
impl Dialogues for PostgresStore {
    async fn insert_dialogue(&self, row: &DialogueRow) -> Result<(), StoreError> {
        let mut transaction = self.pool().begin().await?;
        insert_row(&mut transaction, row).await?;
        Ok(transaction.commit().await?)
    }

    async fn fork_dialogue(&self, row: &DialogueRow, from: &str, before: i64) -> Result<(), StoreError> {
        let mut transaction = self.pool().begin().await?;
        insert_row(&mut transaction, row).await?;
        for statement in [
            "insert into dialogue_turns (dialogue_id, record) select $1, record from dialogue_turns \
             where dialogue_id = $2 and number < $3 order by number",
            concat!(
                "insert into rounds (dialogue_id, record) select $1, record from rounds where dialogue_id = $2 and ",
                turn_of_record!(),
                " in (select ",
                turn_of_record!(),
                " from dialogue_turns where dialogue_id = $2 and number < $3) order by number"
            ),
        ] {
            let query = sqlx::query(statement).bind(&row.id).bind(from).bind(before);
            query.execute(&mut *transaction).await?;
        }
        Ok(transaction.commit().await?)
    }

    async fn dialogue(&self, id: &str) -> Result<Option<DialogueRow>, StoreError> {
        let query = sqlx::query_as("select * from dialogues where id = $1").bind(id);
        Ok(query.fetch_optional(self.pool()).await?)
    }

    async fn dialogues(
        &self,
        owner: &str,
        filter: DialogueFilter<'_>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<RowPage<DialogueRow>, StoreError> {
        // Without `after` the list begins with the newest dialogue.
        let query = sqlx::query_as(
            "select * from dialogues where owner = $1 and number < coalesce( \
             (select number from dialogues where id = $2 and owner = $1), 9223372036854775807) \
             and script_id = coalesce($4, script_id) and status = coalesce($5, status) \
             and ($6::text is null or session = $6) order by number desc limit $3",
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
        let mut transaction = self.begin_exclusive(&row.id).await?;
        update_row(&mut transaction, &row.id, (&row.state, &row.status, &row.changed)).await?;
        write_records(&mut transaction, &row.id, records).await?;
        // An earlier input without a response is superseded by this one.
        let query = sqlx::query(
            "delete from repeats where owner = $1 and status = $2 and substr(request, 1, length($3)) = $3",
        );
        let query = query.bind(&row.owner).bind(i64::from(InputResponse::NO_RESPONSE));
        query.bind(input_prefix(&row.id)).execute(&mut *transaction).await?;
        if let Some(claim) = claim {
            store_input(&mut transaction, claim, &row.id, None).await?;
        }
        fail::point("dialogue.step");
        transaction.commit().await?;
        fail::point("dialogue.stepped");
        Ok(())
    }

    async fn step_dialogue(&self, row: &DialogueRow, records: &[RecordChange]) -> Result<(), StoreError> {
        let mut transaction = self.begin_exclusive(&row.id).await?;
        update_row(&mut transaction, &row.id, (&row.state, &row.status, &row.changed)).await?;
        write_records(&mut transaction, &row.id, records).await?;
        fail::point("dialogue.step");
        transaction.commit().await?;
        fail::point("dialogue.stepped");
        Ok(())
    }

    async fn call_records(&self, id: &str, after: i64, limit: u32) -> Result<Vec<(i64, String)>, StoreError> {
        let query = sqlx::query_as(
            "select number, record from rounds where dialogue_id = $1 and number > $2 order by number limit $3",
        );
        Ok(query.bind(id).bind(after).bind(i64::from(limit)).fetch_all(self.pool()).await?)
    }

    async fn dialogue_turns(
        &self,
        id: &str,
        after: i64,
        limit: u32,
    ) -> Result<Vec<(i64, String)>, StoreError> {
        let query = sqlx::query_as(
            "select number, record from dialogue_turns where dialogue_id = $1 and number > $2 \
             order by number limit $3",
        );
        Ok(query.bind(id).bind(after).bind(i64::from(limit)).fetch_all(self.pool()).await?)
    }

    async fn delete_dialogue(&self, id: &str) -> Result<(), StoreError> {
        self.close_conversation(id).await?;
        let deletion = self.delete_closed_dialogue(id).await;
        self.reopen_conversation(id).await?;
        deletion
    }

    async fn expired_dialogues(&self, retention: Retention<'_>) -> Result<Vec<String>, StoreError> {
        let mut expired_ids = Vec::new();
        if let Some(before) = retention.before {
            let query = sqlx::query_scalar("select id from dialogues where changed < $1 order by number");
            expired_ids = query.bind(before).fetch_all(self.pool()).await?;
        }
        if let Some(bytes) = retention.bytes.filter(|_| expired_ids.is_empty()) {
            let query = sqlx::query_scalar(
                "select id from (select id, number, sum(octet_length(script) + octet_length(state) + coalesce( \
                 (select sum(octet_length(record)) from rounds where dialogue_id = dialogues.id), 0) + coalesce( \
                 (select sum(octet_length(record)) from dialogue_turns where dialogue_id = dialogues.id), 0) \
                 + coalesce((select sum(size) from messages join records on message_id = messages.id \
                 where conversation_id = dialogues.id), 0)) \
                 over (partition by owner order by number desc) as so_far from dialogues) as sizes \
                 where so_far > $1 order by number",
            );
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            expired_ids = query.bind(bytes).fetch_all(self.pool()).await?;
        }
        Ok(expired_ids)
    }
}

impl PostgresStore {
    /// Deletes a dialogue that is closed to new turns.
    async fn delete_closed_dialogue(&self, id: &str) -> Result<(), StoreError> {
        self.delete_closed_conversation(id).await?;
        let mut transaction = self.pool().begin().await?;
        delete_rows(&mut transaction, id).await?;
        transaction.commit().await?;
        fail::point("deletion.after");
        Ok(())
    }
}

/// Stores the dialogue as a turn leaves it, within the transaction of the turn's end.
pub(super) async fn store_progress(
    connection: &mut DatabaseConnection,
    id: &str,
    progress: &DialogueProgress,
) -> sqlx::Result<()> {
    let DialogueProgress { status, state, changed: changed_at, records, once } = progress;
    update_row(connection, id, (state, status, changed_at)).await?;
    write_records(connection, id, records).await?;
    match once {
        Some((claim, response)) => store_input(connection, claim, id, Some(response)).await,
        None => Ok(()),
    }
}

/// Inserts a dialogue, and keeps autosaves from replacing the version of the script that it runs.
async fn insert_row(connection: &mut DatabaseConnection, row: &DialogueRow) -> sqlx::Result<()> {
    let query = sqlx::query(
        "insert into dialogues (id, owner, created, changed, script_id, version, script, status, state, session, \
         origin) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
    );
    let query = query.bind(&row.id).bind(&row.owner).bind(&row.created).bind(&row.changed);
    let query = query.bind(&row.script_id).bind(i64::from(row.version)).bind(&row.script).bind(&row.status);
    query.bind(&row.state).bind(&row.session).bind(&row.origin).execute(&mut *connection).await?;
    keep_version(connection, (&row.owner, DocumentKind::Script), &row.script_id, row.version).await
}

/// Updates state, status and time of a dialogue, whose row stays locked to the end of the transaction.
async fn update_row(
    connection: &mut DatabaseConnection,
    id: &str,
    (state, status, changed_at): (&str, &str, &str),
) -> sqlx::Result<()> {
    let query = sqlx::query("update dialogues set state = $1, status = $2, changed = $3 where id = $4");
    query.bind(state).bind(status).bind(changed_at).bind(id).execute(connection).await.map(|_| ())
}

/// Writes changes to call and turn records. A dialogue that was deleted meanwhile gets no records.
async fn write_records(
    connection: &mut DatabaseConnection,
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
async fn delete_rows(connection: &mut DatabaseConnection, id: &str) -> sqlx::Result<()> {
    for statement in [
        // First, because writers of records lock this row first: they wait, and then write no records.
        "delete from dialogues where id = $1",
        "delete from rounds where dialogue_id = $1",
        "delete from dialogue_turns where dialogue_id = $1",
    ] {
        sqlx::query(statement).bind(id).execute(&mut *connection).await?;
        fail::point("deletion.amid");
    }
    // The stored requests of the dialogue are its inputs and the request that created it, whose response
    // names its id. `15` is the length of the text with which `substr` is compared.
    let quoted_id = format!("\"{id}\"");
    let query = sqlx::query(
        "delete from repeats where substr(request, 1, length($1)) = $1 \
         or (substr(request, 1, 15) = 'POST dialogues ' and strpos(answer, $2) > 0)",
    );
    query.bind(input_prefix(id)).bind(quoted_id).execute(&mut *connection).await?;
    delete_responses_mentioning(connection, &[id.to_owned()]).await
}
