//! Coordination of servers that share a database.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::BoxStream;

use super::{Batch, StoreError};

/// Permission to read the events of one message for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamTokenRow {
    /// SHA-256 of the text of the token.
    pub hash: Vec<u8>,
    /// Id of the message.
    pub message: String,
    /// Id of the key that created the token.
    pub key: String,
}

/// Condition of a server among those that share a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClusterStatus {
    /// Time since the last renewal of the lease was sent.
    pub lease_age: Duration,
    /// Runs that were fenced: deleted, or taken over by another server.
    pub fenced_runs: u64,
    /// Runs whose lease this server holds.
    pub held_runs: usize,
    /// Number of renewals after the lease of this server may have been lost.
    pub lease_regains: u64,
}

/// Reads logs from the servers that write them.
#[async_trait]
pub trait PeerReader: Send + Sync {
    /// Follows the log of a message that runs on the server at `address`, from the entry after number
    /// `after`. The stream ends with the log, or when the server no longer answers. `None` if the server does
    /// not answer at all.
    async fn follow(&self, address: &str, message: &str, after: u64) -> Option<BoxStream<'static, Batch>>;
}

/// Exclusive access to a conversation or dialogue. It is given up when it is dropped, and ends with the lease of its
/// server.
#[async_trait]
pub trait ConversationLock: Send + Sync {
    /// Takes the access. Returns `false` while somebody else has it. Dropping the lock meanwhile gives up what the
    /// database grants.
    ///
    /// # Errors
    /// The database failed; it may have granted the access.
    async fn take(&mut self) -> Result<bool, StoreError>;
}

/// Decisions that servers which share a database make together. Times are compared by the clock of the database.
#[async_trait]
pub trait Cluster: Send + Sync {
    /// Tells the other servers the base URL at which they reach this one.
    ///
    /// # Errors
    /// The database failed.
    async fn publish_address(&self, address: &str) -> Result<(), StoreError>;

    /// Returns the condition of this server.
    fn status(&self) -> ClusterStatus;

    /// Sets the reader of logs that other servers write. Without a reader, these logs are read from the
    /// database, ten times a second.
    fn set_peer_reader(&self, reader: Arc<dyn PeerReader>);

    /// Returns the base URL of the server that runs a message or turn; `None` if no server runs it, this
    /// server does, or its server is gone or has no address.
    ///
    /// # Errors
    /// The database failed.
    async fn remote_address(&self, message: &str) -> Result<Option<String>, StoreError>;

    /// Returns the id of the message or turn that runs in a conversation or dialogue, the oldest if several do.
    ///
    /// # Errors
    /// The database failed.
    async fn running_message(&self, conversation: &str) -> Result<Option<String>, StoreError>;

    /// Returns the secret that the servers show each other; the first call stores `new_secret`.
    ///
    /// # Errors
    /// The database failed.
    async fn secret(&self, new_secret: &str) -> Result<String, StoreError>;

    /// Takes or renews the lease of a periodic task, such as the sweep: one server at a time holds it, for a
    /// minute. Returns `true` if this server holds it.
    ///
    /// # Errors
    /// The database failed.
    async fn hold_task_lease(&self, name: &str) -> Result<bool, StoreError>;

    /// Returns a number that rises whenever a server changes settings or keys.
    ///
    /// # Errors
    /// The database failed.
    async fn shared_version(&self) -> Result<i64, StoreError>;

    /// Counts a request of a key that may send one request per `interval` on average, with bursts of up to a
    /// minute's worth. Returns the time to wait if the request is refused; a refused request does not count.
    ///
    /// # Errors
    /// The database failed.
    async fn count_request(&self, key: &str, interval: Duration) -> Result<Option<Duration>, StoreError>;

    /// Takes back the count of a request of [`Cluster::count_request`].
    ///
    /// # Errors
    /// The database failed.
    async fn refund_request(&self, key: &str, interval: Duration) -> Result<(), StoreError>;

    /// Stores a token that is valid for `lifetime`.
    ///
    /// # Errors
    /// The database failed.
    async fn put_stream_token(&self, token: &StreamTokenRow, lifetime: Duration) -> Result<(), StoreError>;

    /// Returns the token with that hash, if it is still valid.
    ///
    /// # Errors
    /// The database failed.
    async fn stream_token(&self, hash: &[u8]) -> Result<Option<StreamTokenRow>, StoreError>;

    /// Returns the lock of a conversation or dialogue, which has not been taken yet.
    fn conversation_lock(&self, id: &str) -> Box<dyn ConversationLock>;

    /// Returns the number of messages and turns of an owner that run on the other servers.
    ///
    /// # Errors
    /// The database failed.
    async fn count_remote_runs(&self, owner: &str) -> Result<u64, StoreError>;
}
