//! Lists of breakages (deliberate faults in sources), and their application.

use std::ops::Range;
use std::path::Path;

use anyhow::Context;
use serde::Deserialize;

/// Deliberate fault in a source file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Breakage {
    /// Description of the fault.
    pub(super) name: String,
    /// Path of the file, from the root of the repository.
    pub(super) file: String,
    /// Text that occurs once in the file. White space in it matches any white space.
    find: String,
    /// Text that replaces it.
    put: String,
    /// Parts of the names of tests that must fail; if empty, any test of the package.
    #[serde(default)]
    pub(super) fails: Vec<String>,
    /// True if these are unit tests of the package rather than integration tests.
    #[serde(default)]
    pub(super) unit: bool,
    /// Path of the file that lists the breakage.
    #[serde(skip)]
    list: String,
}

/// File with a list of breakages.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BreakageFile {
    breakage: Vec<Breakage>,
}

/// Reads all lists below `xtask/mutants`.
pub(super) fn read_breakages(root: &Path) -> anyhow::Result<Vec<Breakage>> {
    let mut breakages = Vec::new();
    for path in
        tambour_fixtures::list_files(&root.join("xtask/mutants"), "toml").map_err(anyhow::Error::msg)?
    {
        let shown_path = || path.strip_prefix(root).unwrap_or(&path).display().to_string();
        let text = std::fs::read_to_string(&path).with_context(shown_path)?;
        let BreakageFile { breakage } = toml::from_str(&text).with_context(shown_path)?;
        breakages.extend(breakage.into_iter().map(|breakage| Breakage { list: shown_path(), ..breakage }));
    }
    Ok(breakages)
}

/// Checks that the text of each breakage occurs once in its file.
///
/// # Errors
/// A breakage is stale; the message names all that are.
pub(super) fn check_breakages(root: &Path, breakages: &[Breakage]) -> anyhow::Result<()> {
    let stale: Vec<String> = breakages
        .iter()
        .filter_map(|breakage| breakage.apply(root).err().map(|error| format!("{error:#}")))
        .collect();
    anyhow::ensure!(stale.is_empty(), "{} breakages are stale:\n{}", stale.len(), stale.join("\n"));
    Ok(())
}

impl Breakage {
    /// Returns `true` if description, file or list contain a word of the command line.
    pub(super) fn is_about(&self, word: &str) -> bool {
        [&self.name, &self.file, &self.list].iter().any(|text| text.contains(word))
    }

    /// Package whose tests must fail: the package of the file, or `tambour-server` for packages that its
    /// tests cover.
    pub(super) fn package(&self) -> &str {
        match self.file.split('/').nth(1).unwrap_or_default() {
            "tambour-store" | "tambour-upstream" if !self.unit => "tambour-server",
            package => package,
        }
    }

    /// Returns the text of the file below `root` with the breakage applied; the file is not changed.
    pub(super) fn apply(&self, root: &Path) -> anyhow::Result<String> {
        let Breakage { list, name, file, find, .. } = self;
        let text =
            std::fs::read_to_string(root.join(file)).with_context(|| format!("{list}, `{name}`: {file}"))?;
        let places = find_places(&text, find);
        let [place] = places.as_slice() else {
            let found = if places.is_empty() { "is not" } else { "occurs more than once" };
            anyhow::bail!(
                "{list}, `{name}`: its text {found} in {file}; find what replaced it: {}",
                find.trim()
            );
        };
        Ok(format!("{}{}{}", &text[..place.start], self.put.trim(), &text[place.end..]))
    }
}

/// Finds the places in `text` that have the words of `find` in order, with any white space between them.
fn find_places(text: &str, find: &str) -> Vec<Range<usize>> {
    let words: Vec<&str> = find.split_whitespace().collect();
    let Some(first_word) = words.first() else { return Vec::new() };
    let matches_at = |start: usize| {
        let mut remaining = &text[start..];
        for (index, word) in words.iter().enumerate() {
            let len_before = remaining.len();
            remaining = if index > 0 { remaining.trim_start() } else { remaining };
            // Words of `find` must be separated by white space in the text too.
            if index > 0 && remaining.len() == len_before {
                return None;
            }
            remaining = remaining.strip_prefix(word)?;
        }
        Some(start..text.len() - remaining.len())
    };
    text.match_indices(first_word).filter_map(|(start, _)| matches_at(start)).collect()
}

#[cfg(test)]
mod tests {
    use super::{check_breakages, find_places, read_breakages};

    #[test]
    fn the_list_is_not_stale() {
        let root = crate::repository_root();
        let breakages = read_breakages(&root).unwrap();
        assert!(breakages.len() > 60);
        check_breakages(&root, &breakages).unwrap();
        for breakage in &breakages {
            assert!(root.join("crates").join(breakage.package()).is_dir(), "{}", breakage.name);
        }
    }

    #[test]
    fn texts_are_found_whatever_the_white_space() {
        assert_eq!(find_places("let a =\n    b;", "a = b;"), vec![4..14]);
        assert_eq!(find_places("x x", "x").len(), 2);
        assert!(find_places("ab", "a b").is_empty());
        assert!(find_places("a b", "ab").is_empty());
        assert!(find_places("a b", " ").is_empty());
    }
}
