//! Exchange between running messages and clients: confirmations of tool calls, and results of calls that
//! clients run. The first answer to a call is taken; later ones are refused.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tambour::event::{ToolCall, ToolError};
use tokio::sync::watch;

/// Desks of running messages, by message id.
#[derive(Default)]
pub(crate) struct Desks {
    by_message: Mutex<HashMap<String, Arc<Desk>>>,
}

/// Desk of one message.
#[derive(Default)]
pub(crate) struct Desk {
    calls: Mutex<BTreeMap<String, Slot>>,
    changed: watch::Sender<()>,
}

/// State of one call.
#[derive(Default)]
struct Slot {
    decision: Wanted<Decision>,
    result: Wanted<Answer>,
}

/// State of an answer that a client may give.
#[derive(Default)]
enum Wanted<T> {
    /// Not expected.
    #[default]
    No,
    /// Expected.
    Open,
    /// Given, and not yet taken.
    Given(T),
    /// Taken, or too late.
    Done,
}

/// Decision of a person about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) allow: bool,
    pub(crate) reason: Option<String>,
}

/// Result of a client's tool.
pub(crate) type Answer = Result<Value, ToolError>;

/// Reason why an answer is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The message has no such call.
    Unknown(String),
    /// The call was answered already, or its time is over.
    Answered(String),
    /// No such answer is expected.
    NotWaiting(String),
}

impl Desks {
    /// Opens the desk of a message that may call tools.
    pub(crate) fn open(&self, message: &str) -> Arc<Desk> {
        let desk = Arc::new(Desk::default());
        self.lock().insert(message.to_owned(), desk.clone());
        desk
    }

    /// Returns the desk of a running message, if it has one.
    pub(crate) fn get(&self, message: &str) -> Option<Arc<Desk>> {
        self.lock().get(message).cloned()
    }

    /// Removes the desk of an ended message.
    pub(crate) fn remove(&self, message: &str) {
        self.lock().remove(message);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Desk>>> {
        self.by_message.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Desk {
    /// Registers calls; those selected by `asks` need a decision.
    pub(crate) fn announce(&self, calls: &[ToolCall], asks: impl Fn(&ToolCall) -> bool) {
        let mut slots = self.lock();
        for call in calls {
            let decision = if asks(call) { Wanted::Open } else { Wanted::No };
            slots.insert(call.call_id.clone(), Slot { decision, result: Wanted::No });
        }
    }

    /// Expects the results of these calls from now on.
    pub(crate) fn want_results(&self, calls: &[ToolCall]) {
        let mut slots = self.lock();
        for call in calls {
            slots.entry(call.call_id.clone()).or_default().result = Wanted::Open;
        }
    }

    /// Waits for the decisions on these calls.
    pub(crate) async fn decisions(&self, calls: &[ToolCall]) -> Vec<Decision> {
        self.all(calls, |slot| &mut slot.decision).await
    }

    /// Waits for the results of these calls.
    pub(crate) async fn results(&self, calls: &[ToolCall]) -> Vec<Answer> {
        self.all(calls, |slot| &mut slot.result).await
    }

    /// Takes the answers given for these calls; later ones are refused.
    pub(crate) fn close(&self, calls: &[ToolCall]) -> (Vec<Option<Decision>>, Vec<Option<Answer>>) {
        let mut slots = self.lock();
        let mut take = |call: &ToolCall| {
            let slot = slots.entry(call.call_id.clone()).or_default();
            (slot.decision.close(), slot.result.close())
        };
        calls.iter().map(&mut take).unzip()
    }

    /// Accepts decisions, all or none.
    pub(crate) fn decide(&self, given: Vec<(String, Decision)>) -> Result<(), Refusal> {
        self.leave(given, |slot| &mut slot.decision)
    }

    /// Accepts results, all or none.
    pub(crate) fn answer(&self, given: Vec<(String, Answer)>) -> Result<(), Refusal> {
        self.leave(given, |slot| &mut slot.result)
    }

    fn leave<T>(
        &self,
        given: Vec<(String, T)>,
        place: impl Fn(&mut Slot) -> &mut Wanted<T>,
    ) -> Result<(), Refusal> {
        let mut slots = self.lock();
        for (call, _) in &given {
            let slot = slots.get_mut(call).ok_or_else(|| Refusal::Unknown(call.clone()))?;
            match place(slot) {
                Wanted::Open => {}
                Wanted::No => return Err(Refusal::NotWaiting(call.clone())),
                Wanted::Given(_) | Wanted::Done => return Err(Refusal::Answered(call.clone())),
            }
        }
        for (call, value) in given {
            if let Some(slot) = slots.get_mut(&call) {
                *place(slot) = Wanted::Given(value);
            }
        }
        drop(slots);
        self.changed.send_replace(());
        Ok(())
    }

    async fn all<T>(&self, calls: &[ToolCall], place: impl Fn(&mut Slot) -> &mut Wanted<T>) -> Vec<T> {
        let mut changed = self.changed.subscribe();
        loop {
            if let Some(all) = self.taken(calls, &place) {
                return all;
            }
            // The sender lives as long as `self`.
            let _ = changed.changed().await;
        }
    }

    /// Takes the answers to these calls, if they are complete.
    fn taken<T>(&self, calls: &[ToolCall], place: impl Fn(&mut Slot) -> &mut Wanted<T>) -> Option<Vec<T>> {
        let mut slots = self.lock();
        let mut given =
            |call: &ToolCall| matches!(slots.get_mut(&call.call_id).map(&place), Some(Wanted::Given(_)));
        if !calls.iter().all(&mut given) {
            return None;
        }
        calls.iter().map(|call| slots.get_mut(&call.call_id).and_then(|slot| place(slot).close())).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Slot>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Wanted<T> {
    /// Takes the answer and closes the slot.
    fn close(&mut self) -> Option<T> {
        match self {
            Wanted::No => None,
            _ => match std::mem::replace(self, Wanted::Done) {
                Wanted::Given(value) => Some(value),
                _ => None,
            },
        }
    }
}
