//! Places where analysis and monitoring plug in (S-105). By default nothing does.

use serde_json::{Map, Value};

use super::{Call, Replied, Reply};
use crate::script::Action;

/// Where a dialogue stands when a hook is asked.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Moment<'a> {
    /// The action.
    pub action: &'a Action,
    /// The round that is to be answered, or just was, from 1.
    pub round: u32,
    /// All variables that can be seen.
    pub variables: &'a Map<String, Value>,
}

/// What a hook wants changed or told.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Proposal {
    /// A variable gets another value.
    Set {
        /// Its name.
        name: String,
        /// The value.
        value: Value,
    },
    /// Something the caller should know, such as a risk: it is a notice of the turn.
    Signal {
        /// Stable word.
        code: String,
        /// In words.
        message: String,
    },
}

/// Analysis and monitoring beside a dialogue. A hook answers at once from what it knows: what takes time runs beside the round
/// and is told at a later one.
pub trait Hooks {
    /// The template of a round, where it is not `id`: of a group, by a subtype, or by a share of dialogues.
    fn template(&self, moment: &Moment<'_>, id: &str) -> Option<String> {
        let _ = (moment, id);
        None
    }

    /// Before the model is called.
    fn before(&self, moment: &Moment<'_>) -> Vec<Proposal> {
        let _ = moment;
        Vec::new()
    }

    /// After a reply was taken: the record of the round.
    fn after(&self, moment: &Moment<'_>, call: &Call, reply: &Reply, came: &Replied) -> Vec<Proposal> {
        let _ = (moment, call, reply, came);
        Vec::new()
    }
}

/// No hooks.
impl Hooks for () {}
