//! Rows of versioned texts.

use super::connection::DatabaseConnection;
use super::{PostgresStore, lock};
use crate::fail;
use crate::{
    Document, DocumentChange, DocumentScope, DocumentVersion, Documents, PutOptions, PutOutcome, StoreError,
};
use async_trait::async_trait;

/// Beginning of a query of [`Document`]s.
macro_rules! select_document {
    () => {
        "select id, name, created, changed, published, coalesce((select max(version) from versions \
         where versions.owner = documents.owner and versions.kind = documents.kind \
         and versions.id = documents.id), 0) as latest from documents where owner = $1 and kind = $2 "
    };
}

/// Number of leading characters of an RFC 3339 time that identify its ten-minute interval.
const INTERVAL_CHARS: i32 = 15;

#[async_trait]
impl Documents for PostgresStore {
    async fn documents(&self, (owner, kind): DocumentScope<'_>) -> Result<Vec<Document>, StoreError> {
        let query = sqlx::query_as(concat!(select_document!(), "order by id"));
        Ok(query.bind(owner).bind(kind.db_name()).fetch_all(self.pool()).await?)
    }

    async fn document(
        &self,
        (owner, kind): DocumentScope<'_>,
        id: &str,
    ) -> Result<Option<Document>, StoreError> {
        let query = sqlx::query_as(concat!(select_document!(), "and id = $3"));
        Ok(query.bind(owner).bind(kind.db_name()).bind(id).fetch_optional(self.pool()).await?)
    }

    async fn put_document(
        &self,
        owner_and_kind: DocumentScope<'_>,
        document: &Document,
        new_version: &DocumentVersion,
        options: PutOptions,
    ) -> Result<PutOutcome, StoreError> {
        fail::point("document.before");
        let mut transaction = self.pool().begin().await?;
        lock_documents(&mut transaction, owner_and_kind).await?;
        let outcome = write_version(&mut transaction, owner_and_kind, document, new_version, options).await?;
        transaction.commit().await?;
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
        let mut transaction = self.pool().begin().await?;
        lock_documents(&mut transaction, owner_and_kind).await?;
        if has_changed(&mut transaction, owner_and_kind, id, based_on).await? {
            return Ok(DocumentChange::Outdated);
        }
        let query = sqlx::query(
            "update documents set published = $4, changed = $5 where owner = $1 and kind = $2 and id = $3 \
             and exists (select 1 from versions where owner = $1 and kind = $2 and id = $3 and version = $4)",
        );
        let query = query.bind(owner_and_kind.0).bind(owner_and_kind.1.db_name()).bind(id);
        let query = query.bind(i64::from(version)).bind(now);
        if query.execute(&mut *transaction).await?.rows_affected() == 0 {
            return Ok(DocumentChange::Missing);
        }
        // A version that was published is kept even after another one is published.
        keep_version(&mut transaction, owner_and_kind, id, version).await?;
        transaction.commit().await?;
        Ok(DocumentChange::Done)
    }

    async fn versions(
        &self,
        (owner, kind): DocumentScope<'_>,
        id: &str,
    ) -> Result<Vec<DocumentVersion>, StoreError> {
        let query = sqlx::query_as(
            "select version, created, hash, '' as text from versions \
             where owner = $1 and kind = $2 and id = $3 order by version desc",
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
            "select version, created, hash, text from versions \
             where owner = $1 and kind = $2 and id = $3 and version = $4",
        );
        let query = query.bind(owner).bind(kind.db_name()).bind(id).bind(i64::from(version));
        Ok(query.fetch_optional(self.pool()).await?)
    }

    async fn published_texts(
        &self,
        (owner, kind): DocumentScope<'_>,
    ) -> Result<Vec<(String, String)>, StoreError> {
        let query = sqlx::query_as(
            "select documents.id, text from documents join versions on versions.owner = documents.owner and \
             versions.kind = documents.kind and versions.id = documents.id and version = published \
             where documents.owner = $1 and documents.kind = $2",
        );
        Ok(query.bind(owner).bind(kind.db_name()).fetch_all(self.pool()).await?)
    }

