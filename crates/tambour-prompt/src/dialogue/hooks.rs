//! Extension points for analysis and monitoring (S-105). By default nothing is plugged in.

use serde_json::{Map, Value};

use super::{ModelCall, ModelReply, ReplyEffect};
use crate::script::ScriptAction;

/// Position of a dialogue when a hook is called.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct HookContext<'a> {
    /// The action.
    pub action: &'a ScriptAction,
    /// Round that is about to be answered or was just answered, from 1.
    pub round: u32,
    /// All visible variables.
    pub variables: &'a Map<String, Value>,
}

/// Change or message requested by a hook.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum HookProposal {
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

/// Analysis and monitoring of a dialogue. A hook must return at once. Slow work runs elsewhere, while the
/// round continues, and its result is proposed in a later round.
pub trait Hooks {
    /// Returns the id of a template that replaces `id` in a round, such as one for a group of users or a
    /// share of dialogues; `None` keeps `id`.
    fn choose_template(&self, context: &HookContext<'_>, id: &str) -> Option<String> {
        let _ = (context, id);
        None
    }

    /// Called before the first call of a round, and again if the round is repeated after a failure. The
    /// proposals apply before the prompt is built.
    fn before_call(&self, context: &HookContext<'_>) -> Vec<HookProposal> {
        let _ = context;
        Vec::new()
    }

    /// Called after a reply was processed, with its call and its effect; not for a reply that is requested
    /// again.
    fn after_reply(
        &self,
        context: &HookContext<'_>,
        call: &ModelCall,
        reply: &ModelReply,
        effect: &ReplyEffect,
    ) -> Vec<HookProposal> {
        let _ = (context, call, reply, effect);
        Vec::new()
    }
}

/// Hooks that do nothing.
impl Hooks for () {}
