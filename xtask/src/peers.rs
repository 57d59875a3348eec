//! `cargo xtask peers`: runs test cases of other projects, most of them about broken JSON, with our readers.
//!
//! The cases are the rows of `.jsonl` files, one file for each suite. They are not part of the repository;
//! without them the command says so and passes.

use std::path::Path;

use serde_json::Value;
use tambour::event::EventCollector;
use tambour::limits::Limits;
use tambour::repair::json::{JsonReader, ValueCollector, find, parse_strict};
use tambour::{Event, InputEnd, Options, Pipeline};
use tambour_fixtures::targets::is_same_value;

/// Folder of the cases, from the root of the repository.
const PEERS_FOLDER: &str = "../shared/corpus/peers";

/// Number of passed rows and of all rows of one kind.
#[derive(Clone, Copy, Default)]
struct PassCount {
    passed: usize,
    all: usize,
}

impl PassCount {
    fn add(&mut self, has_passed: bool) {
        self.passed += usize::from(has_passed);
        self.all += 1;
    }

    fn percent(self) -> f64 {
        if self.all == 0 { 100.0 } else { 100.0 * self.passed as f64 / self.all as f64 }
    }
}

impl std::fmt::Display for PassCount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = format!("{}/{}", self.passed, self.all);
        f.pad(&text)
    }
}

/// Runs every suite and prints a table of passed rows.
///
/// # Errors
/// A suite is below its required rate.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let is_verbose = arguments.iter().any(|argument| argument == "--verbose");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = root.join(PEERS_FOLDER);
    if !folder.is_dir() {
        println!("no cases at {PEERS_FOLDER}; nothing to compare");
        return Ok(());
    }
    let mut has_failed = false;
    println!("{:<16} {:>11} {:>11} {:>11}", "suite", "consensus", "others", "chunking");
    // Name of the suite, and minimum percentage of passed consensus rows (all projects agree on their values).
    let suites = [("json_repair", 97.0), ("jsonrepair", 97.0), ("fenced_json", 100.0), ("baml_jsonish", 0.0)];
    for (name, min_percent) in suites {
        let rows = read_rows(&folder.join(format!("{name}.jsonl")));
        let [consensus, other_count, chunking] = count_repairs(name, &rows, is_verbose);
        println!("{name:<16} {consensus:>11} {other_count:>11} {chunking:>11}");
        // In this suite, rows without a consensus must pass too.
        let misses_others = name == "fenced_json" && other_count.passed < other_count.all;
        has_failed |= consensus.percent() < min_percent || chunking.passed < chunking.all || misses_others;
    }
    let suite = read_rows(&folder.join("jsontestsuite.jsonl"));
    let [accept_count, refuse_count, chunking] = count_strictness(&suite, is_verbose);
    println!("\n{:<16} {:>11} {:>11} {:>11}", "suite", "accepted", "refused", "chunking");
    println!("{:<16} {accept_count:>11} {refuse_count:>11} {chunking:>11}", "jsontestsuite");
    has_failed |= [accept_count, refuse_count, chunking].iter().any(|count| count.passed < count.all);
    let thinking_count = count_thinking(&read_rows(&folder.join("think_split.jsonl")), is_verbose);
    println!("\n{:<16} {:>11}\n{:<16} {thinking_count:>11}", "suite", "as policy", "think_split");
    has_failed |= thinking_count.passed < thinking_count.all;
    anyhow::ensure!(!has_failed, "a required rate is missed");
    Ok(())
}

