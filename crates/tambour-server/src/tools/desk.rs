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

/// Desk of one message.
#[derive(Default)]
pub(crate) struct AnswerDesk {
    calls: Mutex<BTreeMap<String, CallSlot>>,
    answer_notify: watch::Sender<()>,
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
    /// Not expected.
    #[default]
    NotExpected,
    /// Expected.
    Expected,
    /// Given, and not yet taken.
    Given(T),
    /// Taken, or too late.
    Closed,
}

/// Decision of a person about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallDecision {
    pub(crate) allow: bool,
    pub(crate) reason: Option<String>,
}

/// Result of a client's tool.
pub(crate) type ToolAnswer = Result<Value, ToolError>;

/// Reason why an answer is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AnswerRefusal {
    /// The message has no such call.
    Unknown(String),
    /// The call was answered already, or its time is over.
    Answered(String),
    /// No such answer is expected.
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

    /// Waits for the decisions on these calls.
    pub(crate) async fn wait_decisions(&self, calls: &[ToolCall]) -> Vec<CallDecision> {
        self.wait_all(calls, |slot| &mut slot.decision).await
    }

    /// Waits for the results of these calls.
    pub(crate) async fn wait_results(&self, calls: &[ToolCall]) -> Vec<ToolAnswer> {
        self.wait_all(calls, |slot| &mut slot.result).await
    }

    /// Takes the answers given for these calls; later ones are refused.
    pub(crate) fn close(&self, calls: &[ToolCall]) -> (Vec<Option<CallDecision>>, Vec<Option<ToolAnswer>>) {
        let mut slots = self.lock();
        let mut take = |call: &ToolCall| {
            let slot = slots.entry(call.call_id.clone()).or_default();
            (slot.decision.close(), slot.result.close())
        };
        calls.iter().map(&mut take).unzip()
    }

    /// Accepts decisions, all or none.
    pub(crate) fn accept_decisions(
        &self,
        decisions: Vec<(String, CallDecision)>,
    ) -> Result<(), AnswerRefusal> {
        self.accept(decisions, |slot| &mut slot.decision)
    }

    /// Accepts results, all or none.
    pub(crate) fn accept_results(&self, results: Vec<(String, ToolAnswer)>) -> Result<(), AnswerRefusal> {
        self.accept(results, |slot| &mut slot.result)
    }

    fn accept<T>(
        &self,
        answers: Vec<(String, T)>,
        place: impl Fn(&mut CallSlot) -> &mut AnswerSlot<T>,
    ) -> Result<(), AnswerRefusal> {
        let mut slots = self.lock();
        for (call, _) in &answers {
            let slot = slots.get_mut(call).ok_or_else(|| AnswerRefusal::Unknown(call.clone()))?;
            match place(slot) {
                AnswerSlot::Expected => {}
                AnswerSlot::NotExpected => return Err(AnswerRefusal::NotWaiting(call.clone())),
                AnswerSlot::Given(_) | AnswerSlot::Closed => {
                    return Err(AnswerRefusal::Answered(call.clone()));
                }
            }
        }
        for (call, value) in answers {
            if let Some(slot) = slots.get_mut(&call) {
                *place(slot) = AnswerSlot::Given(value);
            }
        }
        drop(slots);
        self.answer_notify.send_replace(());
        Ok(())
    }

    async fn wait_all<T>(
        &self,
        calls: &[ToolCall],
        place: impl Fn(&mut CallSlot) -> &mut AnswerSlot<T>,
    ) -> Vec<T> {
        let mut answer_changes = self.answer_notify.subscribe();
        loop {
            if let Some(all) = self.take_complete(calls, &place) {
                return all;
            }
            // The sender lives as long as `self`.
            let _ = answer_changes.changed().await;
        }
    }

    /// Takes the answers to these calls, if they are complete.
    fn take_complete<T>(
        &self,
        calls: &[ToolCall],
        place: impl Fn(&mut CallSlot) -> &mut AnswerSlot<T>,
    ) -> Option<Vec<T>> {
        let mut slots = self.lock();
        let mut answers =
            |call: &ToolCall| matches!(slots.get_mut(&call.call_id).map(&place), Some(AnswerSlot::Given(_)));
        if !calls.iter().all(&mut answers) {
            return None;
        }
        calls.iter().map(|call| slots.get_mut(&call.call_id).and_then(|slot| place(slot).close())).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, CallSlot>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> AnswerSlot<T> {
    /// Takes the answer and closes the slot.
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
