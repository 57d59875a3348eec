//! Extension points for analysis and monitoring (S-105). By default nothing is plugged in.

use serde_json::{Map, Value};

use super::{Call, Replied, Reply};
use crate::script::Action;

/// Position of a dialogue when a hook is called.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Moment<'a> {
    /// The action.
    pub action: &'a Action,
    /// Round that is about to be answered or was just answered, from 1.
    pub round: u32,
    /// All visible variables.
    pub variables: &'a Map<String, Value>,
}

/// Change or message requested by a hook.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Proposal {
    /// Sets a variable.
    Set {
        /// Name of the variable.
        name: String,
        /// The value.
        value: Value,
    },
    /// Reports something to the caller, such as a risk, as a notice of the turn.
    Signal {
        /// Stable code.
        code: String,
        /// Message text.
        message: String,
    },
}

/// Analysis and monitoring of a dialogue. A hook must return at once; slow work runs beside the round and is
/// reported at a later one.
pub trait Hooks {
    /// Returns another template than `id` for a round: by group, by subtype, or for a share of dialogues.
    fn template(&self, moment: &Moment<'_>, id: &str) -> Option<String> {
        let _ = (moment, id);
        None
    }

    /// Called before the model is called.
    fn before(&self, moment: &Moment<'_>) -> Vec<Proposal> {
        let _ = moment;
        Vec::new()
    }

    /// Called after a reply was processed, with the record of the round.
    fn after(&self, moment: &Moment<'_>, call: &Call, reply: &Reply, came: &Replied) -> Vec<Proposal> {
        let _ = (moment, call, reply, came);
        Vec::new()
    }
}

/// Hooks that do nothing.
impl Hooks for () {}
