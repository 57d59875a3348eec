//! Options of the `aiplan` dialect.

use crate::options::{Options, Set, Setting};
use crate::tool::{Tool, Tools};

/// Options for reading plans.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PlanOptions {
    pub(super) variant: Variant,
    /// Set to leave out invalid calls instead of refusing the plan.
    pub(super) drop_invalid_calls: bool,
}

/// Variant of the plan modes and their rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Variant {
    /// The modes of the specification.
    #[default]
    V1,
    /// `KNOWLEDGE_QA` may call read-only tools, `GENERAL_CHAT` is removed, `PLAN_EXECUTION` is added.
    V2,
}

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        name: "aiplan.variant",
        about: "which modes a plan may have (R-30)",
        default: "v1",
        set: Set::Word(&["v1", "v2"], |options, at| {
            options.change(|own: &mut PlanOptions| own.variant = [Variant::V1, Variant::V2][at]);
        }),
    },
    Setting {
        name: "aiplan.drop_invalid_calls",
        about: "leave invalid calls out instead of refusing the plan (R-34)",
        default: "false",
        set: Set::Flag(|options, on| options.change(|own: &mut PlanOptions| own.drop_invalid_calls = on)),
    },
];

/// Returns the configured variant.
pub(super) fn variant(options: &Options) -> Variant {
    options.of::<PlanOptions>().variant
}

/// Returns the tools that a plan may call, by default those of the specification (P-020).
pub(super) fn tools(options: &Options) -> Tools {
    options.tools.clone().unwrap_or_else(Tools::sample)
}

/// Returns the tools that the caller may call (P-033).
pub(super) fn callable<'a>(tools: &'a Tools, options: &'a Options) -> impl Iterator<Item = &'a Tool> {
    tools.iter().filter(|tool| tool.allows(options.caller.as_deref()))
}
