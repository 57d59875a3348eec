//! Tar archives that are the same each time: sorted, with one time and one owner.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

use super::Release;

/// Entry of an archive.
pub(super) enum Entry {
    /// File with its mode.
    File(Vec<u8>, u32),
    /// Folder with its mode and owner.
    Folder(u32, u64),
}

/// Entries of an archive by path. Folders above an entry are added when it is written.
pub(super) type Entries = BTreeMap<PathBuf, Entry>;

/// Adds a file.
pub(super) fn add_file(entries: &mut Entries, path: impl Into<PathBuf>, content: Vec<u8>, mode: u32) {
    entries.insert(path.into(), Entry::File(content, mode));
}

/// Adds all files of a folder of the disk below `path`.
pub(super) fn add_tree(entries: &mut Entries, path: &Path, folder: &Path) -> anyhow::Result<()> {
    for file in read_tree(folder)? {
        add_file(entries, path.join(&file), std::fs::read(folder.join(&file))?, 0o644);
    }
    Ok(())
}

/// Paths of all files below a folder, relative to it, sorted.
pub(crate) fn read_tree(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let (mut files, mut pending) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(inner) = pending.pop() {
        for entry in std::fs::read_dir(folder.join(&inner)).with_context(|| folder.display().to_string())? {
            let entry = entry?;
            let path = inner.join(entry.file_name());
            if entry.file_type()?.is_dir() { pending.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    Ok(files)
}

/// Packs entries as a tar archive.
pub(super) fn pack(entries: &Entries, epoch: u64) -> anyhow::Result<Vec<u8>> {
    let mut folders: BTreeMap<&Path, (u32, u64)> = BTreeMap::new();
    for (path, entry) in entries {
        for folder in path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()) {
            folders.entry(folder).or_insert((0o755, 0));
        }
        if let Entry::Folder(mode, owner) = entry {
            folders.insert(path, (*mode, *owner));
        }
    }
    let mut builder = Builder::new(Vec::new());
    for (path, (mode, owner)) in folders {
        let mut header = header(EntryType::Directory, 0, mode, owner, epoch)?;
        builder.append_data(&mut header, path, std::io::empty())?;
    }
    for (path, entry) in entries {
        if let Entry::File(content, mode) = entry {
            let mut header = header(EntryType::Regular, content.len(), *mode, 0, epoch)?;
            builder.append_data(&mut header, path, content.as_slice())?;
        }
    }
    Ok(builder.into_inner()?)
}

fn header(kind: EntryType, len: usize, mode: u32, owner: u64, epoch: u64) -> anyhow::Result<Header> {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(len.try_into()?);
    header.set_mode(mode);
    header.set_uid(owner);
    header.set_gid(owner);
    header.set_mtime(epoch);
    if owner == 0 {
        header.set_username("root")?;
        header.set_groupname("root")?;
    }
    Ok(header)
}

/// Largest content in bytes that a check compresses as well as a release does.
const SMALL_CONTENT: usize = 1 << 20;

/// Compresses with gzip, without a name and a time of its own.
pub(super) fn compress(release: &Release, content: &[u8]) -> anyhow::Result<Vec<u8>> {
    let is_fast = release.is_check && content.len() > SMALL_CONTENT;
    let level = if is_fast { Compression::fast() } else { Compression::best() };
    let mut encoder: GzEncoder<Vec<u8>> = GzBuilder::new().write(Vec::new(), level);
    encoder.write_all(content)?;
    Ok(encoder.finish()?)
}

/// Writes entries to a compressed archive among the artefacts.
pub(super) fn write_compressed(release: &Release, name: &str, entries: &Entries) -> anyhow::Result<()> {
    let path = release.out.join(name);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut file = BufWriter::new(File::create(&path)?);
    file.write_all(&compress(release, &pack(entries, release.epoch)?)?)?;
    Ok(file.flush()?)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use super::{Entries, Entry, add_file, pack};

    #[test]
    fn archives_are_sorted_and_have_one_time() {
        let make = |names: &[&str]| {
            let mut entries = Entries::new();
            for name in names {
                add_file(&mut entries, *name, name.as_bytes().to_vec(), 0o755);
            }
            entries.insert("data".into(), Entry::Folder(0o700, 65532));
            pack(&entries, 1_000_000).unwrap()
        };
        let packed = make(&["b/c/d", "a", "b/e"]);
        assert_eq!(packed, make(&["a", "b/e", "b/c/d"]));
        let mut archive = tar::Archive::new(packed.as_slice());
        let found: BTreeMap<PathBuf, (u32, u64, u64)> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let header = entry.header();
                let found = (header.mode().unwrap(), header.uid().unwrap(), header.mtime().unwrap());
                (entry.path().unwrap().into_owned(), found)
            })
            .collect();
        assert_eq!(found.len(), 6, "{found:?}");
        assert_eq!(found[&PathBuf::from("data")], (0o700, 65532, 1_000_000));
        assert_eq!(found[&PathBuf::from("b/c/d")], (0o755, 0, 1_000_000));
        assert_eq!(found[&PathBuf::from("b/c")], (0o755, 0, 1_000_000));
    }
}
