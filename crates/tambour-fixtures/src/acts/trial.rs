//! One damaged reply with blocks, and the way it is read and written again.

use std::collections::BTreeMap;

use serde_json::json;
use tambour::event::JoinedEvents;
use tambour::exit::{ExitCriteria, ExitRound};
use tambour::state::AttachedState;
use tambour::tool::ToolRegistry;
use tambour::verdict::Contract;
use tambour::{Event, InputEnd, Options, Pipeline, Profile};

use super::action::{Action, ActionKind, actions};
use super::replies::{BlockCondition, Reply};
use super::verdict::{ReplyFacts, Violation, ViolationKind, judge};
use crate::fixture;
use crate::random::RandomSource;
use crate::words::damage::damage_reply;
use crate::words::{WordSource, find_words};

/// One damaged reply and the way it is read.
#[derive(Clone, Debug)]
pub struct ActionTrial {
    /// Dialect that reads it.
    pub dialect: String,
    /// Options of the reading.
    pub options: Options,
    /// End of the reply.
    pub finish: &'static str,
    /// The reply.
    pub input: Vec<u8>,
    /// Seeds it and its cuts.
    pub seed: u64,
    facts: ReplyFacts,
}

/// Counts of what a trial covered.
#[derive(Clone, Debug, Default)]
pub struct TrialOutcome {
    /// Zones of blocks that must not act, and how many blocks of each were there.
    pub zones: BTreeMap<BlockCondition, usize>,
    /// Actions of each kind.
    pub actions: BTreeMap<ActionKind, usize>,
    /// Written forms of calls, each with the zones it was tried in; those that acted are under [`BlockCondition::Plain`].
    pub forms: BTreeMap<(&'static str, BlockCondition), usize>,
    /// Replies that ended by themselves and acted, and those of which the repaired reply does all of it.
    pub acting_count: usize,
    /// See there.
    pub stable_count: usize,
}

impl TrialOutcome {
    /// Adds what another trial tried.
    pub fn add(&mut self, other: &TrialOutcome) {
        other.zones.iter().for_each(|(zone, count)| *self.zones.entry(*zone).or_default() += count);
        other.actions.iter().for_each(|(kind, count)| *self.actions.entry(*kind).or_default() += count);
        other.forms.iter().for_each(|(form, count)| *self.forms.entry(*form).or_default() += count);
        self.acting_count += other.acting_count;
        self.stable_count += other.stable_count;
    }
}

/// A reading of a trial.
#[derive(Clone, Debug)]
pub struct ActionReading {
    /// The actions.
    pub actions: Vec<Action>,
    /// The dialect that it was read as.
    pub dialect: &'static str,
    /// The reply as it should have been written, unless the stream failed or replies in the dialect cannot be written.
    pub rewritten_reply: Option<String>,
}

/// The tool that may be called.
const TOOL: &str = "note";

/// The damaged reply of that dialect and seed.
#[must_use]
pub fn make_action_trial(dialect: &str, seed: u64) -> ActionTrial {
    let mut words = WordSource::new(RandomSource::new(seed));
    let options = options(&mut words);
    let finish = words.pick(&["stop", "stop", "stop", "tool_calls", "length", "unknown", "failed"]);
    let reply = Reply::new(dialect, &mut words);
    let mut input = reply.text.clone().into_bytes();
    if !words.is_once_in(4) {
        input = damage_reply(&mut words, reply.text.clone());
    } else if words.is_once_in(2) {
        let at = words.below(input.len() + 1);
        input.truncate(at);
    }
    let is_ended = fixture::parse_end(finish).is_ok_and(|end| !end.is_truncated());
    let facts = ReplyFacts::from_reply(&reply, &input, is_ended);
    ActionTrial { dialect: dialect.to_owned(), options, finish, input, seed, facts }
}

fn options(words: &mut WordSource) -> Options {
    let mut options = Options::default();
    options.round = Some(ExitRound { round: 2, max_rounds: 5, criteria: ExitCriteria::default() });
    if !words.is_once_in(8) {
        let text = json!({ "type": "string" });
        let schema = json!({ "type": "object", "properties": { "text": text }, "required": ["text"] });
        options.tools = ToolRegistry::from_json(&json!({ TOOL: schema })).ok();
    }
    if words.is_once_in(3) {
        options.state = Some(AttachedState { state: json!({}), ..AttachedState::default() });
    }
    let mut set = |name: &str, value: &str| options.set(name, value).expect("an option");
    if words.is_once_in(4) {
        set("aiplan.drop_invalid_calls", "true");
    }
    if words.is_once_in(4) {
        set("aiplan.variant", "v2");
    }
    options
}

impl ActionTrial {
    /// Reads the reply whole and in pieces, and holds its actions against where they stood; then the same for what is written
    /// for it.
    ///
    /// # Errors
    /// Reads the reply and returns its violations, if there are any.
    pub fn check(&self) -> Result<TrialOutcome, Vec<Violation>> {
        let uncut = self.read();
        let mut found = self.judge(&uncut.actions);
        let cuts = RandomSource::new(self.seed).random_cuts(self.input.len());
        let pieces = read(&self.dialect, &self.options, &self.input, &cuts, &self.end());
        if pieces.actions != uncut.actions {
            let message = format!("{:?}\n{:?}", uncut.actions, pieces.actions);
            found.push(Violation { kind: ViolationKind::CutDependent, message });
        }
        found.extend(self.repair().err());
        if !found.is_empty() {
            return Err(found);
        }
        let mut outcome = TrialOutcome::default();
        for (zone, form) in &self.facts.zones {
            *outcome.zones.entry(*zone).or_default() += 1;
            *outcome.forms.entry((form, *zone)).or_default() += 1;
        }
        for action in &uncut.actions {
            *outcome.actions.entry(action.kind).or_default() += 1;
            let form = action.words().iter().find_map(|word| self.facts.forms.get(word).copied());
            if let Some(form) = form.filter(|form| !form.is_empty()) {
                *outcome.forms.entry((form, BlockCondition::Plain)).or_default() += 1;
            }
        }
        outcome.forms.retain(|(form, _), _| !form.is_empty());
        if let Some(rewritten) = uncut.rewritten_reply.as_ref().filter(|_| !uncut.actions.is_empty()) {
            let reread = read(&self.dialect, &self.options, rewritten.as_bytes(), &[], &InputEnd::stop());
            outcome.acting_count = 1;
            outcome.stable_count = usize::from(reread.actions.len() == uncut.actions.len());
        }
        Ok(outcome)
    }

