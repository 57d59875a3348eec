//! Account of the words of a reply: delivered, covered by a finding, or lost.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;
use tambour::event::{Extension, ToolCall};
use tambour::{Event, Finding, Severity};

use super::{LEN, Word, find, marker, mendable};

/// Kind of text that a word is delivered in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `serp_summary`.
    Summary,
    /// Title of a phase.
    Title,
    /// Text of a phase.
    Phase,
    /// Answer.
    Final,
    /// Search query.
    Query,
    /// `draft_delta`.
    Draft,
    /// `aside`.
    Aside,
    /// Name and arguments of a call.
    Args,
    /// Assessment of a round, with its reason to end.
    Assessment,
    /// Content of a block: operations, status, details, choices, components, media.
    Block,
}

/// Rules that move text: their findings allow words of one kind to change places.
const MOVES: &[&str] = &["J-016", "J-021", "T-042", "R-06", "T-011", "T-013", "T-014", "T-035"];

/// Repair texts of findings whose text is not delivered. A finding with another repair covers no lost word,
/// since its text was kept. A finding without a repair does, unless it is information only.
const GONE: &[&str] = &[
    "left out",
    "left them out",
    "left it out",
    "kept the last value",
    "kept the first value",
    "taken out",
    "dropped",
    "removed",
    "not sent",
    "not taken",
    "not used",
    "no queries",
    "cut",
    "the first 5 kept",
    "fallback text",
    "the safe fallback",
];

/// Repair texts that exclude delivery of anything in the span.
const NOTHING: &[&str] = &["left out", "left them out", "left it out", "taken out"];

/// Fate of the words of a reply.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// Number of whole words in the reply.
    pub checked: usize,
    /// Number of delivered words, by kind.
    pub delivered: BTreeMap<Kind, usize>,
    /// Number of words that only a finding covers, by code (that of the shortest span).
    pub found: BTreeMap<String, usize>,
}

impl Account {
    /// Adds the account of another reply.
    pub fn add(&mut self, other: &Account) {
        self.checked += other.checked;
        other.delivered.iter().for_each(|(kind, count)| *self.delivered.entry(*kind).or_default() += count);
        other.found.iter().for_each(|(code, count)| *self.found.entry(code.clone()).or_default() += count);
    }

    /// Number of words that only a finding covers.
    #[must_use]
    pub fn only_found(&self) -> usize {
        self.found.values().sum()
    }
}

/// Fault of a reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// Kind of fault.
    pub fault: Fault,
    /// Affected word, if any.
    pub word: Option<Word>,
    /// Complete description.
    pub message: String,
}

/// Kind of fault of a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A word is in no event and in no span.
    Lost,
    /// A word is delivered more often than the reply has it.
    Twice,
    /// Words of one kind changed places.
    Order,
    /// A word is delivered although a finding reports it as left out.
    Untrue,
    /// A finding has an invalid place.
    Place,
    /// Events or findings depend on the cuts.
    Cuts,
    /// The stream is invalid.
    Stream,
}

impl Complaint {
    /// Name of the fault and of the finding it is about, for counting.
    #[must_use]
    pub fn class(&self) -> String {
        let code = self.message.split("code: \"").nth(1).and_then(|rest| rest.split('"').next());
        format!("{:?} {}", self.fault, code.unwrap_or_default())
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.fault)?;
        if let Some(word) = self.word {
            write!(f, " {}", marker(word))?;
        }
        write!(f, ": {}", self.message)
    }
}

/// Reply with its findings. A stream may have several, in a tool loop.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// Raw reply.
    pub input: &'a [u8],
    /// Reasoning received separately.
    pub reasoning: Option<&'a str>,
    /// Findings on the reply.
    pub findings: &'a [Finding],
}

impl Received<'_> {
    /// Words of the reply with their offsets, and those of the reasoning without.
    fn words(&self) -> impl Iterator<Item = (Option<usize>, Word)> {
        let beside = find(self.reasoning.unwrap_or_default().as_bytes()).map(|(_, word)| (None, word));
        beside.chain(find(self.input).map(|(at, word)| (Some(at), word)))
    }

    /// Returns whether the word at `at` may be within a list of queries.
    fn in_queries(&self, at: usize) -> bool {
        self.input[..at].windows(7).any(|window| window == b"queries")
    }

    /// Finds the finding with the shortest span that reports the loss of the word at `at`.
    fn covering(&self, at: usize) -> Option<&Finding> {
        // Unknown fields of a plan stay in its event (P-029).
        let unused = |finding: &Finding| {
            finding.repair.is_none() && (finding.severity > Severity::Info || finding.code == "field_unknown")
        };
        let tells = |finding: &&Finding| unused(finding) || says(finding, GONE);
        let whole = self.findings.iter().filter(tells).filter(|finding| covers(finding, at));
        whole.min_by_key(|finding| finding.span.end - finding.span.start).or_else(|| {
            // A limit or the next structure may cut a word.
            let parts = |finding: &&Finding| finding.span.start < at + LEN && at < finding.span.end;
            self.findings.iter().filter(tells).find(parts)
        })
    }
}

