//! What the fuzz targets check, one function a target: bytes in, a panic when something does not hold.
//!
//! `fuzz/` runs them on inputs that libFuzzer makes; the library's tests run them on seeded random inputs.

use pulldown_cmark::{Event as MarkdownEvent, Options as Markdown, Parser};
use serde_json::{Map, Value, json};
use tambour::dialect::DIALECTS;
use tambour::event::Extension;
use tambour::html::{Mode, Piece, Sanitizer};
use tambour::limits::Limits;
use tambour::repair::json::{Reader, Values, strict};
use tambour::span::Place;
use tambour::state::{Applied, ApplyOptions, Operation, Path, apply, diff};
use tambour::{End, Event, Options, Profile};

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

/// How the marks begin that end reasoning (R-69).
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
    let value =
        strict(&text, &limits).unwrap_or_else(|report| panic!("valid {text:?} is refused: {report:?}"));
    assert!(same(&value, &expected), "strict reading of {text:?} gives {value}");
    let (values, mut reports, _) = read(Reader::document, &[&text]);
    // Valid JSON may have a key twice, which is told all the same.
    reports.retain(|report| report.rule.code != "duplicate_key");
    assert!(reports.is_empty(), "repairs of valid {text:?}: {reports:?}");
    assert_eq!(values.len(), 1, "values of {text:?}");
    assert!(same(&values[0].value, &expected), "repairing reading of {text:?} gives {}", values[0].value);
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

/// Seeded inputs for [`json()`]: valid JSON, the same with a mutation, and soup.
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

/// Sanitises text; its first byte seeds the cuts and chooses the mode and the limits.
///
/// # Panics
/// The result depends on the cuts, is another one the second time, more is held back than documented, or a reader of Markdown
/// finds HTML in it that is not on the list.
pub fn html(data: &[u8]) {
    let [seed, input @ ..] = data else { return };
    let text = String::from_utf8_lossy(input);
    let mode = if seed & 1 == 0 { Mode::Escape } else { Mode::Strip };
    let mut limits = Limits::default();
    if seed & 2 == 2 {
        (limits.tag, limits.line) = (40, 48);
    }
    let read = |text: &str, pieces: &[&str]| {
        let (mut result, mut reports) = (String::new(), Vec::new());
        let mut sanitizer = Sanitizer::new(mode, &limits);
        for piece in pieces {
            sanitizer.push(piece, &mut |piece| match piece {
                Piece::Text(text) => result.push_str(text),
                Piece::Found(report) => reports.push(report),
            });
            assert!(sanitizer.held() <= limits.tag.max(limits.line), "{text:?}");
        }
        sanitizer.finish(&mut |piece| match piece {
            Piece::Text(text) => result.push_str(text),
            Piece::Found(report) => reports.push(report),
        });
        (result, reports)
    };
    let whole = read(&text, &[&text]);
    let mut random = Random::new(u64::from(*seed));
    assert_eq!(read(&text, &pieces(&text, &random.cuts(text.len()))), whole, "cut: {text:?}");
    let every: Vec<usize> = (1..text.len()).collect();
    assert_eq!(read(&text, &pieces(&text, &every)), whole, "cut everywhere: {text:?}");
    for report in &whole.1 {
        assert!(report.place.offset <= report.end && report.end <= text.len(), "{report:?} of {text:?}");
        assert_eq!(report.place, Place::START.after(&text[..report.place.offset]), "{text:?}");
    }
    if limits == Limits::default() && whole.0.len() < limits.line {
        let again = read(&whole.0, &[&whole.0]).0;
        assert_eq!(again, whole.0, "the second time, {mode:?}: {text:?}");
    }
    // Definition lists and blocks of metadata are in no dialect that a chat is shown with.
    let others = Markdown::ENABLE_DEFINITION_LIST
        | Markdown::ENABLE_YAML_STYLE_METADATA_BLOCKS
        | Markdown::ENABLE_PLUSES_DELIMITED_METADATA_BLOCKS;
    for options in [Markdown::empty(), Markdown::all() - others] {
        for event in Parser::new_ext(&whole.0, options) {
            if let MarkdownEvent::Html(html) | MarkdownEvent::InlineHtml(html) = event {
                let html = html.into_string();
                assert!(is_listed(&html), "{html:?} is HTML in {:?} of {text:?}, {mode:?}", whole.0);
            }
        }
    }
}

