//! Identity of the server that a store belongs to: a permanent id, and an epoch that rises with each start.
//! The row of a message names both. So a starting server closes only messages that an earlier start of the
//! same server left running.

/// Identity of a server since its last start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerIdentity {
    /// Id of the server, kept in its database.
    pub server: String,
    /// Number of its starts, including the current one.
    pub epoch: i64,
}
