//! Fuzz targets: each function takes bytes and panics if an invariant is broken.
//!
//! `fuzz/` runs them on inputs from libFuzzer; the library's tests run them on seeded random inputs.

mod html;
mod json;
mod state;

use tambour::dialect::DIALECTS;
use tambour::event::Extension;
use tambour::{Event, InputEnd, Options, Profile};

pub use self::html::{check_html, random_html, random_html_input};
pub use self::json::{check_json, is_same_value, random_json_input};
pub use self::state::{check_state, random_state_input};
use crate::random::RandomSource;
use crate::reading::{ChunkCuts, FixtureReading, ReadingCase};
use crate::words::{self, ReplyPool, WordTrial};
use crate::{fixture, grammar};

/// Largest input, in bytes, that is also read byte by byte.
const MAX_BYTEWISE_INPUT: usize = 4 << 10;

/// Number of random prefixes of an input that are read separately.
const PREFIX_COUNT: usize = 12;

/// Reads `data` as `dialect`. Its first byte seeds the cuts, its second chooses profile (bit 0), small limits
/// (bit 1) and end (the next two bits).
///
/// # Panics
/// The stream is invalid or depends on the cuts, its calls change when more text arrives, or more is held
/// back than documented.
pub fn check_dialect(dialect: &str, data: &[u8]) {
    let [seed, choice, input @ ..] = data else { return };
    let mut options = Options::default();
    if choice & 1 == 1 {
        options.profile = Profile::Strict;
    }
    if dialect == "toolcall" {
        // Without tools no call is accepted.
        let object_schema = serde_json::json!({"type": "object"});
        let tools = serde_json::json!({"f": object_schema, "note": object_schema, "ping": object_schema, "get_weather": object_schema});
        options.set("tools", tools).expect("the option is known");
    }
    // Small limits are reached by short inputs.
    if choice & 2 == 2 {
        (options.limits.hold, options.limits.tag, options.limits.line) = (64, 48, 40);
    }
    let finish = ["stop", "length", "unknown", "failed"][usize::from(choice >> 2) % 4];
    let end = fixture::parse_end(finish).expect("these words are known");
    let case = ReadingCase { dialect, options: &options, reasoning: None, input, end: &end };
    let run_checks = || -> Result<(), String> {
        let uncut = case.read(ChunkCuts::Single)?;
        grammar::check_stream(&uncut.events, &options)?;
        let mut random = RandomSource::new(u64::from(*seed));
        case.check_same(&uncut, ChunkCuts::Offsets(&random.random_cuts(input.len())))?;
        if input.len() <= MAX_BYTEWISE_INPUT {
            case.check_same(&uncut, ChunkCuts::Every(1))?;
            case.check_held()?;
        }
        check_prefix_calls(&case, &uncut, &mut random)
    };
    if let Err(error) = run_checks() {
        panic!("{error}\nas {dialect}, choice {choice}: {:?}", String::from_utf8_lossy(input));
    }
}

/// Beginnings of the marks that end reasoning.
const CLOSING_MARKS: &[&str] = &[
    "</think",
    "</thought",
    "</reasoning",
    "</analysis",
    "</scratchpad",
    "</reflection",
    "</seed:think",
    "[/think",
    "◁/think",
    "end_of_thought",
    "<|end|>",
    "<|channel|>",
    "<|start|>",
];

