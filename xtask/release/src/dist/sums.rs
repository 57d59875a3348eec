//! Checksums of the artefacts, and the Homebrew formula, which has one of them.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context;
use sha2::{Digest, Sha256};

use super::Release;
use super::archive::read_tree;

/// SHA-256 of bytes, in hexadecimal digits.
pub(crate) fn hex_digest(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in Sha256::digest(bytes) {
        write!(text, "{byte:02x}").expect("a string takes any text");
    }
    text
}

/// Writes `SHA256SUMS` of all files in the form of `sha256sum`.
pub(super) fn write_sums(out: &Path) -> anyhow::Result<()> {
    let mut text = String::new();
    for path in read_tree(out)? {
        let digest = hex_digest(&std::fs::read(out.join(&path))?);
        writeln!(text, "{digest}  {}", path.display())?;
    }
    Ok(std::fs::write(out.join("SHA256SUMS"), text)?)
}

/// Writes the formula with the address and the checksum of the tarball of this platform.
pub(super) fn write_formula(release: &Release) -> anyhow::Result<()> {
    let formula = String::from_utf8(release.source("packaging/homebrew/tambour.rb")?)?;
    let name = format!("tambour-{}-{}.tar.gz", release.version, release.target);
    let digest = hex_digest(&std::fs::read(release.out.join(&name))?);
    let url = format!("{}/{name}", release.base_url);
    let formula =
        fill_formula(&formula, &release.version, &url, &digest).context("packaging/homebrew/tambour.rb")?;
    Ok(std::fs::write(release.out.join("tambour.rb"), formula)?)
}

/// Replaces the values of `version`, `url` and `sha256`.
fn fill_formula(formula: &str, version: &str, url: &str, digest: &str) -> anyhow::Result<String> {
    let mut filled = formula.to_owned();
    for (key, value) in [("version", version), ("url", url), ("sha256", digest)] {
        let line = formula.lines().find(|line| line.trim_start().starts_with(&format!("{key} \"")));
        let line = line.with_context(|| format!("the formula has no line `{key}`"))?;
        let indentation = &line[..line.len() - line.trim_start().len()];
        filled = filled.replacen(line, &format!("{indentation}{key} \"{value}\""), 1);
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::{fill_formula, hex_digest};

    #[test]
    fn formulas_get_their_values() {
        let formula = "class A\n  version \"0\"\n  url \"x\"\n  sha256 \"y\"\nend\n";
        let filled = fill_formula(formula, "1.0", "https://a/b", &hex_digest(b"")).unwrap();
        assert_eq!(
            filled,
            "class A\n  version \"1.0\"\n  url \"https://a/b\"\n  sha256 \"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"\nend\n"
        );
        assert!(fill_formula("class A\nend\n", "1", "u", "d").is_err());
    }
}
