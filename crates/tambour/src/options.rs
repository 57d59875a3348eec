//! Options of a reading, with the names of the command line and the HTTP interface.

use crate::error::{Error, Result};
use crate::exit::Round;
use crate::finding::Profile;
use crate::limits::Limits;
use crate::tool::Tools;

pub use crate::texts::{Language, Texts};

/// How a reply is read and judged. `Options::default()` is what a stream wants.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// How findings are judged.
    pub profile: Profile,
    /// Whether to stop reporting after the first finding.
    pub first_only: bool,
    /// What happens to a query with sensitive data.
    pub sensitive: Sensitive,
    /// How long an attempt is kept back so that it can be re-asked.
    pub hold: Hold,
    /// Whether the queries block must be there (T-040).
    pub serp_block_required: bool,
    /// Whether `<final>` alone on its line ends an unclosed phase.
    pub lone_final_close: bool,
    /// Whether plain text gets a thinking block.
    pub plain_thinking: PlainThinking,
    /// Where plain text has its reasoning.
    pub plain_reasoning: PlainReasoning,
    /// Whether a stream without thinking passes the checker.
    pub allow_missing_thinking: bool,
    /// Tools that a plan may call.
    pub tools: Tools,
    /// Who calls them; a tool may be limited to callers (P-033).
    pub caller: Option<String>,
    /// Whether somebody runs the calls and reads on with their results.
    pub tool_loop: bool,
    /// Which modes a plan may have.
    pub plan_variant: PlanVariant,
    /// Whether invalid calls are left out instead of making a plan invalid.
    pub drop_invalid_calls: bool,
    /// Key of the message in the answer of a dialogue round; `None`: that of the texts' language (S-052).
    pub role: Option<String>,
    /// The round that is answered; with it the end of the reply brings the exit decision (S-060).
    pub round: Option<Round>,
    /// Replies that the instructions showed as examples.
    pub examples: Vec<String>,
    /// Whether the instructions were our own, so that their examples count too.
    pub own_examples: bool,
    /// Default texts.
    pub texts: Texts,
    /// Limits.
    pub limits: Limits,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            profile: Profile::default(),
            first_only: false,
            sensitive: Sensitive::default(),
            hold: Hold::default(),
            serp_block_required: true,
            lone_final_close: false,
            plain_thinking: PlainThinking::default(),
            plain_reasoning: PlainReasoning::default(),
            allow_missing_thinking: false,
            tools: Tools::sample(),
            caller: None,
            tool_loop: false,
            plan_variant: PlanVariant::default(),
            drop_invalid_calls: false,
            role: None,
            round: None,
            examples: Vec::new(),
            own_examples: false,
            texts: Texts::default(),
            limits: Limits::default(),
        }
    }
}

/// What happens to a query with sensitive data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Sensitive {
    /// The query is left out.
    #[default]
    Drop,
    /// The data is replaced by its kind, such as `[email]`.
    Generalise,
}

/// How long an attempt is kept back so that it can be re-asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Hold {
    /// Not at all.
    #[default]
    None,
    /// Until the answer begins.
    UntilFinal,
    /// Until the end.
    All,
}

/// Whether plain text gets a thinking block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PlainThinking {
    /// One phase with the fallback title, so that the required events exist.
    #[default]
    Block,
    /// None; the checker needs `events.allow_missing_thinking`.
    Skip,
}

/// Where plain text has its reasoning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PlainReasoning {
    /// In a leading `<think>`, if there is one.
    #[default]
    Auto,
    /// The reply starts inside reasoning.
    Open,
    /// Nowhere: `<think>` is text.
    None,
}

/// The modes of a plan and their rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PlanVariant {
    /// Those of the specification.
    #[default]
    V1,
    /// `KNOWLEDGE_QA` may call tools that only read, `GENERAL_CHAT` is gone, `PLAN_EXECUTION` is new.
    V2,
}

/// Names that [`Options::set`] takes.
pub const NAMES: &[&str] = &[
    "profile",
    "first_only",
    "sensitive",
    "hold",
    "thinkingml.serp_block",
    "thinkingml.lone_final",
    "plain.thinking",
    "plain.reasoning",
    "events.allow_missing_thinking",
    "caller",
    "aiplan.variant",
    "aiplan.drop_invalid_calls",
    "ai_say.role",
    "examples",
    "text_language",
    "limits.input",
    "limits.depth",
    "limits.hold",
    "limits.value",
    "limits.items",
    "limits.phases",
    "limits.findings",
];

/// The examples of our own instructions, among those of the option `examples`.
const OWN: &str = "own";

/// Keys of the message in the answer of a dialogue round, by language.
const ROLES: [(Language, &str); 2] = [(Language::Zh, "咨询师"), (Language::En, "counsellor")];

