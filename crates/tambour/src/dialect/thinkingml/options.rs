//! Options of ThinkingML.

use crate::options::{Set, Setting};

/// Options for reading ThinkingML.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ThinkingMlOptions {
    /// Set if the queries block may be absent (T-040).
    pub(super) block_optional: bool,
    /// Set if `<final>` alone on its line ends an unclosed phase.
    pub(super) lone_final_closes: bool,
}

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        name: "thinkingml.serp_block",
        about: "whether the queries block must be there (T-040)",
        default: "required",
        set: Set::Word(&["required", "optional"], |options, at| {
            options.change(|own: &mut ThinkingMlOptions| own.block_optional = at == 1);
        }),
    },
    Setting {
        name: "thinkingml.lone_final",
        about: "`<final>` alone on its line in an unclosed phase is text, or ends it (R-06)",
        default: "literal",
        set: Set::Word(&["literal", "close"], |options, at| {
            options.change(|own: &mut ThinkingMlOptions| own.lone_final_closes = at == 1);
        }),
    },
];
