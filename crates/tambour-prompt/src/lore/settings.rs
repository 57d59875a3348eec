//! Input of a scan for active lorebook entries: chat, settings, timed effects, and functions that count
//! tokens and limit the searched bytes.

use serde::{Deserialize, Serialize};

use super::entry::CharacterText;
use super::timed_effects::TimedEffects;

/// A message of the chat, as a scan reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChatLine {
    /// One of `user`, `assistant` and `system`.
    pub role: String,
    /// Name of the speaker.
    pub name: String,
    /// Text of the message.
    pub content: String,
}

/// Settings of a scan, modelled on SillyTavern's world-info settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScanSettings {
    /// Number of newest messages that are searched.
    pub scan_depth: u32,
    /// Prefixes messages with the names of their speakers.
    pub include_names: bool,
    /// Lets the text of active entries activate others.
    pub recursive: bool,
    /// Maximum number of passes, including the first one over the messages; 0 means the library's own limit
    /// of 1,000, which also bounds larger numbers.
    pub max_recursion_steps: u32,
    /// Makes keys case-sensitive, unless the entry says otherwise. Keys `/…/flags` have their own flag `i`.
    pub case_sensitive: bool,
    /// Makes keys match whole words only, unless the entry says otherwise.
    pub whole_words: bool,
    /// Makes the number of matching keys decide first in a group, unless the entry says otherwise.
    pub group_scoring: bool,
    /// Minimum number of active entries: older messages are searched until that many are active. 0 means no
    /// minimum.
    pub min_activations: u32,
    /// Number of newest messages after which the search for `min_activations` stops, one message late as in
    /// SillyTavern; 0 means all messages.
    pub min_activations_depth: u32,
    /// Maximum number of tokens of all active entries, which only an entry with `ignore_budget` may exceed;
    /// `None` means no limit.
    pub budget: Option<usize>,
    /// Name of the character.
    pub character: String,
    /// Tags of the character.
    pub tags: Vec<String>,
    /// Kind of generation: `normal`, `continue`, `impersonate`, `swipe`, `regenerate`, `quiet`.
    pub trigger: String,
    /// Index of the greeting that the chat began with.
    pub greeting: u32,
    /// Seed of random choices: the same seed gives the same entries.
    pub seed: u64,
}

impl Default for ScanSettings {
    fn default() -> ScanSettings {
        ScanSettings {
            scan_depth: 2,
            include_names: true,
            recursive: false,
            max_recursion_steps: 0,
            case_sensitive: false,
            whole_words: false,
            group_scoring: false,
            min_activations: 0,
            min_activations_depth: 0,
            budget: None,
            character: String::new(),
            tags: Vec::new(),
            trigger: "normal".to_owned(),
            greeting: 0,
            seed: 0,
        }
    }
}

/// Input of a scan: the chat, the settings and the timed effects of earlier turns.
pub struct LoreScan<'a> {
    /// Messages, the oldest first.
    pub lines: &'a [ChatLine],
    /// Additional texts, which are searched at any scan depth but 0.
    pub extra_texts: &'a [&'a str],
    /// Texts of the user and the character, for entries whose [`LoreEntry::sources`] name them.
    ///
    /// [`LoreEntry::sources`]: super::LoreEntry::sources
    pub sources: &'a [(CharacterText, String)],
    /// Settings of the scan.
    pub settings: ScanSettings,
    /// Timed effects of earlier turns.
    pub timed_effects: TimedEffects,
    /// Counts the tokens of a text.
    pub count_tokens: &'a dyn Fn(&str) -> usize,
    /// Charges for bytes that keys search; returns false when the limit is reached, which ends the scan
    /// ([`LoreActivation::is_truncated`]).
    ///
    /// [`LoreActivation::is_truncated`]: super::LoreActivation::is_truncated
    pub charge: &'a dyn Fn(u64) -> bool,
}

impl<'a> LoreScan<'a> {
    /// Creates a scan of these messages with default settings, without timed effects, and with
    /// [estimated](super::super::tokens::estimate_tokens) tokens.
    #[must_use]
    pub fn new(lines: &'a [ChatLine]) -> LoreScan<'a> {
        LoreScan {
            lines,
            extra_texts: &[],
            sources: &[],
            settings: ScanSettings::default(),
            timed_effects: TimedEffects::default(),
            count_tokens: &super::super::tokens::estimate_tokens,
            charge: &|_| true,
        }
    }
}
