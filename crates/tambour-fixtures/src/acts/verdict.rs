//! Holds actions against where their words stood.

use std::collections::BTreeMap;
use std::fmt;

use super::action::{Action, ActionKind};
use super::literal::Literals;
use super::replies::{Block, Reply, Zone, count};
use crate::words::{WordNumber, count_mendable};

/// In which way an action is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Way {
    /// It stood in a zone in which nothing acts, or was at fault itself.
    Zone(Zone),
    /// The reply, or its block, was cut.
    Cut,
    /// A value of it does not stand in the reply.
    Guess,
    /// It acts more often than it stands in the reply.
    Twice,
    /// It calls a tool that nobody registered.
    Tool,
    /// Other actions come when the reply is cut into other pieces.
    Cuts,
    /// The repaired text acts where the reply did not.
    Repair,
    /// The repaired text fails the strict check.
    Strict,
    /// The repaired text changes when it is repaired again.
    Again,
}

/// One wrong action, or what is wrong with a repair.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// In which way.
    pub way: Way,
    /// The whole story.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.way, self.message)
    }
}

/// Facts about a damaged reply.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// Words that must not act, and why.
    pub(super) forbidden: BTreeMap<WordNumber, Way>,
    /// Zones that were tried, those of which a block is still intact, each with the form of its call.
    pub(super) zones: Vec<(Zone, &'static str)>,
    /// Words of calls that may act, and the forms that these are written in.
    pub(super) forms: BTreeMap<WordNumber, &'static str>,
}

impl Known {
    /// Collects the facts about `reply` after damage turned it into `input`. `ended`: it ended by itself.
    pub(super) fn of(reply: &Reply, input: &[u8], ended: bool) -> Known {
        let text = reply.text.as_bytes();
        let same = text.iter().zip(input).take_while(|(a, b)| a == b).count();
        let cut = same == input.len() && same < text.len();
        let mut known = Known::default();
        for block in &reply.blocks {
            let copies = block.words.iter().all(|word| count(input, *word) <= count(text, *word));
            let way = match block.zone {
                Zone::Foreign => Way::Zone(Zone::Foreign),
                zone if zone.is_own() => {
                    if !intact(block, input) {
                        continue;
                    }
                    Way::Zone(zone)
                }
                zone if zone != Zone::Plain && block.end <= same && copies => Way::Zone(zone),
                Zone::Plain if cut && !(block.shown && ended) && block.start < same && same < block.whole => {
                    Way::Cut
                }
                Zone::Plain => {
                    known.forms.extend(block.words.iter().map(|word| (*word, block.form)));
                    continue;
                }
                _ => continue,
            };
            if let Way::Zone(zone) = way {
                known.zones.push((zone, block.form));
            }
            known.forbidden.extend(block.words.iter().map(|word| (*word, way)));
        }
        known
    }
}

/// Returns whether a block stands whole wherever words of it stand.
fn intact(block: &Block, input: &[u8]) -> bool {
    let text = block.text.as_bytes();
    let copies = input.windows(text.len()).filter(|window| *window == text).count();
    copies > 0 && block.words.iter().all(|word| count(input, *word) == copies * count(text, *word))
}

/// Holds the actions of one reading against what is known. `cut`: the reply did not end by itself; `tools`: those that
/// may be called.
pub(super) fn judge(
    known: &Known,
    input: &[u8],
    cut: bool,
    tools: &[&str],
    actions: &[Action],
) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut add = |way, action: &Action, message: String| {
        found.push(Violation { way, message: format!("{message}: {action:?}") });
    };
    let text = String::from_utf8_lossy(input);
    let literals = Literals::of(&text);
    // A bare word is a text in commands.
    let commands = text.contains("_.");
    let mut times: BTreeMap<(ActionKind, WordNumber), usize> = BTreeMap::new();
    for action in actions {
        let mut words = action.words();
        words.sort_unstable();
        words.dedup();
        for word in words {
            if let Some(way) = known.forbidden.get(&word) {
                add(*way, action, format!("word {word} must not act"));
            }
            let times = times.entry((action.kind, word)).or_default();
            *times += 1;
            let most = count(input, word) + count_mendable(input, word);
            if *times > most {
                add(Way::Twice, action, format!("word {word} acts more than {most} times"));
            }
        }
        if cut && matches!(action.kind, ActionKind::Call | ActionKind::Planned | ActionKind::Exit) {
            add(Way::Cut, action, "the reply is cut".to_owned());
        }
        let calls = matches!(action.kind, ActionKind::Call | ActionKind::Planned);
        if calls && !action.data["name"].as_str().is_some_and(|name| tools.contains(&name)) {
            add(Way::Tool, action, "nobody registered the tool".to_owned());
        }
        if let Some(values) = action.values().filter(|_| calls || !commands)
            && let Some(missing) = literals.missing(values, calls.then_some(&*text))
        {
            add(Way::Guess, action, format!("{missing} does not stand in the reply"));
        }
    }
    found
}
