//! Arguments that several commands share.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::builder::PossibleValue;
use serde_json::Value;
use tambour::dialect::{DIALECTS, DialectEntry};
use tambour::tool::ToolRegistry;
use tambour::verdict::Contract;
use tambour::{Options, Profile};

/// Arguments `--option K=V` and `--tools FILE`.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct OptionArgs {
    /// Set a reading option, such as `thinkingml.serp_block=optional`; may be repeated
    #[arg(long = "option", value_name = "K=V", value_parser = parse_pair, long_help = format_option_help())]
    options: Vec<(String, String)>,
    /// Tools that a reply may call: a JSON object, tool name to JSON Schema; if absent, `aiplan` has four sample tools and other dialects have none
    #[arg(long, value_name = "FILE")]
    tools: Option<PathBuf>,
}

impl OptionArgs {
    /// Builds the options under `profile`, with the expected structure read from the file `structure`, if
    /// there is one.
    pub(crate) fn options_with_structure(
        &self,
        profile: Profile,
        structure: Option<&Path>,
    ) -> Result<Options> {
        let mut options = self.options(profile)?;
        if let Some(path) = structure {
            let name = crate::input::display_name(Some(path));
            options.set("filament.structure", read_yaml(path)?).with_context(|| name)?;
        }
        Ok(options)
    }

    /// Builds the options under `profile`.
    pub(crate) fn options(&self, profile: Profile) -> Result<Options> {
        let mut options = Options::default();
        options.profile = profile;
        for (name, value) in &self.options {
            set_option(&mut options, name, value.as_str())?;
        }
        if let Some(path) = &self.tools {
            options.tools = Some(read_tools(path)?);
        }
        Ok(options)
    }

    /// Returns `true` if the option `name` was given.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.options.iter().any(|(option_name, _)| option_name == name)
    }
}

/// Sets a reading option.
pub(crate) fn set_option(options: &mut Options, name: &str, value: impl Into<Value>) -> Result<()> {
    if name == "profile" {
        bail!(
            "`profile` is not an option; where it can be chosen it is an argument (`--profile` of `check`)"
        );
    }
    Ok(options.set(name, value)?)
}

/// Argument `--structure FILE`.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct StructureArgs {
    /// Expected structure of the replies (`filament`): a YAML or JSON file with `mandatory`, `optional` and `dependency`
    #[arg(long, value_name = "FILE")]
    pub(crate) structure: Option<PathBuf>,
}

impl StructureArgs {
    /// Returns the dialect to read as, `None` if nothing names one. A structure file implies `filament` and is
    /// refused with any other dialect but `auto`. `argument` is the flag or the command before the name of the
    /// dialect, for error messages.
    pub(crate) fn dialect<'a>(&self, name: Option<&'a str>, argument: &str) -> Result<Option<&'a str>> {
        match (&self.structure, name) {
            (None, _) => Ok(name),
            (Some(_), None | Some("auto" | "filament")) => Ok(Some("filament")),
            (Some(_), Some(other)) => bail!(
                "`--structure` says which tags a reply of `filament` has; give `{argument} filament` with it, not `{other}`"
            ),
        }
    }
}

/// Maximum number of nodes in a YAML file. Aliases, which could expand without bound, are not allowed at all.
const MAX_YAML_NODES: usize = 10_000;

/// Reads a value from a YAML or JSON file.
pub(crate) fn read_yaml(path: &Path) -> Result<Value> {
    let name = crate::input::display_name(Some(path));
    let bytes = crate::input::read_without_bom(Some(path))?;
    let text = String::from_utf8(bytes).with_context(|| format!("{name} is not UTF-8 text"))?;
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_nodes: MAX_YAML_NODES, max_events: 2 * MAX_YAML_NODES, max_aliases: 0, max_depth: 64 },
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
    };
    serde_saphyr::from_str_with_options(&text, options).map_err(|error| anyhow::anyhow!("{name}: {error}"))
}

/// Reads the tool registry from a file.
pub(crate) fn read_tools(path: &Path) -> Result<ToolRegistry> {
    let name = crate::input::display_name(Some(path));
    let bytes = crate::input::read_without_bom(Some(path))?;
    let registry = serde_json::from_slice(&bytes).with_context(|| format!("{name} is not JSON"))?;
    ToolRegistry::from_json(&registry).with_context(|| name)
}

fn format_option_help() -> String {
    let mut help = String::from(
        "Set a reading option, such as `thinkingml.serp_block=optional`; may be repeated.\n\nOptions:",
    );
    for (_, setting) in tambour::settings::all_settings().filter(|(_, setting)| setting.name != "profile") {
        help += &format!("\n  {}={}: {}", setting.name, setting.values_label(), setting.description);
        if !setting.default.is_empty() {
            help += &format!(" [default: {}]", setting.default);
        }
    }
    help
}

/// Parses `NAME=VALUE`; the value may be empty.
pub(crate) fn parse_pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

/// Names of all dialects, as values of an argument.
pub(crate) fn dialect_values() -> impl Iterator<Item = PossibleValue> {
    DIALECTS.iter().map(dialect_value)
}

/// Names of the dialects that have format instructions, a schema or a grammar.
pub(crate) fn instructable_dialects() -> impl Iterator<Item = PossibleValue> {
    DIALECTS
        .iter()
        .filter(|entry| entry.prompt.is_some() || entry.schema.is_some() || entry.grammar.is_some())
        .map(dialect_value)
}

fn dialect_value(entry: &DialectEntry) -> PossibleValue {
    PossibleValue::new(entry.name).help(entry.summary)
}

/// Names of all contracts, as values of an argument.
pub(crate) fn contract_values() -> impl Iterator<Item = PossibleValue> {
    let other_contracts = Contract::names().filter(|name| !DIALECTS.iter().any(|entry| entry.name == *name));
    dialect_values().chain(
        other_contracts.map(|name| PossibleValue::new(name).help("a stream of events, as a client gets it")),
    )
}
