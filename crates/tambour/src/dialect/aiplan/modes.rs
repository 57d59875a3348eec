//! Table of plan modes (P-006 to P-012, R-30).

use super::options::PlanVariant;

/// A mode and its rules.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PlanMode {
    pub(super) name: &'static str,
    /// Requirement on `direct_response`.
    pub(super) answer: AnswerRequirement,
    /// Requirement on `tool_calls`.
    pub(super) calls: CallRequirement,
    /// An additional field that must be an object.
    pub(super) extra_field: Option<&'static str>,
    /// Specification rows of the requirements on `direct_response` and on `tool_calls`.
    pub(super) spec_rows: (&'static str, &'static str),
    /// Use of the mode, in Chinese and in English (P-036).
    pub(super) usage: [&'static str; 2],
}

/// Requirement on `direct_response`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnswerRequirement {
    /// `null`.
    Null,
    /// A non-empty text.
    Required,
    /// A non-empty text, or `null` if there are calls or an additional field.
    Optional,
}

/// Requirement on the calls of a mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallRequirement {
    /// At least one.
    Required,
    /// None.
    Forbidden,
    /// Any number, of read-only tools.
    ReadOnly,
}

const TOOL_EXECUTION: PlanMode = PlanMode {
    name: "TOOL_EXECUTION",
    answer: AnswerRequirement::Null,
    calls: CallRequirement::Required,
    extra_field: None,
    spec_rows: ("P-007", "P-008"),
    usage: [
        "用户请求需要实际操作（创建、修改、删除、分析文件等）",
        "the request needs real work: create, change, delete, analyse files and the like",
    ],
};

const KNOWLEDGE_QA: PlanMode = PlanMode {
    name: "KNOWLEDGE_QA",
    answer: AnswerRequirement::Required,
    calls: CallRequirement::Forbidden,
    extra_field: None,
    spec_rows: ("P-009", "P-010"),
    usage: [
        "用户询问知识、方法、最佳实践等，但不需要执行具体操作",
        "the user asks about knowledge, methods, good practice; nothing has to be carried out",
    ],
};

const GENERAL_CHAT: PlanMode = PlanMode {
    name: "GENERAL_CHAT",
    answer: AnswerRequirement::Required,
    calls: CallRequirement::Forbidden,
    extra_field: None,
    spec_rows: ("P-011", "P-012"),
    usage: [
        "问候、感谢、闲聊等非SRS相关的一般交流",
        "greetings, thanks, small talk and other talk that is not about the subject",
    ],
};

const PLAN_EXECUTION: PlanMode = PlanMode {
    name: "PLAN_EXECUTION",
    answer: AnswerRequirement::Optional,
    calls: CallRequirement::Forbidden,
    extra_field: Some("execution_plan"),
    spec_rows: ("P-009", "P-010"),
    usage: ["用户请求需要分多步完成", "the request takes several steps, which `execution_plan` lists"],
};

/// Returns the modes of a variant.
pub(super) fn plan_modes(variant: PlanVariant) -> &'static [PlanMode] {
    const QA_WITH_TOOLS: PlanMode =
        PlanMode { answer: AnswerRequirement::Optional, calls: CallRequirement::ReadOnly, ..KNOWLEDGE_QA };
    match variant {
        PlanVariant::V1 => &[TOOL_EXECUTION, KNOWLEDGE_QA, GENERAL_CHAT],
        PlanVariant::V2 => &[TOOL_EXECUTION, QA_WITH_TOOLS, PLAN_EXECUTION],
    }
}

/// Returns the mode that `word` names, ignoring case and surrounding space.
pub(super) fn find_mode(variant: PlanVariant, word: &str) -> Option<&'static PlanMode> {
    plan_modes(variant).iter().find(|mode| mode.name.eq_ignore_ascii_case(word.trim()))
}

/// Returns the name of the mode for a plan that answers with a text and calls nothing.
pub(super) fn answer_mode(variant: PlanVariant) -> &'static str {
    match variant {
        PlanVariant::V1 => "GENERAL_CHAT",
        PlanVariant::V2 => "KNOWLEDGE_QA",
    }
}
