//! The limit of open files, and the number of event streams that it allows.

/// Files reserved for other uses: the database, the log, name resolution.
const OWN: usize = 64;
/// Upper bound of open files to plan with, however many the system allows.
const MOST: usize = 1 << 20;
/// Fallback if the system does not report its limit.
const UNKNOWN: usize = 8192;

/// Raises the soft limit of open files of this process to the hard limit.
pub(crate) fn raise() {
    match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(files) => tracing::debug!(files, "open files that are allowed"),
        Err(error) => tracing::warn!(%error, "the limit of open files cannot be raised"),
    }
}

/// Returns the most event streams the server opens in all. A stream needs one connection to its client and
/// usually one to an upstream; an eighth of the files is left to other requests.
pub(crate) fn streams() -> usize {
    let files = allowed().min(MOST);
    (files.saturating_sub(OWN).saturating_sub(files / 8) / 2).max(1)
}

#[cfg(unix)]
fn allowed() -> usize {
    // The hard limit, to which `raise` raises the soft one.
    rlimit::Resource::NOFILE.get().map_or(UNKNOWN, |(_, hard)| usize::try_from(hard).unwrap_or(usize::MAX))
}

#[cfg(not(unix))]
fn allowed() -> usize {
    UNKNOWN
}
