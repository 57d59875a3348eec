//! `tambour contract`: format instructions, schemas and grammars of dialects.

use std::io::{self, Write};

use anyhow::{Result, bail};
use clap::builder::PossibleValuesParser;
use clap::{Subcommand, ValueEnum};
use tambour::dialect::{self, DIALECTS, DialectEntry};
use tambour::grammar::GrammarFormat;
use tambour::{Options, Profile, policy};

use crate::CommandOutcome;
use crate::args::{self, OptionArgs, StructureArgs};

/// Show the contract of a dialect
#[derive(Subcommand)]
#[command(after_help = "Example:\n  tambour contract show thinkingml --lang en")]
pub(crate) enum ContractCommand {
    Show(ShowCommand),
}

/// Print format instructions for a system prompt, a JSON Schema, or a grammar for constrained decoding
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  tambour contract show thinkingml --lang en\n  \
    tambour contract show ai_say --option ai_say.role=coach --format json-schema\n  \
    tambour contract show aiplan --format gbnf")]
pub(crate) struct ShowCommand {
    /// Dialect
    #[arg(value_parser = PossibleValuesParser::new(args::instructable_dialects()))]
    name: String,
    /// Form of the contract
    #[arg(long, value_enum, default_value_t = Format::Prompt)]
    format: Format,
    /// Language of the instructions; default: the option `text_language`, else `zh`
    #[arg(long, value_enum)]
    lang: Option<Lang>,
    #[command(flatten)]
    options: OptionArgs,
    #[command(flatten)]
    structure: StructureArgs,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[cfg_attr(
    feature = "mcp",
    derive(serde::Deserialize, schemars::JsonSchema),
    serde(rename_all = "kebab-case")
)]
pub(crate) enum Format {
    /// Format instructions for a system prompt
    #[default]
    Prompt,
    /// JSON Schema (draft 2020-12) of what a model writes
    JsonSchema,
    /// Grammar in Lark, in the dialect of llguidance
    Lark,
    /// Grammar in GBNF, for llama.cpp
    Gbnf,
    /// Structural tag of xgrammar
    StructuralTag,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[cfg_attr(
    feature = "mcp",
    derive(serde::Deserialize, schemars::JsonSchema),
    serde(rename_all = "lowercase")
)]
pub(crate) enum Lang {
    /// Chinese
    Zh,
    /// English
    En,
}

impl Lang {
    /// Value of the option `text_language`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Lang::Zh => "zh",
            Lang::En => "en",
        }
    }
}

pub(crate) fn run(command: &ContractCommand) -> Result<CommandOutcome> {
    let ContractCommand::Show(show) = command;
    let entry = dialect::find_dialect(&show.name)?;
    // Called only to refuse a structure for a dialect other than `filament`.
    show.structure.dialect(Some(&show.name), "contract show")?;
    let mut options =
        show.options.options_with_structure(Profile::default(), show.structure.structure.as_deref())?;
    if let Some(lang) = show.lang {
        if show.options.is_set("text_language") {
            bail!("give `--lang` or the option `text_language`, not both");
        }
        options.set("text_language", lang.name())?;
    }
    io::stdout().write_all(contract_text(entry, &options, show.format)?.as_bytes())?;
    Ok(CommandOutcome::Success)
}

/// Format instructions of a dialect, its JSON Schema, or its grammar.
pub(crate) fn contract_text(entry: &DialectEntry, options: &Options, format: Format) -> Result<String> {
    match format {
        Format::Prompt => match entry.prompt {
            Some(prompt) => Ok(prompt(options).text()),
            None => bail!(
                "{}",
                missing_part_message(entry, "format instructions", |entry| entry.prompt.is_some())
            ),
        },
        Format::JsonSchema => match entry.schema {
            Some(schema) => Ok(serde_json::to_string_pretty(&schema(options))? + "\n"),
            None => bail!("{}", missing_part_message(entry, "JSON Schema", |entry| entry.schema.is_some())),
        },
        Format::Lark => grammar_text(entry, options, GrammarFormat::Lark),
        Format::Gbnf => grammar_text(entry, options, GrammarFormat::Gbnf),
        Format::StructuralTag => grammar_text(entry, options, GrammarFormat::StructuralTag),
    }
}

/// Grammar of a dialect.
fn grammar_text(entry: &DialectEntry, options: &Options, format: GrammarFormat) -> Result<String> {
    match policy::grammar(entry, options) {
        Some(grammar) => Ok(grammar?.write(format)),
        None => bail!("{}", missing_part_message(entry, "grammar", |entry| entry.grammar.is_some())),
    }
}

/// Returns the message that a dialect lacks `part`. The message lists the dialects for which `has_part` is
/// true.
fn missing_part_message(entry: &DialectEntry, part: &str, has_part: fn(&DialectEntry) -> bool) -> String {
    let dialects: Vec<&str> =
        DIALECTS.iter().filter(|entry| has_part(entry)).map(|entry| entry.name).collect();
    let dialects =
        if dialects.is_empty() { String::new() } else { format!("; available for {}", dialects.join(", ")) };
    format!("`{}` has no {part}{dialects}", entry.name)
}
