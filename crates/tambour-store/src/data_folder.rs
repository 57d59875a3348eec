//! The data folder and its files are readable by the server's user only: they hold prompts and replies.

use std::io;
use std::path::Path;

pub(crate) use system::{create_file, sync_folder};

/// Creates the database `file`, its folder, its journal's folder and its lock file if they are missing, and
/// removes access for other users. SQLite gives its side files the mode of the database file. The folder of
/// the database is restricted only if it is the server's own folder `data`, and not a shared one such as
/// `/tmp`.
///
/// # Errors
/// The folder or a file cannot be created.
pub fn prepare(file: &Path, data: &Path) -> io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder {
        system::make_folder(folder)?;
        if folder == data {
            system::restrict_folder(folder);
        }
    }
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    // The database and SQLite's side files; its `-journal` is not the journal of this store.
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let path = file.with_file_name(format!("{name}{suffix}"));
        // An empty file is a valid empty database; SQLite creates its side files itself.
        if suffix.is_empty() {
            system::make_file(&path)?;
        }
        system::restrict_file(&path);
    }
    // The files of the journal are created with access for the server's user only.
    let journal = file.with_extension("journal");
    system::make_folder(&journal)?;
    system::restrict_folder(&journal);
    let lock = file.with_extension("lock");
    system::make_file(&lock)?;
    system::restrict_file(&lock);
    Ok(())
}

#[cfg(unix)]
mod system {
    use std::fs::{DirBuilder, File, OpenOptions, Permissions, metadata, set_permissions};
    use std::io;
    use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
    use std::path::Path;

    /// Mode bit of a shared folder such as `/tmp`.
    const STICKY_BIT: u32 = 0o1000;

    /// Creates a folder and its parents if they are missing.
    pub(super) fn make_folder(path: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)
    }

    /// Creates a new file for appending. Fails if it exists.
    pub(crate) fn create_file(path: &Path) -> io::Result<File> {
        OpenOptions::new().create_new(true).append(true).mode(0o600).open(path)
    }

    /// Flushes the entries of a folder (names of its files) to disk.
    pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
        crate::fail::fault("folder.sync")?;
        File::open(folder)?.sync_all()
    }

    /// Creates an empty file if it is missing.
    pub(super) fn make_file(path: &Path) -> io::Result<()> {
        // An existing file is not opened: closing it would release locks that SQLite may hold in this
        // process.
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }

    /// Removes access of other users to a folder, unless it is a shared one.
    pub(super) fn restrict_folder(path: &Path) {
        if metadata(path).is_ok_and(|folder| folder.permissions().mode() & STICKY_BIT == 0) {
            restrict(path, 0o700);
        }
    }

    /// Removes access of other users to a file, if it exists.
    pub(super) fn restrict_file(path: &Path) {
        restrict(path, 0o600);
    }

    /// Sets the mode of a path if other users have any access, and logs it with the mode that it had before.
    fn restrict(path: &Path, private_mode: u32) {
        let Ok(metadata) = metadata(path) else { return };
        let mode = metadata.permissions().mode() & 0o7777;
        let has_access_for_others = mode & 0o077 != 0;
        if !has_access_for_others {
            return;
        }
        let before = format!("{mode:o}");
        let permission_result = set_permissions(path, Permissions::from_mode(private_mode));
        let path = path.display();
        match permission_result {
            Ok(()) => {
                tracing::warn!(%path, before, "other users could read this path; its permissions are restricted now")
            }
            // The file belongs to another user, who granted access to the server: its mode stays.
            Err(error) => {
                tracing::warn!(%path, before, %error, "other users can read this path; changing its permissions failed")
            }
        }
    }
}

/// Files of systems without Unix permissions: SQLite and the store create them, and access to them is not
/// changed.
#[cfg(not(unix))]
mod system {
    use std::io;
    use std::path::Path;

    pub(super) fn make_folder(path: &Path) -> io::Result<()> {
        std::fs::create_dir_all(path)
    }

    pub(crate) fn create_file(path: &Path) -> io::Result<std::fs::File> {
        std::fs::OpenOptions::new().create_new(true).append(true).open(path)
    }

    /// Does nothing: these systems persist folder entries themselves.
    #[expect(clippy::unnecessary_wraps, reason = "the function may fail on other systems")]
    pub(crate) fn sync_folder(_: &Path) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn make_file(_: &Path) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn restrict_folder(_: &Path) {}

    pub(super) fn restrict_file(_: &Path) {}
}
