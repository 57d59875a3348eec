//! Trial of the oracle of marker words: a damaged reply with marker words is made, read and checked.

use serde_json::Value;
use tambour::exit::{ExitCriteria, ExitRound};
use tambour::{Event, Finding, InputEnd, Options, Pipeline};

use super::account::{ReceivedReply, WordAccount, WordComplaint, WordFault, account_words};
use super::damage::damage_reply;
use super::replies::ReplyPool;
use super::texts::WordSource;
use crate::random::RandomSource;
use crate::reading::{FixtureReading, first_difference};
use crate::{fixture, grammar};

/// Damaged reply with the settings of its reading.
#[derive(Clone, Debug)]
pub struct WordTrial {
    /// Dialect of the reading.
    pub dialect: String,
    /// Options of the reading.
    pub options: Options,
    /// Number that options and end are derived from.
    pub choice: u16,
    /// End of the reply, as [`fixture::parse_end`] reads it.
    pub finish: &'static str,
    /// Reasoning received separately.
    pub reasoning: Option<String>,
    /// Raw reply.
    pub input: Vec<u8>,
    /// Damaged reply of the model after its calls have run.
    pub next_reply: Option<Vec<u8>>,
    /// Seed of the cuts.
    pub seed: u64,
}

/// Makes a reply for `dialect` and damages it; the same seed gives the same trial.
#[must_use]
pub fn make_trial(dialect: &str, seed: u64, replies: &ReplyPool) -> WordTrial {
    let mut words = WordSource::new(RandomSource::new(seed));
    // Half of all trials use the default settings.
    let choice = if words.draw_one_in(2) { 0 } else { words.random().next_bits() as u16 };
    let reasoning = words.draw_one_in(12).then(|| words.prose());
    let reply = replies.make_reply(dialect, &mut words);
    let input = damage_reply(&mut words, reply);
    let next_reply = words.draw_one_in(4).then(|| {
        let reply = replies.make_reply(dialect, &mut words);
        damage_reply(&mut words, reply)
    });
    WordTrial { reasoning, next_reply, ..WordTrial::new(dialect, choice, seed, input) }
}

/// Makes a trial with small limits. The reply has long texts; half of these replies are damaged.
#[must_use]
pub fn make_long_trial(dialect: &str, seed: u64, replies: &ReplyPool) -> WordTrial {
    let mut words = WordSource::new(RandomSource::new(seed)).with_length_factor(12);
    // In `WordTrial::new`, the choices 6 to 11 are the six ends with the small limits.
    let choice = words.below(6) as u16 + 6;
    let reply = replies.make_reply(dialect, &mut words);
    let input = if words.draw_one_in(2) { reply.into_bytes() } else { damage_reply(&mut words, reply) };
    WordTrial::new(dialect, choice, seed, input)
}

impl WordTrial {
    /// Creates a trial with the settings of `choice`.
    #[must_use]
    pub fn new(dialect: &str, choice: u16, seed: u64, input: Vec<u8>) -> WordTrial {
        let mut options = Options::default();
        options.round = Some(ExitRound { round: 2, max_rounds: 5, criteria: ExitCriteria::default() });
        // Each setting is a digit of `choice`, in a base that is the number of its values.
        let mut remaining_choice = choice;
        let mut choose_below = |base: u16| {
            let digit = remaining_choice % base;
            remaining_choice /= base;
            digit
        };
        let finish = ["stop", "stop", "stop", "length", "unknown", "failed"][usize::from(choose_below(6))];
        if choose_below(4) == 1 {
            let limits = &mut options.limits;
            (limits.hold, limits.tag, limits.line, limits.delta) = (96, 48, 40, 16);
        }
        let mut set = |name: &str, value: &str| options.set(name, value).expect("the option is known");
        if choose_below(4) == 1 {
            set("thinkingml.lone_final", "close");
        }
        if choose_below(4) == 1 {
            set("aiplan.drop_invalid_calls", "true");
        }
        if choose_below(4) == 1 {
            set("aiplan.variant", "v2");
        }
        if choose_below(3) == 1 {
            set("sensitive", "generalise");
        }
        match choose_below(8) {
            1 => set("plain.reasoning", "open"),
            2 => set("plain.reasoning", "none"),
            3 => {
                set("plain.thinking", "skip");
                set("events.allow_missing_thinking", "true");
            }
            _ => {}
        }
        if matches!(dialect, "toolcall" | "filament") {
            // Without tools no call is accepted.
            let tools = serde_json::json!({"note": {"type": "object"}});
            options.set("tools", tools).expect("the option is known");
        }
        let dialect = dialect.to_owned();
        WordTrial { dialect, options, choice, finish, reasoning: None, input, next_reply: None, seed }
    }

    /// Reads the reply, accounts for its words, and reads it again in pieces.
    ///
    /// # Errors
    /// The trial has faults; all of them are returned.
    pub fn check_words(&self) -> Result<WordAccount, Vec<WordComplaint>> {
        let uncut = self.read();
        let (account, mut complaints) = match self.account_words(&uncut) {
            Ok(account) => (account, Vec::new()),
            Err(complaints) => (WordAccount::default(), complaints),
        };
        let mut random = RandomSource::new(self.seed);
        let cuts = random.random_cuts(self.input.len());
        let next_cuts =
            self.next_reply.as_ref().map(|reply| random.random_cuts(reply.len())).unwrap_or_default();
        let stream_checks = [
            (WordFault::InvalidStream, grammar::check_stream(&uncut.events, &self.options)),
            (WordFault::CutDependent, uncut.check_same(&self.read_cut(&cuts, &next_cuts))),
        ];
        for (fault, result) in stream_checks {
            complaints.extend(result.err().map(|message| WordComplaint { fault, word: None, message }));
        }
        if complaints.is_empty() { Ok(account) } else { Err(complaints) }
    }

