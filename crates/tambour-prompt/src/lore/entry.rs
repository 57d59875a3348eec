//! Lorebook entry in a normal form that is independent of its file format.

use serde::{Deserialize, Serialize};

use tambour::finding::clip;

/// A lorebook entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LoreEntry {
    /// Id in the book; timed effects are stored under it.
    pub id: String,
    /// Title.
    pub title: String,
    /// Primary keys: texts, one of which must occur; `/…/flags` is a regular expression.
    pub keys: Vec<String>,
    /// Secondary keys, combined by `logic`.
    pub secondary_keys: Vec<String>,
    /// Condition on the secondary keys.
    pub logic: SecondaryLogic,
    /// False if the secondary keys are ignored.
    pub selective: bool,
    /// Text that goes into the prompt.
    pub content: String,
    /// False if the entry can never be active.
    pub enabled: bool,
    /// Order in the prompt: lower first, but higher first within an outlet. When the budget is short, a
    /// higher order wins among entries of equal `priority`.
    pub order: i64,
    /// Active even if no key occurs.
    pub constant: bool,
    /// True if all keys are regular expressions.
    pub regex: bool,
    /// Case-sensitive keys; `None` uses the setting.
    pub case_sensitive: Option<bool>,
    /// Keys match whole words only; `None` uses the setting.
    pub whole_words: Option<bool>,
    /// Place in the prompt.
    pub position: EntryPosition,
    /// Number of messages from the end of the chat, for [`EntryPosition::AtDepth`].
    pub depth: u32,
    /// True if `depth` counts from the beginning of the chat.
    pub from_start: bool,
    /// Role of the message that the entry becomes at a depth.
    pub role: MessageRole,
    /// Name of the outlet, for [`EntryPosition::Outlet`].
    pub outlet: String,
    /// Probability of activation, in percent.
    pub probability: f64,
    /// Names of the groups that the entry belongs to; of each group, only one entry is active.
    pub group: Vec<String>,
    /// Wins its group without a random choice.
    pub group_override: bool,
    /// Weight in the random choice of its group.
    pub group_weight: f64,
    /// In its group, the number of matching keys decides first; `None` uses the setting.
    pub group_scoring: Option<bool>,
    /// Not activated by the text of other entries.
    pub exclude_recursion: bool,
    /// Its text does not activate other entries.
    pub prevent_recursion: bool,
    /// First recursion level that can activate the entry; 0 means any pass. The lowest level in the book
    /// applies from the beginning, each higher one once nothing else is left to search.
    pub delay_until_recursion: u32,
    /// Number of messages for which the entry stays active once activated; 0 means only in its turn.
    pub sticky: u32,
    /// Number of messages after the activation, or after the sticky period, for which the entry cannot be
    /// activated again; 0 means none.
    pub cooldown: u32,
    /// Number of messages that the chat must have before the entry can be active.
    pub delay: u32,
    /// Number of newest messages that are searched; `None` uses the setting.
    pub scan_depth: Option<u32>,
    /// Texts of user and character that are searched as well.
    pub sources: Vec<CharacterText>,
    /// Not limited by the budget.
    pub ignore_budget: bool,
    /// Priority when the budget is short; higher wins.
    pub priority: i64,
    /// Characters the entry applies to.
    pub filter: CharacterFilter,
    /// Kinds of generation the entry applies to; empty means all.
    pub triggers: Vec<String>,
    /// Needs no key (`true`) or is never active (`false`); `None` leaves it to the keys. Set by the
    /// decorators `@@activate` and `@@dont_activate`.
    pub force: Option<bool>,
    /// Further keys, one of which must occur as well.
    pub additional_keys: Vec<String>,
    /// Keys that must not occur.
    pub exclude_keys: Vec<String>,
    /// Number of messages by the character that must exist before the entry can be active.
    pub only_after: u32,
    /// Active only if the number of messages by the character is a multiple of this; 0 disables the
    /// condition.
    pub only_every: u32,
    /// Active only if the chat began with the greeting of this index.
    pub greeting: Option<u32>,
    /// Stays active forever once activated.
    pub keep_after_match: bool,
    /// Never activated again once activated.
    pub once: bool,
}

