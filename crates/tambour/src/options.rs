//! Options of reading a reply. Each dialect has its own options type in its folder; [`Options::set`] sets any
//! of them by public name.

mod setting;

use std::any::Any;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use serde_json::Value;

use crate::exit::ExitRound;
use crate::finding::Profile;
use crate::limits::Limits;
use crate::state::AttachedState;
use crate::tool::ToolRegistry;

pub use crate::texts::{Language, Texts};
pub use setting::{Setting, SettingValues};

/// Options for reading and judging a reply. `Options::default()` suits a stream.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// Profile under which findings are judged.
    pub profile: Profile,
    /// True to stop reporting after the first finding.
    pub first_only: bool,
    /// Handling of a query with sensitive data.
    pub sensitive_queries: SensitivePolicy,
    /// Part of an attempt that is held back so that the model can still be re-asked.
    pub hold: HoldMode,
    /// True if a stream without thinking passes the checker.
    pub allow_missing_thinking: bool,
    /// Tools that a reply may call; `None` stands for the built-in tools of its dialect.
    pub tools: Option<ToolRegistry>,
    /// Name of the caller of tools; a tool may be limited to certain callers (P-033).
    pub caller: Option<String>,
    /// True if the application runs the tool calls and asks the model again with their results.
    pub tool_loop: bool,
    /// State that operations of the reply are applied to; without one they are only reported as events.
    pub state: Option<AttachedState>,
    /// Round that the reply answers; if set, an exit decision is made at the end of the reply (S-060).
    pub round: Option<ExitRound>,
    /// Replies that the instructions showed as examples.
    pub examples: Vec<String>,
    /// True if the examples of the built-in instructions count as well, since the model was shown them.
    pub has_own_examples: bool,
    /// Fallback texts.
    pub texts: Texts,
    /// Size limits.
    pub limits: Limits,
    /// Maximum number of characters of a text in a grammar; `None` is unbounded.
    pub grammar_text: Option<u32>,
    /// Options of dialects; see [`Options::section`].
    pub(crate) sections: OptionSections,
}

impl Options {
    /// Options of one dialect.
    #[must_use]
    pub(crate) fn section<T: OptionSection>(&self) -> T {
        self.sections.find().cloned().unwrap_or_default()
    }

    /// Changes the options of one dialect.
    pub(crate) fn update_section<T: OptionSection>(&mut self, change: impl FnOnce(&mut T)) {
        let mut section = self.section::<T>();
        change(&mut section);
        self.sections.insert(section);
    }
}

/// Handling of a query with sensitive data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SensitivePolicy {
    /// Drops the query.
    #[default]
    Drop,
    /// Replaces the data by its kind, such as `[email]`.
    Generalise,
}

/// Part of an attempt (one reply to a request) that is held back so that the model can still be re-asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HoldMode {
    /// Nothing is held back.
    #[default]
    None,
    /// Everything until the answer begins.
    UntilFinal,
    /// Everything until the end.
    All,
}

/// Largest bound of a text in a grammar, in characters.
const MAX_GRAMMAR_TEXT: u32 = 100_000;

/// Word for the built-in examples in the option `examples`.
const OWN_EXAMPLES: &str = "own";