/// Accounts for every word of the replies of a stream. `written` is the last reply as rewritten, for text
/// that a dialect keeps outside its events.
///
/// # Errors
/// Words that were lost, duplicated or reordered, and findings with invalid places.
pub fn account(
    replies: &[Received<'_>],
    events: &[Event<'_>],
    written: Option<&Value>,
) -> Result<Account, Vec<Complaint>> {
    let mut complaints: Vec<Complaint> = replies.iter().flat_map(places).collect();
    let delivered = delivered(events, written);
    let mut expected: BTreeMap<Word, Vec<(&Received<'_>, Option<usize>)>> = BTreeMap::new();
    for reply in replies {
        reply.words().for_each(|(at, word)| expected.entry(word).or_default().push((reply, at)));
    }
    let mut account = Account::default();
    let count = |word: Word| delivered.iter().flat_map(|(_, words)| words).filter(|&&w| w == word).count();
    for (&word, places) in &expected {
        let sent = count(word);
        account.checked += places.len();
        let spans: Vec<&Finding> = places.iter().filter_map(|(reply, at)| reply.covering((*at)?)).collect();
        // A stream that ends in an error sends no queries: the error stands for them.
        let queries =
            |(reply, at): &(&Received<'_>, Option<usize>)| at.is_some_and(|at| reply.in_queries(at));
        let failed = !events.contains(&Event::FinalEnd) && places.iter().all(queries);
        if sent + spans.len() < places.len() && !failed {
            let message = format!(
                "stands in the reply {} times, is delivered {sent} times and inside of {} findings",
                places.len(),
                spans.len()
            );
            complaints.push(Complaint { fault: Fault::Lost, word: Some(word), message });
        }
        let mended = || replies.iter().any(|reply| mendable(reply.input, word) > 0);
        if let [(reply, Some(at))] = places[..]
            && sent == 1
            && !mended()
            && let Some(finding) =
                reply.findings.iter().find(|found| says(found, NOTHING) && covers(found, at))
        {
            let message = format!("is delivered, and left out: {finding:?}");
            complaints.push(Complaint { fault: Fault::Untrue, word: Some(word), message });
        }
        for finding in spans.iter().take(places.len().saturating_sub(sent)) {
            *account.found.entry(finding.code.to_string()).or_default() += 1;
        }
    }
    for (kind, words) in &delivered {
        *account.delivered.entry(*kind).or_default() += words.len();
    }
    for (&word, places) in &expected {
        // An answer quoted in a phase is delivered there before it turns out to be the only one.
        let again = |(reply, at): &&(&Received<'_>, Option<usize>)| {
            let quoted = |found: &&Finding| says(found, &["read as the answer too"]);
            at.is_some_and(|at| reply.findings.iter().filter(quoted).any(|found| covers(found, at)))
        };
        // Removing markup from the middle of a broken word makes it whole again.
        let most = places.len()
            + places.iter().filter(again).count()
            + replies.iter().map(|reply| mendable(reply.input, word)).sum::<usize>();
        if count(word) > most {
            let kinds = delivered.iter().filter(|(_, words)| words.contains(&word));
            let kinds: Vec<String> = kinds.map(|(kind, _)| format!("{kind:?}")).collect();
            let message = format!("is delivered {} times, not {most}: {}", count(word), kinds.join(", "));
            complaints.push(Complaint { fault: Fault::Twice, word: Some(word), message });
        }
    }
    complaints.extend(order(replies, &delivered));
    if complaints.is_empty() { Ok(account) } else { Err(complaints) }
}

/// Finds the first word of a kind that is delivered out of order.
fn order(replies: &[Received<'_>], delivered: &[(Kind, Vec<Word>)]) -> Option<Complaint> {
    // An unopened closing mark turns the text before it into a draft, together with drafts already delivered;
    // a further phase turns waiting text into thinking; the last value of a repeated key takes the place of
    // the first.
    let moves = |finding: &Finding| {
        let row = MOVES.contains(&finding.rule.as_ref());
        row || finding.code == "think_unopened"
            || says(finding, &["read as a further phase", "kept the last value"])
    };
    if replies.iter().any(|reply| reply.findings.iter().any(moves)) {
        return None;
    }
    let all: Vec<Word> = replies.iter().flat_map(Received::words).map(|(_, word)| word).collect();
    // A broken word that was repaired may be anywhere.
    let mended = |word: Word| replies.iter().any(|reply| mendable(reply.input, word) > 0);
    let sound = |word: &&Word| all.contains(word) && !mended(**word);
    for (kind, words) in delivered {
        // Fields of an assessment and of a block are delivered in a fixed order.
        if matches!(kind, Kind::Assessment | Kind::Block) {
            continue;
        }
        let mut rest = all.iter();
        for word in words.iter().filter(sound) {
            if !rest.any(|next| next == word) {
                let words: Vec<String> = words.iter().map(|word| marker(*word)).collect();
                let message = format!("does not stand there in {kind:?}: {}", words.join(" "));
                return Some(Complaint { fault: Fault::Order, word: Some(*word), message });
            }
        }
    }
    None
}

fn covers(finding: &Finding, at: usize) -> bool {
    finding.span.start <= at && at + LEN <= finding.span.end
}

fn says(finding: &Finding, words: &[&str]) -> bool {
    let repair = finding.repair.as_deref().unwrap_or_default();
    words.iter().any(|word| repair.contains(word))
}

/// Finds findings outside the reply, within a character, or with a wrong line or column.
fn places(reply: &Received<'_>) -> Vec<Complaint> {
    let input = reply.input;
    let text = std::str::from_utf8(input).ok();
    let wrong = |finding: &Finding| {
        let (start, end) = (finding.span.start, finding.span.end);
        if start > end || end > input.len() {
            return Some("the span ends outside of the reply".to_owned());
        }
        let text = text?;
        if !text.is_char_boundary(start) || !text.is_char_boundary(end) {
            return Some("the span cuts a character".to_owned());
        }
        let before = &text[..start];
        let line = 1 + before.matches('\n').count();
        let column = 1 + before[before.rfind('\n').map_or(0, |at| at + 1)..].chars().count();
        let same = (line, column) == (finding.line as usize, finding.column as usize);
        (!same).then(|| format!("the place is line {line}, column {column}"))
    };
    let complaint = |finding| {
        let message = format!("{}: {finding:?}", wrong(finding)?);
        Some(Complaint { fault: Fault::Place, word: None, message })
    };
    reply.findings.iter().filter_map(complaint).collect()
}

/// Lists the delivered words in order, by kind.
fn delivered(events: &[Event<'_>], written: Option<&Value>) -> Vec<(Kind, Vec<Word>)> {
    let mut texts: BTreeMap<Kind, String> = BTreeMap::new();
    let mut add = |kind: Kind, text: &str, joined: bool| {
        let all = texts.entry(kind).or_default();
        if !joined {
            all.push('\n');
        }
        all.push_str(text);
    };
    for event in events {
        match event {
            Event::SerpSummary { text } => add(Kind::Summary, text, false),
            Event::PhaseStart { title, .. } => {
                add(Kind::Title, title, false);
                add(Kind::Phase, "", false);
            }
            Event::PhaseDelta { text, .. } => add(Kind::Phase, text, true),
            Event::FinalDelta { text } => add(Kind::Final, text, true),
            Event::SerpQueries { queries } => queries.iter().for_each(|query| add(Kind::Query, query, false)),
            Event::DraftDelta { text } => add(Kind::Draft, text, true),
            // A comment longer than the hold limit arrives in pieces.
            Event::Aside { text, .. } => add(Kind::Aside, text, true),
            Event::Extension(extension) => match &**extension {
                Extension::ToolCall(ToolCall { name, args, .. }) => {
                    add(Kind::Args, name, false);
                    strings(args, &mut |text| add(Kind::Args, text, false));
                }
                Extension::StateUpdate(_)
                | Extension::StatusBar(_)
                | Extension::Details(_)
                | Extension::Choice(_)
                | Extension::UiComponent(_)
                | Extension::Media(_)
                | Extension::Element(_) => {
                    strings(&extension.data(), &mut |text| add(Kind::Block, text, false));
                }
                _ => {}
            },
            // Other events repeat these.
            _ => {}
        }
    }
    if let Some(fields) = written {
        strings(&fields["assessment"], &mut |text| add(Kind::Assessment, text, false));
        strings(&fields["exit_reason"], &mut |text| add(Kind::Assessment, text, false));
    }
    let words = |text: String| find(text.as_bytes()).map(|(_, word)| word).collect();
    texts.into_iter().map(|(kind, text)| (kind, words(text))).collect()
}

/// Calls `each` with every text of a value, keys included.
fn strings(value: &Value, each: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => each(text),
        Value::Array(items) => items.iter().for_each(|item| strings(item, each)),
        Value::Object(fields) => fields.iter().for_each(|(key, value)| {
            each(key);
            strings(value, each);
        }),
        _ => {}
    }
}
