//! Rows of versioned texts.

use async_trait::async_trait;
use sqlx::SqliteConnection;

use super::SqliteStore;
use super::transaction::OpenTransaction;
use crate::fail;
use crate::{
    Document, DocumentChange, DocumentScope, DocumentVersion, Documents, PutOptions, PutOutcome, StoreError,
};

/// Beginning of a query of [`Document`]s.
const SELECT_DOCUMENT: &str = "select id, name, created, changed, published, coalesce((select max(version) from versions \
     where versions.owner = documents.owner and versions.kind = documents.kind and versions.id = documents.id), 0) \
     as latest from documents where owner = ? and kind = ?";

/// Number of leading characters of an RFC 3339 time that identify its ten-minute interval.
const INTERVAL_CHARS: u32 = 15;

#[async_trait]
impl Documents for SqliteStore {
    async fn documents(&self, (owner, kind): DocumentScope<'_>) -> Result<Vec<Document>, StoreError> {
        let statement = sqlx::AssertSqlSafe(format!("{SELECT_DOCUMENT} order by id"));
        Ok(sqlx::query_as(statement).bind(owner).bind(kind.db_name()).fetch_all(self.pool()).await?)
    }

    async fn document(
        &self,
        (owner, kind): DocumentScope<'_>,
        id: &str,
    ) -> Result<Option<Document>, StoreError> {
        let statement = sqlx::AssertSqlSafe(format!("{SELECT_DOCUMENT} and id = ?"));
        let query = sqlx::query_as(statement).bind(owner).bind(kind.db_name()).bind(id);
        Ok(query.fetch_optional(self.pool()).await?)
    }

    async fn put_document(
        &self,
        owner_and_kind: DocumentScope<'_>,
        document: &Document,
        new_version: &DocumentVersion,
        options: PutOptions,
    ) -> Result<PutOutcome, StoreError> {
        fail::point("document.before");
        let mut transaction = OpenTransaction::begin(self.pool()).await?;
        // Replaced below, unless an error is returned.
        let mut outcome = PutOutcome::Outdated;
        let write_result =
            write_version(&mut transaction, owner_and_kind, document, new_version, options).await;
        transaction.end(write_result.map(|new_outcome| outcome = new_outcome)).await?;
        fail::point("document.after");
        Ok(outcome)
    }

    async fn publish(
        &self,
        owner_and_kind: DocumentScope<'_>,
        id: &str,
        version: u32,
        based_on: Option<u32>,
        now: &str,
    ) -> Result<DocumentChange, StoreError> {
        let mut transaction = OpenTransaction::begin(self.pool()).await?;
        // Replaced below, unless an error is returned.
        let mut outcome = DocumentChange::Outdated;
        let write_result =
            publish_version(&mut transaction, owner_and_kind, (id, version, now), based_on).await;
        transaction.end(write_result.map(|new_outcome| outcome = new_outcome)).await?;
        Ok(outcome)
    }

    async fn versions(
        &self,
        (owner, kind): DocumentScope<'_>,
        id: &str,
    ) -> Result<Vec<DocumentVersion>, StoreError> {
        let query = sqlx::query_as(
            "select version, created, hash, '' as text from versions where owner = ? and kind = ? and id = ? \
             order by version desc",
        );
        Ok(query.bind(owner).bind(kind.db_name()).bind(id).fetch_all(self.pool()).await?)
    }

    async fn version(
        &self,
        (owner, kind): DocumentScope<'_>,
        id: &str,
        version: u32,
    ) -> Result<Option<DocumentVersion>, StoreError> {
        let query = sqlx::query_as(
            "select version, created, hash, text from versions where owner = ? and kind = ? and id = ? and version = ?",
        );
        let query = query.bind(owner).bind(kind.db_name()).bind(id).bind(version);
        Ok(query.fetch_optional(self.pool()).await?)
    }

    async fn published_texts(
        &self,
        (owner, kind): DocumentScope<'_>,
    ) -> Result<Vec<(String, String)>, StoreError> {
        let query = sqlx::query_as(
            "select documents.id, text from documents join versions on versions.owner = documents.owner and \
             versions.kind = documents.kind and versions.id = documents.id and version = published \
             where documents.owner = ? and documents.kind = ?",
        );
        Ok(query.bind(owner).bind(kind.db_name()).fetch_all(self.pool()).await?)
    }

    async fn delete_document(
        &self,
        owner_and_kind: DocumentScope<'_>,
        id: &str,
        based_on: Option<u32>,
    ) -> Result<DocumentChange, StoreError> {
        let mut transaction = OpenTransaction::begin(self.pool()).await?;
        // Replaced below, unless an error is returned.
        let mut outcome = DocumentChange::Outdated;
        let deletion = delete_versions(&mut transaction, owner_and_kind, id, based_on).await;
        transaction.end(deletion.map(|new_outcome| outcome = new_outcome)).await?;
        Ok(outcome)
    }
}

/// Returns `true` if the latest version is not the one that a change is based on.
async fn has_changed(
    connection: &mut SqliteConnection,
    (owner, kind): DocumentScope<'_>,
    id: &str,
    based_on: Option<u32>,
) -> sqlx::Result<bool> {
    let Some(base) = based_on else { return Ok(false) };
    let query = sqlx::query_scalar(
        "select coalesce(max(version), 0) from versions where owner = ? and kind = ? and id = ?",
    );
    let latest: u32 = query.bind(owner).bind(kind.db_name()).bind(id).fetch_one(&mut *connection).await?;
    Ok(latest != base)
}