/// Settings shared by all dialects.
pub(crate) const COMMON_SETTINGS: &[Setting] = &[
    Setting {
        name: "profile",
        description: "how findings are judged",
        default: "lenient",
        accepts: SettingValues::Choice(&["strict", "lenient"], |options, at| {
            options.profile = [Profile::Strict, Profile::Lenient][at];
        }),
    },
    Setting {
        name: "first_only",
        description: "stop reporting after the first finding",
        default: "false",
        accepts: SettingValues::Flag(|options, is_on| options.first_only = is_on),
    },
    Setting {
        name: "sensitive",
        description: "a query with sensitive data is left out, or the data is replaced by its kind (R-11)",
        default: "drop",
        accepts: SettingValues::Choice(&["drop", "generalise"], |options, at| {
            options.sensitive_queries = [SensitivePolicy::Drop, SensitivePolicy::Generalise][at];
        }),
    },
    Setting {
        name: "hold",
        description: "how long an attempt is kept back so that it can still be re-asked",
        default: "none",
        accepts: SettingValues::Choice(&["none", "until_final", "all"], |options, at| {
            options.hold = [HoldMode::None, HoldMode::UntilFinal, HoldMode::All][at];
        }),
    },
    Setting {
        name: "events.allow_missing_thinking",
        description: "a stream without thinking passes the check (R-24)",
        default: "false",
        accepts: SettingValues::Flag(|options, is_on| options.allow_missing_thinking = is_on),
    },
    Setting {
        name: "tools",
        description: "tools that a reply may call: an object, tool name to JSON Schema; by default `aiplan` has the four of P-020, and other dialects have none",
        default: "",
        accepts: SettingValues::Json(|options, value| {
            options.tools = Some(ToolRegistry::from_json(value)?);
            Ok(())
        }),
    },
    Setting {
        name: "caller",
        description: "the caller of the tools; a tool may be limited to certain callers (P-033)",
        default: "",
        accepts: SettingValues::Text(|options, text| options.caller = Some(text)),
    },
    Setting {
        name: "round",
        description: "the round that the reply answers (S-060): an object of `round`, `max_rounds` (5) and `exit_criteria`",
        default: "",
        accepts: SettingValues::Json(|options, value| {
            options.round = Some(ExitRound::from_json(value)?);
            Ok(())
        }),
    },
    Setting {
        name: "examples",
        description: "example replies that the model was shown (X-011): a list, or one to add; `own` stands for those of the built-in instructions",
        default: "[]",
        accepts: SettingValues::Json(|options, value| {
            set_examples(options, value);
            Ok(())
        }),
    },
    Setting {
        name: "text_language",
        description: "language of default texts",
        default: "zh",
        accepts: SettingValues::Choice(&["zh", "en"], |options, at| {
            options.texts = Texts::from_language([Language::Zh, Language::En][at]);
        }),
    },
    Setting {
        name: "grammar.text",
        description: "length of one text in a grammar for constrained decoding, so that a model that repeats itself ends its reply",
        default: "",
        accepts: SettingValues::Number("characters", |options, number| {
            options.grammar_text = Some(u32::try_from(number).unwrap_or(u32::MAX).min(MAX_GRAMMAR_TEXT));
        }),
    },
    Setting {
        name: "limits.input",
        description: "one reply",
        default: "16777216",
        accepts: SettingValues::Number("bytes", |options, number| options.limits.input = number),
    },
    Setting {
        name: "limits.depth",
        description: "nesting of JSON values and elements, at most 512",
        default: "128",
        accepts: SettingValues::Number("levels", |options, number| options.limits.depth = number.min(512)),
    },
    Setting {
        name: "limits.hold",
        description: "text that may be held back until its meaning is clear",
        default: "65536",
        accepts: SettingValues::Number("bytes", |options, number| options.limits.hold = number),
    },
    Setting {
        name: "limits.value",
        description: "text of an object that may act",
        default: "4194304",
        accepts: SettingValues::Number("bytes", |options, number| options.limits.value = number),
    },
    Setting {
        name: "limits.items",
        description: "values and keys of an object that may act",
        default: "65536",
        accepts: SettingValues::Number("items", |options, number| options.limits.items = number),
    },
    Setting {
        name: "limits.phases",
        description: "phases of one reply",
        default: "1000",
        accepts: SettingValues::Number("phases", |options, number| options.limits.phases = number),
    },
    Setting {
        name: "limits.findings",
        description: "findings listed for one reply",
        default: "1000",
        accepts: SettingValues::Number("findings", |options, number| options.limits.findings = number),
    },
];

/// Replaces the examples by a list, or appends one. An example that is itself JSON was parsed together with
/// the option, so it is turned back into text. An example that is a JSON array must be an element of a list.
fn set_examples(options: &mut Options, value: &Value) {
    let text_of = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let is_own = |value: &Value| value == OWN_EXAMPLES;
    match value {
        Value::Array(list) => {
            options.has_own_examples = list.iter().any(is_own);
            options.examples = list.iter().filter(|value| !is_own(value)).map(text_of).collect();
        }
        value if is_own(value) => options.has_own_examples = true,
        value => options.examples.push(text_of(value)),
    }
}

/// Type of the options of one dialect.
pub(crate) trait OptionSection: Any + Clone + Debug + Default + PartialEq + Send + Sync {}

impl<T: Any + Clone + Debug + Default + PartialEq + Send + Sync> OptionSection for T {}

/// Options of dialects that differ from their defaults, at most one value per type.
#[derive(Clone, Default)]
pub(crate) struct OptionSections(Vec<Arc<dyn StoredSection>>);

/// [`OptionSection`] without the bounds that a trait object cannot have.
trait StoredSection: Any + Debug + Send + Sync {}

impl<T: OptionSection> StoredSection for T {}

impl OptionSections {
    fn find<T: OptionSection>(&self) -> Option<&T> {
        self.0.iter().find_map(|section| {
            let section: &dyn Any = &**section;
            section.downcast_ref::<T>()
        })
    }

    fn insert<T: OptionSection>(&mut self, section: T) {
        self.0.retain(|existing| {
            let existing: &dyn Any = &**existing;
            !existing.is::<T>()
        });
        if section != T::default() {
            self.0.push(Arc::new(section));
        }
    }
}

impl Debug for OptionSections {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.0).finish()
    }
}
