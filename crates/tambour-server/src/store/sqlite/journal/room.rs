//! Room on the disk, tried by writing.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::{data_folder, fail};

/// Bytes that have to be free for a new message. The end of a file may hold a small record where the disk is full, and the
/// message would begin whose end cannot be kept.
const ROOM: usize = 32 << 10;
const NAME: &str = "room";

/// A file without a name, which is filled and emptied again.
pub(super) struct Room(Mutex<File>);

impl Room {
    pub(super) fn open(folder: &Path) -> io::Result<Room> {
        let name = folder.join(NAME);
        // A process that was killed right here leaves it.
        match std::fs::remove_file(&name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = data_folder::create(&name)?;
        std::fs::remove_file(&name)?;
        Ok(Room(Mutex::new(file)))
    }

    /// Whether there is room.
    ///
    /// # Errors
    /// The disk is full, or cannot be written.
    pub(super) fn check(&self) -> io::Result<()> {
        static ZEROS: [u8; ROOM] = [0; ROOM];
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let written = fail::fault("log.room").and_then(|()| file.write_all(&ZEROS));
        // It grows at its end, so that the next check begins here again.
        let emptied = file.set_len(0);
        written.and(emptied)
    }
}