/// Whether all that is a tag for a browser is one of the list.
fn is_listed(html: &str) -> bool {
    html.match_indices('<').all(|(at, _)| {
        let rest = html[at + 1..].trim_start_matches('/');
        let name = rest.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        let end = rest.find('>').map_or(rest, |end| &rest[..end]);
        let bare = end.len() == name.len() || matches!(&end[name.len()..], "/" | " /");
        let style = name.eq_ignore_ascii_case("span")
            && end[4..].to_ascii_lowercase().starts_with(" style=\"")
            && end.matches('"').count() == 2
            && end.ends_with('"');
        let text = !rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '!' || c == '?');
        let listed = ["span", "br", "b", "strong", "i", "em", "u", "s", "ruby", "rt", "rp"];
        text || listed.iter().any(|listed| listed.eq_ignore_ascii_case(name)) && (bare || style)
    })
}

/// Seeded inputs for [`html`].
#[must_use]
pub fn html_input(random: &mut Random) -> Vec<u8> {
    let mut data = vec![random.bits() as u8];
    let soup = html_soup(random, true);
    if random.below(3) == 0 {
        data.extend(random.mutate(soup.as_bytes()))
    } else {
        data.extend(soup.bytes())
    }
    data
}

/// Text made of tags, half tags and what surrounds them; with Markdown that is code if `code` says so.
#[must_use]
pub fn html_soup(random: &mut Random, code: bool) -> String {
    let mut soup = String::new();
    for _ in 0..1 + random.below(24) {
        let list = if code && random.below(3) == 0 { MARKDOWN } else { HTML };
        soup.push_str(random.pick::<&str>(list));
    }
    soup
}

const HTML: &[&str] = &[
    "<b>",
    "</b>",
    "<i>",
    "</i>",
    "<B>",
    "</ b>",
    "<span style=\"color:red\">",
    "</span>",
    "<span style='color:url(x)'>",
    "<span class=x style=\"color: red; top:0\">",
    "<br>",
    "<br/>",
    "</br>",
    "<b/>",
    "<ruby>",
    "<rt>",
    "</rt>",
    "<rp>",
    "</ruby>",
    "<b onclick=x>",
    "<b\n>",
    "<img src=x onerror=y>",
    "<svg/onload=x>",
    "<a href=\"",
    "<div>",
    "</div>",
    "<script>",
    "</script>",
    "</script",
    "<script",
    "<style>",
    "</style>",
    "<!--",
    "-->",
    "--!>",
    "<!",
    "<?",
    "<![CDATA[",
    "]]>",
    "<",
    ">",
    "</",
    "/>",
    "=",
    "\"",
    "'",
    "<x a=\"",
    "<x a='",
    " ",
    "\n",
    "\n\n",
    "a",
    "text ",
    "onerror=y",
    "script",
    "<3",
    "<1@",
    "@",
    "&lt;",
    "&",
    "&#60;",
    "\0",
    "\u{b}",
    "中",
    "<textarea>",
    "<title>",
    "<plaintext>",
    "<math>",
    "<mi>",
    "<table>",
    "<p>",
    "style=",
    "b",
    "\t",
    "-",
    "!",
];

const MARKDOWN: &[&str] = &[
    "`",
    "``",
    "```",
    "```\n",
    "\n```\n",
    "~~~\n",
    "\n~~~",
    "\n",
    "\n\n",
    "\n> ",
    "\n- ",
    "    ",
    "[a](",
    "](",
    ")",
    "(",
    "[",
    "]",
    "[x]: ",
    "| ",
    "|",
    "\n|---|---|\n",
    "\\",
    "*",
    "https://a.b/",
    "www.a.b",
    "<https://a",
    "<a@b.c>",
    "`<b>`",
    "`<img src=x>`",
    "<!-- ` -->",
    "<x a=\"`\">",
    "1. ",
    "# ",
    "$",
    "\"",
    "'",
    "<b>\n",
    "\n<br>\n",
    "\r\n",
];

