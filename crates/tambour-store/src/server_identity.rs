//! Identity of the server that a store belongs to: a permanent id, and an epoch that rises with each start.
//! The row of a message names both, so that a start closes only the running messages of its own server's
//! earlier starts.

/// Identity of a server since its last start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerIdentity {
    /// Id of the server, kept in its database.
    pub server: String,
    /// Number of its starts, including the current one.
    pub epoch: i64,
}
