//! Open files, which connections are: as many as the system allows, and what of them event streams may take.

/// Files beside connections: the database, the log, names that are resolved.
const OWN: usize = 64;
/// More are not planned with, however many are allowed.
const MOST: usize = 1 << 20;
/// Where the system does not say.
const UNKNOWN: usize = 8192;

/// Raises the limit of this process to what the system allows.
pub(crate) fn raise() {
    match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(files) => tracing::debug!(files, "open files that are allowed"),
        Err(error) => tracing::warn!(%error, "the limit of open files cannot be raised"),
    }
}

/// Event streams that there may be in all: one has a connection, and most have another one to a model; an eighth is left
/// for other requests.
pub(crate) fn streams() -> usize {
    let files = allowed().min(MOST);
    (files.saturating_sub(OWN).saturating_sub(files / 8) / 2).max(1)
}

#[cfg(unix)]
fn allowed() -> usize {
    // What the limit can be raised to.
    rlimit::Resource::NOFILE.get().map_or(UNKNOWN, |(_, hard)| usize::try_from(hard).unwrap_or(usize::MAX))
}

#[cfg(not(unix))]
fn allowed() -> usize {
    UNKNOWN
}
