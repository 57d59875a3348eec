//! Judgement of actions by the places of their marker words in the reply.

use std::collections::BTreeMap;
use std::fmt;

use super::action::{Action, ActionKind};
use super::literal::Literals;
use super::replies::{Block, BlockZone, Reply, count_word};
use crate::words::{WordNumber, count_restorable};

/// Kind of fault of an action, or of a repaired reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ViolationKind {
    /// The block of the action is in a zone in which nothing acts.
    Zone(BlockZone),
    /// The reply, or the block of the action, was cut.
    Truncated,
    /// A value of the action is not in the reply.
    Guessed,
    /// A marker word acts more often than it occurs in the reply.
    Duplicate,
    /// The action calls a tool that is not registered.
    UnregisteredTool,
    /// The actions depend on how the reply is cut into pieces.
    CutDependent,
    /// The repaired reply has an action that the reply lacks.
    Repair,
    /// The repaired reply fails the strict check.
    Strict,
    /// The repaired reply changes when it is repaired again.
    UnstableRepair,
}

/// Fault of an action, or of a repaired reply.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// Kind of fault.
    pub kind: ViolationKind,
    /// Description, with the action.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.message)
    }
}

/// Facts about the blocks of a damaged reply.
#[derive(Clone, Debug, Default)]
pub(super) struct ReplyFacts {
    /// Marker words that must not act, each with the violation if the word acts.
    pub(super) forbidden_words: BTreeMap<WordNumber, ViolationKind>,
    /// Zone and written form of each block that must not act because of its zone. Omits faulty blocks that
    /// the damage changed and other blocks that it may have moved, but no foreign blocks.
    pub(super) zones: Vec<(BlockZone, &'static str)>,
    /// Marker words of blocks that may act, each with the written form of the block.
    pub(super) forms: BTreeMap<WordNumber, &'static str>,
}

impl ReplyFacts {
    /// Collects the facts about `reply` after damage turned it into `input`. `has_clean_end` is true if the
    /// stream ended cleanly.
    pub(super) fn from_reply(reply: &Reply, input: &[u8], has_clean_end: bool) -> ReplyFacts {
        let text = reply.text.as_bytes();
        // Blocks within the common prefix of `text` and `input` are undamaged.
        let common_len = text.iter().zip(input).take_while(|(a, b)| a == b).count();
        let is_proper_prefix = common_len == input.len() && common_len < text.len();
        let mut facts = ReplyFacts::default();
        for block in &reply.blocks {
            let has_no_copies =
                block.words.iter().all(|word| count_word(input, *word) <= count_word(text, *word));
            // After a clean end, a block that only shows something is shown as far as it was written (F-204).
            let may_be_partial = block.is_display_only && has_clean_end;
            let kind = match block.zone {
                BlockZone::Foreign => ViolationKind::Zone(BlockZone::Foreign),
                // The block itself is faulty, so its place does not matter.
                zone if zone.is_block_fault() => {
                    if !is_intact(block, input) {
                        continue;
                    }
                    ViolationKind::Zone(zone)
                }
                zone if zone != BlockZone::Plain && block.end <= common_len && has_no_copies => {
                    ViolationKind::Zone(zone)
                }
                BlockZone::Plain
                    if is_proper_prefix
                        && !may_be_partial
                        && block.start < common_len
                        && common_len < block.needed_end =>
                {
                    ViolationKind::Truncated
                }
                BlockZone::Plain => {
                    facts.forms.extend(block.words.iter().map(|word| (*word, block.form)));
                    continue;
                }
                // The damage may have put the block anywhere.
                _ => continue,
            };
            if let ViolationKind::Zone(zone) = kind {
                facts.zones.push((zone, block.form));
            }
            facts.forbidden_words.extend(block.words.iter().map(|word| (*word, kind)));
        }
        facts
    }
}

/// Returns `true` if the input has the block, and the words of the block occur only in whole copies of it.
fn is_intact(block: &Block, input: &[u8]) -> bool {
    let text = block.text.as_bytes();
    let copy_count = input.windows(text.len()).filter(|window| *window == text).count();
    copy_count > 0
        && block.words.iter().all(|word| count_word(input, *word) == copy_count * count_word(text, *word))
}

/// Judges the actions of one reading. `has_clean_end` is true if the stream ended cleanly; `tools` are the
/// registered tools.
pub(super) fn judge(
    facts: &ReplyFacts,
    input: &[u8],
    has_clean_end: bool,
    tools: &[&str],
    actions: &[Action],
) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut add = |kind, action: &Action, message: String| {
        violations.push(Violation { kind, message: format!("{message}: {action:?}") });
    };
    let text = String::from_utf8_lossy(input);
    let literals = Literals::from_text(&text);
    // In commands (`_.set`) a text needs no quotes.
    let has_commands = text.contains("_.");
    let mut counts: BTreeMap<(ActionKind, WordNumber), usize> = BTreeMap::new();
    for action in actions {
        let mut words = action.words();
        words.sort_unstable();
        words.dedup();
        for word in words {
            if let Some(kind) = facts.forbidden_words.get(&word) {
                add(*kind, action, format!("word {word} must not act"));
            }
            let act_count = counts.entry((action.kind, word)).or_default();
            *act_count += 1;
            // A broken word may act too: a repair may remove the text that broke it.
            let max_times = count_word(input, word) + count_restorable(input, word);
            if *act_count > max_times {
                add(
                    ViolationKind::Duplicate,
                    action,
                    format!("word {word} acts more than {max_times} times"),
                );
            }
        }
        let is_call = matches!(action.kind, ActionKind::Call | ActionKind::Planned);
        let needs_whole_reply = is_call || action.kind == ActionKind::Exit;
        if needs_whole_reply && !has_clean_end {
            add(ViolationKind::Truncated, action, "the reply is cut".to_owned());
        }
        if is_call && !action.data["name"].as_str().is_some_and(|name| tools.contains(&name)) {
            add(ViolationKind::UnregisteredTool, action, "the tool is not registered".to_owned());
        }
        if let Some(values) = action.values().filter(|_| is_call || !has_commands)
            && let Some(missing_value) = literals.find_missing(values, is_call.then_some(&*text))
        {
            add(ViolationKind::Guessed, action, format!("{missing_value} is not in the reply"));
        }
    }
    violations
}
