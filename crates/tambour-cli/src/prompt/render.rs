//! `tambour prompt render`: renders a Skein, which is a prompt made of blocks, with a context to text or role
//! messages.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde_json::{Value, json};
use tambour::Options;
use tambour::limits::ImportLimits;
use tambour_prompt::card::import_file;
use tambour_prompt::jinja::{Engine, PromptContext, UndefinedMode};
use tambour_prompt::lore::TimedEffects;
use tambour_prompt::skein::{RenderOptions, RenderedPrompt, Skein, from_import};
use tambour_server::Tokenizer;

use crate::{CommandOutcome, args, input, output};

/// Render a prompt with a context; omissions and warnings go to standard error
#[derive(clap::Args)]
#[command(after_help = "Example:\n  \
    echo 'blocks: [{tag: a, text: Hi}]' | tambour prompt render -\n\n\
    FILE is a Skein (YAML or JSON), or a card, lorebook or preset as `tambour import` reads it. The context is one JSON object with \
    the variables of the templates: user, char, history, state, now, seed and any other name.\n\
    Exit code 1: a file is broken, or a template cannot be rendered.")]
pub(crate) struct RenderCommand {
    /// JSON file with the context; empty if absent
    #[arg(long, value_name = "FILE")]
    context: Option<PathBuf>,
    /// Print role messages, one JSON array
    #[arg(long)]
    messages: bool,
    /// Add world info and variables of another prompt, card or book
    #[arg(long = "with", value_name = "FILE")]
    others: Vec<PathBuf>,
    /// Maximum number of tokens of the prompt
    #[arg(long, value_name = "N")]
    max_context: Option<usize>,
    /// Tokenizer that counts tokens
    #[arg(long, default_value = Tokenizer::default().name(), value_parser = tokenizer_parser())]
    tokenizer: Tokenizer,
    /// JSON file with timed effects of world info (sticky, cooldown); created if missing, updated by each successful rendering
    #[arg(long, value_name = "FILE")]
    timed: Option<PathBuf>,
    /// Fail on a missing variable
    #[arg(long)]
    strict: bool,
    /// Set an option: `text_language=zh` (default) or `en`, the language of format instructions
    #[arg(long = "option", value_name = "K=V", value_parser = args::parse_pair)]
    options: Vec<(String, String)>,
    /// Prompt file; standard input if `-`
    file: PathBuf,
}

/// Parser of the names of tokenizers.
fn tokenizer_parser() -> impl TypedValueParser<Value = Tokenizer> {
    let values =
        Tokenizer::ALL.map(|tokenizer| PossibleValue::new(tokenizer.name()).help(tokenizer.description()));
    PossibleValuesParser::new(values).map(|name| Tokenizer::from_name(&name).expect("it is a possible value"))
}

pub(crate) fn run(args: &RenderCommand) -> Result<CommandOutcome> {
    let is_stdin = |path: &&PathBuf| path.as_path() == Path::new(input::STDIN);
    if std::iter::once(&args.file).chain(&args.context).chain(&args.others).filter(is_stdin).count() > 1 {
        bail!("only one of the files can be standard input");
    }
    let mut reading_options = Options::default();
    args.options
        .iter()
        .try_for_each(|(name, value)| args::set_option(&mut reading_options, name, value.as_str()))?;
    let language = reading_options.texts.language;
    let context = match &args.context {
        Some(path) => {
            let context = input::read_json(path)?;
            if let Err(error) = PromptContext::from_json(&context) {
                let name = input::display_name(Some(path));
                return Ok(print_content_error(&format!("{name}: {error}")));
            }
            context
        }
        None => json!({}),
    };
    let mut printed_warnings = Vec::new();
    let mut skein = match load_skein(&args.file, &mut printed_warnings)? {
        Ok(skein) => skein,
        Err(message) => return Ok(print_content_error(&message)),
    };
    for path in &args.others {
        match load_skein(path, &mut printed_warnings)? {
            Ok(other) => skein.merge_lore(&other),
            Err(message) => return Ok(print_content_error(&message)),
        }
    }
    let engine = Engine::new(if args.strict { UndefinedMode::Strict } else { UndefinedMode::Lenient });
    let count_tokens = |text: &str| args.tokenizer.count(text);
    let count_nothing = |_: &str| 0;
    let mut options = RenderOptions::default();
    options.engine = Some(&engine);
    options.budget = Some(super::rendering_budget(&engine));
    options.max_context = args.max_context;
    // Format instructions use the language of all other texts.
    options.language = language;
    options.timed_effects = args.timed.as_deref().map(read_timed_effects).transpose()?.unwrap_or_default();
    // Token counting is slow, and needed only with a limit.
    let is_limited = args.max_context.or(skein.max_context).is_some()
        || skein.scan.as_ref().is_some_and(|scan| scan.budget.is_some());
    options.count_tokens = if is_limited { &count_tokens } else { &count_nothing };
    match skein.render(&context, &options) {
        Ok(rendered_prompt) => {
            if let Some(path) = &args.timed {
                let effects_json = serde_json::to_vec_pretty(&rendered_prompt.timed_effects)?;
                std::fs::write(path, effects_json)
                    .with_context(|| format!("{} cannot be written", path.display()))?;
            }
            print_notices(&rendered_prompt, &printed_warnings);
            let mut stdout = io::stdout().lock();
            if args.messages {
                writeln!(stdout, "{}", serde_json::to_string_pretty(&rendered_prompt.messages)?)?;
            } else {
                writeln!(stdout, "{}", rendered_prompt.text)?;
            }
            stdout.flush()?;
            Ok(CommandOutcome::Success)
        }
        Err(error) => {
            let place = error
                .location()
                .map(|place| format!("\n  {}:{}: {}", place.line, place.column, place.excerpt));
            Ok(print_content_error(&format!(
                "{}: {error}{}",
                input::display_name(Some(&args.file)),
                place.unwrap_or_default()
            )))
        }
    }
}

