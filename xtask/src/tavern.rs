//! `cargo xtask tavern FOLDER`: compares results of the published package of SillyTavern with ours, for the
//! rows of `tests/sillytavern`.
//!
//! `FOLDER` is the unpacked npm package (`npm pack sillytavern@1.19.0`), which is not part of the repository;
//! `npm ci` in `tests/sillytavern` installs its dependencies.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Map, Value, json};
use tambour_prompt::card;
use tambour_prompt::jinja::{Assembly, Engine, PromptContext, UndefinedMode};
use tambour_prompt::lore::{
    CharacterText, ChatLine, LoreEntry, LoreScan, LoreSlots, ScanSettings, TimedEffects, activate,
};
use tambour_prompt::macros::migrate_foreign;

/// Folder of the rows and of the script that runs SillyTavern on them.
const ROWS_FOLDER: &str = "tests/sillytavern";

/// Minimum number of equal rows in 100.
const MIN_EQUAL_ROWS: usize = 97;

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let folder = crate::repository_root().join(ROWS_FOLDER);
    let Some(package) = arguments.iter().find(|argument| !argument.starts_with("--")) else {
        println!("no folder of the package is given; nothing to compare");
        return Ok(());
    };
    let package = Path::new(package).canonicalize().with_context(|| format!("{package} is not there"))?;
    let output =
        Command::new("node").arg("run.mjs").arg(package).current_dir(&folder).output().context("node")?;
    ensure!(output.status.success(), "node: {}", String::from_utf8_lossy(&output.stderr));
    let expected_rows: BTreeMap<String, Value> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).map(|row| (row_name(&row), row)))
        .collect::<Result<_, _>>()?;
    let text = std::fs::read_to_string(folder.join("context.json"))?;
    let context: Value = serde_json::from_str(&text)?;
    let mut low_rates = Vec::new();
    for (file, read_row) in
        [("macros", render_card_text as fn(&Value, &Value) -> Value), ("worlds", list_world_info)]
    {
        let rows = std::fs::read_to_string(folder.join(format!("{file}.jsonl")))?;
        let (mut equal_count, mut row_count) = (0, 0);
        for line in rows.lines() {
            let row: Value = serde_json::from_str(line)?;
            let (our_value, expected_row) = (read_row(&row, &context), &expected_rows[&row_name(&row)]);
            let expected = expected_row.get("text").or_else(|| expected_row.get("found"));
            let expected = expected.cloned().unwrap_or_default();
            row_count += 1;
            if our_value == expected {
                equal_count += 1;
            } else {
                println!(
                    "{}: {}\n  there {expected}\n  here  {our_value}",
                    row_name(&row),
                    row.get("text").unwrap_or(&Value::Null)
                );
            }
        }
        println!("{file}: {equal_count} of {row_count} rows are equal");
        if equal_count * 100 < row_count * MIN_EQUAL_ROWS {
            low_rates.push(file);
        }
    }
    ensure!(
        low_rates.is_empty(),
        "fewer than {MIN_EQUAL_ROWS} of 100 rows are equal: {}",
        low_rates.join(", ")
    );
    Ok(())
}

