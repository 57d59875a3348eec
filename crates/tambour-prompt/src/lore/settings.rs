//! What a scan is given.

use serde::{Deserialize, Serialize};

use super::entry::Source;
use super::timed::Timed;

/// One message of the chat, as it is read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Line {
    /// `user`, `assistant` or `system`.
    pub role: String,
    /// Who says it.
    pub name: String,
    /// What is said.
    pub content: String,
}

/// How entries are looked for. Field by field what the world-info settings of SillyTavern are called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScanSettings {
    /// Newest messages that are read.
    pub scan_depth: u32,
    /// Whether names are read with the messages.
    pub include_names: bool,
    /// Whether entries are found in the text of others.
    pub recursive: bool,
    /// Passes, at most, the first over the messages among them; 0: as many as it takes.
    pub max_recursion_steps: u32,
    /// Letter case counts.
    pub case_sensitive: bool,
    /// Keys match whole words only.
    pub whole_words: bool,
    /// The number of matching keys decides in groups first.
    pub group_scoring: bool,
    /// Entries wanted: further messages are read until there are as many.
    pub min_activations: u32,
    /// Messages that are read for that, at most; 0: all.
    pub min_activations_depth: u32,
    /// Tokens for all entries; none: any number.
    pub budget: Option<usize>,
    /// Name of the character.
    pub character: String,
    /// Tags of the character.
    pub tags: Vec<String>,
    /// Kind of generation: `normal`, `continue`, `impersonate`, `swipe`, `regenerate`, `quiet`.
    pub trigger: String,
    /// The greeting the chat began with.
    pub greeting: u32,
    /// What chance is made of: the same seed gives the same entries.
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

/// One scan: the chat, how it is read, what earlier ones left.
pub struct Scan<'a> {
    /// Messages, the oldest first.
    pub lines: &'a [Line],
    /// Texts that are read as well, at any depth.
    pub also: &'a [&'a str],
    /// Texts of the user and the character, for entries whose [`Entry::sources`] name them.
    ///
    /// [`Entry::sources`]: super::Entry::sources
    pub sources: &'a [(Source, String)],
    /// How entries are looked for.
    pub settings: ScanSettings,
    /// What earlier turns left.
    pub timed: Timed,
    /// Tokens of a text.
    pub count: &'a dyn Fn(&str) -> usize,
    /// Takes bytes that keys read away from what a scan may cost; false if there are no more ([`Activation::cut`]).
    ///
    /// [`Activation::cut`]: super::Activation::cut
    pub read: &'a dyn Fn(u64) -> bool,
}

impl<'a> Scan<'a> {
    /// A scan of those messages with usual settings, nothing remembered, and tokens [estimated](super::super::tokens::estimate).
    #[must_use]
    pub fn new(lines: &'a [Line]) -> Scan<'a> {
        Scan {
            lines,
            also: &[],
            sources: &[],
            settings: ScanSettings::default(),
            timed: Timed::default(),
            count: &super::super::tokens::estimate,
            read: &|_| true,
        }
    }
}
