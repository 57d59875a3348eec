//! Prompts of blocks (F-001 to F-007, F-014, F-028, F-200).

mod budget;
mod file;
mod history;
mod imported;
mod injection;
mod tavern;
mod text;

use serde_json::Value;
use tambour_prompt::skein::{RenderOptions, RenderedPrompt, Skein};

pub(crate) fn skein(yaml: &str) -> Skein {
    Skein::from_yaml("the prompt", yaml).unwrap_or_else(|error| panic!("{error}: {:?}", error.location()))
}

pub(crate) fn render_yaml(yaml: &str, context: &Value) -> RenderedPrompt {
    skein(yaml).render(context, &RenderOptions::default()).expect("it renders")
}