fn row_name(row: &Value) -> String {
    row.get("id").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Renders the text of a card.
fn render_card_text(row: &Value, context: &Value) -> Value {
    let render_result = PromptContext::from_json(context).and_then(|context| {
        let text = row.get("text").and_then(Value::as_str).unwrap_or_default();
        Assembly::new(&Engine::new(UndefinedMode::Lenient), context, 1)
            .render("row", &migrate_foreign(text).text)
    });
    render_result.unwrap_or_else(|error| format!("error: {error}")).into()
}

/// Lists the active world info of a row for each of its steps, or describes the error.
fn list_world_info(row: &Value, _: &Value) -> Value {
    try_list_world_info(row).unwrap_or_else(|error| format!("error: {error}").into())
}

fn try_list_world_info(row: &Value) -> Result<Value> {
    let entries = row.get("entries").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let book: Map<String, Value> = entries
        .iter()
        .enumerate()
        .map(|(uid, entry)| {
            let mut full_entry = Map::new();
            full_entry.insert("uid".to_owned(), uid.into());
            full_entry.insert("content".to_owned(), format!("C{uid}").into());
            full_entry.extend(entry.as_object().cloned().unwrap_or_default());
            (uid.to_string(), full_entry.into())
        })
        .collect();
    let file = json!({ "entries": book }).to_string();
    let entries = card::import_file("book.json", file.as_bytes(), &Default::default())?.entries;
    let mut settings: ScanSettings = match row.get("settings") {
        Some(settings) => serde_json::from_value(settings.clone())?,
        None => ScanSettings::default(),
    };
    settings.character = "Sera".to_owned();
    settings.budget =
        row.get("budget").and_then(Value::as_u64).and_then(|budget| usize::try_from(budget).ok());
    let sources = row.get("sources").and_then(Value::as_object).into_iter().flatten();
    let sources = sources.map(|(name, text)| {
        let source: CharacterText = serde_json::from_value(name.as_str().into())?;
        Ok((source, text.as_str().unwrap_or_default().to_owned()))
    });
    let sources: Vec<(CharacterText, String)> = sources.collect::<Result<_>>()?;
    // A row without steps has a single step: its lines.
    let only_step = [row.get("lines").cloned().unwrap_or_default()];
    let steps = row.get("steps").and_then(Value::as_array).map_or(&only_step[..], Vec::as_slice);
    let count_words = |text: &str| text.split_whitespace().count();
    let mut timed_effects = TimedEffects::default();
    let mut active_by_step = Vec::new();
    for step in steps {
        let lines: Vec<ChatLine> = serde_json::from_value(step.clone())?;
        let scan = LoreScan {
            sources: &sources,
            settings: settings.clone(),
            timed_effects,
            count_tokens: &count_words,
            ..LoreScan::new(&lines)
        };
        let activation = activate(&entries, &scan);
        active_by_step.push(list_places(&entries, &activation.active, &activation.slots));
        timed_effects = activation.timed;
    }
    Ok(active_by_step.into())
}

/// Lists active entries and their places in the prompt, in the form that `run.mjs` prints, without empty
/// texts. `active` and the slots have indices of entries.
fn list_places(entries: &[LoreEntry], active: &[usize], slots: &LoreSlots) -> Value {
    let texts = |list: &[usize]| -> Vec<&str> {
        list.iter().map(|&at| entries[at].content.as_str()).filter(|text| !text.is_empty()).collect()
    };
    let mut ids: Vec<u64> = active.iter().filter_map(|&at| entries[at].id.parse().ok()).collect();
    ids.sort_unstable();
    let mut examples: Vec<(i64, usize, Value)> = Vec::new();
    for (place, list) in [(0, &slots.examples_before), (1, &slots.examples_after)] {
        examples.extend(list.iter().map(|&at| (entries[at].order, at, json!([place, entries[at].content]))));
    }
    examples.sort_by_key(|(order, at, _)| (*order, *at));
    let examples: Vec<Value> = examples.into_iter().map(|(.., example)| example).collect();
    let depth = slots.depth.iter().map(|slot| json!([slot.depth, slot.role as u8, texts(&slot.entries)]));
    let outlets = slots.outlets.iter().map(|(name, list)| (name.clone(), json!(texts(list))));
    json!({
        "active": ids,
        "before": texts(&slots.lore_before).join("\n"),
        "after": texts(&slots.lore_after).join("\n"),
        "note_top": texts(&slots.note_top),
        "note_bottom": texts(&slots.note_bottom),
        "examples": examples,
        "depth": depth.collect::<Vec<_>>(),
        "outlets": outlets.collect::<Map<_, _>>(),
    })
}
