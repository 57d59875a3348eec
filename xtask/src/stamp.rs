//! Stamp of a proof, which is a slow check such as `cargo xtask work`. A proof need not be repeated while its
//! inputs, which the stamp identifies, are unchanged.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

/// Hash of the inputs of a proof, and the file with the hash of the last successful proof.
pub(crate) struct ProofStamp {
    hash: String,
    file: PathBuf,
}

impl ProofStamp {
    /// Hashes all files at or below `paths` (relative to `root`), the version of the compiler, and the output
    /// of `commands`. `name` is the file name of the stored hash.
    pub(crate) fn compute(
        root: &Path,
        name: &str,
        paths: &[&str],
        commands: &[&[&str]],
    ) -> anyhow::Result<ProofStamp> {
        let mut hasher = DefaultHasher::new();
        for path in paths {
            for file in list_files(root.join(path))? {
                let bytes = std::fs::read(&file).with_context(|| file.display().to_string())?;
                file.strip_prefix(root).unwrap_or(&file).hash(&mut hasher);
                bytes.hash(&mut hasher);
            }
        }
        for command in [["rustc", "--version", "--verbose"].as_slice()].iter().chain(commands) {
            let output = Command::new(command[0]).args(&command[1..]).current_dir(root).output();
            output.with_context(|| command.join(" "))?.stdout.hash(&mut hasher);
        }
        let folder = target_folder()?.join("stamps");
        Ok(ProofStamp { hash: format!("{:016x}\n", hasher.finish()), file: folder.join(name) })
    }

    /// Returns `true` if the last successful proof had the same inputs.
    pub(crate) fn is_current(&self) -> bool {
        std::fs::read_to_string(&self.file).is_ok_and(|stored_hash| stored_hash == self.hash)
    }

    /// Stores the hash after a successful proof.
    pub(crate) fn store(&self) -> anyhow::Result<()> {
        if let Some(folder) = self.file.parent() {
            std::fs::create_dir_all(folder)?;
        }
        Ok(std::fs::write(&self.file, &self.hash)?)
    }
}

/// Lists a file, or all files below a folder, sorted by path.
fn list_files(path: PathBuf) -> anyhow::Result<Vec<PathBuf>> {
    let (mut found, mut pending) = (Vec::new(), vec![path]);
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            for entry in std::fs::read_dir(&path).with_context(|| path.display().to_string())? {
                pending.push(entry?.path());
            }
        } else {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Target folder of the build that made this program.
pub(crate) fn target_folder() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let folder = program.parent().and_then(Path::parent).context("this program is in no target folder")?;
    Ok(folder.to_owned())
}

#[cfg(test)]
mod tests {
    use super::ProofStamp;

    #[test]
    fn only_changes_of_the_inputs_change_the_hash() {
        let root = std::env::temp_dir().join(format!("tambour-stamp-{}", std::process::id()));
        std::fs::create_dir_all(root.join("src/inner")).unwrap();
        let write = |name: &str, text: &str| std::fs::write(root.join(name), text).unwrap();
        write("src/inner/a.rs", "1");
        write("alone", "1");
        let stamp = || ProofStamp::compute(&root, "test", &["src", "alone"], &[]).unwrap().hash;
        let first = stamp();
        assert_eq!(stamp(), first);
        write("src/inner/a.rs", "2");
        let second = stamp();
        assert_ne!(second, first);
        write("src/b.rs", "");
        assert_ne!(stamp(), second);
        write("src/inner/a.rs", "1");
        std::fs::remove_file(root.join("src/b.rs")).unwrap();
        write("elsewhere", "1");
        assert_eq!(stamp(), first);
        std::fs::remove_dir_all(&root).unwrap();
    }
}
