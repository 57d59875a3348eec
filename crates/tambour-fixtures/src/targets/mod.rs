//! What the fuzz targets check, one function a target: bytes in, a panic when something does not hold.
//!
//! `fuzz/` runs them on inputs that libFuzzer makes; the library's tests run them on seeded random inputs.

mod html;
mod json;
mod state;

use tambour::dialect::DIALECTS;
use tambour::event::Extension;
use tambour::{End, Event, Options, Profile};

pub use self::html::{html, html_input, html_soup};
pub use self::json::{json, json_input, same};
pub use self::state::{state, state_input};
use crate::random::Random;
use crate::reading::{Case, Cuts, Reading};
use crate::words::{self, Replies, Trial};
use crate::{fixture, grammar};

/// Inputs up to this size are read byte by byte too.
const BYTEWISE: usize = 4 << 10;

/// Prefixes of an input that are read for themselves.
const PREFIXES: usize = 12;

/// Reads the rest of `data` as `dialect`; its first byte seeds the cuts, its second chooses end and profile.
///
/// # Panics
/// The stream is not valid, depends on the cuts, or more is held back than documented.
pub fn dialect(dialect: &str, data: &[u8]) {
    let [seed, choice, input @ ..] = data else { return };
    let mut options = Options::default();
    if choice & 1 == 1 {
        options.profile = Profile::Strict;
    }
    if dialect == "toolcall" {
        // Without tools nothing is called.
        let any = serde_json::json!({"type": "object"});
        let tools = serde_json::json!({"f": any, "note": any, "ping": any, "get_weather": any});
        options.set("tools", tools).expect("an option");
    }
    // Small limits, so that short inputs reach them.
    if choice & 2 == 2 {
        (options.limits.hold, options.limits.tag, options.limits.line) = (64, 48, 40);
    }
    let finish = ["stop", "length", "unknown", "failed"][usize::from(choice >> 2) % 4];
    let end = fixture::end(finish).expect("these words are known");
    let case = Case { dialect, options: &options, reasoning: None, input, end: &end };
    let checked = || -> Result<(), String> {
        let whole = case.read(Cuts::Whole)?;
        grammar::valid(&whole.events, &options)?;
        let mut random = Random::new(u64::from(*seed));
        case.same(&whole, Cuts::At(&random.cuts(input.len())))?;
        if input.len() <= BYTEWISE {
            case.same(&whole, Cuts::Every(1))?;
            case.held()?;
        }
        nothing_cut_acts(&case, &whole, &mut random)
    };
    if let Err(error) = checked() {
        panic!("{error}\nas {dialect}, choice {choice}: {:?}", String::from_utf8_lossy(input));
    }
}

/// How the marks begin that end reasoning.
const CLOSING: &[&str] = &[
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

/// A cut reply acts never, and what acts at the end of one prefix acts just so at the end of every longer one: had it been
/// cut, more text would have changed it.
fn nothing_cut_acts(case: &Case<'_>, whole: &Reading, random: &mut Random) -> Result<(), String> {
    let whole_acts = actions(whole);
    if *case.end != End::stop() && !whole_acts.is_empty() {
        return Err("a cut reply acts".to_owned());
    }
    // A closing mark makes thoughts of what came before it.
    let text = String::from_utf8_lossy(case.input).to_ascii_lowercase();
    // Calls of these stand by themselves: each acts when it is whole, and others may follow (F-214, R-68).
    let is_filament = whole.events.iter().any(|event| match event {
        Event::Completed(completed) => completed.metadata.dialect == "filament",
        _ => false,
    });
    // What has failed does not say as what it was read.
    let is_filament =
        is_filament || case.dialect == "auto" && tambour::dialect::detect(&text).name == "filament";
    if matches!(case.dialect, "filament" | "toolcall")
        || is_filament
        || CLOSING.iter().any(|mark| text.contains(mark))
    {
        return Ok(());
    }
    let mut cuts: Vec<usize> = (0..PREFIXES).map(|_| random.below(case.input.len())).collect();
    cuts.push(case.input.len());
    cuts.sort_unstable();
    let mut before: Vec<&Event<'_>> = Vec::new();
    let readings: Result<Vec<Reading>, String> = cuts
        .iter()
        .map(|&cut| Case { input: &case.input[..cut], end: &End::stop(), ..case.clone() }.read(Cuts::Whole))
        .collect();
    for reading in &readings? {
        let found = actions(reading);
        if !before.is_empty() && before != found {
            return Err(format!("a prefix acts otherwise: {before:?}, then {found:?}"));
        }
        before = found;
    }
    Ok(())
}

/// The events of a reading that make something happen.
fn actions(reading: &Reading) -> Vec<&Event<'static>> {
    reading.events.iter().filter(|event| matches!(event.extension(), Some(Extension::ToolCall(_)))).collect()
}

/// Accounts for the marker words of a reply, which is the rest of `data`; its first four bytes choose the dialect, seed the
/// cuts, and say how it is read.
///
/// # Panics
/// A word is lost or comes twice, or the reading depends on the cuts.
pub fn words(data: &[u8]) {
    let [dialect, seed, low, high, input @ ..] = data else { return };
    let entry = &DIALECTS[usize::from(*dialect) % DIALECTS.len()];
    let choice = u16::from_le_bytes([*low, *high]);
    let trial = Trial::new(entry.name, choice, u64::from(*seed), input.to_vec());
    if let Err(complaints) = trial.check() {
        panic!("{}\n{trial}", complaints[0]);
    }
}

/// Seeded inputs for [`words()`]: the damaged replies of [`trial`](crate::words::trial), without reasoning beside them.
#[must_use]
pub fn words_input(dialect: usize, seed: u64, replies: &Replies) -> Vec<u8> {
    let trial = words::trial(DIALECTS[dialect % DIALECTS.len()].name, seed, replies);
    let [low, high] = trial.choice.to_le_bytes();
    let mut data = vec![dialect as u8, seed as u8, low, high];
    data.extend(trial.input);
    data
}

/// Seeded inputs for [`dialect()`]: one of `replies` with mutations, or soup.
#[must_use]
pub fn dialect_input(random: &mut Random, replies: &[Vec<u8>]) -> Vec<u8> {
    let mut data = vec![random.bits() as u8, random.bits() as u8];
    if replies.is_empty() || random.below(3) == 0 {
        let pieces = 1 + random.below(40);
        data.extend(random.soup(pieces).bytes());
    } else {
        let mut reply = random.pick(replies).clone();
        for _ in 0..=random.below(3) {
            reply = random.mutate(&reply);
        }
        data.extend(reply);
    }
    data
}

/// `text` in pieces that are cut at the nearest characters.
fn pieces<'a>(text: &'a str, cuts: &[usize]) -> Vec<&'a str> {
    let mut pieces = Vec::new();
    let mut from = 0;
    for &cut in cuts {
        let to = text.floor_char_boundary(cut);
        pieces.push(&text[from..to]);
        from = to;
    }
    pieces.push(&text[from..]);
    pieces
}