impl Default for LoreEntry {
    fn default() -> LoreEntry {
        LoreEntry {
            id: String::new(),
            title: String::new(),
            keys: Vec::new(),
            secondary_keys: Vec::new(),
            logic: SecondaryLogic::AndAny,
            selective: true,
            content: String::new(),
            enabled: true,
            order: 100,
            constant: false,
            regex: false,
            case_sensitive: None,
            whole_words: None,
            position: EntryPosition::BeforeChar,
            depth: 4,
            from_start: false,
            role: MessageRole::System,
            outlet: String::new(),
            probability: 100.0,
            group: Vec::new(),
            group_override: false,
            group_weight: 100.0,
            group_scoring: None,
            exclude_recursion: false,
            prevent_recursion: false,
            delay_until_recursion: 0,
            sticky: 0,
            cooldown: 0,
            delay: 0,
            scan_depth: None,
            sources: Vec::new(),
            ignore_budget: false,
            priority: 0,
            filter: CharacterFilter::default(),
            triggers: Vec::new(),
            force: None,
            additional_keys: Vec::new(),
            exclude_keys: Vec::new(),
            only_after: 0,
            only_every: 0,
            greeting: None,
            keep_after_match: false,
            once: false,
        }
    }
}

/// Condition on the secondary keys, checked once a key has matched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecondaryLogic {
    /// At least one of them occurs.
    #[default]
    AndAny,
    /// At least one of them does not occur.
    NotAll,
    /// None of them occurs.
    NotAny,
    /// All of them occur.
    AndAll,
}

/// Place of an active entry in the prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryPosition {
    /// Before the character.
    #[default]
    BeforeChar,
    /// After the character.
    AfterChar,
    /// Above the author's note.
    NoteTop,
    /// Below the author's note.
    NoteBottom,
    /// Among the messages.
    AtDepth,
    /// Before the example dialogues.
    ExamplesBefore,
    /// After the example dialogues.
    ExamplesAfter,
    /// In an outlet, which a template prints.
    Outlet,
    /// After the character's personality.
    Personality,
    /// After the scenario.
    Scenario,
}

/// Texts of the user or the character that an entry may search for its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CharacterText {
    /// Description of the user.
    Persona,
    /// Description of the character.
    Description,
    /// Personality of the character.
    Personality,
    /// Text of the character inserted among the messages.
    DepthPrompt,
    /// Scenario.
    Scenario,
    /// Notes of the character's creator.
    CreatorNotes,
}

impl LoreEntry {
    /// Returns a label for messages to users: the title, else the id and the first key.
    #[must_use]
    pub(crate) fn label(&self) -> String {
        if !self.title.trim().is_empty() {
            return format!("entry `{}`", clip(&self.title, 60));
        }
        let id = if self.id.is_empty() { String::new() } else { format!(" {}", clip(&self.id, 60)) };
        match self.keys.iter().find(|key| !key.trim().is_empty()) {
            Some(key) => format!("entry{id} without a title (key `{}`)", clip(key, 60)),
            None => format!("entry{id} without a title"),
        }
    }
}

impl CharacterText {
    /// All texts, in the order in which they are searched.
    pub const ALL: [CharacterText; 6] = [
        CharacterText::Persona,
        CharacterText::Description,
        CharacterText::Personality,
        CharacterText::DepthPrompt,
        CharacterText::Scenario,
        CharacterText::CreatorNotes,
    ];
}

/// Role of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageRole {
    /// System.
    #[default]
    System,
    /// User.
    User,
    /// Model.
    Assistant,
}

/// Characters that an entry applies to. If both names and tags are given, both must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CharacterFilter {
    /// Names of characters.
    pub names: Vec<String>,
    /// Tags of characters.
    pub tags: Vec<String>,
    /// Inverts both conditions: names and tags must not match.
    pub exclude: bool,
}

impl CharacterFilter {
    /// Returns true if a character with this name and these tags passes.
    #[doc(hidden)]
    #[must_use]
    pub fn matches(&self, name: &str, tags: &[String]) -> bool {
        let passes_names =
            self.names.is_empty() || self.names.iter().any(|other| other == name) != self.exclude;
        let passes_tags =
            || self.tags.is_empty() || self.tags.iter().any(|tag| tags.contains(tag)) != self.exclude;
        passes_names && passes_tags()
    }
}
