//! `tambour prompt`: renders prompts, and lists their variables.

mod render;
mod vars;

use std::time::{Duration, Instant};

use anyhow::Result;
use tambour_prompt::jinja::{Budget, Engine};

use crate::CommandOutcome;

/// Prompts and their templates
#[derive(clap::Subcommand)]
#[command(after_help = "Example:\n  \
    echo 'blocks: [{tag: a, text: Hi}]' | tambour prompt render -")]
pub(crate) enum PromptCommand {
    Render(render::RenderCommand),
    Vars(vars::VarsCommand),
}

/// Longest time for the templates of one prompt.
const MAX_RENDERING_TIME: Duration = Duration::from_secs(10);

/// Budget of one rendering: the limits of the engine, and a deadline that begins now.
pub(crate) fn rendering_budget(engine: &Engine) -> Budget {
    let began = Instant::now();
    Budget::with_stop(engine.limits(), move || began.elapsed() > MAX_RENDERING_TIME)
}

pub(crate) fn run(command: &PromptCommand) -> Result<CommandOutcome> {
    match command {
        PromptCommand::Render(args) => render::run(args),
        PromptCommand::Vars(args) => vars::run(args),
    }
}
