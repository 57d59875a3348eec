//! Exchange between running messages and clients: confirmations of tool calls, and results of calls that
//! clients run. The first answer to a call is taken; later ones are refused.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tambour::event::{ToolCall, ToolError};
use tokio::sync::watch;

/// Desks of running messages, by message id.
#[derive(Default)]
pub(crate) struct DeskRegistry {
    by_message: Mutex<HashMap<String, Arc<AnswerDesk>>>,
}

/// Desk of one message: clients leave their answers here, and the run of the message takes them.
#[derive(Default)]
pub(crate) struct AnswerDesk {
    /// Calls of the message by call id.
    calls: Mutex<BTreeMap<String, CallSlot>>,
    /// Notified when answers were given.
    answers_changed: watch::Sender<()>,
}

/// State of one call.
#[derive(Default)]
struct CallSlot {
    decision: AnswerSlot<CallDecision>,
    result: AnswerSlot<ToolAnswer>,
}

/// State of an answer that a client may give.
#[derive(Default)]
enum AnswerSlot<T> {
    /// No answer is expected.
    #[default]
    NotExpected,
    /// An answer is expected.
    Expected,
    /// The answer was given, and not taken yet.
    Given(T),
    /// The answer was taken, or did not come in time.
    Closed,
}

/// Decision of the user about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallDecision {
    /// True if the call may run.
    pub(crate) allow: bool,
    /// Reason that the user gave; shown to the model if the call is denied.
    pub(crate) reason: Option<String>,
}

/// Result of a tool, or the reason why there is none.
pub(crate) type ToolAnswer = Result<Value, ToolError>;

/// Reason why an answer is refused, with the id of its call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AnswerRefusal {
    /// The message has no call with this id.
    Unknown(String),
    /// The call was answered already, or its time is over.
    Answered(String),
    /// The call expects no answer of this kind.
    NotWaiting(String),
}

impl DeskRegistry {
    /// Opens the desk of a message that may call tools.
    pub(crate) fn open(&self, message: &str) -> Arc<AnswerDesk> {
        let desk = Arc::new(AnswerDesk::default());
        self.lock().insert(message.to_owned(), desk.clone());
        desk
    }

    /// Returns the desk of a running message, if it has one.
    pub(crate) fn get(&self, message: &str) -> Option<Arc<AnswerDesk>> {
        self.lock().get(message).cloned()
    }

    /// Removes the desk of an ended message.
    pub(crate) fn remove(&self, message: &str) {
        self.lock().remove(message);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<AnswerDesk>>> {
        self.by_message.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AnswerDesk {
    /// Registers calls; those selected by `needs_confirmation` need a decision.
    pub(crate) fn register_calls(&self, calls: &[ToolCall], needs_confirmation: impl Fn(&ToolCall) -> bool) {
        let mut slots = self.lock();
        for call in calls {
            let decision =
                if needs_confirmation(call) { AnswerSlot::Expected } else { AnswerSlot::NotExpected };
            slots.insert(call.call_id.clone(), CallSlot { decision, result: AnswerSlot::NotExpected });
        }
    }

    /// Expects the results of these calls from now on.
    pub(crate) fn expect_results(&self, calls: &[ToolCall]) {
        let mut slots = self.lock();
        for call in calls {
            slots.entry(call.call_id.clone()).or_default().result = AnswerSlot::Expected;
        }
    }

    /// Waits for the decisions on all these calls; returns them in order.
    pub(crate) async fn wait_decisions(&self, calls: &[ToolCall]) -> Vec<CallDecision> {
        self.wait_all(calls, |slot| &mut slot.decision).await
    }

    /// Waits for the results of all these calls; returns them in order.
    pub(crate) async fn wait_results(&self, calls: &[ToolCall]) -> Vec<ToolAnswer> {
        self.wait_all(calls, |slot| &mut slot.result).await
    }

    /// Takes the answers given so far for these calls, in order; later answers are refused.
    pub(crate) fn close(&self, calls: &[ToolCall]) -> (Vec<Option<CallDecision>>, Vec<Option<ToolAnswer>>) {
        let mut slots = self.lock();
        let mut take = |call: &ToolCall| {
            let slot = slots.entry(call.call_id.clone()).or_default();
            (slot.decision.close(), slot.result.close())
        };
        calls.iter().map(&mut take).unzip()
    }

    /// Accepts decisions of a client by call id, all or none.
    pub(crate) fn accept_decisions(
        &self,
        decisions: Vec<(String, CallDecision)>,
    ) -> Result<(), AnswerRefusal> {
        self.accept(decisions, |slot| &mut slot.decision)
    }

    /// Accepts results of a client by call id, all or none.
    pub(crate) fn accept_results(&self, results: Vec<(String, ToolAnswer)>) -> Result<(), AnswerRefusal> {
        self.accept(results, |slot| &mut slot.result)
    }

    /// Accepts answers by call id, all or none; `select` selects the kind of answer.
    fn accept<T>(
        &self,
        answers: Vec<(String, T)>,
        select: impl Fn(&mut CallSlot) -> &mut AnswerSlot<T>,
    ) -> Result<(), AnswerRefusal> {
        let mut slots = self.lock();
        for (call, _) in &answers {
            let slot = slots.get_mut(call).ok_or_else(|| AnswerRefusal::Unknown(call.clone()))?;
            match select(slot) {
                AnswerSlot::Expected => {}
                AnswerSlot::NotExpected => return Err(AnswerRefusal::NotWaiting(call.clone())),
                AnswerSlot::Given(_) | AnswerSlot::Closed => {
                    return Err(AnswerRefusal::Answered(call.clone()));
                }
            }
        }
        for (call, value) in answers {
            if let Some(slot) = slots.get_mut(&call) {
                *select(slot) = AnswerSlot::Given(value);
            }
        }
        drop(slots);
        self.answers_changed.send_replace(());
        Ok(())
    }

    /// Waits until there is an answer to each of these calls, and takes them; `select` selects the kind.
    async fn wait_all<T>(
        &self,
        calls: &[ToolCall],
        select: impl Fn(&mut CallSlot) -> &mut AnswerSlot<T>,
    ) -> Vec<T> {
        let mut changes = self.answers_changed.subscribe();
        loop {
            if let Some(answers) = self.take_complete(calls, &select) {
                return answers;
            }
            // The sender lives as long as `self`.
            let _ = changes.changed().await;
        }
    }

    /// Takes the answers to these calls if each has one; otherwise takes none.
    fn take_complete<T>(
        &self,
        calls: &[ToolCall],
        select: impl Fn(&mut CallSlot) -> &mut AnswerSlot<T>,
    ) -> Option<Vec<T>> {
        let mut slots = self.lock();
        let mut has_answer =
            |call: &ToolCall| matches!(slots.get_mut(&call.call_id).map(&select), Some(AnswerSlot::Given(_)));
        if !calls.iter().all(&mut has_answer) {
            return None;
        }
        calls.iter().map(|call| slots.get_mut(&call.call_id).and_then(|slot| select(slot).close())).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, CallSlot>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> AnswerSlot<T> {
    /// Takes the answer, if it was given, and closes the slot. A slot that expects no answer stays as it is.
    fn close(&mut self) -> Option<T> {
        match self {
            AnswerSlot::NotExpected => None,
            _ => match std::mem::replace(self, AnswerSlot::Closed) {
                AnswerSlot::Given(value) => Some(value),
                _ => None,
            },
        }
    }
}