/// Publishes a version, if it exists and the document has not changed since `based_on`.
async fn publish_version(
    connection: &mut SqliteConnection,
    owner_and_kind: DocumentScope<'_>,
    (id, version, now): (&str, u32, &str),
    based_on: Option<u32>,
) -> sqlx::Result<DocumentChange> {
    if has_changed(connection, owner_and_kind, id, based_on).await? {
        return Ok(DocumentChange::Outdated);
    }
    let query = sqlx::query(
        "update documents set published = ?4, changed = ?5 where owner = ?1 and kind = ?2 and id = ?3 and exists \
         (select 1 from versions where owner = ?1 and kind = ?2 and id = ?3 and version = ?4)",
    );
    let query =
        query.bind(owner_and_kind.0).bind(owner_and_kind.1.db_name()).bind(id).bind(version).bind(now);
    if query.execute(&mut *connection).await?.rows_affected() == 0 {
        return Ok(DocumentChange::Missing);
    }
    // A version that was published is kept even after another one is published.
    keep_version(connection, owner_and_kind, id, version).await?;
    Ok(DocumentChange::Done)
}

/// Keeps a version that is in use: the next autosave will not replace it.
pub(super) async fn keep_version(
    connection: &mut SqliteConnection,
    owner_and_kind: DocumentScope<'_>,
    id: &str,
    version: u32,
) -> sqlx::Result<()> {
    let query = sqlx::query(
        "update versions set autosave = 0 where owner = ? and kind = ? and id = ? and version = ?",
    );
    query
        .bind(owner_and_kind.0)
        .bind(owner_and_kind.1.db_name())
        .bind(id)
        .bind(version)
        .execute(connection)
        .await?;
    Ok(())
}

/// Deletes a document with its versions, if the document has not changed since `based_on`.
async fn delete_versions(
    connection: &mut SqliteConnection,
    owner_and_kind: DocumentScope<'_>,
    id: &str,
    based_on: Option<u32>,
) -> sqlx::Result<DocumentChange> {
    if has_changed(connection, owner_and_kind, id, based_on).await? {
        return Ok(DocumentChange::Outdated);
    }
    let mut was_found = false;
    for table in ["versions", "documents"] {
        let statement = format!("delete from {table} where owner = ? and kind = ? and id = ?");
        let query = sqlx::query(sqlx::AssertSqlSafe(statement))
            .bind(owner_and_kind.0)
            .bind(owner_and_kind.1.db_name())
            .bind(id);
        was_found |= query.execute(&mut *connection).await?.rows_affected() > 0;
    }
    Ok(if was_found { DocumentChange::Done } else { DocumentChange::Missing })
}

/// Stores the next version of a document.
async fn write_version(
    connection: &mut SqliteConnection,
    (owner, kind): DocumentScope<'_>,
    document: &Document,
    new_version: &DocumentVersion,
    PutOptions { is_published, is_autosave, max_documents, based_on }: PutOptions,
) -> sqlx::Result<PutOutcome> {
    if has_changed(connection, (owner, kind), &document.id, based_on).await? {
        return Ok(PutOutcome::Outdated);
    }
    let (kind, id) = (kind.db_name(), &document.id);
    let query = sqlx::query(
        "insert into documents (owner, kind, id, name, created, changed) select ?1, ?2, ?3, ?4, ?5, ?5 \
         where (select count(*) from documents where owner = ?1 and kind = ?2 and id <> ?3) < ?6 \
         on conflict (owner, kind, id) do update set changed = excluded.changed, name = excluded.name",
    );
    let query = query
        .bind(owner)
        .bind(kind)
        .bind(id)
        .bind(&document.name)
        .bind(&document.changed)
        .bind(max_documents);
    if query.execute(&mut *connection).await?.rows_affected() == 0 {
        return Ok(PutOutcome::TooMany);
    }
    let query = sqlx::query_scalar(
        "insert into versions (owner, kind, id, version, created, hash, text, autosave) select ?1, ?2, ?3, \
         coalesce((select max(version) from versions where owner = ?1 and kind = ?2 and id = ?3), 0) + 1, ?4, ?5, ?6, ?7 \
         returning version",
    );
    let query = query.bind(owner).bind(kind).bind(id).bind(&new_version.created).bind(&new_version.hash);
    let query = query.bind(&new_version.text).bind(is_autosave);
    let version: u32 = query.fetch_one(&mut *connection).await?;
    if let Some(replaced) = based_on.filter(|_| is_autosave) {
        // The replaced version is an autosave of the same interval that is not published.
        let query = sqlx::query(
            "delete from versions where owner = ?1 and kind = ?2 and id = ?3 and version = ?4 and autosave \
             and substr(created, 1, ?6) = substr(?5, 1, ?6) and not exists \
             (select 1 from documents where owner = ?1 and kind = ?2 and id = ?3 and published = ?4)",
        );
        let query = query.bind(owner).bind(kind).bind(id).bind(replaced);
        let query = query.bind(&new_version.created).bind(INTERVAL_CHARS);
        query.execute(&mut *connection).await?;
    }
    if is_published {
        let query = sqlx::query("update documents set published = ? where owner = ? and kind = ? and id = ?");
        query.bind(version).bind(owner).bind(kind).bind(id).execute(&mut *connection).await?;
    }
    Ok(PutOutcome::Stored(version))
}