    /// Reads the whole.
    #[must_use]
    pub fn read(&self) -> ActionReading {
        read(&self.dialect, &self.options, &self.input, &[], &self.end())
    }

    /// Holds actions against where they stood.
    #[must_use]
    pub fn judge(&self, actions: &[Action]) -> Vec<Violation> {
        let tools: &[&str] = if self.options.tools.is_some() { &[TOOL] } else { &[] };
        judge(&self.facts, &self.input, self.end().is_truncated(), tools, actions)
    }

    /// A word that must not act, of a block in a zone.
    pub fn forbidden_words(&self) -> impl Iterator<Item = (String, ViolationKind)> + '_ {
        let is_present = |word: u16| find_words(&self.input).any(|(_, found)| found == word);
        let describe = move |(word, kind): (&u16, &ViolationKind)| (super::replies::word_text(*word), *kind);
        self.facts.forbidden.iter().filter(move |(word, _)| is_present(**word)).map(describe)
    }

    /// Returns whether what is written for the reply acts no more than the reply, passes the strict check and stays as it is.
    ///
    /// # Errors
    /// In which way it does not.
    pub fn repair(&self) -> Result<(), Violation> {
        repair(&self.dialect, &self.options, &self.input, &self.end())
    }

    /// The same reply, ending as this word says.
    #[must_use]
    pub fn with_finish(mut self, finish: &'static str) -> ActionTrial {
        self.finish = finish;
        self
    }

    /// End of the reply.
    #[must_use]
    pub fn end(&self) -> InputEnd {
        fixture::parse_end(self.finish).expect("these words are known")
    }
}

/// Returns whether what is written for a reply acts no more than the reply, passes the strict check and stays as it is.
///
/// # Errors
/// In which way it does not.
pub fn repair(dialect: &str, options: &Options, input: &[u8], end: &InputEnd) -> Result<(), Violation> {
    let first = read(dialect, options, input, &[], end);
    let Some(rewritten) = &first.rewritten_reply else { return Ok(()) };
    let violation = |kind, message: String| {
        Err(Violation { kind, message: format!("{message}\nas {}, written {rewritten:?}", first.dialect) })
    };
    for reader in [dialect, first.dialect] {
        let reread = read(reader, options, rewritten.as_bytes(), &[], &InputEnd::stop());
        let mut rest = first.actions.clone();
        for action in &reread.actions {
            match rest.iter().position(|candidate| candidate == action) {
                Some(at) => drop(rest.swap_remove(at)),
                None => {
                    return violation(ViolationKind::Repair, format!("read as {reader}, acts {action:?}"));
                }
            }
        }
        // `auto` may take what is written for another dialect: it looks at the beginning alone (J-054).
        if reread.dialect == first.dialect && reread.rewritten_reply.as_ref() != Some(rewritten) {
            return violation(
                ViolationKind::UnstableRepair,
                format!("as {reader}, twice {:?}", reread.rewritten_reply),
            );
        }
    }
    let mut strict = options.clone();
    strict.profile = Profile::Strict;
    let contract = Contract::from_name(first.dialect).expect("a dialect is a contract");
    match contract.check(rewritten.as_bytes(), &strict).first_error() {
        Some(error) => violation(ViolationKind::Strict, format!("{error:?}")),
        None => Ok(()),
    }
}

fn read(dialect: &str, options: &Options, input: &[u8], cuts: &[usize], end: &InputEnd) -> ActionReading {
    let pipeline = Pipeline::new(dialect, options).expect("it is in the table");
    let mut pipeline = pipeline.with_extensions(true);
    let mut found = JoinedEvents::default();
    let mut from = 0;
    for &chunk_end in cuts.iter().chain([&input.len()]) {
        pipeline.push(&input[from..chunk_end], &mut found);
        from = chunk_end;
    }
    pipeline.finish(end, &mut found);
    let failed = !matches!(found.events.last(), Some(Event::Completed(_)));
    let rewritten_reply = if failed { None } else { pipeline.rewrite(&found.events) };
    ActionReading { actions: actions(&found.events), dialect: pipeline.dialect(), rewritten_reply }
}

impl std::fmt::Display for ActionTrial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ActionTrial { dialect, finish, seed, options, .. } = self;
        let (tools, state) = (options.tools.is_some(), options.state.is_some());
        let input = String::from_utf8_lossy(&self.input);
        write!(f, "{dialect}, seed {seed}, {finish}, tools {tools}, state {state}\n{input:?}")
    }
}