/// Checks that a truncated reply has no calls, and that a prefix with calls has the same calls as every
/// longer prefix, so that more text never changes them.
fn check_prefix_calls(
    case: &ReadingCase<'_>,
    uncut: &FixtureReading,
    random: &mut RandomSource,
) -> Result<(), String> {
    if *case.end != InputEnd::stop() && !tool_calls(uncut).is_empty() {
        return Err("a truncated reply has calls".to_owned());
    }
    // A closing mark of reasoning turns all text before it into thoughts, and so revokes calls of prefixes.
    let text = String::from_utf8_lossy(case.input).to_ascii_lowercase();
    // Calls of `filament` and `toolcall` are independent: each acts when complete, and others may follow
    // (F-214, R-68).
    let is_filament = uncut.events.iter().any(|event| match event {
        Event::Completed(completed) => completed.metadata.dialect == "filament",
        _ => false,
    });
    // A failed reply does not name the dialect it was read as.
    let is_filament =
        is_filament || case.dialect == "auto" && tambour::dialect::detect(&text).name == "filament";
    if matches!(case.dialect, "filament" | "toolcall")
        || is_filament
        || CLOSING_MARKS.iter().any(|mark| text.contains(mark))
    {
        return Ok(());
    }
    let mut cuts: Vec<usize> = (0..PREFIX_COUNT).map(|_| random.below(case.input.len())).collect();
    cuts.push(case.input.len());
    cuts.sort_unstable();
    let mut earlier_calls: Vec<&Event<'_>> = Vec::new();
    let readings: Result<Vec<FixtureReading>, String> = cuts
        .iter()
        .map(|&cut| {
            ReadingCase { input: &case.input[..cut], end: &InputEnd::stop(), ..case.clone() }
                .read(ChunkCuts::Single)
        })
        .collect();
    for reading in &readings? {
        let calls = tool_calls(reading);
        if !earlier_calls.is_empty() && earlier_calls != calls {
            return Err(format!("a longer prefix changes the calls: {earlier_calls:?}, then {calls:?}"));
        }
        earlier_calls = calls;
    }
    Ok(())
}

/// Returns the `tool_call` events of a reading.
fn tool_calls(reading: &FixtureReading) -> Vec<&Event<'static>> {
    reading.events.iter().filter(|event| matches!(event.extension(), Some(Extension::ToolCall(_)))).collect()
}

/// Accounts for the marker words of a reply. The first four bytes of `data` choose the dialect, seed the
/// cuts, and choose the settings.
///
/// # Panics
/// A word is lost or duplicated, or the reading depends on the cuts.
pub fn check_words(data: &[u8]) {
    let [dialect_index, seed, choice_low, choice_high, input @ ..] = data else { return };
    let entry = &DIALECTS[usize::from(*dialect_index) % DIALECTS.len()];
    let choice = u16::from_le_bytes([*choice_low, *choice_high]);
    let trial = WordTrial::new(entry.name, choice, u64::from(*seed), input.to_vec());
    if let Err(complaints) = trial.check_words() {
        panic!("{}\n{trial}", complaints[0]);
    }
}

/// Makes an input for [`check_words()`] from a seed: the damaged reply of
/// [`make_trial`](crate::words::make_trial), without separate reasoning. `dialect_index` is an index in
/// `DIALECTS`, taken modulo its length.
#[must_use]
pub fn random_words_input(dialect_index: usize, seed: u64, replies: &ReplyPool) -> Vec<u8> {
    let trial = words::make_trial(DIALECTS[dialect_index % DIALECTS.len()].name, seed, replies);
    let [low, high] = trial.choice.to_le_bytes();
    let mut data = vec![dialect_index as u8, seed as u8, low, high];
    data.extend(trial.input);
    data
}

/// Makes an input for [`check_dialect()`]: a mutation of one of `replies`, or tag soup.
#[must_use]
pub fn random_dialect_input(random: &mut RandomSource, replies: &[Vec<u8>]) -> Vec<u8> {
    let mut data = vec![random.next_bits() as u8, random.next_bits() as u8];
    if replies.is_empty() || random.below(3) == 0 {
        let pieces = 1 + random.below(40);
        data.extend(random.tag_soup(pieces).bytes());
    } else {
        let mut reply = random.pick(replies).clone();
        for _ in 0..=random.below(3) {
            reply = random.mutate(&reply);
        }
        data.extend(reply);
    }
    data
}

/// Cuts `text` at the offsets `cuts`, each moved back to the start of its character.
fn split_text<'a>(text: &'a str, cuts: &[usize]) -> Vec<&'a str> {
    let mut pieces = Vec::new();
    let mut from = 0;
    for &cut in cuts {
        let end = text.floor_char_boundary(cut);
        pieces.push(&text[from..end]);
        from = end;
    }
    pieces.push(&text[from..]);
    pieces
}
