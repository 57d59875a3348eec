//! Prompts and cards.

use serde::Deserialize;
use serde_json::Value;
use tambour::error::{Error, Result};
use tambour::texts::Language;
use tambour_bindings::prompts::{self, PromptSettings, PromptSource};

use crate::answer::{Answer, guard, read_arguments, write};

/// Current time in milliseconds, from any start.
pub type Clock = fn() -> f64;

/// Counts the tokens of a text; `None` if it fails.
pub type TokenCounter<'a> = &'a dyn Fn(&str) -> Option<usize>;

/// Longest time for the templates of one prompt, in milliseconds.
const MAX_RENDERING_TIME: f64 = 10_000.0;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ImportArguments {
    name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RenderArguments {
    prompt: SourceArguments,
    context: Value,
    others: Vec<SourceArguments>,
    max_context: Option<usize>,
    language: String,
    strict: bool,
    timed_effects: Option<Value>,
    seed: u64,
}

/// A prompt as text, as a value, or as the part of the input between two offsets.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum SourceArguments {
    Text(String),
    Value(Value),
    File(usize, usize),
}

impl SourceArguments {
    fn source(self, input: &[u8]) -> Result<PromptSource> {
        Ok(match self {
            SourceArguments::Text(text) => PromptSource::Text(text),
            SourceArguments::Value(value) => PromptSource::Value(value),
            SourceArguments::File(start, end) => {
                let bytes = input.get(start..end);
                let bytes = bytes.ok_or_else(|| Error::invalid("the file lies outside the input"))?;
                PromptSource::File { bytes: bytes.to_vec(), name: "the file".to_owned() }
            }
        })
    }
}

pub(crate) fn import_card(arguments: &ImportArguments, input: &[u8]) -> Result<String> {
    write(&prompts::import_card(&arguments.name, input)?)
}

/// Renders a prompt; `input` has the bytes of its files. If `count` fails once, the answer is an error with the
/// code `count_failed`, and it is not called again.
///
/// # Errors
/// The prompt or the context is malformed, or a template cannot be rendered within its limits.
pub fn render_prompt(arguments: &str, input: &[u8], clock: Clock, count: Option<TokenCounter<'_>>) -> Answer {
    guard(|| {
        let arguments: RenderArguments = read_arguments(arguments)?;
        let others = arguments.others.into_iter().map(|other| other.source(input));
        let others = others.collect::<Result<Vec<PromptSource>>>()?;
        let has_failed = std::cell::Cell::new(false);
        let count_text = |text: &str| -> usize {
            let Some(count) = count.filter(|_| !has_failed.get()) else { return 0 };
            count(text).unwrap_or_else(|| {
                has_failed.set(true);
                0
            })
        };
        let began = clock();
        let settings = PromptSettings {
            context: &arguments.context,
            others: &others,
            max_context: arguments.max_context,
            language: read_language(&arguments.language)?,
            is_strict: arguments.strict,
            timed_effects: arguments.timed_effects,
            random_seed: arguments.seed,
            count_tokens: count.is_some().then_some(&count_text),
            should_stop: Box::new(move || clock() - began > MAX_RENDERING_TIME),
        };
        let rendered = prompts::render_prompt(&arguments.prompt.source(input)?, settings);
        if has_failed.get() {
            return Err(Error::invalid("the tokens of a text could not be counted").with_code("count_failed"));
        }
        write(&rendered?)
    })
}

/// Reads the language of texts.
pub(crate) fn read_language(name: &str) -> Result<Language> {
    match name {
        "zh" => Ok(Language::Zh),
        "en" => Ok(Language::En),
        _ => Err(Error::unknown("language", name, ["zh", "en"])),
    }
}
