//! Options of plain text.

use crate::options::{Set, Setting};

/// Options for reading plain text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlainOptions {
    /// Set if the reply gets no thinking block.
    pub(crate) skip_thinking: bool,
    pub(crate) reasoning: Reasoning,
}

/// Location of the reasoning in plain text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Reasoning {
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
        about: "one phase with the fallback title, so that the required events exist, or none (R-24)",
        default: "block",
        set: Set::Word(&["block", "skip"], |options, at| {
            options.change(|plain: &mut PlainOptions| plain.skip_thinking = at == 1);
        }),
    },
    Setting {
        name: "plain.reasoning",
        about: "reasoning stands in a leading mark, the reply starts inside it, or marks are text (X-012)",
        default: "auto",
        set: Set::Word(&["auto", "open", "none"], |options, at| {
            let reasoning = [Reasoning::Auto, Reasoning::Open, Reasoning::None][at];
            options.change(|plain: &mut PlainOptions| plain.reasoning = reasoning);
        }),
    },
];
