//! Tarball of the command, with completions and manual pages.

use std::path::Path;

use super::Release;
use super::archive::{Entries, add_file, add_tree, write_compressed};

/// Documents beside the program.
const DOCUMENTS: &[&str] = &["CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "README.md"];

pub(super) fn make(release: &Release) -> anyhow::Result<()> {
    let name = format!("tambour-{}-{}", release.version, release.target);
    let top = Path::new(&name);
    let mut entries = Entries::new();
    add_file(&mut entries, top.join("tambour"), std::fs::read(&release.program)?, 0o755);
    for document in DOCUMENTS {
        add_file(&mut entries, top.join(document), release.source(document)?, 0o644);
    }
    add_tree(&mut entries, &top.join("completions"), &release.work.join("completions"))?;
    add_tree(&mut entries, &top.join("man/man1"), &release.work.join("man"))?;
    write_compressed(release, &format!("{name}.tar.gz"), &entries)
}
