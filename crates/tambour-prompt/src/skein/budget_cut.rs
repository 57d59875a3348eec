//! Drops parts of a prompt that has too many tokens (F-006).

use serde::Serialize;

use super::BlockPriority;
use super::escape::BoundaryTags;
use super::pieces::PromptPiece;
use super::render::{piece_text, render_text};

/// Identity of a part of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum PartKey {
    /// Block that is not world info.
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
    /// Tags that name protocols (agreed elements of the reply), or the instructions for them.
    Protocols,
    /// Author's note.
    Note,
}

/// A part that was dropped because the prompt was too long.
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

/// Drops pieces until the prompt has at most `max_tokens`, and returns the dropped parts in their order of
/// removal. Low priority goes first, then normal, then high. Critical pieces, the tags of protocols, protocol
/// instructions outside of a slot, and the newest user message are never dropped. Within a priority, world
/// info goes first, the lowest order first; then messages, the oldest first; then all other pieces, the last
/// first. The text is counted as it is sent, with the `boundaries` escaped in the history.
pub(super) fn cut_to_budget(
    pieces: &mut [PromptPiece],
    boundaries: &BoundaryTags,
    max_tokens: usize,
    count_tokens: &dyn Fn(&str) -> usize,
) -> Vec<DroppedPart> {
    let count_text = |pieces: &[PromptPiece]| count_tokens(&render_text(pieces, boundaries));
    let excess = count_text(pieces).saturating_sub(max_tokens);
    if excess == 0 {
        return Vec::new();
    }
    for piece in pieces.iter_mut() {
        piece.tokens = count_tokens(&piece_text(piece, boundaries));
    }
    let mut order: Vec<usize> = (0..pieces.len())
        .filter(|&index| {
            let piece = &pieces[index];
            !piece.is_required && piece.priority != BlockPriority::Critical && piece.tokens > 0
        })
        .collect();
    order.sort_by_key(|&index| {
        let piece = &pieces[index];
        let position = i64::try_from(index).unwrap_or(i64::MAX);
        let rank = match &piece.part {
            PartKey::Lore { order, .. } => (0, *order, position),
            PartKey::Message { .. } => (1, position, 0),
            PartKey::Block { .. } | PartKey::Protocols | PartKey::Note => (2, -position, 0),
        };
        (piece.priority, rank)
    });
    let dropped_count = drop_fewest(pieces, &order, (max_tokens, excess), &count_text);
    order[..dropped_count]
        .iter()
        .map(|&index| {
            let piece = &pieces[index];
            DroppedPart { what: piece.part.clone(), priority: piece.priority, tokens: piece.tokens }
        })
        .collect()
}

/// Drops as few of the first pieces in `order` as necessary and returns their number. `excess` is the number
/// of tokens beyond `max_tokens`. Token counts of pieces do not add up exactly, so their sum only guides the
/// search, and the whole text is counted again by `count_text`.
fn drop_fewest(
    pieces: &mut [PromptPiece],
    order: &[usize],
    (max_tokens, excess): (usize, usize),
    count_text: &dyn Fn(&[PromptPiece]) -> usize,
) -> usize {
    let tokens: Vec<usize> = order.iter().map(|&index| pieces[index].tokens).collect();
    // Marks exactly the first `dropped_count` pieces as dropped; returns true if the others fit.
    let mut try_dropping = |dropped_count: usize| {
        for (rank, &index) in order.iter().enumerate() {
            pieces[index].is_dropped = rank < dropped_count;
        }
        count_text(pieces) <= max_tokens
    };
    let mut dropped_tokens = 0;
    let needs_more = |tokens: &&usize| {
        let is_needed = dropped_tokens < excess;
        dropped_tokens += **tokens;
        is_needed
    };
    let guess = tokens.iter().take_while(needs_more).count();
    // Dropping `low` pieces is not enough, or untested; dropping `high` pieces is enough, or drops all. From
    // the guess on, the step doubles until both bounds are known; then the interval is halved.
    let (mut low, mut high, mut step) = (0, order.len(), 1);
    if try_dropping(guess) {
        high = guess;
        while low < high {
            let fewer = high.saturating_sub(step);
            if fewer == 0 || !try_dropping(fewer) {
                low = fewer;
                break;
            }
            (high, step) = (fewer, step * 2);
        }
    } else {
        low = guess;
        while low + step < order.len() {
            if try_dropping(low + step) {
                high = low + step;
                break;
            }
            (low, step) = (low + step, step * 2);
        }
    }
    while low + 1 < high {
        let middle = low.midpoint(high);
        if try_dropping(middle) { high = middle } else { low = middle }
    }
    // Marks the pieces; the last test may have been of another number.
    try_dropping(high);
    high
}
