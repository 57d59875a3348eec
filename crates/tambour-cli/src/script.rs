//! `tambour script check`: checks scripts and the templates they use.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use clap::ValueEnum;
use tambour::limits::Limits;
use tambour::options::Language;
use tambour::texts::format_count;
use tambour_prompt::dialogue::check::check_all;
use tambour_prompt::script::{Script, ScriptProblem, load_with_language};
use tambour_prompt::template::TemplateFiles;

use crate::{CommandOutcome, input, output};

/// Dialogue scripts
#[derive(clap::Subcommand)]
#[command(after_help = "Example:\n  printf 'sessions: [{session: s, phases: []}]' | tambour script check -")]
pub(crate) enum ScriptCommand {
    Check(ScriptCheckCommand),
}

/// Check scripts and the templates they use; all faults are reported at once, with their places
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  printf 'sessions: [{session: s, phases: []}]' | tambour script check -\n\n\
    Exit code 1: a script cannot run. Warnings, such as a variable without a value, leave it at 0."
)]
pub(crate) struct ScriptCheckCommand {
    #[command(flatten)]
    templates: TemplateArgs,
    /// Scripts; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Default folder of templates.
const DEFAULT_TEMPLATES: &str = "config/prompts";

/// Source of the templates.
#[derive(clap::Args, Clone)]
pub(crate) struct TemplateArgs {
    /// Folder of prompt templates that override the shipped ones
    #[arg(long, value_name = "DIR", default_value = DEFAULT_TEMPLATES)]
    pub(crate) templates: PathBuf,
    /// Language of templates and default texts
    #[arg(long, value_enum, default_value_t = LanguageChoice::Zh)]
    pub(crate) language: LanguageChoice,
}

/// Language of templates and default texts.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum LanguageChoice {
    /// Chinese
    Zh,
    /// English
    En,
}

impl From<LanguageChoice> for Language {
    fn from(choice: LanguageChoice) -> Language {
        match choice {
            LanguageChoice::Zh => Language::Zh,
            LanguageChoice::En => Language::En,
        }
    }
}

impl TemplateArgs {
    /// Loads the templates of the folder, and the shipped ones that the folder does not override.
    pub(crate) fn template_files(&self) -> Result<TemplateFiles> {
        // Only the default folder may be absent.
        if !self.templates.is_dir() && self.templates != Path::new(DEFAULT_TEMPLATES) {
            return Err(anyhow!("there is no template folder `{}`", self.templates.display()));
        }
        tambour_server::prompts::load_folder(&self.templates).map_err(|error| anyhow!(error))
    }
}

pub(crate) fn run(command: &ScriptCommand) -> Result<CommandOutcome> {
    let ScriptCommand::Check(args) = command;
    let templates = args.templates.template_files()?;
    let language = args.templates.language.into();
    let mut outcome = CommandOutcome::Success;
    let mut stdout = io::stdout().lock();
    for path in &args.files {
        let name = input::display_name(Some(path));
        let (script, problems) = match read_script(path, &templates, language) {
            Ok(read_result) => read_result,
            Err(error) => {
                output::print_error(&format!("{error:#}"));
                outcome = CommandOutcome::UsageError;
                continue;
            }
        };
        for problem in &problems {
            writeln!(stdout, "{}", problem_line(&name, problem))?;
        }
        if let Some(script) = &script {
            let actions = script.actions().count();
            writeln!(
                stdout,
                "{name}: {}, {}, {}",
                format_count(script.sessions.len(), "session"),
                format_count(actions, "action"),
                format_count(problems.len(), "warning")
            )?;
        } else if outcome == CommandOutcome::Success {
            outcome = CommandOutcome::Failed;
        }
    }
    stdout.flush()?;
    Ok(outcome)
}

/// Reads a script and lists all problems in it and in its templates. The script is `None` if it cannot run.
pub(crate) fn read_script(
    path: &Path,
    templates: &TemplateFiles,
    language: Language,
) -> Result<(Option<Script>, Vec<ScriptProblem>)> {
    let name = input::display_name(Some(path));
    let text =
        String::from_utf8(input::read_raw(Some(path))?).map_err(|_| anyhow!("{name} is not UTF-8 text"))?;
    let result = load_with_language(&text, &Limits::default(), language);
    let mut script = result.script.clone();
    let problems = check_all(result, templates, language);
    if problems.iter().any(ScriptProblem::is_error) {
        script = None;
    }
    Ok((script, problems))
}

/// Formats a problem in one line, with the path of the field.
pub(crate) fn problem_line(name: &str, problem: &ScriptProblem) -> String {
    let mut finding = problem.finding();
    if !problem.path.is_empty() {
        finding.message = format!("{} [{}]", finding.message, problem.path);
    }
    output::finding_line(name, &finding)
}
