//! `tambour script check`: checks scripts and the templates they use.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use clap::ValueEnum;
use tambour::limits::Limits;
use tambour::options::Language;
use tambour::texts::counted;
use tambour_prompt::dialogue::check::check_all;
use tambour_prompt::script::{Problem, Script, load_in};
use tambour_prompt::template::Files;

use crate::{Outcome, input, output};

/// Dialogue scripts
#[derive(clap::Subcommand)]
#[command(after_help = "Example:\n  printf 'sessions: [{session: s, phases: []}]' | tambour script check -")]
pub(crate) enum Command {
    Check(CheckArgs),
}

/// Check scripts and the templates they use; all faults are reported at once, with their places
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  printf 'sessions: [{session: s, phases: []}]' | tambour script check -\n\n\
    Exit code 1: a script cannot run. Warnings, such as a variable without a value, leave it at 0."
)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    templates: TemplateArgs,
    /// Scripts; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Default folder of templates.
const TEMPLATES: &str = "config/prompts";

/// Source of the templates.
#[derive(clap::Args, Clone)]
pub(crate) struct TemplateArgs {
    /// Folder of prompt templates that override the shipped ones
    #[arg(long, value_name = "DIR", default_value = TEMPLATES)]
    pub(crate) templates: PathBuf,
    /// Language of templates and default texts
    #[arg(long, value_enum, default_value_t = Words::Zh)]
    pub(crate) language: Words,
}

/// Language of default texts.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Words {
    /// Chinese
    Zh,
    /// English
    En,
}

impl From<Words> for Language {
    fn from(words: Words) -> Language {
        match words {
            Words::Zh => Language::Zh,
            Words::En => Language::En,
        }
    }
}

impl TemplateArgs {
    /// Templates of the folder, and the shipped ones.
    pub(crate) fn files(&self) -> Result<Files> {
        // The default folder may be absent; a named one must exist.
        if !self.templates.is_dir() && self.templates != Path::new(TEMPLATES) {
            return Err(anyhow!("there is no folder `{}` of templates", self.templates.display()));
        }
        tambour_server::prompts::folder(&self.templates).map_err(|error| anyhow!(error))
    }
}

pub(crate) fn run(command: &Command) -> Result<Outcome> {
    let Command::Check(args) = command;
    let templates = args.templates.files()?;
    let language = args.templates.language.into();
    let mut outcome = Outcome::Fine;
    let mut stdout = io::stdout().lock();
    for path in &args.files {
        let name = input::name_of(Some(path));
        let (script, problems) = match read(path, &templates, language) {
            Ok(read) => read,
            Err(error) => {
                output::complain(&format!("{error:#}"));
                outcome = Outcome::Unclear;
                continue;
            }
        };
        for problem in &problems {
            writeln!(stdout, "{}", line(&name, problem))?;
        }
        if let Some(script) = &script {
            let actions = script.actions().count();
            writeln!(
                stdout,
                "{name}: {}, {}, {}",
                counted(script.sessions.len(), "session"),
                counted(actions, "action"),
                counted(problems.len(), "warning")
            )?;
        } else if outcome == Outcome::Fine {
            outcome = Outcome::Refused;
        }
    }
    stdout.flush()?;
    Ok(outcome)
}

/// Reads a script with all faults of it and its templates; `None` when it cannot run.
pub(crate) fn read(
    path: &Path,
    templates: &Files,
    language: Language,
) -> Result<(Option<Script>, Vec<Problem>)> {
    let name = input::name_of(Some(path));
    let text =
        String::from_utf8(input::read_raw(Some(path))?).map_err(|_| anyhow!("{name} is not UTF-8 text"))?;
    let loaded = load_in(&text, &Limits::default(), language);
    let mut script = loaded.script.clone();
    let problems = check_all(loaded, templates, language);
    if problems.iter().any(Problem::is_error) {
        script = None;
    }
    Ok((script, problems))
}

/// Formats a problem in one line, with the path of the field.
pub(crate) fn line(name: &str, problem: &Problem) -> String {
    let mut finding = problem.finding();
    if !problem.path.is_empty() {
        finding.message = format!("{} [{}]", finding.message, problem.path);
    }
    output::line(name, &finding)
}