impl Options {
    /// The key of the message in the answer of a dialogue round: the given one, or that of the texts' language (S-052).
    #[must_use]
    pub fn role_key(&self) -> &str {
        let of_language = |&&(language, _): &&(Language, &str)| language == self.texts.language;
        let default = ROLES.iter().find(of_language).unwrap_or(&ROLES[0]).1;
        self.role.as_deref().unwrap_or(default)
    }

    /// Keys under which the message is looked for: where none is given, those of all languages.
    pub(crate) fn role_keys(&self) -> Vec<String> {
        match &self.role {
            Some(role) => vec![role.clone()],
            None => ROLES.iter().map(|(_, role)| (*role).to_owned()).collect(),
        }
    }

    /// Sets one option by its public name.
    ///
    /// # Errors
    /// An unknown name, or a value that the option does not take.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        match name {
            "profile" => {
                self.profile =
                    choose(name, value, &[("strict", Profile::Strict), ("lenient", Profile::Lenient)])?;
            }
            "first_only" => self.first_only = flag(name, value)?,
            "sensitive" => {
                let table = [("drop", Sensitive::Drop), ("generalise", Sensitive::Generalise)];
                self.sensitive = choose(name, value, &table)?;
            }
            "hold" => {
                let table = [("none", Hold::None), ("until_final", Hold::UntilFinal), ("all", Hold::All)];
                self.hold = choose(name, value, &table)?;
            }
            "thinkingml.serp_block" => {
                self.serp_block_required = choose(name, value, &[("required", true), ("optional", false)])?;
            }
            "thinkingml.lone_final" => {
                self.lone_final_close = choose(name, value, &[("literal", false), ("close", true)])?;
            }
            "plain.thinking" => {
                let table = [("block", PlainThinking::Block), ("skip", PlainThinking::Skip)];
                self.plain_thinking = choose(name, value, &table)?;
            }
            "plain.reasoning" => {
                let table = [
                    ("auto", PlainReasoning::Auto),
                    ("open", PlainReasoning::Open),
                    ("none", PlainReasoning::None),
                ];
                self.plain_reasoning = choose(name, value, &table)?;
            }
            "events.allow_missing_thinking" => self.allow_missing_thinking = flag(name, value)?,
            "caller" => self.caller = Some(value.to_owned()),
            "aiplan.variant" => {
                self.plan_variant = choose(name, value, &[("v1", PlanVariant::V1), ("v2", PlanVariant::V2)])?;
            }
            "aiplan.drop_invalid_calls" => self.drop_invalid_calls = flag(name, value)?,
            "ai_say.role" => self.role = Some(key(name, value)?),
            // A list, or the next one.
            "examples" => match serde_json::from_str::<Vec<String>>(value) {
                Ok(mut examples) => {
                    self.own_examples = examples.iter().any(|example| example == OWN);
                    examples.retain(|example| example != OWN);
                    self.examples = examples;
                }
                Err(_) if value == OWN => self.own_examples = true,
                Err(_) => self.examples.push(value.to_owned()),
            },
            "text_language" => {
                let table = [("zh", Language::Zh), ("en", Language::En)];
                self.texts = Texts::of(choose(name, value, &table)?);
            }
            "limits.input" => self.limits.input = number(name, value)?,
            "limits.depth" => self.limits.depth = number(name, value)?.min(512),
            "limits.hold" => self.limits.hold = number(name, value)?,
            "limits.value" => self.limits.value = number(name, value)?,
            "limits.items" => self.limits.items = number(name, value)?,
            "limits.phases" => self.limits.phases = number(name, value)?,
            "limits.findings" => self.limits.findings = number(name, value)?,
            _ => return Err(Error::unknown("option", name, NAMES.iter().copied())),
        }
        Ok(())
    }
}

fn choose<T: Copy>(name: &str, value: &str, table: &[(&str, T)]) -> Result<T> {
    table.iter().find(|(word, _)| *word == value).map(|(_, choice)| *choice).ok_or_else(|| {
        let words: Vec<&str> = table.iter().map(|(word, _)| *word).collect();
        Error::invalid(format!("option `{name}` is one of {}, not `{value}`", words.join(", ")))
    })
}

fn key(name: &str, value: &str) -> Result<String> {
    match value.trim() {
        "" => Err(Error::invalid(format!("option `{name}` is a key, not an empty text"))),
        _ => Ok(value.to_owned()),
    }
}

fn flag(name: &str, value: &str) -> Result<bool> {
    choose(name, value, &[("true", true), ("false", false)])
}

fn number(name: &str, value: &str) -> Result<usize> {
    match value.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(Error::invalid(format!("option `{name}` is a whole number above 0, not `{value}`"))),
    }
}
