//! Cuts a prompt that is too long (F-006).

use serde::Serialize;

use super::BlockPriority;
use super::pieces::PromptPiece;
use super::render::{piece_text, render_text};

/// Identity of a part of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum PartKey {
    /// Block.
    Block {
        /// Number of the block in the file, from 1.
        number: usize,
        /// Tag of the block.
        tag: String,
    },
    /// World info entry.
    Lore {
        /// Number of its block, from 1.
        number: usize,
        /// Title of the entry.
        title: String,
        /// Insertion order of the entry.
        #[serde(skip)]
        order: i64,
    },
    /// Message of the history.
    Message {
        /// Index in the history, from 0.
        index: usize,
        /// Role of the message.
        role: String,
    },
    /// Names of protocols, or instructions for them.
    Protocols,
    /// Author's note.
    Note,
}

/// A part that was cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DroppedPart {
    /// Identity of the part.
    #[serde(flatten)]
    pub what: PartKey,
    /// Priority of the part.
    pub priority: BlockPriority,
    /// Tokens of the part.
    pub tokens: usize,
}

/// Drops pieces until the prompt has at most `max` tokens: low priority before normal before high, but never
/// a critical piece or the newest user message. Within a level, world info is dropped first, lowest order
/// first, then messages, the oldest first, then blocks, the last first.
pub(super) fn cut_to_budget(
    pieces: &mut [PromptPiece],
    max: usize,
    count: &dyn Fn(&str) -> usize,
) -> Vec<DroppedPart> {
    let excess = count(&render_text(pieces)).saturating_sub(max);
    if excess == 0 {
        return Vec::new();
    }
    for piece in pieces.iter_mut() {
        piece.tokens = count(&piece_text(piece));
    }
    let mut order: Vec<usize> = (0..pieces.len())
        .filter(|&at| {
            !pieces[at].is_required && pieces[at].priority != BlockPriority::Critical && pieces[at].tokens > 0
        })
        .collect();
    order.sort_by_key(|&at| {
        let piece = &pieces[at];
        let place = i64::try_from(at).unwrap_or(i64::MAX);
        let rank = match &piece.part {
            PartKey::Lore { order, .. } => (0, *order, place),
            PartKey::Message { .. } => (1, place, 0),
            PartKey::Block { .. } | PartKey::Protocols | PartKey::Note => (2, -place, 0),
        };
        (piece.priority, rank)
    });
    let out = drop_fewest(pieces, &order, (max, excess), count);
    order[..out]
        .iter()
        .map(|&at| {
            let piece = &pieces[at];
            DroppedPart { what: piece.part.clone(), priority: piece.priority, tokens: piece.tokens }
        })
        .collect()
}

/// Drops as few of the first pieces in `order` as necessary and returns their number. Token counts of pieces
/// do not add up exactly, so their sum only guides the search, and the whole text is counted again.
fn drop_fewest(
    pieces: &mut [PromptPiece],
    order: &[usize],
    (max, excess): (usize, usize),
    count: &dyn Fn(&str) -> usize,
) -> usize {
    let tokens: Vec<usize> = order.iter().map(|&at| pieces[at].tokens).collect();
    let mut is_within_budget = |out: usize| {
        for (number, &at) in order.iter().enumerate() {
            pieces[at].is_dropped = number < out;
        }
        count(&render_text(pieces)) <= max
    };
    let mut sum = 0;
    let is_short = |tokens: &&usize| {
        let is_short = sum < excess;
        sum += **tokens;
        is_short
    };
    let guess = tokens.iter().take_while(is_short).count();
    // `low` drops too few, or is untested; `high` drops enough, or all.
    let (mut low, mut high, mut step) = (0, order.len(), 1);
    if is_within_budget(guess) {
        high = guess;
        while low < high {
            let next = high.saturating_sub(step);
            if next == 0 || !is_within_budget(next) {
                low = next;
                break;
            }
            (high, step) = (next, step * 2);
        }
    } else {
        low = guess;
        while low + step < order.len() {
            if is_within_budget(low + step) {
                high = low + step;
                break;
            }
            (low, step) = (low + step, step * 2);
        }
    }
    while low + 1 < high {
        let middle = low.midpoint(high);
        if is_within_budget(middle) { high = middle } else { low = middle }
    }
    is_within_budget(high);
    high
}
