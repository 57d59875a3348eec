//! Options of plans.

use crate::options::{Options, Set, Setting};
use crate::tool::{Tool, Tools};

/// How plans are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PlanOptions {
    pub(super) variant: Variant,
    /// Whether invalid calls are left out instead of making a plan invalid.
    pub(super) drop_invalid_calls: bool,
}

/// The modes of a plan and their rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Variant {
    /// Those of the specification.
    #[default]
    V1,
    /// `KNOWLEDGE_QA` may call tools that only read, `GENERAL_CHAT` is gone, `PLAN_EXECUTION` is new.
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

/// The variant that is read.
pub(super) fn variant(options: &Options) -> Variant {
    options.of::<PlanOptions>().variant
}

/// The tools that a plan may call: those of the specification where none are given (P-020).
pub(super) fn tools(options: &Options) -> Tools {
    options.tools.clone().unwrap_or_else(Tools::sample)
}

/// Those of them that the caller may call (P-033).
pub(super) fn callable<'a>(tools: &'a Tools, options: &'a Options) -> impl Iterator<Item = &'a Tool> {
    tools.iter().filter(|tool| tool.allows(options.caller.as_deref()))
}
