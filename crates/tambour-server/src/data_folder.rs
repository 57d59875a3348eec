//! The data folder and its files are for the user of the server alone: replies and prompts are nobody else's.

use std::io;
use std::path::Path;

pub(crate) use system::{create, sync};

/// Makes the folder of the database `file`, the file and its lock, unless they are there, and closes them to others. SQLite
/// gives what it adds to the file the mode of the file. The folder is closed to others if it is `data`, and not
/// one that everybody puts files in.
///
/// # Errors
/// The folder or a file cannot be made.
pub(crate) fn prepare(file: &Path, data: &Path) -> io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder {
        system::make_folder(folder)?;
        if folder == data {
            system::close_folder(folder);
        }
    }
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for beside in ["", "-wal", "-shm", "-journal"] {
        let path = file.with_file_name(format!("{name}{beside}"));
        // An empty file is an empty database; what SQLite puts beside it is its own affair.
        if beside.is_empty() {
            system::make_file(&path)?;
        }
        system::close_file(&path);
    }
    // All that is in it is made by us.
    let journal = file.with_extension("journal");
    system::make_folder(&journal)?;
    system::close_folder(&journal);
    let lock = file.with_extension("lock");
    system::make_file(&lock)?;
    system::close_file(&lock);
    Ok(())
}

#[cfg(unix)]
mod system {
    use std::fs::{DirBuilder, File, OpenOptions, Permissions, metadata, set_permissions};
    use std::io;
    use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
    use std::path::Path;

    /// A folder that everybody puts files in, as `/tmp`.
    const SHARED: u32 = 0o1000;

    pub(super) fn make_folder(path: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)
    }

    /// Makes a file that grows.
    pub(crate) fn create(path: &Path) -> io::Result<File> {
        OpenOptions::new().create_new(true).append(true).mode(0o600).open(path)
    }

    /// Brings the names of a folder to the disk.
    pub(crate) fn sync(folder: &Path) -> io::Result<()> {
        crate::fail::fault("folder.sync")?;
        File::open(folder)?.sync_all()
    }

    pub(super) fn make_file(path: &Path) -> io::Result<()> {
        // One that is there is not opened: closing it again would let go of locks that SQLite may hold in this process.
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }

    pub(super) fn close_folder(path: &Path) {
        if metadata(path).is_ok_and(|folder| folder.permissions().mode() & SHARED == 0) {
            close(path, 0o700);
        }
    }

    pub(super) fn close_file(path: &Path) {
        close(path, 0o600);
    }

    fn close(path: &Path, to: u32) {
        let Ok(found) = metadata(path) else { return };
        let mode = found.permissions().mode() & 0o7777;
        if mode & 0o077 == 0 {
            return;
        }
        let before = format!("{mode:o}");
        let closed = set_permissions(path, Permissions::from_mode(to));
        let path = path.display();
        match closed {
            Ok(()) => tracing::warn!(%path, before, "others could read it; it is closed to them now"),
            // Of another user who lets us in: that one's affair.
            Err(error) => {
                tracing::warn!(%path, before, %error, "others can read it, and it cannot be closed to them")
            }
        }
    }
}

#[cfg(not(unix))]
mod system {
    use std::io;
    use std::path::Path;

    pub(super) fn make_folder(path: &Path) -> io::Result<()> {
        std::fs::create_dir_all(path)
    }

    pub(crate) fn create(path: &Path) -> io::Result<std::fs::File> {
        std::fs::OpenOptions::new().create_new(true).append(true).open(path)
    }

    /// Does nothing: such systems keep the names of a folder themselves.
    #[expect(clippy::unnecessary_wraps, reason = "elsewhere it may fail")]
    pub(crate) fn sync(_: &Path) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn make_file(_: &Path) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn close_folder(_: &Path) {}

    pub(super) fn close_file(_: &Path) {}
}
