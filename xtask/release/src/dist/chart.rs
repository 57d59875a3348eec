//! Helm chart, packed as `helm package` does.

use std::path::Path;

use anyhow::Context;

use super::Release;
use super::archive::{Entries, add_file, add_tree, write_compressed};
use crate::repository_root;

pub(super) fn make(release: &Release) -> anyhow::Result<()> {
    let mut entries = Entries::new();
    add_tree(&mut entries, Path::new("tambour"), &repository_root().join("packaging/helm/tambour"))?;
    let chart = String::from_utf8(release.source("packaging/helm/tambour/Chart.yaml")?)?;
    let chart = set_version(&chart, &release.version).context("packaging/helm/tambour/Chart.yaml")?;
    add_file(&mut entries, "tambour/Chart.yaml", chart.into_bytes(), 0o644);
    write_compressed(release, &format!("helm/tambour-{}.tgz", release.version), &entries)
}

/// Chart with the version of the release as its own and as that of the program.
fn set_version(chart: &str, version: &str) -> anyhow::Result<String> {
    let mut lines: Vec<String> = chart.lines().map(str::to_owned).collect();
    for (key, value) in [("version:", version.to_owned()), ("appVersion:", format!("\"{version}\""))] {
        let line = lines.iter_mut().find(|line| line.starts_with(key));
        *line.with_context(|| format!("no line `{key}`"))? = format!("{key} {value}");
    }
    Ok(lines.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::set_version;

    #[test]
    fn the_version_is_that_of_the_release() {
        let chart = set_version("name: a\nversion: 0.0.0\nappVersion: \"0\"\n", "1.2.3").unwrap();
        assert_eq!(chart, "name: a\nversion: 1.2.3\nappVersion: \"1.2.3\"\n");
        assert!(set_version("name: a\n", "1").is_err());
    }
}
