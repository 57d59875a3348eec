//! The system's limit of open files, and the number of event streams that it allows.

/// Files reserved for other uses: the database, the log, name resolution.
const RESERVED_FILES: usize = 64;
/// Maximum number of open files that the number of streams is computed from, even if the system allows more.
const MAX_FILES: usize = 1 << 20;
/// Assumed limit where the system reports none.
const DEFAULT_FILES: usize = 8192;

/// Raises the soft limit of open files of this process to the hard limit.
pub(crate) fn raise_limit() {
    match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(files) => tracing::debug!(files, "limit of open files"),
        Err(error) => tracing::warn!(%error, "the limit of open files cannot be raised"),
    }
}

/// Returns the maximum number of event streams open at once. A stream needs one connection to its client and
/// usually one to an upstream; an eighth of the files is left to other requests.
pub(crate) fn max_streams() -> usize {
    let files = allowed_files().min(MAX_FILES);
    (files.saturating_sub(RESERVED_FILES).saturating_sub(files / 8) / 2).max(1)
}

#[cfg(unix)]
fn allowed_files() -> usize {
    // The hard limit: `raise_limit` raises the soft one to it.
    rlimit::Resource::NOFILE
        .get()
        .map_or(DEFAULT_FILES, |(_, hard_limit)| usize::try_from(hard_limit).unwrap_or(usize::MAX))
}

#[cfg(not(unix))]
fn allowed_files() -> usize {
    DEFAULT_FILES
}
