//! Options of calls that are written as text.

use super::formats::CallFormat;
use crate::options::{Setting, SettingValues};

/// Options for reading calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CallOptions {
    /// Format of the calls; if `None`, the first call decides.
    pub(super) format: Option<CallFormat>,
}

pub(super) const SETTINGS: &[Setting] = &[Setting {
    name: "toolcall.format",
    description: "the form that calls are written in; `auto`: the form of the first call",
    default: "auto",
    accepts: SettingValues::Choice(
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
            let format = at.checked_sub(1).map(|at| CallFormat::ALL[at]);
            options.update_section(|own: &mut CallOptions| own.format = format);
        },
    ),
}];
