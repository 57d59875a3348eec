//! Holds actions against where their words stood.

use std::collections::BTreeMap;
use std::fmt;

use super::action::{Action, ActionKind};
use super::literal::Literals;
use super::replies::{Block, BlockCondition, Reply, count};
use crate::words::{WordNumber, count_mendable};

/// In which way an action is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ViolationKind {
    /// It stood in a zone in which nothing acts, or was at fault itself.
    Zone(BlockCondition),
    /// The reply, or its block, was cut.
    Truncated,
    /// A value of it does not stand in the reply.
    Guessed,
    /// It acts more often than it stands in the reply.
    Duplicate,
    /// It calls a tool that nobody registered.
    UnregisteredTool,
    /// Other actions come when the reply is cut into other pieces.
    CutDependent,
    /// The repaired text acts where the reply did not.
    Repair,
    /// The repaired text fails the strict check.
    Strict,
    /// The repaired text changes when it is repaired again.
    UnstableRepair,
}

/// One wrong action, or what is wrong with a repair.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// In which way.
    pub kind: ViolationKind,
    /// The whole story.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.message)
    }
}

/// Facts about a damaged reply.
#[derive(Clone, Debug, Default)]
pub(super) struct ReplyFacts {
    /// Words that must not act, and why.
    pub(super) forbidden: BTreeMap<WordNumber, ViolationKind>,
    /// Zones that were tried, those of which a block is still intact, each with the form of its call.
    pub(super) zones: Vec<(BlockCondition, &'static str)>,
    /// Words of calls that may act, and the forms that these are written in.
    pub(super) forms: BTreeMap<WordNumber, &'static str>,
}

impl ReplyFacts {
    /// Collects the facts about `reply` after damage turned it into `input`. `is_ended`: it ended by itself.
    pub(super) fn from_reply(reply: &Reply, input: &[u8], is_ended: bool) -> ReplyFacts {
        let text = reply.text.as_bytes();
        let common_len = text.iter().zip(input).take_while(|(a, b)| a == b).count();
        let is_truncated = common_len == input.len() && common_len < text.len();
        let mut facts = ReplyFacts::default();
        for block in &reply.blocks {
            let copies = block.words.iter().all(|word| count(input, *word) <= count(text, *word));
            let kind = match block.zone {
                BlockCondition::Foreign => ViolationKind::Zone(BlockCondition::Foreign),
                zone if zone.is_block_fault() => {
                    if !is_intact(block, input) {
                        continue;
                    }
                    ViolationKind::Zone(zone)
                }
                zone if zone != BlockCondition::Plain && block.end <= common_len && copies => {
                    ViolationKind::Zone(zone)
                }
                BlockCondition::Plain
                    if is_truncated
                        && !(block.is_shown && is_ended)
                        && block.start < common_len
                        && common_len < block.needed_end =>
                {
                    ViolationKind::Truncated
                }
                BlockCondition::Plain => {
                    facts.forms.extend(block.words.iter().map(|word| (*word, block.form)));
                    continue;
                }
                _ => continue,
            };
            if let ViolationKind::Zone(zone) = kind {
                facts.zones.push((zone, block.form));
            }
            facts.forbidden.extend(block.words.iter().map(|word| (*word, kind)));
        }
        facts
    }
}

/// Returns whether a block stands whole wherever words of it stand.
fn is_intact(block: &Block, input: &[u8]) -> bool {
    let text = block.text.as_bytes();
    let copies = input.windows(text.len()).filter(|window| *window == text).count();
    copies > 0 && block.words.iter().all(|word| count(input, *word) == copies * count(text, *word))
}

/// Holds the actions of one reading against what is known. `is_truncated`: the reply did not end by itself; `tools`: those that
/// may be called.
pub(super) fn judge(
    facts: &ReplyFacts,
    input: &[u8],
    is_truncated: bool,
    tools: &[&str],
    actions: &[Action],
) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut add = |kind, action: &Action, message: String| {
        found.push(Violation { kind, message: format!("{message}: {action:?}") });
    };
    let text = String::from_utf8_lossy(input);
    let literals = Literals::from_text(&text);
    // A bare word is a text in commands.
    let commands = text.contains("_.");
    let mut times: BTreeMap<(ActionKind, WordNumber), usize> = BTreeMap::new();
    for action in actions {
        let mut words = action.words();
        words.sort_unstable();
        words.dedup();
        for word in words {
            if let Some(kind) = facts.forbidden.get(&word) {
                add(*kind, action, format!("word {word} must not act"));
            }
            let times = times.entry((action.kind, word)).or_default();
            *times += 1;
            let max_times = count(input, word) + count_mendable(input, word);
            if *times > max_times {
                add(
                    ViolationKind::Duplicate,
                    action,
                    format!("word {word} acts more than {max_times} times"),
                );
            }
        }
        if is_truncated && matches!(action.kind, ActionKind::Call | ActionKind::Planned | ActionKind::Exit) {
            add(ViolationKind::Truncated, action, "the reply is cut".to_owned());
        }
        let calls = matches!(action.kind, ActionKind::Call | ActionKind::Planned);
        if calls && !action.data["name"].as_str().is_some_and(|name| tools.contains(&name)) {
            add(ViolationKind::UnregisteredTool, action, "nobody registered the tool".to_owned());
        }
        if let Some(values) = action.values().filter(|_| calls || !commands)
            && let Some(missing_value) = literals.find_missing(values, calls.then_some(&*text))
        {
            add(ViolationKind::Guessed, action, format!("{missing_value} does not stand in the reply"));
        }
    }
    found
}
