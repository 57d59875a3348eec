//! Tests of scripts: a run with its inputs and model replies, compared with the expected turns.
//!
//! No model is needed: the replies are in the test. A test runs on the same state machine as every dialogue.

use std::collections::VecDeque;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use serde_saphyr::Spanned;

use super::call::ModelCall;
use super::machine::{DialogueEnv, DialogueRequest, DialogueSettings, TemplateSource};
use super::state::{Dialogue, DialogueStatus};
use super::turn::DialogueTurn;
use crate::script::Script;
use tambour::error::{Error, Result};
use tambour::event::{EventCollector, Failure, FinishReason};
use tambour::options::Options;
use tambour::pipeline::InputEnd;
use tambour::texts::{Language, Texts};
use tambour::yaml;

/// Test of a script, as a YAML or JSON file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ScriptTest {
    /// Path of the script, relative to the test file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// Language of the templates and default texts; [`TestEnv::language`] if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<Language>,
    /// Name of the session; the first if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Step or action at which the run begins, as a path in the script; the first if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// Values of variables; they take precedence over those that the script declares.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub variables: Map<String, Value>,
    /// The turns in order.
    pub turns: Vec<TestTurn>,
}

/// One turn of a test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestTurn {
    /// Message of the user; absent if the model continues by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Answer of the client to the pending request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<TestAnswer>,
    /// Replies of the model in this turn, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replies: Vec<TestReply>,
    /// Expectations about the turn. Absent fields are not compared, except `error`.
    #[serde(default)]
    pub expect: ExpectedTurn,
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
    /// Finish reason of the reply; `stop` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<FinishReason>,
    /// True if the user had seen some of the reply before it was known to be unreadable, so that it was not
    /// requested again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub delivered: bool,
    /// Failure of the call; takes precedence over `text`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TestFailure>,
}

/// Failure of a call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestFailure {
    /// Stable code.
    pub code: String,
    /// Description of the failure.
    #[serde(default)]
    pub message: String,
}

/// Expectations about a turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedTurn {
    /// Status of the dialogue after the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<DialogueStatus>,
    /// Position of the current or next action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<ExpectedPosition>,
    /// Number of answered rounds of the turn's action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_round: Option<u32>,
    /// Decision of the round, for `ai_say`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_decision: Option<ExpectedDecision>,
    /// Message of the model to the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ai_message: Option<String>,
    /// Code of the turn's failure; absent if it must not fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Expectations about the position in the script. Uses names, so that it stays valid when something is
/// inserted before it.
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
    /// Type of the action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_type: Option<String>,
    /// The action's own id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_id: Option<String>,
}

/// Expectations about an exit decision.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedDecision {
    /// True if the action should end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub should_exit: Option<bool>,
    /// Rule of the decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_source: Option<String>,
    /// Conditions of understanding that are not met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmet: Option<Vec<String>>,
}

/// Difference between the expected and the actual value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TestDifference {
    /// Number of the turn, from 1.
    pub turn: usize,
    /// Field of `expect`, such as `exit_decision.decision_source`; `replies` if the number of model calls
    /// differs, `input` if the dialogue refused the input of the turn.
    pub field: String,
    /// Expected value.
    pub expected: Value,
    /// Actual value.
    pub found: Value,
}

/// Place of `turns` in a test file, for error messages.
#[derive(Deserialize)]
struct LocatedTurns {
    turns: Spanned<IgnoredAny>,
}

/// Environment of a test.
#[derive(Clone, Copy)]
pub struct TestEnv<'a> {
    /// Templates by id.
    pub templates: &'a dyn TemplateSource,
    /// Language if the test names none.
    pub language: Language,
}

impl ScriptTest {
    /// Parses a test from YAML or JSON; `name` is used in error messages.
    ///
    /// # Errors
    /// The text is not a valid test, or has no turn to compare. The error states the place.
    pub fn parse(name: &str, text: &str) -> Result<ScriptTest> {
        let test: ScriptTest = yaml::parse_as(name, text)?;
        if test.turns.is_empty() {
            let located = yaml::parse_as::<LocatedTurns>(name, text).ok();
            let place = located.map(|located| yaml::locate(text, &located.turns.referenced));
            let message = "`turns` is empty, and a test without a turn cannot fail; `tambour run SCRIPT --save-test FILE` writes one";
            return Err(Error::malformed(message, place));
        }
        Ok(test)
    }

    /// Formats the test as YAML that parses to the same test.
    #[must_use]
    pub fn print(&self) -> String {
        yaml::print(&json!(self))
    }

    /// Runs the test against a script and returns the differences in order.
    ///
    /// # Errors
    /// The script lacks the session, or has no action at or below `start`.
    pub fn run(&self, script: &Script, env: TestEnv<'_>) -> Result<Vec<TestDifference>> {
        let session = self.session.as_deref();
        let dialogue = match &self.start {
            Some(start_path) => Dialogue::start_at(script, session, start_path, self.variables.clone())?,
            None => Dialogue::start(script, session, self.variables.clone())?,
        };
        let texts = Texts::from_language(self.language.unwrap_or(env.language));
        let settings = DialogueSettings { texts: texts.clone(), ..DialogueSettings::default() };
        let mut options = Options::default();
        options.texts = texts;
        let mut test_run = TestRun {
            script,
            templates: env.templates,
            settings,
            options,
            dialogue,
            differences: Vec::new(),
        };
        for (number, turn) in (1..).zip(&self.turns) {
            if !test_run.run_turn(number, turn) {
                break;
            }
        }
        Ok(test_run.differences)
    }
}

