//! Options of reading a reply. Each dialect has its own options type in its folder; [`Options::set`] sets any
//! of them by public name.

pub(crate) mod own;
mod setting;

use serde_json::Value;

use crate::exit::Round;
use crate::finding::Profile;
use crate::limits::Limits;
use crate::state::Attached;
use crate::tool::Tools;

pub use crate::texts::{Language, Texts};
pub use own::Section;
pub use setting::{Set, Setting};

/// Options for reading and judging a reply. `Options::default()` suits a stream.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// Profile under which findings are judged.
    pub profile: Profile,
    /// True to stop reporting after the first finding.
    pub first_only: bool,
    /// Handling of a query with sensitive data.
    pub sensitive: Sensitive,
    /// Part of an attempt that is held back so that the model can still be re-asked.
    pub hold: Hold,
    /// True if a stream without thinking passes the checker.
    pub allow_missing_thinking: bool,
    /// Tools that a reply may call; `None`: those its dialect brings.
    pub tools: Option<Tools>,
    /// Name of the caller of tools; a tool may be limited to callers (P-033).
    pub caller: Option<String>,
    /// True if the application runs the calls and continues with their results.
    pub tool_loop: bool,
    /// State that operations of the reply are applied to; without one they are only reported as events.
    pub state: Option<Attached>,
    /// Round that is being answered; if set, the end of the reply brings the exit decision (S-060).
    pub round: Option<Round>,
    /// Replies that the instructions showed as examples.
    pub examples: Vec<String>,
    /// True if the instructions were the built-in ones, so that their examples count too.
    pub own_examples: bool,
    /// Fallback texts.
    pub texts: Texts,
    /// Size limits.
    pub limits: Limits,
    /// Options of dialects; see [`Options::of`].
    pub(crate) own: own::Own,
}

impl Options {
    /// Options of one dialect.
    #[must_use]
    pub fn of<T: Section>(&self) -> T {
        self.own.get().cloned().unwrap_or_default()
    }

    /// Changes the options of one dialect.
    pub fn change<T: Section>(&mut self, change: impl FnOnce(&mut T)) {
        let mut section = self.of::<T>();
        change(&mut section);
        self.own.put(section);
    }
}

/// Handling of a query with sensitive data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Sensitive {
    /// Drops the query.
    #[default]
    Drop,
    /// Replaces the data by its kind, such as `[email]`.
    Generalise,
}

/// Part of an attempt that is held back so that the model can still be re-asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Hold {
    /// Nothing is held back.
    #[default]
    None,
    /// Everything until the answer begins.
    UntilFinal,
    /// Everything until the end.
    All,
}

/// Word for the built-in examples in the option `examples`.
const OWN: &str = "own";

/// Settings shared by all dialects.
pub(crate) const COMMON: &[Setting] = &[
    Setting {
        name: "profile",
        about: "how findings are judged",
        default: "lenient",
        set: Set::Word(&["strict", "lenient"], |options, at| {
            options.profile = [Profile::Strict, Profile::Lenient][at];
        }),
    },
    Setting {
        name: "first_only",
        about: "stop reporting after the first finding",
        default: "false",
        set: Set::Flag(|options, on| options.first_only = on),
    },
    Setting {
        name: "sensitive",
        about: "a query with sensitive data is left out, or the data is replaced by its kind (R-11)",
        default: "drop",
        set: Set::Word(&["drop", "generalise"], |options, at| {
            options.sensitive = [Sensitive::Drop, Sensitive::Generalise][at];
        }),
    },
    Setting {
        name: "hold",
        about: "how long an attempt is kept back so that it can still be re-asked",
        default: "none",
        set: Set::Word(&["none", "until_final", "all"], |options, at| {
            options.hold = [Hold::None, Hold::UntilFinal, Hold::All][at];
        }),
    },
    Setting {
        name: "events.allow_missing_thinking",
        about: "a stream without thinking passes the check (R-24)",
        default: "false",
        set: Set::Flag(|options, on| options.allow_missing_thinking = on),
    },
    Setting {
        name: "tools",
        about: "tools that a reply may call: an object, tool name to JSON Schema; aiplan brings the four of P-020",
        default: "",
        set: Set::Json(|options, value| {
            options.tools = Some(Tools::from_json(value)?);
            Ok(())
        }),
    },
    Setting {
        name: "caller",
        about: "who calls tools; a tool may be limited to callers (P-033)",
        default: "",
        set: Set::Text(|options, text| options.caller = Some(text)),
    },
    Setting {
        name: "round",
        about: "the round that is answered (S-060): an object of `round`, `max_rounds` (5) and `exit_criteria`",
        default: "",
        set: Set::Json(|options, value| {
            options.round = Some(Round::from_json(value)?);
            Ok(())
        }),
    },
    Setting {
        name: "examples",
        about: "replies that the instructions showed (X-011): a list, or one more; `own` are those of our own",
        default: "[]",
        set: Set::Json(|options, value| {
            examples(options, value);
            Ok(())
        }),
    },
    Setting {
        name: "text_language",
        about: "language of default texts",
        default: "zh",
        set: Set::Word(&["zh", "en"], |options, at| {
            options.texts = Texts::of([Language::Zh, Language::En][at]);
        }),
    },
    Setting {
        name: "limits.input",
        about: "one reply",
        default: "16777216",
        set: Set::Number("bytes", |options, number| options.limits.input = number),
    },
    Setting {
        name: "limits.depth",
        about: "nesting of JSON values and elements, at most 512",
        default: "128",
        set: Set::Number("levels", |options, number| options.limits.depth = number.min(512)),
    },
    Setting {
        name: "limits.hold",
        about: "text that may be held back where it must be",
        default: "65536",
        set: Set::Number("bytes", |options, number| options.limits.hold = number),
    },
    Setting {
        name: "limits.value",
        about: "text of an object that may act",
        default: "4194304",
        set: Set::Number("bytes", |options, number| options.limits.value = number),
    },
    Setting {
        name: "limits.items",
        about: "values and keys of such an object",
        default: "65536",
        set: Set::Number("items", |options, number| options.limits.items = number),
    },
    Setting {
        name: "limits.phases",
        about: "phases of one reply",
        default: "1000",
        set: Set::Number("phases", |options, number| options.limits.phases = number),
    },
    Setting {
        name: "limits.findings",
        about: "findings listed for one reply",
        default: "1000",
        set: Set::Number("findings", |options, number| options.limits.findings = number),
    },
];

/// Replaces the examples by a list, or appends one.
fn examples(options: &mut Options, value: &Value) {
    match value {
        Value::Array(list) => {
            let texts = list.iter().filter_map(Value::as_str);
            options.own_examples = texts.clone().any(|example| example == OWN);
            options.examples = texts.filter(|example| *example != OWN).map(str::to_owned).collect();
        }
        Value::String(example) if example == OWN => options.own_examples = true,
        Value::String(example) => options.examples.push(example.clone()),
        other => options.examples.push(other.to_string()),
    }
}
