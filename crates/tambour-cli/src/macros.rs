//! `tambour macros`: translates macros of SillyTavern and Tavern-Helper to Jinja.

use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde_json::json;
use tambour_prompt::jinja::{Assembly, Context, Engine, Mode};
use tambour_prompt::macros::{Migrated, migrate};

use crate::input;
use crate::{Outcome, output};

/// Macros of SillyTavern and Tavern-Helper
#[derive(clap::Subcommand)]
#[command(after_help = "Example:\n  printf 'Hi {{user}}, {{roll:2d6}}' | tambour macros migrate")]
pub(crate) enum Command {
    Migrate(MigrateArgs),
    Render(RenderArgs),
}

/// Translate the macros of a text to Jinja2; unknown macros stay text and are reported on standard error
#[derive(clap::Args)]
#[command(after_help = "Example:\n  printf 'Hi {{user}}, {{roll:2d6}}' | tambour macros migrate\n\n\
    Migrating what was migrated changes nothing.")]
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

pub(crate) fn run(command: &Command) -> Result<Outcome> {
    match command {
        Command::Migrate(args) => run_migrate(args),
        Command::Render(args) => run_render(args),
    }
}

fn run_migrate(args: &MigrateArgs) -> Result<Outcome> {
    let path = args.file.as_deref();
    let migrated = migrate(&text(path)?);
    tell(&input::name_of(path), &migrated);
    if args.report {
        let _ = writeln!(io::stderr(), "{}", serde_json::to_string(&migrated.report)?);
    }
    print(&migrated.text)?;
    Ok(Outcome::Fine)
}

fn run_render(args: &RenderArgs) -> Result<Outcome> {
    let path = args.file.as_deref();
    let is_stdin = |path: Option<&Path>| path.is_none_or(|path| path == Path::new(input::STDIN));
    if is_stdin(path) && is_stdin(Some(&args.context)) {
        bail!("standard input cannot be both the context and the text");
    }
    let name = input::name_of(path);
    let context = context(&args.context)?;
    let migrated = migrate(&text(path)?);
    // Without a seed in the context each run draws other numbers.
    let chance = RandomState::new().hash_one(0);
    let engine = Engine::new(Mode::Lenient);
    let mut assembly = Assembly::within(&engine, context, chance, crate::prompt::budget(&engine));
    let rendered = match assembly.render(&name, &migrated.text) {
        Ok(rendered) => rendered,
        Err(error) => {
            output::complain(&error.to_string());
            return Ok(Outcome::Refused);
        }
    };
    let outcome = assembly.outcome();
    if args.json {
        let mut warnings = Vec::new();
        for warning in &migrated.warnings {
            warnings.push(serde_json::to_value(warning)?);
        }
        for warning in &outcome.warnings {
            warnings.push(serde_json::to_value(warning)?);
        }
        let whole = json!({
            "text": rendered, "warnings": warnings, "effects": outcome.effects,
            "local": outcome.local, "global": outcome.global,
        });
        print(&format!("{whole}\n"))?;
        return Ok(Outcome::Fine);
    }
    tell(&name, &migrated);
    for warning in &outcome.warnings {
        let place = warning.line.zip(warning.column).map(|(line, column)| format!(":{line}:{column}"));
        let (template, place) = (&warning.template, place.unwrap_or_default());
        complain(&format!("{template}{place}: warning: {}: {}", warning.code, warning.message));
    }
    for effect in &outcome.effects {
        complain(&format!("{name}: asks for {}", serde_json::to_string(effect)?));
    }
    print(&rendered)?;
    Ok(Outcome::Fine)
}

/// Reads the context from a file.
pub(crate) fn context(path: &Path) -> Result<Context> {
    Context::from_json(&input::json(path)?).with_context(|| input::name_of(Some(path)))
}

fn text(path: Option<&Path>) -> Result<String> {
    let bytes = input::read(path)?;
    String::from_utf8(bytes).with_context(|| format!("{} is not UTF-8", input::name_of(path)))
}

fn tell(name: &str, migrated: &Migrated) {
    for warning in &migrated.warnings {
        let (line, column) = (warning.line, warning.column);
        complain(&format!("{name}:{line}:{column}: warning: {}: {}", warning.code, warning.message));
    }
}

/// Prints a line on standard error, which may be closed.
fn complain(line: &str) {
    let line: String = line.chars().map(output::visible).collect();
    let _ = writeln!(io::stderr(), "{line}");
}

fn print(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()?;
    Ok(())
}
