//! Options of calls that are written as text.

use super::formats::Format;
use crate::options::{Set, Setting};

/// Options for reading calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CallOptions {
    /// Format of the calls; if `None`, the first call decides.
    pub(super) format: Option<Format>,
}

pub(super) const SETTINGS: &[Setting] = &[Setting {
    name: "toolcall.format",
    about: "the form that calls are written in; `auto`: the first call tells it",
    default: "auto",
    set: Set::Word(
        &[
            "auto",
            "hermes",
            "qwen3_coder",
            "llama",
            "mistral",
            "deepseek",
            "kimi",
            "glm",
            "harmony",
            "minimax",
        ],
        |options, at| {
            let format = at.checked_sub(1).map(|at| Format::ALL[at]);
            options.change(|own: &mut CallOptions| own.format = format);
        },
    ),
}];