/// Reads the timed effects of world info from earlier renderings; empty if the file does not exist.
fn read_timed_effects(path: &Path) -> Result<TimedEffects> {
    let bytes = match std::fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(TimedEffects::default()),
        content => content.with_context(|| format!("{} cannot be read", path.display()))?,
    };
    serde_json::from_slice(&bytes)
        .with_context(|| format!("{} was not written with `--timed`", path.display()))
}

/// Prints a message, which may have several lines, and returns the outcome of broken content.
fn print_content_error(message: &str) -> CommandOutcome {
    output::print_error(
        &message
            .lines()
            .map(|line| line.chars().map(output::visible_char).collect::<String>())
            .collect::<Vec<_>>()
            .join("\n"),
    );
    CommandOutcome::Failed
}

/// Loads a Skein, or converts an imported file, prints its warnings and adds them to `printed_warnings`.
/// YAML, standard input and JSON with `blocks` are read as a Skein, other files as a card, lorebook or
/// preset.
///
/// # Errors
/// The outer error means that the file cannot be read; the inner error is the message about broken content.
fn load_skein(path: &Path, printed_warnings: &mut Vec<String>) -> Result<Result<Skein, String>> {
    let name = input::display_name(Some(path));
    let bytes = input::read_without_bom(Some(path))?;
    let has_extension =
        |expected: &str| path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(expected));
    let format_error = |error: tambour::Error| {
        let place = error
            .location()
            .map(|place| format!(" (line {}, column {}): {}", place.line, place.column, place.excerpt));
        let error = error.to_string();
        let error_text = if error.starts_with(&name) { error } else { format!("{name}: {error}") };
        format!("{error_text}{}", place.unwrap_or_default())
    };
    if !has_extension("yaml") && !has_extension("yml") && path != Path::new(input::STDIN) {
        match serde_json::from_slice::<Value>(&bytes) {
            Ok(value) if value.get("blocks").is_some() => {
                return Ok(Skein::from_value(&value).map_err(format_error));
            }
            _ => {
                let imported_file =
                    import_file(&name, &bytes, &ImportLimits::default()).map_err(format_error);
                return Ok(imported_file.map(|imported_file| {
                    for warning in &imported_file.warnings {
                        output::print_error(&format!("{name}: {warning}"));
                    }
                    printed_warnings.extend(imported_file.warnings.iter().cloned());
                    from_import(&imported_file)
                }));
            }
        }
    }
    let Ok(text) = String::from_utf8(bytes) else { return Ok(Err(format!("{name}: not UTF-8 text"))) };
    Ok(Skein::from_yaml("it", &text).map_err(format_error))
}

/// Prints parts left out, warnings and effects that templates requested, except the warnings already printed
/// for the files.
fn print_notices(rendered_prompt: &RenderedPrompt, printed_warnings: &[String]) {
    for dropped_part in &rendered_prompt.dropped_parts {
        if let Ok(dropped_part) = serde_json::to_string(dropped_part) {
            output::print_error(&format!("left out for lack of room: {dropped_part}"));
        }
    }
    let outcome_warnings = rendered_prompt.outcome.warnings.iter().map(|warning| {
        let place = warning.line.map(|line| format!(", line {line}")).unwrap_or_default();
        format!("{}{place}: {}: {}", warning.template, warning.code, warning.message)
    });
    let new_warnings = rendered_prompt.warnings.iter().filter(|warning| !printed_warnings.contains(warning));
    for warning in new_warnings.cloned().chain(outcome_warnings) {
        output::print_error(&warning.chars().map(output::visible_char).collect::<String>());
    }
    for effect in &rendered_prompt.outcome.effects {
        if let Ok(effect) = serde_json::to_string(effect) {
            output::print_error(&format!("effect requested by a template: {effect}"));
        }
    }
}
