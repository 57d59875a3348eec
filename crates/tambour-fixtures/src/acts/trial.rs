//! Trial of the oracle of actions: a damaged reply with blocks is made, read, judged and repaired.

use std::collections::BTreeMap;

use serde_json::json;
use tambour::event::JoinedEvents;
use tambour::exit::{ExitCriteria, ExitRound};
use tambour::state::AttachedState;
use tambour::tool::ToolRegistry;
use tambour::verdict::Contract;
use tambour::{Event, InputEnd, Options, Pipeline, Profile};

use super::action::{Action, ActionKind, actions};
use super::replies::{BlockZone, Reply};
use super::verdict::{ReplyFacts, Violation, ViolationKind, judge};
use crate::fixture;
use crate::random::RandomSource;
use crate::words::damage::damage_reply;
use crate::words::{WordSource, find_words, marker};

/// Damaged reply with the settings of its reading.
#[derive(Clone, Debug)]
pub struct ActionTrial {
    /// Dialect of the reading.
    pub dialect: String,
    /// Options of the reading.
    pub options: Options,
    /// End of the reply, as [`fixture::parse_end`] reads it.
    pub finish: &'static str,
    /// Damaged reply.
    pub input: Vec<u8>,
    /// Seed of the reply and of its cuts.
    pub seed: u64,
    /// Facts about the blocks, which the verdict is based on.
    facts: ReplyFacts,
}

