//! Records of turns: the input, the state of the dialogue before it, and the result. A fork of a dialogue
//! starts from one record; a script test is built from all of them and from the records of model calls.

use std::collections::HashMap;
use std::ops::ControlFlow;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tambour_prompt::dialogue::script_test::{
    ExpectedTurn, ScriptTest, TestAnswer, TestFailure, TestReply, TestTurn,
};
use tambour_prompt::dialogue::{Coverage, CoveredCall, DialogueTurn};

use super::turn::TurnInput;
use crate::base::ids;
use crate::run::engine::RunEngine;
use crate::store::{DialogueRow, StoreError};

/// Record of one turn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TurnRecord {
    /// Id of the turn, also in its events.
    pub(crate) turn: String,
    /// Time at which the turn began (RFC 3339).
    pub(crate) created: String,
    /// Time at which the turn ended; absent while the turn runs, and if the server stopped before its end.
    pub(crate) ended: Option<String>,
    /// Text of the user.
    pub(crate) text: Option<String>,
    /// Answer of the client to a request of the dialogue: an object of `call_id` and `value`.
    pub(crate) answer: Option<Value>,
    /// State of the dialogue before the input.
    pub(crate) before: Snapshot,
    /// Result of the turn, once it has ended.
    pub(crate) result: Option<DialogueTurn>,
}

/// State of a dialogue at one time. The history only grows, so its length is kept instead of its messages.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Snapshot {
    /// State without the history.
    state: Value,
    /// Number of messages in the history.
    said: usize,
    /// Last message of the history, which may be replaced later if it is unanswered.
    last: Option<Value>,
}

/// Start of a dialogue.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct DialogueOrigin {
    /// Path of the step or action at which it started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) start: Option<String>,
    /// Variables that the client set at the start.
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    pub(crate) variables: serde_json::Map<String, Value>,
    /// Origin of a fork.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) forked_from: Option<ForkOrigin>,
}

/// Origin of a dialogue that is a fork of another one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ForkOrigin {
    /// Dialogue whose turns come before those of the fork.
    pub(crate) dialogue_id: String,
    /// Id of the turn, in that dialogue, that the first turn of the fork replaces.
    pub(crate) turn: String,
}

impl DialogueOrigin {
    /// Reads the origin of a stored dialogue.
    pub(crate) fn from_row(row: &DialogueRow) -> DialogueOrigin {
        serde_json::from_str(&row.origin).unwrap_or_default()
    }
}

impl TurnRecord {
    /// Begins the record of a turn with this id; `state` is the state of the dialogue before the input, as
    /// JSON.
    pub(super) fn begin(turn: &str, input: &TurnInput, state: &str) -> TurnRecord {
        let (text, answer) = match input {
            TurnInput::Text(text) => (text.clone(), None),
            TurnInput::Answer { call_id, value } => {
                (None, Some(json!({ "call_id": call_id, "value": value })))
            }
        };
        TurnRecord {
            turn: turn.to_owned(),
            created: ids::now(),
            ended: None,
            text,
            answer,
            before: Snapshot::from_state(state),
            result: None,
        }
    }

    /// Records the result of the turn.
    pub(super) fn end(&mut self, turn: &DialogueTurn) {
        self.ended = Some(ids::now());
        self.result = Some(turn.clone());
    }

    /// Returns the record as shown to clients.
    pub(crate) fn to_client_json(&self) -> Value {
        json!({
            "turn": self.turn,
            "created": self.created,
            "ended": self.ended,
            "text": self.text,
            "answer": self.answer,
            "result": self.result,
        })
    }
}

impl Snapshot {
    fn from_state(state: &str) -> Snapshot {
        let mut state: Value = serde_json::from_str(state).unwrap_or_default();
        let history = state["history"].take();
        let history = history.as_array();
        Snapshot {
            state,
            said: history.map_or(0, Vec::len),
            last: history.and_then(|history| history.last().cloned()),
        }
    }

    /// Restores the whole state. The messages of the history before `last` are taken from `later_state`, which
    /// is JSON.
    pub(crate) fn restore(&self, later_state: &str) -> Value {
        let mut later_state: Value = serde_json::from_str(later_state).unwrap_or_default();
        let mut history = later_state["history"].as_array_mut().map(std::mem::take).unwrap_or_default();
        history.truncate(self.said.saturating_sub(1));
        history.extend(self.last.clone());
        let mut state = self.state.clone();
        state["history"] = history.into();
        state
    }
}

/// Number of records read from the store at once: a dialogue may have any number of them.
const READ_COUNT: u32 = 50;

/// Kind of a dialogue's records.
#[derive(Clone, Copy)]
enum RecordKind {
    /// Records of turns.
    Turns,
    /// Records of model calls.
    Calls,
}

/// Calls `visit` for each record of a dialogue with its number, oldest first, until `visit` breaks. Records
/// that cannot be read are left out.
async fn for_each_record<T: DeserializeOwned>(
    engine: &RunEngine,
    dialogue: &str,
    kind: RecordKind,
    mut visit: impl FnMut(i64, T) -> ControlFlow<()> + Send,
) -> Result<(), StoreError> {
    let mut after = 0;
    loop {
        let records = match kind {
            RecordKind::Turns => engine.store.dialogue_turns(dialogue, after, READ_COUNT).await?,
            RecordKind::Calls => engine.store.call_records(dialogue, after, READ_COUNT).await?,
        };
        let Some((last_number, _)) = records.last() else { return Ok(()) };
        after = *last_number;
        for (number, record) in records {
            if let Ok(record) = serde_json::from_str(&record)
                && visit(number, record).is_break()
            {
                return Ok(());
            }
        }
    }
}