/// Reads text as a path, and as a state with operations, `{"state": ..., "operations": [...]}`: paths are written as they
/// are read, operations can be taken back and done again exactly, and those that are refused leave no trace.
///
/// # Panics
/// It does not.
pub fn state(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for path in [text.parse::<Path>(), Path::from_pointer(&text)].into_iter().flatten() {
        let written = path.to_string();
        let again: Path = written.parse().unwrap_or_else(|error| panic!("{written:?} of {text:?}: {error}"));
        assert_eq!(again.to_string(), written, "{text:?}");
    }
    let Ok(mut input) = serde_json::from_str::<Value>(&text) else { return };
    let Some(before) = input.get_mut("state").map(Value::take) else { return };
    let Some(Ok(operations)) = input.get("operations").map(Operation::list) else { return };
    for atomic in [false, true] {
        let options = ApplyOptions { atomic, ..ApplyOptions::default() };
        let mut after = before.clone();
        let applied = Applied::record(&mut after, "m", None, operations.clone(), &options);
        let all = applied.results.iter().all(|result| result.ok);
        assert_eq!(applied.results.len(), operations.len(), "{text}");
        if atomic && !all {
            assert!(applied.results.iter().all(|result| !result.ok), "{text}");
            assert_eq!(after.to_string(), before.to_string(), "a trace: {text}");
        }
        if !atomic {
            one_by_one(&before, &operations, &applied, &after);
        }
        let stored = serde_json::to_string(&applied).expect("a record is JSON");
        let stored: Applied = serde_json::from_str(&stored).expect("and read again");
        let mut back = after.clone();
        stored.undo(&mut back).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(back.to_string(), before.to_string(), "taken back: {text}");
        stored.redo(&mut back).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(back.to_string(), after.to_string(), "done again: {text}");
        assert_eq!(diff(&before, &after).is_empty(), before == after, "{text}");
    }
}

/// Each operation alone does what it does in the block, and a refused one changes nothing.
fn one_by_one(before: &Value, operations: &[Operation], applied: &Applied, after: &Value) {
    let mut state = before.clone();
    for (operation, expected) in operations.iter().zip(&applied.results) {
        // With the order of fields, which makes no two values different.
        let last = state.to_string();
        let result = apply(&mut state, std::slice::from_ref(operation), &ApplyOptions::default()).remove(0);
        assert_eq!((result.ok, result.reason), (expected.ok, expected.reason), "{operation:?} on {last}");
        if !result.ok {
            assert_eq!(state.to_string(), last, "{operation:?}");
        }
    }
    assert_eq!(state.to_string(), after.to_string());
}

/// Seeded inputs for [`state`]: paths, and operations on states whose parts they often hit.
#[must_use]
pub fn state_input(random: &mut Random) -> Vec<u8> {
    if random.below(4) == 0 {
        let mut path: String = (0..random.below(8)).map(|_| *random.pick(STEPS)).collect();
        if random.below(2) == 0 {
            path = format!("/{}", path.replace('.', "/"));
        }
        return path.into_bytes();
    }
    let state: Map<String, Value> =
        (0..random.below(6)).map(|_| ((*random.pick(KEYS)).to_owned(), part(random, 0))).collect();
    let count = 1 + random.below(12);
    let operations: Vec<Value> = (0..count)
        .map(|_| {
            let op =
                *random.pick(&["SET", "ADD", "SUB", "MUL", "DIV", "PUSH", "POP", "DELETE", "push", "NOD"]);
            let mut path = (*random.pick(KEYS)).to_owned();
            for _ in 0..random.below(3) {
                path += random.pick::<&str>(&[".a", ".b", "[0]", "[1]", "[-1]", "[\"c.d\"]", ".名", "."]);
            }
            match op {
                "POP" | "DELETE" => json!([op, path]),
                "SET" | "PUSH" => json!([op, path, part(random, 1)]),
                _ => json!([op, path, number(random)]),
            }
        })
        .collect();
    json!({"state": state, "operations": operations}).to_string().into_bytes()
}

const KEYS: &[&str] = &["a", "b", "c.d", "名", "list"];

const STEPS: &[&str] = &[
    "a",
    "名",
    ".",
    "..",
    "[0]",
    "[-1]",
    "[",
    "]",
    "\"",
    "[\"a.b\"]",
    "[\"\\n\"]",
    " ",
    "~1",
    "~",
    "0",
    "\\",
];

fn part(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth < 3 { 6 } else { 3 }) {
        0 => random.pick(&[Value::Null, Value::Bool(true), Value::from("text")]).clone(),
        1 | 2 => number(random),
        3 => (0..random.below(4)).map(|_| part(random, depth + 1)).collect(),
        _ => Value::Object(
            (0..random.below(4))
                .map(|_| ((*random.pick(KEYS)).to_owned(), part(random, depth + 1)))
                .collect(),
        ),
    }
}

fn number(random: &mut Random) -> Value {
    match random.below(6) {
        0 => Value::from(random.bits()),
        1 => Value::from(f64::from_bits(random.bits())),
        2 => Value::from(0),
        3 => json!(random.below(100) as f64 / 10.0),
        _ => Value::from(random.below(20) as i64 - 10),
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
