//! Titles of the tests of the studio, which name rows of the specification.

use std::path::{Path, PathBuf};

use anyhow::Context;

/// Test of the studio.
pub(super) struct TitledTest {
    /// Title as written in the source.
    pub(super) title: String,
    /// File and line, as `FILE:LINE`.
    pub(super) place: String,
}

/// Finds the studio's tests below `root`: those of its logic are next to the sources, those of its pages in
/// `tests`.
pub(super) fn find_tests(root: &Path) -> anyhow::Result<Vec<TitledTest>> {
    let mut found = Vec::new();
    for folder in ["studio/src", "studio/tests"] {
        walk_folder(&root.join(folder), root, &mut found)?;
    }
    Ok(found)
}

/// Adds the tests below a folder to `found`.
fn walk_folder(folder: &Path, root: &Path, found: &mut Vec<TitledTest>) -> anyhow::Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            walk_folder(&path, root, found)?;
        } else if name.ends_with(".test.ts") || name.ends_with(".test.tsx") {
            let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            let file = path.strip_prefix(root).unwrap_or(&path).display();
            let titles = text.lines().enumerate().filter_map(|(line, text)| Some((line, test_title(text)?)));
            let tests = titles.map(|(line, title)| TitledTest {
                title: title.to_owned(),
                place: format!("{file}:{}", line + 1),
            });
            found.extend(tests);
        }
    }
    Ok(())
}

/// Returns the title of the test that a line begins; skipped tests do not count.
fn test_title(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let arguments = line.strip_prefix("test(").or_else(|| line.strip_prefix("it("))?;
    let quote = arguments.chars().next().filter(|quote| "\"'`".contains(*quote))?;
    arguments[1..].split(quote).next()
}

#[cfg(test)]
mod tests {
    use super::test_title;

    #[test]
    fn only_tests_that_run_have_titles() {
        assert_eq!(test_title("  it(\"counts (S-090)\", () => {"), Some("counts (S-090)"));
        assert_eq!(test_title("test(`a ${language}`, async () => {"), Some("a ${language}"));
        for line in ["it.skip(\"x\", () => {", "// it(\"x\", () => {", "submit(\"x\")", "it(name, () => {"] {
            assert_eq!(test_title(line), None, "{line}");
        }
    }
}
