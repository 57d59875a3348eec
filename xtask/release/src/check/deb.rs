//! The Debian package, installed with dpkg into a copy of this system that is thrown away: an overlay in a mount
//! namespace.

use std::process::Command;

use anyhow::Context;

use super::{Outcome, is_root};
use crate::dist::Release;
use crate::{find_program, read_command, renew_folder};

/// Highest exposure that `systemd-analyze security` may compute for the service, in tenths.
const MAX_EXPOSURE: &str = "15";

/// Script for a root whose package manager has the package installed, changed and purged.
const SCRIPT: &str = include_str!("deb.sh");

pub(super) fn check(release: &Release) -> anyhow::Result<Outcome> {
    let package = std::fs::read_dir(&release.out)?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|extension| extension == "deb"));
    let Some(package) = package else {
        return Ok(Outcome::Omission("there is none, dpkg-deb is not installed".to_owned()));
    };
    let mut remarks = Vec::new();
    match check_service()? {
        Some(exposure) => remarks.push(exposure),
        None => remarks.push("the service was not analysed, systemd-analyze is not installed".to_owned()),
    }
    if find_program("lintian").is_some() {
        let mut lintian = Command::new("lintian");
        read_command(lintian.args(["--fail-on", "error"]).arg(&package))?;
    }
    let work = release.work.join("check-deb");
    renew_folder(&work)?;
    if !is_root() || find_program("unshare").is_none() || find_program("dpkg").is_none() {
        // Without rights, at least the program of the package runs.
        let root = work.join("root");
        read_command(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&root))?;
        read_command(Command::new(root.join("usr/bin/tambour")).arg("--version"))?;
        return Ok(Outcome::Omission(format!(
            "an installation needs dpkg, unshare and an administrator; its program runs ({})",
            remarks.join(", ")
        )));
    }
    for folder in ["upper", "inner", "root"] {
        std::fs::create_dir(work.join(folder))?;
    }
    let mut script = Command::new("unshare");
    script.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", SCRIPT]);
    script.env("WORK", &work).env("PACKAGE", &package);
    read_command(&mut script)?;
    std::fs::remove_dir_all(&work).with_context(|| work.display().to_string())?;
    Ok(Outcome::Success(remarks.join(", ")))
}

/// Checks how exposed the service is. Returns the line of the result.
fn check_service() -> anyhow::Result<Option<String>> {
    if find_program("systemd-analyze").is_none() {
        return Ok(None);
    }
    let unit = crate::repository_root().join("packaging/deb/tambour.service");
    let mut analyze = Command::new("systemd-analyze");
    analyze.args(["security", "--offline=true", "--no-pager", &format!("--threshold={MAX_EXPOSURE}")]);
    let report = read_command(analyze.arg(&unit))?;
    let line = report.lines().rev().find(|line| line.contains("exposure level"));
    let line = line.map(|line| line.trim_start_matches(|c: char| !c.is_ascii_alphabetic()).to_owned());
    Ok(Some(line.context("systemd-analyze says the exposure level")?))
}
