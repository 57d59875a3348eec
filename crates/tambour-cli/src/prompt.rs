//! `tambour prompt`: what is sent to a model.

mod render;
mod vars;

use anyhow::Result;

use crate::Outcome;

pub(crate) use render::prompt;

/// Prompts and their templates
#[derive(clap::Subcommand)]
#[command(after_help = "Example:\n  \
    echo {} >/tmp/c; echo 'blocks: [{tag: a, text: Hi}]' | tambour prompt render - --context /tmp/c")]
pub(crate) enum Command {
    Render(render::Args),
    Vars(vars::Args),
}

pub(crate) fn run(command: &Command) -> Result<Outcome> {
    match command {
        Command::Render(args) => render::run(args),
        Command::Vars(args) => vars::run(args),
    }
}
