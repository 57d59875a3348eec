//! `tambour macros`: translates macros of SillyTavern and Tavern-Helper to Jinja.

use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde_json::json;
use tambour_prompt::jinja::{Assembly, Engine, PromptContext, UndefinedMode};
use tambour_prompt::macros::{MigratedText, migrate};

use crate::input;
use crate::{CommandOutcome, output};

/// Macros of SillyTavern and Tavern-Helper
#[derive(clap::Subcommand)]
#[command(after_help = "Example:\n  printf 'Hi {{user}}, {{roll:2d6}}' | tambour macros migrate")]
pub(crate) enum MacrosCommand {
    Migrate(MigrateArgs),
    Render(RenderArgs),
}

/// Translate the macros of a text to Jinja2; unknown macros stay text and are reported on standard error
#[derive(clap::Args)]
#[command(after_help = "Example:\n  printf 'Hi {{user}}, {{roll:2d6}}' | tambour macros migrate\n\n\
    Migrating a migrated text changes nothing.")]
pub(crate) struct MigrateArgs {
    /// Print counts of translated macros on standard error: one JSON object, by row of the macro table
    #[arg(long)]
    report: bool,
    /// File with the text; standard input if absent or `-`
    file: Option<PathBuf>,
}

/// Translate the macros of a text and render it with a context
#[derive(clap::Args)]
#[command(after_help = "Example:\n  \
    echo '{\"user\": \"Tom\"}' >/tmp/c; echo 'Hi {{user}}' | tambour macros render --context /tmp/c\n\n\
    Exit code 1: the text cannot be rendered; the error names the line.")]
pub(crate) struct RenderArgs {
    /// JSON file with the variables: user, char, state, history, now, seed and others
    #[arg(long, value_name = "FILE")]
    context: PathBuf,
    /// Print one JSON object with `text`, `warnings`, `effects`, `local` and `global`
    #[arg(long)]
    json: bool,
    /// File with the text; standard input if absent or `-`
    file: Option<PathBuf>,
}

pub(crate) fn run(command: &MacrosCommand) -> Result<CommandOutcome> {
    match command {
        MacrosCommand::Migrate(args) => run_migrate(args),
        MacrosCommand::Render(args) => run_render(args),
    }
}

fn run_migrate(args: &MigrateArgs) -> Result<CommandOutcome> {
    let path = args.file.as_deref();
    let migrated_text = migrate(&read_text(path)?);
    print_warnings(&input::display_name(path), &migrated_text);
    if args.report {
        let _ = writeln!(io::stderr(), "{}", serde_json::to_string(&migrated_text.report)?);
    }
    print_text(&migrated_text.text)?;
    Ok(CommandOutcome::Success)
}

fn run_render(args: &RenderArgs) -> Result<CommandOutcome> {
    let path = args.file.as_deref();
    let is_stdin = |path: Option<&Path>| path.is_none_or(|path| path == Path::new(input::STDIN));
    if is_stdin(path) && is_stdin(Some(&args.context)) {
        bail!("standard input cannot be both the context and the text");
    }
    let name = input::display_name(path);
    let context = read_context(&args.context)?;
    let migrated_text = migrate(&read_text(path)?);
    // Each run draws other random numbers, unless the context has a seed.
    let seed = RandomState::new().hash_one(0);
    let engine = Engine::new(UndefinedMode::Lenient);
    let mut assembly =
        Assembly::with_budget(&engine, context, seed, crate::prompt::rendering_budget(&engine));
    let rendered_text = match assembly.render(&name, &migrated_text.text) {
        Ok(rendered_text) => rendered_text,
        Err(error) => {
            output::print_error(&error.to_string());
            return Ok(CommandOutcome::Failed);
        }
    };
    let outcome = assembly.outcome();
    if args.json {
        let mut warnings = Vec::new();
        for warning in &migrated_text.warnings {
            warnings.push(serde_json::to_value(warning)?);
        }
        for warning in &outcome.warnings {
            warnings.push(serde_json::to_value(warning)?);
        }
        let report = json!({
            "text": rendered_text, "warnings": warnings, "effects": outcome.effects,
            "local": outcome.local, "global": outcome.global,
        });
        print_text(&format!("{report}\n"))?;
        return Ok(CommandOutcome::Success);
    }
    print_warnings(&name, &migrated_text);
    for warning in &outcome.warnings {
        let place = warning.line.zip(warning.column).map(|(line, column)| format!(":{line}:{column}"));
        let (template, place) = (&warning.template, place.unwrap_or_default());
        print_line(&format!("{template}{place}: warning: {}: {}", warning.code, warning.message));
    }
    for effect in &outcome.effects {
        print_line(&format!("{name}: requests the effect {}", serde_json::to_string(effect)?));
    }
    print_text(&rendered_text)?;
    Ok(CommandOutcome::Success)
}

/// Reads the context from a file.
pub(crate) fn read_context(path: &Path) -> Result<PromptContext> {
    PromptContext::from_json(&input::read_json(path)?).with_context(|| input::display_name(Some(path)))
}

fn read_text(path: Option<&Path>) -> Result<String> {
    let bytes = input::read_without_bom(path)?;
    String::from_utf8(bytes).with_context(|| format!("{} is not UTF-8", input::display_name(path)))
}

fn print_warnings(name: &str, migrated_text: &MigratedText) {
    for warning in &migrated_text.warnings {
        let (line, column) = (warning.line, warning.column);
        print_line(&format!("{name}:{line}:{column}: warning: {}: {}", warning.code, warning.message));
    }
}

/// Prints a line on standard error, which may be closed.
fn print_line(line: &str) {
    let line: String = line.chars().map(output::visible_char).collect();
    let _ = writeln!(io::stderr(), "{line}");
}

fn print_text(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()?;
    Ok(())
}
