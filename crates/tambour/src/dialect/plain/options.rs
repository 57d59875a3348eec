//! Options of plain text.

use crate::options::{Setting, SettingValues};

/// Options for reading plain text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlainOptions {
    /// Set if the reply gets no thinking block.
    pub(crate) skip_thinking: bool,
    pub(crate) reasoning: ReasoningMode,
}

/// Location of the reasoning in plain text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ReasoningMode {
    /// In a leading reasoning mark, if there is one.
    #[default]
    Auto,
    /// At the start of the reply, without an opening mark.
    Open,
    /// Nowhere: marks are text.
    None,
}

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        name: "plain.thinking",
        description: "one phase with the fallback title, so that the required events exist, or none (R-24)",
        default: "block",
        accepts: SettingValues::Choice(&["block", "skip"], |options, at| {
            options.update_section(|plain: &mut PlainOptions| plain.skip_thinking = at == 1);
        }),
    },
    Setting {
        name: "plain.reasoning",
        description: "reasoning is in a leading mark, the reply starts inside it, or marks are text (X-012)",
        default: "auto",
        accepts: SettingValues::Choice(&["auto", "open", "none"], |options, at| {
            let reasoning = [ReasoningMode::Auto, ReasoningMode::Open, ReasoningMode::None][at];
            options.update_section(|plain: &mut PlainOptions| plain.reasoning = reasoning);
        }),
    },
];
