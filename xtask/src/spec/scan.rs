//! Which rows the tests name: comments of test sources, and `spec` lists of fixtures.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use serde_json::Value;
use tambour_fixtures::Fixture;

use super::table::is_id;

/// Folders that hold no tests of ours.
const SKIPPED: &[&str] = &["target", "node_modules", "dist", "authored", "recorded", "corpus"];

/// Rows with the places that name them.
pub(super) fn read(root: &Path) -> anyhow::Result<BTreeMap<String, Vec<String>>> {
    let mut tests = Tests::default();
    for folder in ["crates", "xtask", "fuzz", "studio", "fixtures"] {
        let folder = root.join(folder);
        if folder.is_dir() {
            tests.folder(root, &folder)?;
        }
    }
    for fixture in fixtures(root)? {
        for row in &fixture.spec {
            tests.name(row, &fixture.name);
        }
    }
    Ok(tests.rows)
}

/// Fixtures that say something about a dialect the library reads.
pub(super) fn fixtures(root: &Path) -> anyhow::Result<Vec<Fixture>> {
    let mut fixtures = tambour_fixtures::load(&root.join("fixtures")).map_err(anyhow::Error::msg)?;
    fixtures.retain(|fixture| fixture.expect.says_something() && readable(&fixture.dialect));
    Ok(fixtures)
}

fn readable(dialect: &str) -> bool {
    dialect == tambour_fixtures::reading::TRANSCRIPT || tambour::dialect::entry(dialect).is_ok()
}

#[derive(Default)]
struct Tests {
    rows: BTreeMap<String, Vec<String>>,
}

impl Tests {
    /// Resolutions (R) are reasons for rows, not rows.
    fn name(&mut self, row: &str, place: &str) {
        if row.starts_with("R-") {
            return;
        }
        self.rows.entry(row.to_owned()).or_default().push(place.to_owned());
    }

    fn folder(&mut self, root: &Path, folder: &Path) -> anyhow::Result<()> {
        for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                if !SKIPPED.contains(&name.as_str()) {
                    self.folder(root, &path)?;
                }
                continue;
            }
            let below = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            let extension = path.extension().unwrap_or_default().to_string_lossy().into_owned();
            match extension.as_str() {
                "rs" | "ts" | "tsx" | "js" | "mjs" | "py" => self.source(&path, &below)?,
                "json" | "jsonl" if !name.ends_with(".expect.json") => self.data(&path, &below)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Comments of a test source, or of the tests at the end of another source.
    fn source(&mut self, path: &Path, below: &str) -> anyhow::Result<()> {
        let text = std::fs::read_to_string(path).with_context(|| below.to_owned())?;
        let parts: Vec<&str> = below.split(['/', '\\']).collect();
        let all = parts.iter().any(|part| matches!(*part, "tests" | "tests.rs" | "test"));
        let from = if all { 0 } else { text.find("#[cfg(test)]").unwrap_or(text.len()) };
        let before = text[..from].lines().count();
        for (number, line) in text[from..].lines().enumerate() {
            let mark = if below.ends_with(".py") { "#" } else { "//" };
            let Some((_, comment)) = line.split_once(mark) else { continue };
            if comment.starts_with('!') {
                continue;
            }
            for id in ids(comment) {
                self.name(id, &format!("{below}:{}", before + number + 1));
            }
        }
        Ok(())
    }

    /// `spec` lists of data files that are no fixtures of replies.
    fn data(&mut self, path: &Path, below: &str) -> anyhow::Result<()> {
        let text = std::fs::read_to_string(path).with_context(|| below.to_owned())?;
        let values: Vec<Value> = match serde_json::from_str(&text) {
            Ok(Value::Array(list)) => list,
            Ok(value) => vec![value],
            Err(_) => text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect(),
        };
        for value in values.iter().filter(|value| value["dialect"].is_null()) {
            let rows = value["spec"].as_array().into_iter().flatten();
            for row in rows.filter_map(Value::as_str) {
                self.name(row, below);
            }
        }
        Ok(())
    }
}

/// The ids in a text.
fn ids(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    words.filter(|word| is_id(word))
}
