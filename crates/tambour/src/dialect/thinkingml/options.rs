//! Options of ThinkingML.

use crate::options::{Setting, SettingValues};

/// Options for reading ThinkingML.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ThinkingMlOptions {
    /// Set if the queries block may be absent (T-040).
    pub(super) is_block_optional: bool,
    /// Set if `<final>` alone on its line ends an unclosed phase.
    pub(super) closes_at_lone_final: bool,
}

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        name: "thinkingml.serp_block",
        description: "whether the queries block is required (T-040)",
        default: "required",
        accepts: SettingValues::Choice(&["required", "optional"], |options, at| {
            options.update_section(|own: &mut ThinkingMlOptions| own.is_block_optional = at == 1);
        }),
    },
    Setting {
        name: "thinkingml.lone_final",
        description: "`<final>` alone on its line in an unclosed phase is text, or ends it (R-06)",
        default: "literal",
        accepts: SettingValues::Choice(&["literal", "close"], |options, at| {
            options.update_section(|own: &mut ThinkingMlOptions| own.closes_at_lone_final = at == 1);
        }),
    },
];
