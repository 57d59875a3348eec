//! Account of the marker words of a reply: delivered, covered by a finding, or lost.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;
use tambour::event::{Extension, ToolCall};
use tambour::{Event, Finding, Severity};

use super::{MARKER_LEN, WordNumber, count_restorable, find_words, marker};

/// Kind of text in which a word is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WordKind {
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

/// Rows of rules whose repair moves text: a finding on one of them allows another order of delivery.
const MOVING_RULES: &[&str] = &["J-016", "J-021", "T-042", "R-06", "T-011", "T-013", "T-014", "T-035"];

/// Phrases in `Finding::repair` that say that text in the span is not delivered. A finding with another
/// repair explains no lost word, since its text was kept. A finding without a repair explains a lost word,
/// unless it is of severity info; `field_unknown` explains one even then.
const UNDELIVERED_REPAIRS: &[&str] = &[
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

/// Phrases in `Finding::repair` that say that nothing in the span is delivered.
const REMOVAL_REPAIRS: &[&str] = &["left out", "left them out", "left it out", "taken out"];

/// Fate of the words of a reply.
#[derive(Clone, Debug, Default)]
pub struct WordAccount {
    /// Number of whole words in the reply.
    pub word_count: usize,
    /// Number of delivered words, by kind.
    pub delivered: BTreeMap<WordKind, usize>,
    /// Number of words that only findings cover, by the code of the finding with the shortest span.
    pub covered_by_code: BTreeMap<String, usize>,
}

impl WordAccount {
    /// Adds the account of another reply.
    pub fn add(&mut self, other: &WordAccount) {
        self.word_count += other.word_count;
        other.delivered.iter().for_each(|(kind, count)| *self.delivered.entry(*kind).or_default() += count);
        other
            .covered_by_code
            .iter()
            .for_each(|(code, count)| *self.covered_by_code.entry(code.clone()).or_default() += count);
    }

    /// Number of words that only a finding covers.
    #[must_use]
    pub fn covered_count(&self) -> usize {
        self.covered_by_code.values().sum()
    }
}

/// Fault of a reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordComplaint {
    /// Kind of fault.
    pub fault: WordFault,
    /// Affected word, if any.
    pub word: Option<WordNumber>,
    /// Complete description.
    pub message: String,
}

/// Kind of fault of a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WordFault {
    /// A word is neither in an event nor in the span of a finding.
    Missing,
    /// A word is delivered more often than the reply has it.
    Duplicate,
    /// Words of one kind changed places.
    Order,
    /// A word is delivered although a finding reports it as left out.
    FalseFinding,
    /// A finding has an invalid place.
    InvalidPlace,
    /// Events or findings depend on the cuts.
    CutDependent,
    /// The stream is invalid.
    InvalidStream,
}

impl WordComplaint {
    /// Key for counting: the fault, and the code of the finding that the message is about, if any.
    #[must_use]
    pub fn class(&self) -> String {
        let code = self.message.split("code: \"").nth(1).and_then(|after_key| after_key.split('"').next());
        format!("{:?} {}", self.fault, code.unwrap_or_default())
    }
}

impl fmt::Display for WordComplaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.fault)?;
        if let Some(word) = self.word {
            write!(f, " {}", marker(word))?;
        }
        write!(f, ": {}", self.message)
    }
}

/// Reply with its findings. A stream may have several replies, in a tool loop.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedReply<'a> {
    /// Raw reply.
    pub input: &'a [u8],
    /// Reasoning received separately.
    pub reasoning: Option<&'a str>,
    /// Findings on the reply.
    pub findings: &'a [Finding],
}

