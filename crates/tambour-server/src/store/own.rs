//! The server a store is of: an id that it has for ever, and an epoch that rises with each start. A message that runs names
//! both, so that nobody closes what another one runs.

/// Who runs what begins now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Own {
    /// Id of the server, kept in its database.
    pub server: String,
    /// How often it has started, this time included.
    pub epoch: i64,
}
