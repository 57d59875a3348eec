//! Source files that the test run compiles: the roots of test targets, and the files of their modules.

use std::path::{Path, PathBuf};

use anyhow::Context;

use super::rust::{self, SourceScan};

/// Reads each source file that is part of a test target.
pub(super) fn read_sources(root: &Path) -> anyhow::Result<Vec<(PathBuf, SourceScan)>> {
    let mut sources = Vec::new();
    for member in member_folders(root)? {
        for target in target_roots(&root.join(member))? {
            add_modules(&target, true, &mut sources)?;
        }
    }
    Ok(sources)
}

/// Lists the folders of the packages in the workspace.
fn member_folders(root: &Path) -> anyhow::Result<Vec<String>> {
    let manifest = read_file(&root.join("Cargo.toml"))?;
    let (_, list) = manifest.split_once("\nmembers = [").context("Cargo.toml names no members")?;
    let list = list.split(']').next().unwrap_or_default();
    Ok(list.split('"').skip(1).step_by(2).map(str::to_owned).collect())
}

/// Lists the root files of the test targets of a package.
fn target_roots(package: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let manifest = read_file(&package.join("Cargo.toml"))?;
    let mut targets = Vec::new();
    for (section, file) in [("[lib]", "src/lib.rs"), ("[[bin]]", "src/main.rs")] {
        let file = package.join(file);
        if file.is_file() && !is_switched_off(&manifest, section) {
            targets.push(file);
        }
    }
    let tests = package.join("tests");
    if tests.is_dir() {
        for entry in std::fs::read_dir(&tests).with_context(|| tests.display().to_string())? {
            let path = entry?.path();
            let file = if path.is_dir() { path.join("main.rs") } else { path };
            if file.is_file() && file.extension().is_some_and(|extension| extension == "rs") {
                targets.push(file);
            }
        }
    }
    targets.sort();
    Ok(targets)
}

/// Returns `true` if a section of a manifest has `test = false`.
fn is_switched_off(manifest: &str, section: &str) -> bool {
    let lines = manifest.lines().map(str::trim).skip_while(|line| *line != section).skip(1);
    lines.take_while(|line| !line.starts_with('[')).any(|line| line.replace(' ', "") == "test=false")
}

/// Adds a file and the files of its modules to `sources`. If `is_root` is true, the file is the root of a
/// target, and its modules are in the same folder.
fn add_modules(file: &Path, is_root: bool, sources: &mut Vec<(PathBuf, SourceScan)>) -> anyhow::Result<()> {
    let source = rust::scan_source(&read_file(file)?);
    let folder = file.parent().unwrap_or(file);
    let module_folder = if is_root || file.file_name().is_some_and(|name| name == "mod.rs") {
        folder.to_path_buf()
    } else {
        file.with_extension("")
    };
    let modules = source.modules.clone();
    sources.push((file.to_path_buf(), source));
    for (name, path) in modules {
        let candidates = match path {
            Some(path) => vec![folder.join(path)],
            None => vec![module_folder.join(format!("{name}.rs")), module_folder.join(&name).join("mod.rs")],
        };
        // The file of a module declared within a block is in another folder; such modules have no tests.
        if let Some(candidate) = candidates.into_iter().find(|candidate| candidate.is_file()) {
            add_modules(&candidate, false, sources)?;
        }
    }
    Ok(())
}

fn read_file(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::is_switched_off;

    #[test]
    fn a_target_is_switched_off_in_its_own_section_only() {
        let manifest = "[package]\ntest = true\n\n[lib]\ndoctest = false\ntest = false\n\n[dependencies]\n";
        assert!(is_switched_off(manifest, "[lib]"));
        assert!(!is_switched_off(manifest, "[[bin]]"));
        assert!(!is_switched_off("[lib]\n\n[x]\ntest = false\n", "[lib]"));
    }
}
