//! Check of free disk space by writing to a file.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::{data_folder, fail};

/// Bytes that must be free for a new message. On a full disk a small record may still fit into the end of a
/// file, so a message could begin although its end cannot be stored.
const MESSAGE_SPACE: usize = 32 << 10;
/// Name of the file in the journal's folder, until it is unlinked.
const FILE_NAME: &str = "room";

/// Unlinked file that is filled and truncated again.
pub(super) struct SpaceCheck(Mutex<File>);

impl SpaceCheck {
    /// Creates the file in the journal's folder.
    pub(super) fn open(folder: &Path) -> io::Result<SpaceCheck> {
        let name = folder.join(FILE_NAME);
        // A process that is killed between creating and unlinking the file leaves it behind.
        match std::fs::remove_file(&name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = data_folder::create_file(&name)?;
        std::fs::remove_file(&name)?;
        Ok(SpaceCheck(Mutex::new(file)))
    }

    /// Checks that [`MESSAGE_SPACE`] bytes are free.
    ///
    /// # Errors
    /// The disk is full, or cannot be written.
    pub(super) fn check(&self) -> io::Result<()> {
        static ZEROS: [u8; MESSAGE_SPACE] = [0; MESSAGE_SPACE];
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let write_result = fail::fault("log.room").and_then(|()| file.write_all(&ZEROS));
        // Frees the space. Appending then starts at the beginning of the file again.
        let truncation = file.set_len(0);
        write_result.and(truncation)
    }
}