impl ReceivedReply<'_> {
    /// Words of the reasoning, without offsets, then words of the reply, with their offsets.
    fn words(&self) -> impl Iterator<Item = (Option<usize>, WordNumber)> {
        let reasoning_words =
            find_words(self.reasoning.unwrap_or_default().as_bytes()).map(|(_, word)| (None, word));
        reasoning_words.chain(find_words(self.input).map(|(at, word)| (Some(at), word)))
    }

    /// Returns `true` if the word at `at` may be within a list of search queries: `queries` precedes it
    /// somewhere.
    fn may_be_query(&self, at: usize) -> bool {
        self.input[..at].windows(7).any(|window| window == b"queries")
    }

    /// Finds the finding with the shortest span that reports the loss of the word at `at`.
    fn covering_finding(&self, at: usize) -> Option<&Finding> {
        // Unknown fields of a plan stay in its event (P-029), which is not searched for words.
        let is_unused = |finding: &Finding| {
            finding.repair.is_none() && (finding.severity > Severity::Info || finding.code == "field_unknown")
        };
        let explains_loss =
            |finding: &&Finding| is_unused(finding) || mentions_any(finding, UNDELIVERED_REPAIRS);
        let covering_findings =
            self.findings.iter().filter(explains_loss).filter(|finding| covers_word(finding, at));
        covering_findings.min_by_key(|finding| finding.span.end - finding.span.start).or_else(|| {
            // The span of a finding may end within a word that a limit or the next structure cut.
            let overlaps = |finding: &&Finding| finding.span.start < at + MARKER_LEN && at < finding.span.end;
            self.findings.iter().filter(explains_loss).find(overlaps)
        })
    }
}

