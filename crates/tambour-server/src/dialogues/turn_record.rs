//! Records of turns: the input, the state before it, and what it came to. A fork begins from one, a test of a script is made of all.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tambour::dialogue::script_test::{Expected, ScriptTest, TestAnswer, TestFailure, TestReply, TestTurn};
use tambour::dialogue::{CoveredCall, Turn};

use super::turn::Input;
use crate::app::App;
use crate::ids;
use crate::store::StoreError;

/// Record of one turn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TurnRecord {
    /// Its id, which its events have too.
    pub(crate) turn: String,
    pub(crate) created: String,
    /// Time of its end; absent while it runs, and where the server did not see its end.
    pub(crate) ended: Option<String>,
    /// What the user said.
    pub(crate) text: Option<String>,
    /// What the client answered, with its `call_id`.
    pub(crate) answer: Option<Value>,
    pub(crate) before: Snapshot,
    pub(crate) result: Option<Turn>,
}

/// State of a dialogue at one time. The history, which only grows, is not repeated.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Snapshot {
    /// The state without its history.
    state: Value,
    /// Messages of the history.
    said: usize,
    /// The last of them: words that nobody has answered may be replaced by later ones.
    last: Option<Value>,
}

/// How a dialogue began.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Origin {
    /// Path of the step or action with which it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) start: Option<String>,
    /// Values given by its client.
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    pub(crate) variables: serde_json::Map<String, Value>,
    /// The dialogue that it goes on with, and the turn in whose place its first own one stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) forked_from: Option<Fork>,
}

/// Beginning of a fork.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Fork {
    pub(crate) dialogue_id: String,
    pub(crate) turn: String,
}

impl TurnRecord {
    /// The record of a turn that begins; `state` is that of the dialogue before the input.
    pub(super) fn begin(turn: &str, input: &Input, state: &str) -> TurnRecord {
        let (text, answer) = match input {
            Input::Text(text) => (text.clone(), None),
            Input::Answer { call_id, value } => (None, Some(json!({ "call_id": call_id, "value": value }))),
        };
        TurnRecord {
            turn: turn.to_owned(),
            created: ids::now(),
            ended: None,
            text,
            answer,
            before: Snapshot::of(state),
            result: None,
        }
    }

    /// Notes what the turn came to.
    pub(super) fn end(&mut self, turn: &Turn) {
        self.ended = Some(ids::now());
        self.result = Some(turn.clone());
    }

    /// The record as it is told.
    pub(crate) fn shown(&self) -> Value {
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
    fn of(state: &str) -> Snapshot {
        let mut state: Value = serde_json::from_str(state).unwrap_or_default();
        let history = state["history"].take();
        let history = history.as_array();
        Snapshot {
            state,
            said: history.map_or(0, Vec::len),
            last: history.and_then(|history| history.last().cloned()),
        }
    }

    /// The whole state, with the history out of a later one.
    pub(crate) fn state(&self, later: &str) -> Value {
        let mut later: Value = serde_json::from_str(later).unwrap_or_default();
        let mut history = later["history"].as_array_mut().map(std::mem::take).unwrap_or_default();
        history.truncate(self.said.saturating_sub(1));
        history.extend(self.last.clone());
        let mut state = self.state.clone();
        state["history"] = history.into();
        state
    }
}

/// The turns of a dialogue, oldest first.
pub(crate) async fn turns(app: &App, dialogue: &str) -> Result<Vec<TurnRecord>, StoreError> {
    let records = app.store.dialogue_turns(dialogue, 0, u32::MAX).await?;
    Ok(records.iter().filter_map(|(_, record)| serde_json::from_str(record).ok()).collect())
}

/// The records of calls of a dialogue, oldest first.
pub(crate) async fn calls(app: &App, dialogue: &str) -> Result<Vec<Value>, StoreError> {
    let records = app.store.rounds(dialogue, 0, u32::MAX).await?;
    Ok(records.iter().filter_map(|(_, record)| serde_json::from_str(record).ok()).collect())
}

/// A call as coverage looks at it; `None` for a record without an answered call.
pub(crate) fn covered(record: &Value) -> Option<CoveredCall> {
    let path = record["path"].as_str().filter(|_| record["prompt"].is_array())?;
    let answered = record["status"] == "completed" && record["asked_again"] != true;
    let decision = &record["exit_decision"];
    let exit =
        decision["should_exit"].as_bool().unwrap_or(false).then(|| decision["decision_source"].as_str());
    let assigned = record["assigned"].as_object().into_iter().flatten();
    Some(CoveredCall {
        path: path.to_owned(),
        round: record["round"].as_u64().and_then(|round| u32::try_from(round).ok()).filter(|_| answered),
        exit: exit.flatten().map(str::to_owned),
        answer: assigned.map(|(_, value)| value.clone()).find(|value| !value.is_null()).unwrap_or_default(),
    })
}

/// The test that a run makes: its inputs and replies, and what its turns came to.
pub(crate) fn test(origin: &Origin, session: &str, turns: &[TurnRecord], calls: &[Value]) -> ScriptTest {
    let turns = turns.iter().filter_map(|turn| {
        let mut expect = Expected::of(turn.result.as_ref()?);
        // The message follows from the reply, which stands above it.
        expect.ai_message = None;
        let own = calls.iter().filter(|call| call["turn"] == turn.turn.as_str());
        Some(TestTurn {
            text: turn.text.clone(),
            answer: turn.answer.as_ref().map(|answer| TestAnswer { value: answer["value"].clone() }),
            replies: own.filter_map(reply).collect(),
            expect,
        })
    });
    let mut test = ScriptTest::default();
    test.session = Some(session.to_owned());
    test.start = origin.start.clone();
    test.variables = origin.variables.clone();
    test.turns = turns.collect();
    test
}

/// The reply of a call for a test; `None` where there was no call, or the server did not see its end.
fn reply(record: &Value) -> Option<TestReply> {
    if !record["prompt"].is_array() || record["ended"].is_null() {
        return None;
    }
    // Only a reply that was read to its end has findings.
    if record["findings"].is_null() {
        let text = |name: &str| record["error"][name].as_str().unwrap_or_default().to_owned();
        let error = TestFailure { code: text("code"), message: text("message") };
        return Some(TestReply { error: Some(error), ..TestReply::default() });
    }
    let finish = serde_json::from_value(record["finish_reason"].clone()).ok();
    let mut reply = TestReply::of(record["raw"].as_str().unwrap_or_default());
    reply.finish_reason = finish.filter(|reason| *reason != tambour::event::FinishReason::Stop);
    reply.delivered = record["delivered"] == true && !record["unreadable"].is_null();
    Some(reply)
}
