//! Fixtures, corpora and test inputs, for the library's tests, the fuzz targets and `cargo xtask`.
//!
//! Assertions that only one test makes do not belong here.

pub mod acts;
pub mod corpus;
pub mod engine;
pub mod example;
pub mod finding_lines;
pub mod fixture;
pub mod grammar;
pub mod hostile;
pub mod imports;
mod keys;
pub mod layers;
pub mod prompts;
pub mod queue;
pub mod random;
pub mod reading;
pub mod run;
pub mod targets;
pub mod update;
pub mod words;

use std::path::{Path, PathBuf};

pub use fixture::{Fixture, load_fixtures};
pub use reading::{ChunkCuts, FixtureReading, ReadingCase};
pub use run::run_fixture;

/// Folder of the fixtures.
#[must_use]
pub fn fixtures_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

/// Lists the files under `folder` whose names end with `.{extension}`, sorted by path.
///
/// # Errors
/// A folder cannot be read.
pub fn list_files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for entry in entries {
            let path = entry.map_err(|error| format!("{}: {error}", folder.display()))?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|path_extension| path_extension == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}