/// Calls `visit` for each turn of a dialogue with its number, oldest first, until `visit` breaks.
pub(crate) async fn for_each_turn(
    engine: &RunEngine,
    dialogue: &str,
    visit: impl FnMut(i64, TurnRecord) -> ControlFlow<()> + Send,
) -> Result<(), StoreError> {
    for_each_record(engine, dialogue, RecordKind::Turns, visit).await
}

/// Returns the last turn of a dialogue.
pub(super) async fn load_last_turn(
    engine: &RunEngine,
    dialogue: &str,
) -> Result<Option<TurnRecord>, StoreError> {
    let mut last = None;
    let visit = |_, turn| {
        last = Some(turn);
        ControlFlow::Continue(())
    };
    for_each_turn(engine, dialogue, visit).await?;
    Ok(last)
}

/// Calls `visit` for each call record of a dialogue, oldest first.
async fn for_each_call(
    engine: &RunEngine,
    dialogue: &str,
    mut visit: impl FnMut(Value) + Send,
) -> Result<(), StoreError> {
    let visit = |_, call| {
        visit(call);
        ControlFlow::Continue(())
    };
    for_each_record(engine, dialogue, RecordKind::Calls, visit).await
}

/// Adds the model calls and turns of a dialogue to the coverage of its session.
pub(crate) async fn add_coverage(
    engine: &RunEngine,
    row: &DialogueRow,
    coverage: &mut Coverage,
) -> Result<(), StoreError> {
    let mut calls = Vec::new();
    for_each_call(engine, &row.id, |call| calls.extend(covered_call(&call))).await?;
    let mut turns = Vec::new();
    let visit = |_, turn: TurnRecord| {
        turns.extend(turn.result);
        ControlFlow::Continue(())
    };
    for_each_turn(engine, &row.id, visit).await?;
    coverage.add_dialogue(DialogueOrigin::from_row(row).start.as_deref(), &calls, &turns);
    Ok(())
}

/// Converts a call record for coverage; `None` unless it records a model call.
fn covered_call(record: &Value) -> Option<CoveredCall> {
    let path = record["path"].as_str().filter(|_| record["prompt"].is_array())?;
    let is_answered = record["status"] == "completed" && record["asked_again"] != true;
    let decision = &record["exit_decision"];
    let should_exit = decision["should_exit"].as_bool().unwrap_or(false);
    let exit = should_exit.then(|| decision["decision_source"].as_str());
    let assignments = record["assigned"].as_object().into_iter().flatten();
    Some(CoveredCall {
        path: path.to_owned(),
        round: record["round"].as_u64().and_then(|round| u32::try_from(round).ok()).filter(|_| is_answered),
        exit: exit.flatten().map(str::to_owned),
        answer: assignments
            .map(|(_, value)| value.clone())
            .find(|value| !value.is_null())
            .unwrap_or_default(),
    })
}

/// Builds a script test from a dialogue: its inputs and replies, and the results of its turns.
pub(crate) async fn build_script_test(
    engine: &RunEngine,
    row: &DialogueRow,
) -> Result<ScriptTest, StoreError> {
    let mut replies: HashMap<String, Vec<TestReply>> = HashMap::new();
    let visit = |call: Value| {
        if let (Some(turn), Some(reply)) = (call["turn"].as_str(), test_reply(&call)) {
            replies.entry(turn.to_owned()).or_default().push(reply);
        }
    };
    for_each_call(engine, &row.id, visit).await?;
    let DialogueOrigin { start, variables, .. } = DialogueOrigin::from_row(row);
    let mut test = ScriptTest::default();
    (test.session, test.start, test.variables) = (Some(row.session.clone()), start, variables);
    let visit = |_, turn: TurnRecord| {
        if let Some(result) = &turn.result {
            let mut expect = ExpectedTurn::from_turn(result);
            // Not part of the expectation: the message follows from the replies of the turn.
            expect.ai_message = None;
            test.turns.push(TestTurn {
                text: turn.text,
                answer: turn.answer.map(|answer| TestAnswer { value: answer["value"].clone() }),
                replies: replies.remove(&turn.turn).unwrap_or_default(),
                expect,
            });
        }
        ControlFlow::Continue(())
    };
    for_each_turn(engine, &row.id, visit).await?;
    Ok(test)
}

/// Converts the reply of a call record for a test; `None` unless it records a model call that ended before
/// the server stopped.
fn test_reply(record: &Value) -> Option<TestReply> {
    if !record["prompt"].is_array() || record["ended"].is_null() {
        return None;
    }
    // Only a reply that was read to its end has findings.
    if record["findings"].is_null() {
        let text = |name: &str| record["error"][name].as_str().unwrap_or_default().to_owned();
        let error = TestFailure { code: text("code"), message: text("message") };
        return Some(TestReply { error: Some(error), ..TestReply::default() });
    }
    let finish_reason = serde_json::from_value(record["finish_reason"].clone()).ok();
    let mut reply = TestReply::from_text(record["raw"].as_str().unwrap_or_default());
    // `stop` is the default of tests.
    reply.finish_reason = finish_reason.filter(|reason| *reason != tambour::event::FinishReason::Stop);
    // Matters only for an unreadable reply: delivered text keeps it from being requested again.
    reply.delivered = record["delivered"] == true && !record["unreadable"].is_null();
    Some(reply)
}
