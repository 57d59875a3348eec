//! `tambour contract`: format instructions, schemas and grammars of dialects.

use std::io::{self, Write};

use anyhow::{Result, bail};
use clap::builder::PossibleValuesParser;
use clap::{Subcommand, ValueEnum};
use tambour::dialect::{self, DialectEntry};
use tambour::verdict::{Contract, ContractForm};
use tambour::{Options, Profile};

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
pub(crate) fn contract_text(
    entry: &'static DialectEntry,
    options: &Options,
    format: Format,
) -> Result<String> {
    let form = match format {
        Format::Prompt => ContractForm::Prompt,
        Format::JsonSchema => ContractForm::JsonSchema,
        Format::Lark => ContractForm::Lark,
        Format::Gbnf => ContractForm::Gbnf,
        Format::StructuralTag => ContractForm::StructuralTag,
    };
    Ok(Contract::Dialect(entry).write(form, options)?)
}
