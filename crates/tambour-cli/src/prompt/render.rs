//! `tambour prompt render`: renders a prompt with a context to text or role messages.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use serde_json::{Value, json};
use tambour::Options;
use tambour::limits::ImportLimits;
use tambour_prompt::card::{Imported, Kind, import};
use tambour_prompt::jinja::{Context as Variables, Engine, Mode};
use tambour_prompt::lore::Timed;
use tambour_prompt::skein::{RenderOptions, Rendered, Skein, from_book, from_card, from_preset};
use tambour_prompt::tokens;

use crate::{Outcome, args, input, output};

/// Render a prompt with a context; omissions and warnings go to standard error
#[derive(clap::Args)]
#[command(after_help = "Example:\n  \
    echo 'blocks: [{tag: a, text: Hi}]' | tambour prompt render -\n\n\
    FILE is a Skein (YAML or JSON), or a card, lorebook or preset as `tambour import` reads it. The context is one JSON object with \
    the variables of the templates: user, char, history, state, now, seed and any other name.\n\
    Exit code 1: a file that is broken, or a template that cannot be rendered.")]
pub(crate) struct Args {
    /// JSON file with the context; empty if absent
    #[arg(long, value_name = "FILE")]
    context: Option<PathBuf>,
    /// Print role messages, one JSON array
    #[arg(long)]
    messages: bool,
    /// Add world info and variables of another prompt, card or book
    #[arg(long = "with", value_name = "FILE")]
    others: Vec<PathBuf>,
    /// Most tokens of the prompt
    #[arg(long, value_name = "N")]
    max_context: Option<usize>,
    /// Tokenizer that counts tokens
    #[arg(long, value_enum, default_value_t = Tokenizer::O200k)]
    tokenizer: Tokenizer,
    /// JSON file with timed effects of world info (sticky, cooldown); created if missing, updated after each turn
    #[arg(long, value_name = "FILE")]
    timed: Option<PathBuf>,
    /// Fail on a missing variable
    #[arg(long)]
    strict: bool,
    /// Set an option: `text_language=zh` (default) or `en`, the language of format instructions
    #[arg(long = "option", value_name = "K=V", value_parser = args::pair)]
    options: Vec<(String, String)>,
    /// Prompt file; standard input if `-`
    file: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
enum Tokenizer {
    /// Encoding of newer OpenAI models
    O200k,
    /// Encoding of GPT-4
    Cl100k,
    /// Quarter of a token for an ASCII character, one token for any other
    Estimate,
}

impl Tokenizer {
    fn count(self, text: &str) -> usize {
        match self {
            Tokenizer::O200k => bpe_openai::o200k_base().count(text),
            Tokenizer::Cl100k => bpe_openai::cl100k_base().count(text),
            Tokenizer::Estimate => tokens::estimate(text),
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<Outcome> {
    let stdin = |path: &&PathBuf| path.as_path() == Path::new(input::STDIN);
    if std::iter::once(&args.file).chain(&args.context).chain(&args.others).filter(stdin).count() > 1 {
        bail!("standard input can be one file only");
    }
    let mut set = Options::default();
    args.options.iter().try_for_each(|(name, value)| crate::args::set(&mut set, name, value.as_str()))?;
    let language = set.texts.language;
    let context = match &args.context {
        Some(path) => {
            let context = input::json(path)?;
            if let Err(error) = Variables::from_json(&context) {
                return Ok(refuse(&format!("{}: {error}", input::name_of(Some(path)))));
            }
            context
        }
        None => json!({}),
    };
    let mut told = Vec::new();
    let mut skein = match load(&args.file, &mut told)? {
        Ok(skein) => skein,
        Err(why) => return Ok(refuse(&why)),
    };
    for path in &args.others {
        match load(path, &mut told)? {
            Ok(other) => skein.take(&other),
            Err(why) => return Ok(refuse(&why)),
        }
    }
    let engine = Engine::new(if args.strict { Mode::Strict } else { Mode::Lenient });
    let count = |text: &str| args.tokenizer.count(text);
    let no_count = |_: &str| 0;
    let mut options = RenderOptions::default();
    options.engine = Some(&engine);
    options.budget = Some(super::budget(&engine));
    options.max_context = args.max_context;
    // Format instructions use the language of all other texts.
    options.language = language;
    options.timed = args.timed.as_deref().map(earlier).transpose()?.unwrap_or_default();
    // Token counting is slow, and needed only with a limit.
    let limited = args.max_context.or(skein.max_context).is_some()
        || skein.scan.as_ref().is_some_and(|scan| scan.budget.is_some());
    options.count = if limited { &count } else { &no_count };
    match skein.render(&context, &options) {
        Ok(rendered) => {
            if let Some(path) = &args.timed {
                let timed = serde_json::to_vec_pretty(&rendered.timed)?;
                std::fs::write(path, timed)
                    .with_context(|| format!("{} cannot be written", path.display()))?;
            }
            tell(&rendered, &told);
            let mut stdout = io::stdout().lock();
            if args.messages {
                writeln!(stdout, "{}", serde_json::to_string_pretty(&rendered.messages)?)?;
            } else {
                writeln!(stdout, "{}", rendered.text)?;
            }
            stdout.flush()?;
            Ok(Outcome::Fine)
        }
        Err(error) => {
            let place =
                error.place().map(|place| format!("\n  {}:{}: {}", place.line, place.column, place.excerpt));
            Ok(refuse(&format!("{}: {error}{}", input::name_of(Some(&args.file)), place.unwrap_or_default())))
        }
    }
}

/// Reads the timed effects of world info from earlier turns; empty without a file.
fn earlier(path: &Path) -> Result<Timed> {
    let bytes = match std::fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Timed::default()),
        read => read.with_context(|| format!("{} cannot be read", path.display()))?,
    };
    serde_json::from_slice(&bytes)
        .with_context(|| format!("{} is not what `--timed` has written", path.display()))
}

fn refuse(why: &str) -> Outcome {
    output::complain(
        &why.lines()
            .map(|line| line.chars().map(output::visible).collect::<String>())
            .collect::<Vec<_>>()
            .join("\n"),
    );
    Outcome::Refused
}

/// Loads a Skein, or converts an imported file and prints its warnings, which `told_before` collects.
/// The inner error is broken content.
fn load(path: &Path, told_before: &mut Vec<String>) -> Result<Result<Skein, String>> {
    let name = input::name_of(Some(path));
    let bytes = input::read(Some(path))?;
    let is = |end: &str| path.extension().is_some_and(|own| own.eq_ignore_ascii_case(end));
    let told = |error: tambour::Error| {
        let place = error
            .place()
            .map(|place| format!(" (line {}, column {}): {}", place.line, place.column, place.excerpt));
        let error = error.to_string();
        let named = if error.starts_with(&name) { error } else { format!("{name}: {error}") };
        format!("{named}{}", place.unwrap_or_default())
    };
    if !is("yaml") && !is("yml") && path != Path::new(input::STDIN) {
        match serde_json::from_slice::<Value>(&bytes) {
            Ok(value) if value.get("blocks").is_some() => return Ok(Skein::from_value(&value).map_err(told)),
            _ => {
                let imported = import(&name, &bytes, &ImportLimits::default()).map_err(told);
                return Ok(imported.map(|imported| {
                    for warning in &imported.warnings {
                        output::complain(&format!("{name}: {warning}"));
                    }
                    told_before.extend(imported.warnings.iter().cloned());
                    prompt(&imported)
                }));
            }
        }
    }
    let Ok(text) = String::from_utf8(bytes) else { return Ok(Err(format!("{name}: not UTF-8 text"))) };
    Ok(Skein::from_yaml("it", &text).map_err(told))
}

/// Converts an import to a prompt.
pub(crate) fn prompt(imported: &Imported) -> Skein {
    match imported.kind {
        Kind::Card => from_card(imported),
        Kind::Preset => from_preset(imported),
        _ => from_book(imported),
    }
}

/// Prints omissions and warnings, except those already printed for the files.
fn tell(rendered: &Rendered, told: &[String]) {
    for cut in &rendered.dropped {
        if let Ok(cut) = serde_json::to_string(cut) {
            output::complain(&format!("left out for want of room: {cut}"));
        }
    }
    let noticed = rendered.outcome.warnings.iter().map(|warning| {
        let place = warning.line.map(|line| format!(", line {line}")).unwrap_or_default();
        format!("{}{place}: {}: {}", warning.template, warning.code, warning.message)
    });
    let own = rendered.warnings.iter().filter(|warning| !told.contains(warning));
    for warning in own.cloned().chain(noticed) {
        output::complain(&warning.chars().map(output::visible).collect::<String>());
    }
    for effect in &rendered.outcome.effects {
        if let Ok(effect) = serde_json::to_string(effect) {
            output::complain(&format!("asked for: {effect}"));
        }
    }
}
