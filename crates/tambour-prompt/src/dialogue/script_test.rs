//! Tests of scripts: a run with its inputs and the replies of the model, held against what each turn should come to.
//!
//! Needs no model: the replies stand in the test. The machine that runs it is that of every dialogue.

use std::collections::VecDeque;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use serde_saphyr::Spanned;

use super::call::Call;
use super::machine::{Env, Settings, Templates, Want};
use super::state::{Dialogue, Status};
use super::turn::Turn;
use crate::script::Script;
use tambour::error::{Error, Result};
use tambour::event::{Collected, Failure, FinishReason};
use tambour::options::Options;
use tambour::pipeline::End;
use tambour::texts::{Language, Texts};
use tambour::yaml;

/// A test of a script, as it stands in a file of YAML or JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ScriptTest {
    /// File of the script, seen from the file of the test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// Language of the templates and default texts, Chinese when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<Language>,
    /// Session of the script by its name; the first when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Step or action with which the run begins, as a path in the script; the first when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// Values that go before those that the script declares.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub variables: Map<String, Value>,
    /// The turns in order.
    pub turns: Vec<TestTurn>,
}

/// One turn of a test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestTurn {
    /// Words of the user; absent where the model goes on by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Answer of the client to the request that waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<TestAnswer>,
    /// Replies of the model in this turn, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replies: Vec<TestReply>,
    /// Claims about what the turn comes to. A field that is absent is not compared.
    #[serde(default)]
    pub expect: Expected,
}

/// Answer of the client to a `form`, `picture` or `skill`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestAnswer {
    /// Value for the variable of the action.
    pub value: Value,
}

/// A reply of the model, or the failure of its call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestReply {
    /// The raw reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Reason for the end of the reply, `stop` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<FinishReason>,
    /// Set when the user had seen some of it before it was known to be unreadable, so that it was not asked for again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub delivered: bool,
    /// The call failed like this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TestFailure>,
}

/// Failure of a call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestFailure {
    /// Stable word.
    pub code: String,
    /// Description of the failure.
    #[serde(default)]
    pub message: String,
}

/// Claims about a turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// Status of the dialogue after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// Place of the action that comes next or is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<ExpectedPosition>,
    /// Rounds of the action of the turn that were answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_round: Option<u32>,
    /// Decision of the round, of `ai_say`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_decision: Option<ExpectedDecision>,
    /// Message of the model to the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ai_message: Option<String>,
    /// Code of the failure of the turn; absent where it must not fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Claims about a place. Names, so that it stays right when something is put before it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedPosition {
    /// Name of the phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Topic of the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// Number of the action in its step, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<u32>,
    /// Its type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_type: Option<String>,
    /// Its own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_id: Option<String>,
}

/// Claims about an exit decision.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedDecision {
    /// Set when the action may end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub should_exit: Option<bool>,
    /// The rule behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_source: Option<String>,
    /// Conditions of understanding that do not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmet: Option<Vec<String>>,
}

/// Something that came otherwise than expected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// The turn, from 1.
    pub turn: usize,
    /// The field of `expect`, such as `exit_decision.decision_source`; `replies` where the model was asked more or less often.
    pub field: String,
    /// Expected value.
    pub expected: Value,
    /// Value that came.
    pub found: Value,
}

/// The place of the turns of a test.
#[derive(Deserialize)]
struct TurnsPlace {
    turns: Spanned<IgnoredAny>,
}

/// Environment of a test.
#[derive(Clone, Copy)]
pub struct TestEnv<'a> {
    /// Templates by id.
    pub templates: &'a dyn Templates,
    /// Language where the test names none.
    pub language: Language,
}

impl ScriptTest {
    /// A test from YAML or JSON; `name` is what errors call it.
    ///
    /// # Errors
    /// Not of the form, or without a turn, so that nothing could differ; with the place.
    pub fn parse(name: &str, text: &str) -> Result<ScriptTest> {
        let test: ScriptTest = yaml::read(name, text)?;
        if test.turns.is_empty() {
            let found = yaml::read::<TurnsPlace>(name, text).ok();
            let place = found.map(|found| yaml::place(text, &found.turns.referenced));
            let message = "`turns` is empty, and a test without a turn cannot fail; `tambour run SCRIPT --save-test FILE` writes one";
            return Err(Error::malformed(message, place));
        }
        Ok(test)
    }

    /// The test as YAML that reads back to the same.
    #[must_use]
    pub fn print(&self) -> String {
        yaml::print(&json!(self))
    }

    /// Runs the test against a script; what came otherwise than expected, in order.
    ///
    /// # Errors
    /// The script has no such session or place to start from.
    pub fn run(&self, script: &Script, env: TestEnv<'_>) -> Result<Vec<Difference>> {
        let session = self.session.as_deref();
        let dialogue = match &self.start {
            Some(place) => Dialogue::start_at(script, session, place, self.variables.clone())?,
            None => Dialogue::start(script, session, self.variables.clone())?,
        };
        let texts = Texts::of(self.language.unwrap_or(env.language));
        let settings = Settings { texts: texts.clone(), ..Settings::default() };
        let mut options = Options::default();
        options.texts = texts;
        let mut rehearsal = Rehearsal {
            script,
            templates: env.templates,
            settings,
            options,
            dialogue,
            differences: Vec::new(),
        };
        for (number, turn) in (1..).zip(&self.turns) {
            if !rehearsal.turn(number, turn) {
                break;
            }
        }
        Ok(rehearsal.differences)
    }
}

