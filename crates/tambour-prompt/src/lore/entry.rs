//! An entry of a lorebook in its normal form, whatever file it came from.

use serde::{Deserialize, Serialize};

use tambour::finding::clip;

/// One entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Entry {
    /// Its name in the book; what it did in earlier turns is remembered under it.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Words one of which must occur; `/…/flags` is a regular expression.
    pub keys: Vec<String>,
    /// Further words, held against `logic`.
    pub secondary_keys: Vec<String>,
    /// How the secondary keys count.
    pub logic: Logic,
    /// Whether the secondary keys count at all.
    pub selective: bool,
    /// The text.
    pub content: String,
    /// Whether it can be active.
    pub enabled: bool,
    /// Place among others: a lower one stands earlier in the prompt, a higher one goes first when room is short.
    pub order: i64,
    /// Active without a key.
    pub constant: bool,
    /// All keys are regular expressions.
    pub regex: bool,
    /// Letter case counts; the setting decides if absent.
    pub case_sensitive: Option<bool>,
    /// Keys match whole words only; the setting decides if absent.
    pub whole_words: Option<bool>,
    /// Where it goes.
    pub position: Position,
    /// Messages from the end of the chat, for [`Position::AtDepth`].
    pub depth: u32,
    /// The depth counts from the beginning of the chat.
    pub from_start: bool,
    /// Role of the message it becomes at a depth.
    pub role: Role,
    /// Name of its outlet, for [`Position::Outlet`].
    pub outlet: String,
    /// Percent of the times that it becomes active.
    pub probability: f64,
    /// Groups of which one entry only is active.
    pub group: Vec<String>,
    /// It goes before the others of its group, without chance.
    pub group_override: bool,
    /// Its weight when chance decides in a group.
    pub group_weight: f64,
    /// Whether the number of matching keys decides in its group first; the setting decides if absent.
    pub group_scoring: Option<bool>,
    /// It is not found in the text of other entries.
    pub exclude_recursion: bool,
    /// Others are not found in its text.
    pub prevent_recursion: bool,
    /// It is found from that level of recursion on only; 0: at once.
    pub delay_until_recursion: u32,
    /// Messages for which it stays active.
    pub sticky: u32,
    /// Messages for which it cannot be active after it was.
    pub cooldown: u32,
    /// Messages that the chat needs to have.
    pub delay: u32,
    /// Newest messages that are read for it; the setting decides if absent.
    pub scan_depth: Option<u32>,
    /// What else is read for it.
    pub sources: Vec<Source>,
    /// The budget does not hold for it.
    pub ignore_budget: bool,
    /// Goes before lower ones when the budget is short.
    pub priority: i64,
    /// Characters it is for.
    pub filter: Filter,
    /// Kinds of generation it is for; all if empty.
    pub triggers: Vec<String>,
    /// Always active (`true`) or never (`false`), whatever its keys say.
    pub force: Option<bool>,
    /// One of these must occur as well.
    pub additional_keys: Vec<String>,
    /// None of these may occur.
    pub exclude_keys: Vec<String>,
    /// Messages of the character that there must be.
    pub only_after: u32,
    /// Active only when the messages of the character are a multiple of it.
    pub only_every: u32,
    /// Active only with that greeting.
    pub greeting: Option<u32>,
    /// Once active, for ever.
    pub keep_after_match: bool,
    /// Once active, never again.
    pub once: bool,
}

impl Default for Entry {
    fn default() -> Entry {
        Entry {
            id: String::new(),
            title: String::new(),
            keys: Vec::new(),
            secondary_keys: Vec::new(),
            logic: Logic::AndAny,
            selective: true,
            content: String::new(),
            enabled: true,
            order: 100,
            constant: false,
            regex: false,
            case_sensitive: None,
            whole_words: None,
            position: Position::BeforeChar,
            depth: 4,
            from_start: false,
            role: Role::System,
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
            filter: Filter::default(),
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

/// How secondary keys count, once a key has matched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Logic {
    /// One of them occurs.
    #[default]
    AndAny,
    /// One of them does not occur.
    NotAll,
    /// None of them occurs.
    NotAny,
    /// All of them occur.
    AndAll,
}

/// Where an active entry goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Position {
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
    /// After them.
    ExamplesAfter,
    /// Into an outlet, which a template prints.
    Outlet,
    /// After the character's personality.
    Personality,
    /// After the scenario.
    Scenario,
}

/// A text of the user or the character that keys can be looked for in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Who the user is.
    Persona,
    /// Who the character is.
    Description,
    /// How it is.
    Personality,
    /// Its text among the messages.
    DepthPrompt,
    /// Where it is.
    Scenario,
    /// The notes of its creator.
    CreatorNotes,
}

impl Entry {
    /// Words for it in messages: its title, else its id and its first key.
    #[must_use]
    pub fn label(&self) -> String {
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

impl Source {
    /// All of them, in the order in which they are read.
    pub const ALL: [Source; 6] = [
        Source::Persona,
        Source::Description,
        Source::Personality,
        Source::DepthPrompt,
        Source::Scenario,
        Source::CreatorNotes,
    ];
}

/// Who says a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The system.
    #[default]
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
}

/// For which characters an entry is: where there are names and tags, both count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Filter {
    /// Names of characters.
    pub names: Vec<String>,
    /// Tags of characters.
    pub tags: Vec<String>,
    /// It is for all but those.
    pub exclude: bool,
}

impl Filter {
    /// Whether a character of that name and those tags passes.
    #[must_use]
    pub fn passes(&self, name: &str, tags: &[String]) -> bool {
        let named = self.names.is_empty() || self.names.iter().any(|other| other == name) != self.exclude;
        let tagged =
            || self.tags.is_empty() || self.tags.iter().any(|tag| tags.contains(tag)) != self.exclude;
        named && tagged()
    }
}
