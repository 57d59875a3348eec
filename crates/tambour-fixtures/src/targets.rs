//! What the fuzz targets check, one function a target: bytes in, a panic when something does not hold.
//!
//! `fuzz/` runs them on inputs that libFuzzer makes; the library's tests run them on seeded random inputs.

use serde_json::Value;
use tambour::limits::Limits;
use tambour::repair::json::{Reader, Values, strict};
use tambour::{Options, Profile};

use crate::random::Random;
use crate::reading::{Case, Cuts};
use crate::{fixture, grammar};

/// Inputs up to this size are read byte by byte too.
const BYTEWISE: usize = 4 << 10;

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
    // A small limit, so that what it bounds cannot hide what must not be held.
    if choice & 2 == 2 {
        options.limits.hold = 64;
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
        Ok(())
    };
    if let Err(error) = checked() {
        panic!("{error}\nas {dialect}, choice {choice}: {:?}", String::from_utf8_lossy(input));
    }
}

/// Reads text as JSON: valid JSON gives what serde_json gives, without a repair; any text gives the same values and
/// reports however it is cut.
///
/// # Panics
/// It does not.
pub fn json(data: &[u8]) {
    let [seed, input @ ..] = data else { return };
    let text = String::from_utf8_lossy(input);
    let limits = Limits::default();
    let read = |new: fn(&Limits) -> Reader, pieces: &[&str]| {
        let (mut reader, mut values) = (new(&limits), Values::default());
        pieces.iter().for_each(|piece| reader.push(piece, &mut values));
        reader.finish(&mut values);
        (values.values, values.reports, values.text)
    };
    let mut random = Random::new(u64::from(*seed));
    let pieces = pieces(&text, &random.cuts(text.len()));
    for new in [Reader::chat, Reader::document, Reader::lines] {
        assert_eq!(read(new, &[&text]), read(new, &pieces), "cut into {pieces:?}");
    }
    let Ok(expected) = serde_json::from_str::<Value>(&text) else { return };
    let value = strict(&text, &limits);
    // Keys that are there twice are a fault of their own.
    if let Ok(value) = &value {
        assert!(same(value, &expected), "strict reading of {text:?} gives {value}");
        let (values, reports, _) = read(Reader::document, &[&text]);
        assert!(reports.is_empty(), "repairs of valid {text:?}: {reports:?}");
        assert_eq!(values.len(), 1, "values of {text:?}");
        assert!(same(&values[0].value, &expected), "repairing reading of {text:?} gives {}", values[0].value);
    } else if !twice(&text) {
        panic!("strict reading of valid {text:?}: {value:?}");
    }
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

/// Whether two values are equal, numbers by what they are rather than by how they are kept.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

/// Whether an object of valid JSON has a key twice: the value is shorter than the text then, written alike.
fn twice(text: &str) -> bool {
    let keys = |text: &str| text.matches(':').count();
    let Ok(value) = serde_json::from_str::<Value>(text) else { return false };
    keys(&value.to_string()) < keys(text)
}

/// Seeded inputs for [`json`]: valid JSON, the same with a mutation, and soup.
#[must_use]
pub fn json_input(random: &mut Random) -> Vec<u8> {
    let mut data = vec![random.bits() as u8];
    let valid = value(random, 0).to_string();
    match random.below(3) {
        0 => data.extend(valid.bytes()),
        1 => data.extend(random.mutate(valid.as_bytes())),
        _ => data.extend(random.soup(8).bytes()),
    }
    data
}

fn value(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth < 4 { 8 } else { 6 }) {
        0 => Value::Null,
        1 => Value::Bool(random.below(2) == 0),
        2 => Value::from(random.bits() as i64 >> random.below(64)),
        3 => Value::from(f64::from_bits(random.bits())),
        4 | 5 => Value::from(random.soup(3)),
        6 => {
            let items = random.below(4);
            (0..items).map(|_| value(random, depth + 1)).collect()
        }
        _ => {
            let pairs = random.below(4);
            Value::Object((0..pairs).map(|_| (random.soup(1), value(random, depth + 1))).collect())
        }
    }
}

/// Seeded inputs for [`dialect`]: one of `replies` with mutations, or soup.
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