impl TestReply {
    /// A reply that ended well.
    #[must_use]
    pub fn of(text: impl Into<String>) -> TestReply {
        TestReply { text: Some(text.into()), ..TestReply::default() }
    }
}

impl Expected {
    /// The claims that hold of a turn.
    #[must_use]
    pub fn of(turn: &Turn) -> Expected {
        let metadata = turn.metadata.as_ref();
        let decision = metadata.and_then(|metadata| metadata.exit_decision.as_ref());
        Expected {
            status: Some(turn.status),
            position: turn.position.as_ref().map(|position| ExpectedPosition {
                phase: Some(position.phase.clone()),
                topic: Some(position.topic.clone()),
                action: number(&position.path),
                action_type: Some(position.action_type.clone()),
                action_id: position.action_id.clone(),
            }),
            current_round: metadata.map(|metadata| metadata.current_round),
            exit_decision: decision.map(|decision| ExpectedDecision {
                should_exit: Some(decision.should_exit),
                decision_source: json!(decision.decision_source).as_str().map(str::to_owned),
                unmet: Some(decision.unmet.iter().map(|name| name.clone().into_owned()).collect()),
            }),
            ai_message: turn.ai_message.clone(),
            error: turn.error.as_ref().map(|failure| failure.code.clone().into_owned()),
        }
    }
}

/// Number of an action in its step, from 1, by its path.
fn number(path: &str) -> Option<u32> {
    let index = path.strip_suffix(']')?.rsplit_once('[')?.1;
    index.parse::<u32>().ok().map(|index| index + 1)
}

/// A test under way.
struct Rehearsal<'a> {
    script: &'a Script,
    templates: &'a dyn Templates,
    settings: Settings,
    options: Options,
    dialogue: Dialogue,
    differences: Vec<Difference>,
}

impl Rehearsal<'_> {
    fn change<T>(&mut self, change: impl FnOnce(&mut Dialogue, &Env<'_>) -> T) -> T {
        let Rehearsal { script, templates, settings, dialogue, .. } = self;
        // No prompt is sent, so the time says nothing.
        change(dialogue, &Env { script, templates: *templates, now: 0, settings, hooks: &() })
    }

    fn differ(&mut self, turn: usize, field: &str, expected: Value, found: Value) {
        self.differences.push(Difference { turn, field: field.to_owned(), expected, found });
    }

    /// Plays a turn; `false` when what follows would say nothing any more.
    fn turn(&mut self, number: usize, turn: &TestTurn) -> bool {
        let taken = self.change(|dialogue, env| match (&turn.answer, dialogue.next(env)) {
            (Some(answer), Want::Answer { call_id }) => dialogue.answer(&call_id, answer.value.clone(), env),
            (Some(answer), _) => dialogue.answer("", answer.value.clone(), env),
            (None, _) => dialogue.input(turn.text.as_deref(), env),
        });
        if let Err(refusal) = taken {
            let given = if turn.answer.is_some() { "answer" } else { "text" };
            self.differ(number, "input", json!(given), json!(refusal.code()));
            return false;
        }
        let mut replies: VecDeque<&TestReply> = turn.replies.iter().collect();
        let mut calls = 0;
        let lacking = loop {
            match self.change(Dialogue::next) {
                Want::Call(call) => {
                    calls += 1;
                    let Some(reply) = replies.pop_front() else { break true };
                    self.reply(&call, reply);
                }
                Want::Event(_) => {}
                _ => break false,
            }
        };
        if lacking || !replies.is_empty() {
            self.differ(number, "replies", turn.replies.len().into(), calls.into());
        }
        if lacking {
            return false;
        }
        let found = Expected::of(&self.dialogue.turn(self.script));
        self.compare(number, "", &json!(turn.expect), &json!(found));
        if turn.expect.error.is_none() && found.error.is_some() {
            self.differ(number, "error", Value::Null, json!(found.error));
        }
        true
    }

    fn reply(&mut self, call: &Call, reply: &TestReply) {
        let read = match (&reply.text, &reply.error) {
            (Some(text), None) => {
                let mut reader = call.reader(&self.options);
                let mut events = Collected::default();
                reader.push(text, &mut events);
                reader.finish(&End::Finished(reply.finish_reason.unwrap_or_default()), &mut events)
            }
            (_, error) => {
                let error = error.clone().unwrap_or_default();
                Err(Failure::new(error.code, error.message, true))
            }
        };
        match read {
            Ok(mut read) => {
                read.delivered = reply.delivered;
                self.change(|dialogue, env| drop(dialogue.reply(call, &read, env)));
            }
            Err(failure) => self.change(|dialogue, env| dialogue.fail(failure, env)),
        }
    }

    /// Compares what was expected, field by field.
    fn compare(&mut self, turn: usize, field: &str, expected: &Value, found: &Value) {
        match expected {
            Value::Object(fields) => {
                for (name, expected) in fields {
                    let field = if field.is_empty() { name.clone() } else { format!("{field}.{name}") };
                    self.compare(turn, &field, expected, &found[name.as_str()]);
                }
            }
            expected if expected != found => self.differ(turn, field, expected.clone(), found.clone()),
            _ => {}
        }
    }
}