/// Counts of what a trial covered.
#[derive(Clone, Debug, Default)]
pub struct TrialOutcome {
    /// Number of blocks that must not act, by zone.
    pub zones: BTreeMap<BlockZone, usize>,
    /// Number of actions, by kind.
    pub actions: BTreeMap<ActionKind, usize>,
    /// Number of calls by written form and zone; calls that acted are under [`BlockZone::Plain`].
    pub forms: BTreeMap<(&'static str, BlockZone), usize>,
    /// Number of replies that acted and could be rewritten.
    pub acting_count: usize,
    /// Number of replies in `acting_count` that still have as many actions once they are rewritten.
    pub stable_count: usize,
}

impl TrialOutcome {
    /// Adds the counts of another trial.
    pub fn add(&mut self, other: &TrialOutcome) {
        other.zones.iter().for_each(|(zone, count)| *self.zones.entry(*zone).or_default() += count);
        other.actions.iter().for_each(|(kind, count)| *self.actions.entry(*kind).or_default() += count);
        other.forms.iter().for_each(|(form, count)| *self.forms.entry(*form).or_default() += count);
        self.acting_count += other.acting_count;
        self.stable_count += other.stable_count;
    }
}

/// Reading of a trial.
#[derive(Clone, Debug)]
pub struct ActionReading {
    /// Actions in order.
    pub actions: Vec<Action>,
    /// Dialect that the reply was read as.
    pub dialect: &'static str,
    /// Repaired reply; `None` if the stream failed, or if replies in the dialect cannot be written.
    pub rewritten_reply: Option<String>,
}

/// Name of the only registered tool.
const TOOL: &str = "note";

/// Makes a reply for `dialect` and damages it; the same seed gives the same trial.
#[must_use]
pub fn make_action_trial(dialect: &str, seed: u64) -> ActionTrial {
    let mut words = WordSource::new(RandomSource::new(seed));
    let options = random_options(&mut words);
    let finish = words.pick(&["stop", "stop", "stop", "tool_calls", "length", "unknown", "failed"]);
    let reply = Reply::new(dialect, &mut words);
    let mut input = reply.text.clone().into_bytes();
    if !words.draw_one_in(4) {
        input = damage_reply(&mut words, reply.text.clone());
    } else if words.draw_one_in(2) {
        let at = words.below(input.len() + 1);
        input.truncate(at);
    }
    let has_clean_end = fixture::parse_end(finish).is_ok_and(|end| !end.is_truncated());
    let facts = ReplyFacts::from_reply(&reply, &input, has_clean_end);
    ActionTrial { dialect: dialect.to_owned(), options, finish, input, seed, facts }
}

/// Makes options of a reading: mostly with the registered tool, sometimes with a state.
fn random_options(words: &mut WordSource) -> Options {
    let mut options = Options::default();
    options.round = Some(ExitRound { round: 2, max_rounds: 5, criteria: ExitCriteria::default() });
    if !words.draw_one_in(8) {
        let text_schema = json!({ "type": "string" });
        let schema = json!({ "type": "object", "properties": { "text": text_schema }, "required": ["text"] });
        options.tools = ToolRegistry::from_json(&json!({ TOOL: schema })).ok();
    }
    if words.draw_one_in(3) {
        options.state = Some(AttachedState { state: json!({}), ..AttachedState::default() });
    }
    let mut set = |name: &str, value: &str| options.set(name, value).expect("the option is known");
    if words.draw_one_in(4) {
        set("aiplan.drop_invalid_calls", "true");
    }
    if words.draw_one_in(4) {
        set("aiplan.variant", "v2");
    }
    options
}

impl ActionTrial {
    /// Reads the reply whole and in pieces and judges its actions, then repairs the reply and checks the
    /// result. Returns counts of what the trial covered.
    ///
    /// # Errors
    /// The trial has violations; all of them are returned.
    pub fn check(&self) -> Result<TrialOutcome, Vec<Violation>> {
        let uncut = self.read();
        let mut violations = self.judge(&uncut.actions);
        let cuts = RandomSource::new(self.seed).random_cuts(self.input.len());
        let cut_reading = read(&self.dialect, &self.options, &self.input, &cuts, &self.end());
        if cut_reading.actions != uncut.actions {
            let message = format!("{:?}\n{:?}", uncut.actions, cut_reading.actions);
            violations.push(Violation { kind: ViolationKind::CutDependent, message });
        }
        violations.extend(check_repair(&self.dialect, &self.options, &self.input, &self.end()).err());
        if !violations.is_empty() {
            return Err(violations);
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
                *outcome.forms.entry((form, BlockZone::Plain)).or_default() += 1;
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

    /// Reads the reply in one piece.
    #[must_use]
    pub fn read(&self) -> ActionReading {
        read(&self.dialect, &self.options, &self.input, &[], &self.end())
    }

    /// Judges actions of the reply, which need not be those of a reading.
    #[must_use]
    pub fn judge(&self, actions: &[Action]) -> Vec<Violation> {
        let tools: &[&str] = if self.options.tools.is_some() { &[TOOL] } else { &[] };
        let has_clean_end = !self.end().is_truncated();
        judge(&self.facts, &self.input, has_clean_end, tools, actions)
    }

    /// Lists the marker words in the damaged reply that must not act, each with the violation if the word acts.
    pub fn forbidden_words(&self) -> impl Iterator<Item = (String, ViolationKind)> + '_ {
        let is_present = |word: u16| find_words(&self.input).any(|(_, found)| found == word);
        let describe = move |(word, kind): (&u16, &ViolationKind)| (marker(*word), *kind);
        self.facts.forbidden_words.iter().filter(move |(word, _)| is_present(**word)).map(describe)
    }

    /// Returns the trial with another end, as [`fixture::parse_end`] reads it.
    #[must_use]
    pub fn with_finish(mut self, finish: &'static str) -> ActionTrial {
        self.finish = finish;
        self
    }

    /// End of the reply.
    #[must_use]
    pub fn end(&self) -> InputEnd {
        fixture::parse_end(self.finish).expect("the finish is known")
    }
}

/// Checks that the repaired reply has no action that the reply lacks, passes the strict check and does not
/// change when it is repaired again.
///
/// # Errors
/// The repair has a violation; the first one is returned.
pub fn check_repair(dialect: &str, options: &Options, input: &[u8], end: &InputEnd) -> Result<(), Violation> {
    let original = read(dialect, options, input, &[], end);
    let Some(rewritten) = &original.rewritten_reply else { return Ok(()) };
    let violation = |kind, message: String| {
        Err(Violation { kind, message: format!("{message}\nas {}, written {rewritten:?}", original.dialect) })
    };
    for reader in [dialect, original.dialect] {
        let reread = read(reader, options, rewritten.as_bytes(), &[], &InputEnd::stop());
        let mut unmatched_actions = original.actions.clone();
        for action in &reread.actions {
            match unmatched_actions.iter().position(|candidate| candidate == action) {
                Some(at) => drop(unmatched_actions.swap_remove(at)),
                None => {
                    return violation(ViolationKind::Repair, format!("read as {reader}, acts {action:?}"));
                }
            }
        }
        // `auto` may take the repaired text for another dialect, since `auto` looks only at its beginning (J-054).
        if reread.dialect == original.dialect && reread.rewritten_reply.as_ref() != Some(rewritten) {
            return violation(
                ViolationKind::UnstableRepair,
                format!("as {reader}, twice {:?}", reread.rewritten_reply),
            );
        }
    }
    let mut strict_options = options.clone();
    strict_options.profile = Profile::Strict;
    let contract = Contract::from_name(original.dialect).expect("a dialect is a contract");
    match contract.check(rewritten.as_bytes(), &strict_options).first_error() {
        Some(error) => violation(ViolationKind::Strict, format!("{error:?}")),
        None => Ok(()),
    }
}

/// Reads a reply in pieces that end at `cuts`.
fn read(dialect: &str, options: &Options, input: &[u8], cuts: &[usize], end: &InputEnd) -> ActionReading {
    let pipeline = Pipeline::new(dialect, options).expect("the dialect is known");
    let mut pipeline = pipeline.with_extensions(true);
    let mut sink = JoinedEvents::default();
    let mut from = 0;
    for &chunk_end in cuts.iter().chain([&input.len()]) {
        pipeline.push(&input[from..chunk_end], &mut sink);
        from = chunk_end;
    }
    pipeline.finish(end, &mut sink);
    let has_failed = !matches!(sink.events.last(), Some(Event::Completed(_)));
    let rewritten_reply = if has_failed { None } else { pipeline.rewrite(&sink.events) };
    ActionReading { actions: actions(&sink.events), dialect: pipeline.dialect(), rewritten_reply }
}

impl std::fmt::Display for ActionTrial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ActionTrial { dialect, finish, seed, options, .. } = self;
        let (tools, state) = (options.tools.is_some(), options.state.is_some());
        let input = String::from_utf8_lossy(&self.input);
        write!(f, "{dialect}, seed {seed}, {finish}, tools {tools}, state {state}\n{input:?}")
    }
}
