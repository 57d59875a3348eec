//! `cargo xtask fixtures`: copies the corpora into the repository, and writes the seeds of the fuzz targets.

use std::path::{Path, PathBuf};

use anyhow::Context;
use tambour_fixtures::{imports, targets};

/// Dialects whose corpora are in the repository.
const DIALECTS: &[&str] = &["thinkingml", "jsonseq", "aiplan", "filament", "ai_say"];

/// Folders of the corpora: in the shared folder, and below `fixtures`.
const CORPUS_FOLDERS: &[(&str, &str)] = &[("authored", "authored"), ("real-llm", "recorded")];

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    anyhow::ensure!(arguments.is_empty(), "`fixtures` takes no arguments");
    let root = crate::repository_root();
    copy_corpora(&root)?;
    write_seeds(&root)
}

/// Copies the corpora from the shared folder, if it exists.
fn copy_corpora(root: &Path) -> anyhow::Result<()> {
    let Some(shared_folder) = corpora_folder(root) else {
        println!("the corpora stay as they are: there is no folder to copy them from");
        return Ok(());
    };
    for (from_folder, to_folder) in CORPUS_FOLDERS {
        for dialect in DIALECTS {
            let from = shared_folder.join(from_folder).join(format!("{dialect}.jsonl"));
            let to = root.join("fixtures").join(to_folder).join(format!("{dialect}.jsonl"));
            copy_checked(&from, &to).with_context(|| format!("{} to {}", from.display(), to.display()))?;
        }
    }
    Ok(())
}

/// Maximum length of the input of a fuzz seed, in bytes.
const MAX_SEED_BYTES: usize = 500;
/// Number of seeds of a fuzz target.
const SEEDS_PER_TARGET: usize = 16;

/// Writes the seeds of the fuzz targets: for each dialect some of its short fixtures, evenly spread, and for
/// the other targets random inputs.
fn write_seeds(root: &Path) -> anyhow::Result<()> {
    let mut fixtures = tambour_fixtures::load_fixtures(&root.join("fixtures")).map_err(anyhow::Error::msg)?;
    fixtures.retain(|fixture| fixture.input.len() <= MAX_SEED_BYTES);
    for entry in tambour::dialect::DIALECTS {
        let dialect_fixtures: Vec<_> =
            fixtures.iter().filter(|fixture| fixture.dialect == entry.name).collect();
        let step = dialect_fixtures.len().div_ceil(SEEDS_PER_TARGET).max(1);
        let folder = root.join("fuzz/corpus").join(entry.name);
        if folder.is_dir() {
            std::fs::remove_dir_all(&folder)?;
        }
        std::fs::create_dir_all(&folder)?;
        for (number, fixture) in dialect_fixtures.iter().step_by(step).enumerate() {
            // The fuzz targets of dialects take cuts, options and end from the first two bytes.
            let mut seed = vec![number as u8, number as u8];
            seed.extend(&fixture.input);
            std::fs::write(folder.join(format!("seed-{number:02}")), seed)?;
        }
    }
    let replies = tambour_fixtures::words::ReplyPool::load().map_err(anyhow::Error::msg)?;
    let [json_folder, words_folder, import_folder, skein_folder] =
        ["json", "words", "import", "skein"].map(|name| root.join("fuzz/corpus").join(name));
    for folder in [&json_folder, &words_folder, &import_folder, &skein_folder] {
        std::fs::create_dir_all(folder)?;
    }
    for number in 0..SEEDS_PER_TARGET as u64 {
        let seed = targets::random_json_input(&mut tambour_fixtures::random::RandomSource::new(number));
        std::fs::write(json_folder.join(format!("seed-{number:02}")), seed)?;
        let seed = imports::file_input(&mut tambour_fixtures::random::RandomSource::new(number));
        std::fs::write(import_folder.join(format!("seed-{number:02}")), seed)?;
        let seed = imports::skein_input(&mut tambour_fixtures::random::RandomSource::new(number));
        std::fs::write(skein_folder.join(format!("seed-{number:02}")), seed)?;
        let seed = targets::random_words_input(number as usize, number, &replies);
        std::fs::write(words_folder.join(format!("seed-{number:02}")), seed)?;
    }
    Ok(())
}

/// Shared folder of the corpora, next to the repository; `None` if there is none.
fn corpora_folder(root: &Path) -> Option<PathBuf> {
    let folder = root.parent()?.join("shared/corpus");
    folder.is_dir().then_some(folder)
}

/// Copies a `.jsonl` file, if it changed, after checking that each line has the keys of a reply.
fn copy_checked(from: &Path, to: &Path) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(from)?;
    for (number, line) in text.lines().enumerate() {
        let value: serde_json::Value =
            serde_json::from_str(line).with_context(|| format!("line {}", number + 1))?;
        let keys = ["id", "protocol", "chunks", "finish_reason"];
        let is_complete = keys.iter().all(|key| !value[key].is_null());
        anyhow::ensure!(is_complete, "line {} lacks a key", number + 1);
    }
    if std::fs::read_to_string(to).is_ok_and(|old_text| old_text == text) {
        return Ok(());
    }
    if let Some(folder) = to.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(to, &text)?;
    println!("{}: {} replies", to.display(), text.lines().count());
    Ok(())
}
