//! Debian package of the command and of a service: its files are in `packaging/deb`, dpkg-deb packs it.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use anyhow::Context;

use super::Release;
use super::archive::{compress, read_tree};
use crate::{renew_folder, run_command};

/// Files of the package, as source in the repository, place in the package, and mode.
const FILES: &[(&str, &str, u32)] = &[
    ("packaging/deb/tambour.service", "usr/lib/systemd/system/tambour.service", 0o644),
    ("packaging/deb/sysusers.conf", "usr/lib/sysusers.d/tambour.conf", 0o644),
    ("packaging/deb/tambour.toml", "etc/tambour/tambour.toml", 0o644),
    // Keys: for root alone, who reads the file for the service.
    ("packaging/deb/secrets.env", "etc/tambour/secrets.env", 0o600),
    ("packaging/deb/copyright", "usr/share/doc/tambour/copyright", 0o644),
    ("packaging/deb/postinst", "DEBIAN/postinst", 0o755),
    ("packaging/deb/prerm", "DEBIAN/prerm", 0o755),
    ("packaging/deb/postrm", "DEBIAN/postrm", 0o755),
];

/// Files that an administrator changes; an upgrade keeps them.
const CONFFILES: &str = "/etc/tambour/secrets.env\n/etc/tambour/tambour.toml\n";

/// Maintainer of the package.
const MAINTAINER: &str = "The Tambour authors <packages@tambour.example>";

/// Places of completions.
const COMPLETION_PLACES: &[(&str, &str)] = &[
    ("tambour.bash", "usr/share/bash-completion/completions/tambour"),
    ("_tambour", "usr/share/zsh/vendor-completions/_tambour"),
    ("tambour.fish", "usr/share/fish/vendor_completions.d/tambour.fish"),
];

/// Name of the package file.
pub(super) fn file_name(release: &Release) -> String {
    format!("tambour_{}_{}.deb", release.version, release.architecture())
}

pub(super) fn make(release: &Release) -> anyhow::Result<()> {
    if crate::find_program("dpkg-deb").is_none() {
        println!("{}: left out, dpkg-deb is not installed", file_name(release));
        return Ok(());
    }
    let tree = release.work.join("deb");
    renew_folder(&tree)?;
    let program = std::fs::read(&release.program)?;
    let libraries = library_dependencies(&program);
    write(&tree, "usr/bin/tambour", &program, 0o755)?;
    for (source, place, mode) in FILES {
        write(&tree, place, &release.source(source)?, *mode)?;
    }
    let changes = compress(release, &release.source("CHANGELOG.md")?)?;
    write(&tree, "usr/share/doc/tambour/CHANGELOG.md.gz", &changes, 0o644)?;
    let changelog = compress(release, debian_changelog(release)?.as_bytes())?;
    write(&tree, "usr/share/doc/tambour/changelog.gz", &changelog, 0o644)?;
    for page in read_tree(&release.work.join("man"))? {
        let content = compress(release, &std::fs::read(release.work.join("man").join(&page))?)?;
        write(&tree, &format!("usr/share/man/man1/{}.gz", page.display()), &content, 0o644)?;
    }
    for (file, place) in COMPLETION_PLACES {
        write(&tree, place, &std::fs::read(release.work.join("completions").join(file))?, 0o644)?;
    }
    write(&tree, "DEBIAN/conffiles", CONFFILES.as_bytes(), 0o644)?;
    let kibibytes = installed_size(&tree)?;
    let control = format!(
        "Package: tambour\nVersion: {}\nArchitecture: {}\nMaintainer: {MAINTAINER}\n\
        Installed-Size: {kibibytes}\n{libraries}Pre-Depends: init-system-helpers (>= 1.54~)\n\
        Recommends: ca-certificates\nSection: net\nPriority: optional\n\
        Description: structured replies of language models as one checked stream\n \
        Reads replies of language models while they are written, repairs them, and\n \
        gives one stream of typed, checked events. The package has the command\n \
        tambour and a service for it.\n",
        release.version,
        release.architecture(),
    );
    write(&tree, "DEBIAN/control", control.as_bytes(), 0o644)?;
    let mut dpkg = Command::new("dpkg-deb");
    dpkg.args(["--root-owner-group", "--build"]);
    // xz takes half a minute for a debug build.
    dpkg.args(if release.is_check { ["-Zgzip", "-z1"] } else { ["-Zxz", "-z6"] });
    dpkg.arg(&tree).arg(release.out.join(file_name(release)));
    dpkg.env("SOURCE_DATE_EPOCH", release.epoch.to_string());
    run_command(dpkg.stdout(std::process::Stdio::null()))
}

/// Changelog in the form of Debian; that of the project is beside it.
fn debian_changelog(release: &Release) -> anyhow::Result<String> {
    let time = jiff::Timestamp::from_second(release.epoch.try_into()?)?;
    Ok(format!(
        "tambour ({}) unstable; urgency=medium\n\n  * Changes are in CHANGELOG.md.gz.\n\n -- {MAINTAINER}  {}\n",
        release.version,
        time.strftime("%a, %d %b %Y %H:%M:%S +0000")
    ))
}

/// Writes a file of the package, and the folders above it.
fn write(tree: &Path, place: &str, content: &[u8], mode: u32) -> anyhow::Result<()> {
    let path = tree.join(place);
    let mut folder = tree.to_owned();
    for component in Path::new(place).parent().context("a place is in a folder")?.components() {
        folder.push(component);
        std::fs::create_dir_all(&folder)?;
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755))?;
    }
    std::fs::write(&path, content).with_context(|| path.display().to_string())?;
    Ok(std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode))?)
}

/// Line of the packages that a program with shared libraries needs, empty for a static one: its symbols name
/// the versions of the C library.
fn library_dependencies(program: &[u8]) -> String {
    const MARK: &[u8] = b"GLIBC_2.";
    let mut newest = None;
    for start in memchr::memmem::find_iter(program, MARK) {
        let digits: String = program[start + MARK.len()..]
            .iter()
            .map_while(|byte| byte.is_ascii_digit().then_some(char::from(*byte)))
            .collect();
        newest = newest.max(digits.parse::<u32>().ok());
    }
    newest.map_or_else(String::new, |minor| format!("Depends: libc6 (>= 2.{minor}), libgcc-s1\n"))
}

/// Size of the files in KiB, as the control file says it.
fn installed_size(tree: &Path) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for path in read_tree(tree)? {
        bytes += std::fs::metadata(tree.join(path))?.len().next_multiple_of(4096);
    }
    Ok(bytes / 1024)
}

#[cfg(test)]
mod tests {
    use super::library_dependencies;

    #[test]
    fn dependencies_are_those_of_the_newest_symbol() {
        let program = b"\0GLIBC_2.4\0GLIBC_2.34\0GLIBC_2.17\0";
        assert_eq!(library_dependencies(program), "Depends: libc6 (>= 2.34), libgcc-s1\n");
        assert_eq!(library_dependencies(b"static"), "");
    }
}