/// Reads the rows of a suite; empty without the file.
fn read_rows(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Counts repaired rows on whose value all projects agree, other repaired rows, and rows that read the same
/// in pieces.
fn count_repairs(name: &str, rows: &[Value], is_verbose: bool) -> [PassCount; 3] {
    let [mut consensus, mut other_count, mut chunking] = [PassCount::default(); 3];
    let limits = Limits::default();
    for row in rows {
        let Some(input) = row["input"].as_str() else { continue };
        let is_same = is_same_in_pieces(input);
        chunking.add(is_same);
        if !is_same && is_verbose {
            println!("  pieces differ: {} {input:?}", row["id"]);
        }
        let Some(expected) = row.get("expected") else { continue };
        let reading = find(input, &limits);
        let has_passed = reading.value.as_ref().is_some_and(|value| is_same_value(value, expected));
        let has_consensus = row["consensus"] == Value::Bool(true);
        if has_consensus {
            consensus.add(has_passed)
        } else {
            other_count.add(has_passed)
        }
        if !has_passed && is_verbose && (has_consensus || name != "baml_jsonish") {
            let mark = if has_consensus { "CONSENSUS" } else { "other" };
            let found_text = reading.value.map_or("nothing".to_owned(), |value| value.to_string());
            println!(
                "  {mark} {}\n    input    {input:?}\n    expected {expected}\n    got      {found_text}",
                row["id"]
            );
        }
    }
    [consensus, other_count, chunking]
}

/// Counts valid texts that the strict reader accepts, invalid texts that it refuses, and texts that read the
/// same in pieces.
fn count_strictness(rows: &[Value], is_verbose: bool) -> [PassCount; 3] {
    let [mut accept_count, mut refuse_count, mut chunking] = [PassCount::default(); 3];
    for row in rows {
        let input = match (row["input"].as_str(), row["note"].as_str()) {
            (Some(input), _) => input.to_owned(),
            // The file describes texts too large to be written out.
            (None, Some(note)) if note.contains("[[[[") => "[".repeat(100_000),
            (None, Some(_)) => "[{\"\":".repeat(50_000),
            // Rows whose text is not UTF-8 have no input: such text never reaches this reader.
            _ => continue,
        };
        chunking.add(is_same_in_pieces(&input));
        let result = parse_strict(&input, &Limits::default());
        let has_passed = match row["class"].as_str() {
            Some("must_accept") => {
                accept_count.add(result.is_ok());
                result.is_ok()
            }
            Some("must_reject_strict") => {
                refuse_count.add(result.is_err());
                result.is_err()
            }
            _ => true,
        };
        if !has_passed && is_verbose {
            println!("  {} {result:?}", row["id"]);
        }
    }
    [accept_count, refuse_count, chunking]
}

/// Returns `true` if a text gives the same values and reports whole, byte by byte and in random pieces.
fn is_same_in_pieces(text: &str) -> bool {
    let readers = [JsonReader::new_chat, JsonReader::new_document, JsonReader::new_lines];
    readers.into_iter().all(|new_reader| {
        let parse = |pieces: &[&str]| {
            let (mut reader, mut collector) = (new_reader(&Limits::default()), ValueCollector::default());
            pieces.iter().for_each(|piece| reader.push(piece, &mut collector));
            reader.finish(&mut collector);
            (collector.values, collector.reports, collector.text)
        };
        let expected = parse(&[text]);
        let mut seed = text.len() as u64 + 1;
        (0..6).all(|round| {
            let pieces = split_text(text, || {
                // Round 0 cuts everywhere, later rounds make longer pieces. A linear congruential generator
                // is random enough for that.
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                if round == 0 { 1 } else { 1 + (seed >> 33) as usize % (round * 7) }
            });
            parse(&pieces) == expected
        })
    })
}

/// Splits a text into pieces of the drawn lengths, each extended to the end of a character.
fn split_text(text: &str, mut next_length: impl FnMut() -> usize) -> Vec<&str> {
    let (mut pieces, mut remaining) = (Vec::new(), text);
    while !remaining.is_empty() {
        let mut cut = next_length().min(remaining.len());
        while !remaining.is_char_boundary(cut) {
            cut += 1;
        }
        pieces.push(&remaining[..cut]);
        remaining = &remaining[cut..];
    }
    pieces
}

/// Counts replies whose reasoning is split from the answer as expected, in one chunk, in the chunks of the
/// row, and by character. The `policy` of a row says whether the reply begins with reasoning that has no
/// opening mark.
fn count_thinking(rows: &[Value], is_verbose: bool) -> PassCount {
    let mut count = PassCount::default();
    for row in rows {
        let text = |pointer: &str| row.pointer(pointer).and_then(Value::as_str).unwrap_or("").to_owned();
        let mut options = Options::default();
        if text("/policy").starts_with("implicit_open") {
            options.set("plain.reasoning", "open").expect("an option");
        }
        let whole_input = vec![text("/input")];
        let chunks = row.get("chunks").and_then(Value::as_array);
        let row_chunks = chunks.map_or_else(
            || whole_input.clone(),
            |chunks| chunks.iter().filter_map(|chunk| chunk.as_str().map(str::to_owned)).collect(),
        );
        let characters: Vec<String> = whole_input[0].chars().map(String::from).collect();
        // White space at the borders of a section is dropped.
        let expected =
            (text("/expected/reasoning").trim().to_owned(), text("/expected/content").trim().to_owned());
        let results: Vec<_> = [whole_input, row_chunks, characters]
            .iter()
            .map(|chunks| split_reasoning(chunks, &options))
            .collect();
        let has_passed = results.iter().all(|result| *result == expected);
        count.add(has_passed);
        if !has_passed && is_verbose {
            println!("think_split {}: expected {expected:?}, got {results:?}", text("/id"));
        }
    }
    count
}

/// Returns reasoning and answer of a plain reply; the fallback text counts as no answer.
fn split_reasoning(chunks: &[String], options: &Options) -> (String, String) {
    let mut sink = EventCollector::default();
    let mut pipeline = Pipeline::new("plain", options).expect("the dialect exists").with_extensions(true);
    for chunk in chunks {
        pipeline.push(chunk.as_bytes(), &mut sink);
    }
    pipeline.finish(&InputEnd::stop(), &mut sink);
    let (mut reasoning, mut answer) = (String::new(), String::new());
    for event in &sink.events {
        match event {
            Event::PhaseDelta { text, .. } | Event::Aside { text, .. } => reasoning.push_str(text),
            Event::FinalDelta { text } => answer.push_str(text),
            _ => {}
        }
    }
    if answer == options.texts.fallback {
        answer.clear();
    }
    (reasoning.trim().to_owned(), answer.trim().to_owned())
}