    /// Accounts for the words of a reading.
    ///
    /// # Errors
    /// The reading has faults; all of them are returned.
    pub fn account_words(&self, reading: &TrialReading) -> Result<WordAccount, Vec<WordComplaint>> {
        let reasoning = self.reasoning.as_deref();
        let mut replies = vec![ReceivedReply { input: &self.input, reasoning, findings: &reading.findings }];
        if let (Some(input), Some(findings)) = (&self.next_reply, &reading.next_findings) {
            replies.push(ReceivedReply { input, reasoning: None, findings });
        }
        account_words(&replies, &reading.events, reading.rewritten_reply.as_ref())
    }

    /// Reads the reply in one piece.
    #[must_use]
    pub fn read(&self) -> TrialReading {
        self.read_cut(&[], &[])
    }

    /// Reads the reply, and the next one if the reply has calls, cut at these offsets.
    fn read_cut(&self, cuts: &[usize], next_cuts: &[usize]) -> TrialReading {
        let mut options = self.options.clone();
        options.tool_loop = self.next_reply.is_some();
        let pipeline = Pipeline::new(&self.dialect, &options).expect("the dialect is known");
        let mut pipeline = pipeline.with_extensions(true);
        let mut sink = FixtureReading::default();
        if let Some(text) = &self.reasoning {
            pipeline.push_reasoning(text, &mut sink);
        }
        self.push_reply(&mut pipeline, &self.input, cuts, &mut sink);
        let findings = std::mem::take(&mut sink.findings);
        let mut next_findings = None;
        if let Some(input) = self.next_reply.as_ref().filter(|_| !pipeline.pending_calls().is_empty()) {
            pipeline = pipeline.next_reply(&self.dialect, &options).expect("the dialect is known");
            self.push_reply(&mut pipeline, input, next_cuts, &mut sink);
            next_findings = Some(std::mem::take(&mut sink.findings));
        }
        // The calls of the last reply are not run, which ends the stream.
        pipeline.abandon(&InputEnd::stop(), &mut sink);
        let rewritten = (pipeline.dialect() == "ai_say").then(|| pipeline.rewrite(&sink.events)).flatten();
        let rewritten_reply = rewritten.and_then(|text| serde_json::from_str(&text).ok());
        TrialReading { events: sink.events, findings, next_findings, rewritten_reply }
    }

    /// Pushes `input` in pieces that end at `cuts`, and finishes the reply.
    fn push_reply(&self, pipeline: &mut Pipeline, input: &[u8], cuts: &[usize], sink: &mut FixtureReading) {
        let mut from = 0;
        for &end in cuts.iter().chain([&input.len()]) {
            pipeline.push(&input[from..end], sink);
            from = end;
        }
        pipeline.finish(&self.end(), sink);
    }

    /// Maximum number of bytes that may be held back.
    pub(super) fn max_held_bytes(&self) -> usize {
        let limits = &self.options.limits;
        // The answer of a plan is held if it comes before the mode of the plan.
        let may_be_plan = matches!(&*self.dialect, "aiplan" | "auto");
        limits.max_held_bytes() + 2 * limits.hold + if may_be_plan { limits.value } else { 0 }
    }

    /// End of the reply.
    pub(super) fn end(&self) -> InputEnd {
        fixture::parse_end(self.finish).expect("these words are known")
    }
}

/// Events and findings of a trial, adjacent deltas joined.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrialReading {
    /// Events in order.
    pub events: Vec<Event<'static>>,
    /// Findings on the reply.
    pub findings: Vec<Finding>,
    /// Findings on the next reply, if it was read.
    pub next_findings: Option<Vec<Finding>>,
    /// Repaired reply as JSON, for a dialect that keeps words outside its events (`ai_say`).
    pub rewritten_reply: Option<Value>,
}

impl TrialReading {
    /// Compares with another reading; names the first difference.
    fn check_same(&self, other: &TrialReading) -> Result<(), String> {
        if self == other {
            return Ok(());
        }
        let all_findings = |reading: &TrialReading| {
            [reading.findings.clone(), reading.next_findings.clone().unwrap_or_default()].concat()
        };
        let events = first_difference(&self.events, &other.events);
        let findings = first_difference(&all_findings(self), &all_findings(other));
        Err(events.or(findings).unwrap_or_else(|| "the rewritten replies differ".to_owned()))
    }
}

impl std::fmt::Display for WordTrial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let WordTrial { dialect, choice, finish, reasoning, seed, .. } = self;
        let input = String::from_utf8_lossy(&self.input);
        write!(f, "{dialect}, seed {seed}, choice {choice}, {finish}, reasoning {reasoning:?}\n{input:?}")?;
        match &self.next_reply {
            Some(reply) => write!(f, "\nand then {:?}", String::from_utf8_lossy(reply)),
            None => Ok(()),
        }
    }
}
