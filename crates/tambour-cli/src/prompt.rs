//! `tambour prompt`: prompts for models.

mod render;
mod vars;

use std::time::{Duration, Instant};

use anyhow::Result;
use tambour_prompt::jinja::{Budget, Engine};

use crate::Outcome;

pub(crate) use render::prompt;

/// Prompts and their templates
#[derive(clap::Subcommand)]
#[command(after_help = "Example:\n  \
    echo 'blocks: [{tag: a, text: Hi}]' | tambour prompt render -")]
pub(crate) enum Command {
    Render(render::Args),
    Vars(vars::Args),
}

/// Longest time for the templates of one prompt.
const RENDERING: Duration = Duration::from_secs(10);

/// Budget of a prompt, with a deadline.
pub(crate) fn budget(engine: &Engine) -> Budget {
    let began = Instant::now();
    Budget::until(engine.limits(), move || began.elapsed() > RENDERING)
}

pub(crate) fn run(command: &Command) -> Result<Outcome> {
    match command {
        Command::Render(args) => render::run(args),
        Command::Vars(args) => vars::run(args),
    }
}
