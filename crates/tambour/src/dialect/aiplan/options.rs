//! Options of the `aiplan` dialect.

use crate::options::{Options, Setting, SettingValues};
use crate::tool::{RegisteredTool, ToolRegistry};

/// Options for reading plans.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PlanOptions {
    pub(super) variant: PlanVariant,
    /// Set to leave out invalid calls instead of refusing the plan.
    pub(super) drop_invalid_calls: bool,
}

/// Variant of the plan modes and their rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum PlanVariant {
    /// The modes of the specification.
    #[default]
    V1,
    /// `KNOWLEDGE_QA` may call read-only tools, `GENERAL_CHAT` is removed, `PLAN_EXECUTION` is added.
    V2,
}

/// Options of the dialect by public name.
pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        name: "aiplan.variant",
        description: "which modes a plan may have (R-30)",
        default: "v1",
        accepts: SettingValues::Choice(&["v1", "v2"], |options, index| {
            let variant = [PlanVariant::V1, PlanVariant::V2][index];
            options.update_section(|section: &mut PlanOptions| section.variant = variant);
        }),
    },
    Setting {
        name: "aiplan.drop_invalid_calls",
        description: "leave invalid calls out instead of refusing the plan (R-34)",
        default: "false",
        accepts: SettingValues::Flag(|options, is_on| {
            options.update_section(|section: &mut PlanOptions| section.drop_invalid_calls = is_on)
        }),
    },
];

/// Returns the configured variant.
pub(super) fn plan_variant(options: &Options) -> PlanVariant {
    options.section::<PlanOptions>().variant
}

/// Returns the tools that a plan may call, by default those of the specification (P-020).
pub(super) fn plan_tools(options: &Options) -> ToolRegistry {
    options.tools.clone().unwrap_or_else(ToolRegistry::sample)
}

/// Returns the tools that the caller may call (P-033).
pub(super) fn callable_tools<'a>(
    tools: &'a ToolRegistry,
    options: &'a Options,
) -> impl Iterator<Item = &'a RegisteredTool> {
    tools.iter().filter(|tool| tool.allows_caller(options.caller.as_deref()))
}