impl TestReply {
    /// Creates a reply that ended normally.
    #[must_use]
    pub fn from_text(text: impl Into<String>) -> TestReply {
        TestReply { text: Some(text.into()), ..TestReply::default() }
    }
}

impl ExpectedTurn {
    /// Creates the expectations that a turn meets.
    #[must_use]
    pub fn from_turn(turn: &DialogueTurn) -> ExpectedTurn {
        let metadata = turn.metadata.as_ref();
        let decision = metadata.and_then(|metadata| metadata.exit_decision.as_ref());
        ExpectedTurn {
            status: Some(turn.status),
            position: turn.position.as_ref().map(|position| ExpectedPosition {
                phase: Some(position.phase.clone()),
                topic: Some(position.topic.clone()),
                action: action_number(&position.path),
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

/// Returns the number of an action in its step, from 1, by its path.
fn action_number(path: &str) -> Option<u32> {
    let index = path.strip_suffix(']')?.rsplit_once('[')?.1;
    index.parse::<u32>().ok().map(|index| index + 1)
}

/// A running test.
struct TestRun<'a> {
    script: &'a Script,
    templates: &'a dyn TemplateSource,
    settings: DialogueSettings,
    options: Options,
    dialogue: Dialogue,
    differences: Vec<TestDifference>,
}

impl TestRun<'_> {
    /// Calls a function with the dialogue and its environment.
    fn with_dialogue<T>(&mut self, change: impl FnOnce(&mut Dialogue, &DialogueEnv<'_>) -> T) -> T {
        let TestRun { script, templates, settings, dialogue, .. } = self;
        // Prompts are built but not sent, so the time is irrelevant.
        change(dialogue, &DialogueEnv { script, templates: *templates, now: 0, settings, hooks: &() })
    }

    fn add_difference(&mut self, turn: usize, field: &str, expected: Value, actual: Value) {
        self.differences.push(TestDifference { turn, field: field.to_owned(), expected, found: actual });
    }

    /// Runs a turn and records its differences; returns false if the following turns would be meaningless.
    fn run_turn(&mut self, number: usize, turn: &TestTurn) -> bool {
        let result = self.with_dialogue(|dialogue, env| match (&turn.answer, dialogue.next(env)) {
            (Some(answer), DialogueRequest::Answer { call_id }) => {
                dialogue.answer(&call_id, answer.value.clone(), env)
            }
            // No request is pending, so the dialogue refuses the answer.
            (Some(answer), _) => dialogue.answer("", answer.value.clone(), env),
            (None, _) => dialogue.input(turn.text.as_deref(), env),
        });
        if let Err(refusal) = result {
            let input_kind = if turn.answer.is_some() { "answer" } else { "text" };
            self.add_difference(number, "input", json!(input_kind), json!(refusal.code()));
            return false;
        }
        let mut replies: VecDeque<&TestReply> = turn.replies.iter().collect();
        let mut call_count = 0;
        let lacks_reply = loop {
            match self.with_dialogue(Dialogue::next) {
                DialogueRequest::Call(call) => {
                    call_count += 1;
                    let Some(reply) = replies.pop_front() else { break true };
                    self.take_reply(&call, reply);
                }
                DialogueRequest::Event(_) => {}
                _ => break false,
            }
        };
        if lacks_reply || !replies.is_empty() {
            self.add_difference(number, "replies", turn.replies.len().into(), call_count.into());
        }
        if lacks_reply {
            return false;
        }
        let actual = ExpectedTurn::from_turn(&self.dialogue.turn(self.script));
        self.compare(number, "", &json!(turn.expect), &json!(actual));
        // A turn without an expected error must not fail.
        if turn.expect.error.is_none() && actual.error.is_some() {
            self.add_difference(number, "error", Value::Null, json!(actual.error));
        }
        true
    }

    /// Reads a reply of the test and passes it to the dialogue.
    fn take_reply(&mut self, call: &ModelCall, reply: &TestReply) {
        let result = match (&reply.text, &reply.error) {
            (Some(text), None) => {
                let mut reader = call.reader(&self.options);
                let mut events = EventCollector::default();
                reader.push(text, &mut events);
                reader.finish(&InputEnd::Finished(reply.finish_reason.unwrap_or_default()), &mut events)
            }
            (_, error) => {
                let error = error.clone().unwrap_or_default();
                let is_retryable = true;
                Err(Failure::new(error.code, error.message, is_retryable))
            }
        };
        match result {
            Ok(mut model_reply) => {
                model_reply.is_delivered = reply.delivered;
                self.with_dialogue(|dialogue, env| drop(dialogue.reply(call, &model_reply, env)));
            }
            Err(failure) => self.with_dialogue(|dialogue, env| dialogue.fail(failure, env)),
        }
    }

    /// Compares the expected values with the actual ones field by field; `field` is the path of the field so
    /// far.
    fn compare(&mut self, turn: usize, field: &str, expected: &Value, actual: &Value) {
        match expected {
            Value::Object(fields) => {
                for (name, expected) in fields {
                    let field = if field.is_empty() { name.clone() } else { format!("{field}.{name}") };
                    self.compare(turn, &field, expected, &actual[name.as_str()]);
                }
            }
            expected if expected != actual => {
                self.add_difference(turn, field, expected.clone(), actual.clone())
            }
            _ => {}
        }
    }
}
