//! The list of breakages, and where in the sources each one is.

use std::ops::Range;
use std::path::Path;

use anyhow::Context;
use serde::Deserialize;

/// One breakage.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Breakage {
    /// What goes wrong with it.
    pub(super) name: String,
    /// The file it is in, from the root of the repository.
    pub(super) file: String,
    /// A text that the file holds once. Any white space in it stands for any white space.
    find: String,
    /// What is put in its place.
    put: String,
    /// The tests that must fail, by parts of their names; any of the package when there are none.
    #[serde(default)]
    pub(super) fails: Vec<String>,
    /// Whether these are unit tests of the package, instead of its integration tests.
    #[serde(default)]
    pub(super) unit: bool,
    /// The list it is from.
    #[serde(skip)]
    list: String,
}

/// A file of the list.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    breakage: Vec<Breakage>,
}

/// All breakages.
pub(super) fn read(root: &Path) -> anyhow::Result<Vec<Breakage>> {
    let mut all = Vec::new();
    for path in tambour_fixtures::files(&root.join("xtask/mutants"), "toml").map_err(anyhow::Error::msg)? {
        let shown = || path.strip_prefix(root).unwrap_or(&path).display().to_string();
        let text = std::fs::read_to_string(&path).with_context(shown)?;
        let List { breakage } = toml::from_str(&text).with_context(shown)?;
        all.extend(breakage.into_iter().map(|breakage| Breakage { list: shown(), ..breakage }));
    }
    Ok(all)
}

/// Fails when a text is not where the list says, with all that is stale at once.
pub(super) fn check(root: &Path, breakages: &[Breakage]) -> anyhow::Result<()> {
    let stale: Vec<String> = breakages
        .iter()
        .filter_map(|breakage| breakage.broken(root).err().map(|error| format!("{error:#}")))
        .collect();
    anyhow::ensure!(stale.is_empty(), "{} breakages are stale:\n{}", stale.len(), stale.join("\n"));
    Ok(())
}

impl Breakage {
    pub(super) fn is_about(&self, word: &str) -> bool {
        [&self.name, &self.file, &self.list].iter().any(|text| text.contains(word))
    }

    /// The package whose tests must notice it.
    pub(super) fn package(&self) -> &str {
        self.file.split('/').nth(1).unwrap_or_default()
    }

    /// The file below `root` with the breakage in it.
    pub(super) fn broken(&self, root: &Path) -> anyhow::Result<String> {
        let Breakage { list, name, file, find, .. } = self;
        let text =
            std::fs::read_to_string(root.join(file)).with_context(|| format!("{list}, `{name}`: {file}"))?;
        let places = places(&text, find);
        let [place] = places.as_slice() else {
            let found = if places.is_empty() { "not" } else { "more than once" };
            anyhow::bail!(
                "{list}, `{name}`: its text is {found} in {file}; look for what stands there now: {}",
                find.trim()
            );
        };
        Ok(format!("{}{}{}", &text[..place.start], self.put.trim(), &text[place.end..]))
    }
}

/// Where `find` stands in `text`, whatever the white space.
fn places(text: &str, find: &str) -> Vec<Range<usize>> {
    let words: Vec<&str> = find.split_whitespace().collect();
    let Some(first) = words.first() else { return Vec::new() };
    let fits = |start: usize| {
        let mut rest = &text[start..];
        for (place, word) in words.iter().enumerate() {
            let before = rest.len();
            rest = if place > 0 { rest.trim_start() } else { rest };
            if place > 0 && rest.len() == before {
                return None;
            }
            rest = rest.strip_prefix(word)?;
        }
        Some(start..text.len() - rest.len())
    };
    text.match_indices(first).filter_map(|(start, _)| fits(start)).collect()
}

#[cfg(test)]
mod tests {
    use super::{check, places, read};

    #[test]
    fn the_list_is_not_stale() {
        let root = crate::root();
        let breakages = read(&root).unwrap();
        assert!(breakages.len() > 60);
        check(&root, &breakages).unwrap();
        for breakage in &breakages {
            assert!(root.join("crates").join(breakage.package()).is_dir(), "{}", breakage.name);
        }
    }

    #[test]
    fn texts_are_found_whatever_the_white_space() {
        assert_eq!(places("let a =\n    b;", "a = b;"), vec![4..14]);
        assert_eq!(places("x x", "x").len(), 2);
        assert!(places("ab", "a b").is_empty());
        assert!(places("a b", "ab").is_empty());
        assert!(places("a b", " ").is_empty());
    }
}
