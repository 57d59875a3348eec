//! Identity of the server that a store belongs to: a permanent id, and an epoch that rises with each start. A
//! running message names both, so that no server closes another one's messages.

/// Identity of a server for the runs that begin now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerIdentity {
    /// Id of the server, kept in its database.
    pub server: String,
    /// Number of its starts, including the current one.
    pub epoch: i64,
}