    async fn delete_document(
        &self,
        owner_and_kind: DocumentScope<'_>,
        id: &str,
        based_on: Option<u32>,
    ) -> Result<DocumentChange, StoreError> {
        let mut transaction = self.pool().begin().await?;
        lock_documents(&mut transaction, owner_and_kind).await?;
        if has_changed(&mut transaction, owner_and_kind, id, based_on).await? {
            return Ok(DocumentChange::Outdated);
        }
        let mut was_found = false;
        for statement in [
            "delete from versions where owner = $1 and kind = $2 and id = $3",
            "delete from documents where owner = $1 and kind = $2 and id = $3",
        ] {
            let query =
                sqlx::query(statement).bind(owner_and_kind.0).bind(owner_and_kind.1.db_name()).bind(id);
            was_found |= query.execute(&mut *transaction).await?.rows_affected() > 0;
        }
        transaction.commit().await?;
        Ok(if was_found { DocumentChange::Done } else { DocumentChange::Missing })
    }
}

/// Serialises changes of an owner's documents of one kind.
async fn lock_documents(
    connection: &mut DatabaseConnection,
    (owner, kind): DocumentScope<'_>,
) -> sqlx::Result<()> {
    lock(connection, &format!("documents:{}:{owner}", kind.db_name())).await
}

/// Returns `true` if the latest version is not the one that a change is based on.
async fn has_changed(
    connection: &mut DatabaseConnection,
    (owner, kind): DocumentScope<'_>,
    id: &str,
    based_on: Option<u32>,
) -> sqlx::Result<bool> {
    let Some(base) = based_on else { return Ok(false) };
    let query = sqlx::query_scalar(
        "select coalesce(max(version), 0) from versions where owner = $1 and kind = $2 and id = $3",
    );
    let latest: i64 = query.bind(owner).bind(kind.db_name()).bind(id).fetch_one(connection).await?;
    Ok(latest != i64::from(base))
}

/// Keeps a version that is in use: the next autosave will not replace it.
pub(super) async fn keep_version(
    connection: &mut DatabaseConnection,
    owner_and_kind: DocumentScope<'_>,
    id: &str,
    version: u32,
) -> sqlx::Result<()> {
    let query = sqlx::query(
        "update versions set autosave = false where owner = $1 and kind = $2 and id = $3 and version = $4",
    );
    let query = query.bind(owner_and_kind.0).bind(owner_and_kind.1.db_name()).bind(id);
    query.bind(i64::from(version)).execute(connection).await.map(|_| ())
}

/// Stores the next version of a document.
async fn write_version(
    connection: &mut DatabaseConnection,
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
        "insert into documents (owner, kind, id, name, created, changed) select $1, $2, $3, $4, $5, $5 \
         where (select count(*) from documents where owner = $1 and kind = $2 and id <> $3) < $6 \
         on conflict (owner, kind, id) do update set changed = excluded.changed, name = excluded.name",
    );
    let query = query.bind(owner).bind(kind).bind(id).bind(&document.name).bind(&document.changed);
    if query.bind(i64::from(max_documents)).execute(&mut *connection).await?.rows_affected() == 0 {
        return Ok(PutOutcome::TooMany);
    }
    let query = sqlx::query_scalar(
        "insert into versions (owner, kind, id, version, created, hash, text, autosave) select $1, $2, $3, \
         coalesce((select max(version) from versions where owner = $1 and kind = $2 and id = $3), 0) + 1, \
         $4, $5, $6, $7 returning version",
    );
    let query = query.bind(owner).bind(kind).bind(id).bind(&new_version.created).bind(&new_version.hash);
    let version: i64 = query.bind(&new_version.text).bind(is_autosave).fetch_one(&mut *connection).await?;
    if let Some(replaced) = based_on.filter(|_| is_autosave) {
        // The replaced version is an autosave of the same interval that is not published.
        let query = sqlx::query(
            "delete from versions where owner = $1 and kind = $2 and id = $3 and version = $4 and autosave \
             and substr(created, 1, $6) = substr($5, 1, $6) and not exists \
             (select 1 from documents where owner = $1 and kind = $2 and id = $3 and published = $4)",
        );
        let query = query.bind(owner).bind(kind).bind(id).bind(i64::from(replaced));
        query.bind(&new_version.created).bind(INTERVAL_CHARS).execute(&mut *connection).await?;
    }
    if is_published {
        let query =
            sqlx::query("update documents set published = $1 where owner = $2 and kind = $3 and id = $4");
        query.bind(version).bind(owner).bind(kind).bind(id).execute(&mut *connection).await?;
    }
    Ok(PutOutcome::Stored(u32::try_from(version).map_err(|error| sqlx::Error::Decode(error.into()))?))
}
