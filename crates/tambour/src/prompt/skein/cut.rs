//! What is left out when a prompt is too long (F-006).

use serde::Serialize;

use super::Priority;
use super::pieces::Piece;
use super::render::text_of;

/// A part of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum What {
    /// A block.
    Block {
        /// Its number in the file, from 1.
        number: usize,
        /// Its tag.
        tag: String,
    },
    /// World info.
    Lore {
        /// The number of its block, from 1.
        number: usize,
        /// What people call it.
        title: String,
        /// Its place among others.
        #[serde(skip)]
        order: i64,
    },
    /// A message of the history.
    Message {
        /// Its place in the history, from 0.
        index: usize,
        /// Who says it.
        role: String,
    },
    /// Names of protocols, or what a model is told of them.
    Protocols,
}

/// A part that was left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Cut {
    /// Which.
    #[serde(flatten)]
    pub what: What,
    /// Its priority.
    pub priority: Priority,
    /// Its tokens.
    pub tokens: usize,
}

/// Leaves out pieces until the prompt has at most `max` tokens: low priority before normal before high, never what is critical and never
/// the newest message of the user. Within a level world info goes first, the lowest order first, then messages, the oldest first,
/// then blocks, the last first.
pub(super) fn cut(pieces: &mut [Piece], max: usize, count: &dyn Fn(&str) -> usize) -> Vec<Cut> {
    for piece in pieces.iter_mut() {
        piece.tokens = count(&piece.text);
    }
    let mut order: Vec<usize> = (0..pieces.len())
        .filter(|&at| !pieces[at].keep && pieces[at].priority != Priority::Critical && pieces[at].tokens > 0)
        .collect();
    order.sort_by_key(|&at| {
        let piece = &pieces[at];
        let place = i64::try_from(at).unwrap_or(i64::MAX);
        let within = match &piece.what {
            What::Lore { order, .. } => (0, *order, place),
            What::Message { .. } => (1, place, 0),
            What::Block { .. } | What::Protocols => (2, -place, 0),
        };
        (piece.priority, within)
    });
    let mut order = order.into_iter();
    let mut cut = Vec::new();
    loop {
        // Tokens of pieces do not add up exactly, so that the whole is counted again.
        let mut over = count(&text_of(pieces)).saturating_sub(max);
        if over == 0 {
            return cut;
        }
        let before = cut.len();
        while over > 0 {
            let Some(at) = order.next() else { break };
            let piece = &mut pieces[at];
            piece.dropped = true;
            over = over.saturating_sub(piece.tokens);
            cut.push(Cut { what: piece.what.clone(), priority: piece.priority, tokens: piece.tokens });
        }
        if cut.len() == before {
            return cut;
        }
    }
}
