//! Identity of the server that a store belongs to: an id and an epoch. The row of a message names both. With
//! SQLite the id is permanent and the epoch rises with each start, so a starting server closes only messages
//! that an earlier start of the same server left running. With PostgreSQL each start has an id of its own.

/// Identity of a server since its last start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerIdentity {
    /// Id of the server: kept in its SQLite database; with PostgreSQL, new at each start.
    pub server: String,
    /// Number of starts with this id, including the current one.
    pub epoch: i64,
}