/// Accounts for every word of the replies of a stream. `rewritten_reply` is the repaired form of the last
/// reply, for words that a dialect keeps outside its events.
///
/// # Errors
/// Words were lost, duplicated or reordered, or findings have invalid places; all complaints are returned.
pub fn account_words(
    replies: &[ReceivedReply<'_>],
    events: &[Event<'_>],
    rewritten_reply: Option<&Value>,
) -> Result<WordAccount, Vec<WordComplaint>> {
    let mut complaints: Vec<WordComplaint> = replies.iter().flat_map(check_places).collect();
    let words_by_kind = delivered_words(events, rewritten_reply);
    // Places of each word: a reply, and the offset in it, or `None` for a word in separate reasoning.
    let mut received: BTreeMap<WordNumber, Vec<(&ReceivedReply<'_>, Option<usize>)>> = BTreeMap::new();
    for reply in replies {
        reply.words().for_each(|(at, word)| received.entry(word).or_default().push((reply, at)));
    }
    let mut account = WordAccount::default();
    let delivered_count = |word: WordNumber| {
        words_by_kind.iter().flat_map(|(_, words)| words).filter(|&&delivered| delivered == word).count()
    };
    for (&word, places) in &received {
        let sent_count = delivered_count(word);
        account.word_count += places.len();
        let covering: Vec<&Finding> =
            places.iter().filter_map(|(reply, at)| reply.covering_finding((*at)?)).collect();
        // A failed stream sends no queries, and its error takes the place of a finding about them.
        let may_be_query =
            |(reply, at): &(&ReceivedReply<'_>, Option<usize>)| at.is_some_and(|at| reply.may_be_query(at));
        let has_failed = !events.contains(&Event::FinalEnd);
        let is_excused = has_failed && places.iter().all(may_be_query);
        if sent_count + covering.len() < places.len() && !is_excused {
            let message = format!(
                "occurs {} times in the reply, is delivered {sent_count} times and covered by {} findings",
                places.len(),
                covering.len()
            );
            complaints.push(WordComplaint { fault: WordFault::Missing, word: Some(word), message });
        }
        // Removal of the markup inside a broken word may deliver the word once more.
        let has_restorable = || replies.iter().any(|reply| count_restorable(reply.input, word) > 0);
        if let [(reply, Some(at))] = places[..]
            && sent_count == 1
            && !has_restorable()
            && let Some(finding) = reply
                .findings
                .iter()
                .find(|finding| mentions_any(finding, REMOVAL_REPAIRS) && covers_word(finding, at))
        {
            let message = format!("is delivered, and left out: {finding:?}");
            complaints.push(WordComplaint { fault: WordFault::FalseFinding, word: Some(word), message });
        }
        for finding in covering.iter().take(places.len().saturating_sub(sent_count)) {
            *account.covered_by_code.entry(finding.code.to_string()).or_default() += 1;
        }
    }
    for (kind, words) in &words_by_kind {
        *account.delivered.entry(*kind).or_default() += words.len();
    }
    for (&word, places) in &received {
        // An answer quoted in a phase is delivered there before it turns out to be the only one.
        let is_repeated = |(reply, at): &&(&ReceivedReply<'_>, Option<usize>)| {
            let is_quoted = |finding: &&Finding| mentions_any(finding, &["read as the answer too"]);
            at.is_some_and(|at| {
                reply.findings.iter().filter(is_quoted).any(|finding| covers_word(finding, at))
            })
        };
        // Removing markup from the middle of a broken word makes it whole again.
        let max_count = places.len()
            + places.iter().filter(is_repeated).count()
            + replies.iter().map(|reply| count_restorable(reply.input, word)).sum::<usize>();
        if delivered_count(word) > max_count {
            let kinds = words_by_kind.iter().filter(|(_, words)| words.contains(&word));
            let kinds: Vec<String> = kinds.map(|(kind, _)| format!("{kind:?}")).collect();
            let message = format!(
                "is delivered {} times, not {max_count}: {}",
                delivered_count(word),
                kinds.join(", ")
            );
            complaints.push(WordComplaint { fault: WordFault::Duplicate, word: Some(word), message });
        }
    }
    complaints.extend(find_misplaced_word(replies, &words_by_kind));
    if complaints.is_empty() { Ok(account) } else { Err(complaints) }
}

/// Finds the first word of a kind that is delivered out of order; `None` if there is none, or if a finding
/// allows another order.
fn find_misplaced_word(
    replies: &[ReceivedReply<'_>],
    words_by_kind: &[(WordKind, Vec<WordNumber>)],
) -> Option<WordComplaint> {
    // An unopened closing mark turns the text before it into a draft, together with drafts already delivered;
    // a further phase turns waiting text into thinking; the last value of a repeated key takes the place of
    // the first.
    let may_move_text = |finding: &Finding| {
        let has_moving_rule = MOVING_RULES.contains(&finding.rule.as_ref());
        has_moving_rule
            || finding.code == "think_unopened"
            || mentions_any(finding, &["read as a further phase", "kept the last value"])
    };
    if replies.iter().any(|reply| reply.findings.iter().any(may_move_text)) {
        return None;
    }
    let received_words: Vec<WordNumber> =
        replies.iter().flat_map(ReceivedReply::words).map(|(_, word)| word).collect();
    // A broken word that was repaired may be anywhere.
    let is_restorable =
        |word: WordNumber| replies.iter().any(|reply| count_restorable(reply.input, word) > 0);
    let is_comparable = |word: &&WordNumber| received_words.contains(word) && !is_restorable(**word);
    for (kind, words) in words_by_kind {
        // Fields of an assessment and of a block are delivered in a fixed order.
        if matches!(kind, WordKind::Assessment | WordKind::Block) {
            continue;
        }
        let mut remaining = received_words.iter();
        for word in words.iter().filter(is_comparable) {
            if !remaining.any(|received| received == word) {
                let words: Vec<String> = words.iter().map(|word| marker(*word)).collect();
                let message = format!("is out of order in {kind:?}: {}", words.join(" "));
                return Some(WordComplaint { fault: WordFault::Order, word: Some(*word), message });
            }
        }
    }
    None
}

/// Returns `true` if the span of a finding contains the whole word at `at`.
fn covers_word(finding: &Finding, at: usize) -> bool {
    finding.span.start <= at && at + MARKER_LEN <= finding.span.end
}

/// Returns `true` if the repair of a finding contains one of the phrases.
fn mentions_any(finding: &Finding, phrases: &[&str]) -> bool {
    let repair = finding.repair.as_deref().unwrap_or_default();
    phrases.iter().any(|phrase| repair.contains(phrase))
}

/// Complains about findings whose span is outside the reply or cuts a character, or whose line or column is
/// wrong.
fn check_places(reply: &ReceivedReply<'_>) -> Vec<WordComplaint> {
    let input = reply.input;
    let text = std::str::from_utf8(input).ok();
    let place_fault = |finding: &Finding| {
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
        let is_same_place = (line, column) == (finding.line as usize, finding.column as usize);
        (!is_same_place).then(|| format!("the place is line {line}, column {column}"))
    };
    let to_complaint = |finding| {
        let message = format!("{}: {finding:?}", place_fault(finding)?);
        Some(WordComplaint { fault: WordFault::InvalidPlace, word: None, message })
    };
    reply.findings.iter().filter_map(to_complaint).collect()
}

/// Lists the delivered words in order, by kind.
fn delivered_words(
    events: &[Event<'_>],
    rewritten_reply: Option<&Value>,
) -> Vec<(WordKind, Vec<WordNumber>)> {
    let mut texts: BTreeMap<WordKind, String> = BTreeMap::new();
    // If `is_joined` is true, the text continues the previous text of its kind, in which a word may begin.
    let mut add = |kind: WordKind, text: &str, is_joined: bool| {
        let kind_text = texts.entry(kind).or_default();
        if !is_joined {
            kind_text.push('\n');
        }
        kind_text.push_str(text);
    };
    for event in events {
        match event {
            Event::SerpSummary { text } => add(WordKind::Summary, text, false),
            Event::PhaseStart { title, .. } => {
                add(WordKind::Title, title, false);
                add(WordKind::Phase, "", false);
            }
            Event::PhaseDelta { text, .. } => add(WordKind::Phase, text, true),
            Event::FinalDelta { text } => add(WordKind::Final, text, true),
            Event::SerpQueries { queries } => {
                queries.iter().for_each(|query| add(WordKind::Query, query, false))
            }
            Event::DraftDelta { text } => add(WordKind::Draft, text, true),
            // A comment longer than the hold limit arrives in pieces.
            Event::Aside { text, .. } => add(WordKind::Aside, text, true),
            Event::Extension(extension) => match &**extension {
                Extension::ToolCall(ToolCall { name, args, .. }) => {
                    add(WordKind::Args, name, false);
                    for_each_string(args, &mut |text| add(WordKind::Args, text, false));
                }
                Extension::StateUpdate(_)
                | Extension::StatusBar(_)
                | Extension::Details(_)
                | Extension::Choice(_)
                | Extension::UiComponent(_)
                | Extension::Media(_)
                | Extension::Element(_) => {
                    for_each_string(&extension.data(), &mut |text| add(WordKind::Block, text, false));
                }
                _ => {}
            },
            // Other events only repeat texts of the events above.
            _ => {}
        }
    }
    if let Some(fields) = rewritten_reply {
        for_each_string(&fields["assessment"], &mut |text| add(WordKind::Assessment, text, false));
        for_each_string(&fields["exit_reason"], &mut |text| add(WordKind::Assessment, text, false));
    }
    let words_of = |text: String| find_words(text.as_bytes()).map(|(_, word)| word).collect();
    texts.into_iter().map(|(kind, text)| (kind, words_of(text))).collect()
}

/// Calls `visit` with every text of a value, keys included.
fn for_each_string(value: &Value, visit: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(items) => items.iter().for_each(|item| for_each_string(item, visit)),
        Value::Object(fields) => fields.iter().for_each(|(key, value)| {
            visit(key);
            for_each_string(value, visit);
        }),
        _ => {}
    }
}
