//! Expansion of path arguments to files.

use std::fs;
use std::path::{Path, PathBuf};

use crate::input::STDIN;

/// File to be checked.
pub(super) struct InputFile {
    pub(super) path: PathBuf,
    /// Size in bytes, for the progress bar; 0 for standard input.
    pub(super) size: u64,
}

/// Finds the files behind `paths`. Directories are searched, in order of names, for files with one of the
/// extensions (lower case, without a dot); hidden files and links to directories are skipped. Paths that
/// cannot be read, and directories without such a file, are returned second, each with the reason.
pub(super) fn find_files(paths: &[PathBuf], extensions: &[&str]) -> (Vec<InputFile>, Vec<(String, String)>) {
    let (mut files, mut problems) = (Vec::new(), Vec::new());
    for path in paths {
        if path == Path::new(STDIN) {
            files.push(InputFile { path: path.clone(), size: 0 });
            continue;
        }
        match fs::metadata(path) {
            Ok(meta) if meta.is_dir() => {
                let count_before = files.len();
                walk_directory(path, extensions, &mut files, &mut problems);
                if files.len() == count_before {
                    let message = format!("no files that end in {}", extensions.join(", "));
                    problems.push((path.display().to_string(), message));
                }
            }
            Ok(meta) => files.push(InputFile { path: path.clone(), size: meta.len() }),
            Err(error) => problems.push((path.display().to_string(), error.to_string())),
        }
    }
    (files, problems)
}

/// Searches a directory and those below it; adds to `files` and `problems`.
fn walk_directory(
    directory: &Path,
    extensions: &[&str],
    files: &mut Vec<InputFile>,
    problems: &mut Vec<(String, String)>,
) {
    let entries = match fs::read_dir(directory).and_then(Iterator::collect::<Result<Vec<_>, _>>) {
        Ok(entries) => entries,
        Err(error) => return problems.push((directory.display().to_string(), error.to_string())),
    };
    let mut entries: Vec<_> = entries
        .into_iter()
        .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
        .map(|entry| (entry.path(), entry.file_type()))
        .collect();
    entries.sort_by(|(a, _), (b, _)| a.cmp(b));
    for (path, kind) in entries {
        if kind.is_ok_and(|kind| kind.is_dir()) {
            walk_directory(&path, extensions, files, problems);
        } else if has_extension(&path, extensions)
            && let Ok(meta) = fs::metadata(&path)
            && meta.is_file()
        {
            files.push(InputFile { path, size: meta.len() });
        }
    }
}

/// Returns `true` if the file has one of the extensions, in upper or lower case. An extension may have two
/// parts, such as `jsonl.gz`.
pub(super) fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    let Some(name) = path.file_name() else { return false };
    let name = name.to_string_lossy().to_lowercase();
    // A name that begins with its only dot has no extension.
    let has_stem = |extension: &str| {
        name.strip_suffix(extension)
            .and_then(|rest| rest.strip_suffix('.'))
            .is_some_and(|stem| !stem.is_empty())
    };
    extensions.iter().any(|extension| has_stem(extension))
}
