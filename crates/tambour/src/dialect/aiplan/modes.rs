//! Table of plan modes (P-006 to P-012, R-30).

use super::options::Variant;

/// A mode and its rules.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mode {
    pub(super) name: &'static str,
    /// Requirement on `direct_response`.
    pub(super) text: Text,
    /// Requirement on the calls.
    pub(super) calls: Calls,
    /// An additional field that must be an object.
    pub(super) field: Option<&'static str>,
    /// Specification rows that require the text and limit the calls.
    pub(super) rows: (&'static str, &'static str),
    /// Use of the mode, in Chinese and in English (P-036).
    pub(super) used: [&'static str; 2],
}

/// Requirement on `direct_response`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Text {
    /// `null`.
    None,
    /// A non-empty text.
    Some,
    /// A non-empty text, or `null` if there are calls or an additional field.
    Any,
}

/// Requirement on the calls of a mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Calls {
    /// At least one.
    Some,
    /// None.
    None,
    /// Any number, of read-only tools.
    ReadOnly,
}

const TOOL_EXECUTION: Mode = Mode {
    name: "TOOL_EXECUTION",
    text: Text::None,
    calls: Calls::Some,
    field: None,
    rows: ("P-007", "P-008"),
    used: [
        "用户请求需要实际操作（创建、修改、删除、分析文件等）",
        "the request needs real work: create, change, delete, analyse files and the like",
    ],
};

const KNOWLEDGE_QA: Mode = Mode {
    name: "KNOWLEDGE_QA",
    text: Text::Some,
    calls: Calls::None,
    field: None,
    rows: ("P-009", "P-010"),
    used: [
        "用户询问知识、方法、最佳实践等，但不需要执行具体操作",
        "the user asks about knowledge, methods, good practice; nothing has to be carried out",
    ],
};

const GENERAL_CHAT: Mode = Mode {
    name: "GENERAL_CHAT",
    text: Text::Some,
    calls: Calls::None,
    field: None,
    rows: ("P-011", "P-012"),
    used: [
        "问候、感谢、闲聊等非SRS相关的一般交流",
        "greetings, thanks, small talk and other talk that is not about the subject",
    ],
};

const PLAN_EXECUTION: Mode = Mode {
    name: "PLAN_EXECUTION",
    text: Text::Any,
    calls: Calls::None,
    field: Some("execution_plan"),
    rows: ("P-009", "P-010"),
    used: ["用户请求需要分多步完成", "the request takes several steps, which `execution_plan` lists"],
};

/// Returns the modes of a variant.
pub(super) fn modes(variant: Variant) -> &'static [Mode] {
    const QA_WITH_TOOLS: Mode = Mode { text: Text::Any, calls: Calls::ReadOnly, ..KNOWLEDGE_QA };
    match variant {
        Variant::V1 => &[TOOL_EXECUTION, KNOWLEDGE_QA, GENERAL_CHAT],
        Variant::V2 => &[TOOL_EXECUTION, QA_WITH_TOOLS, PLAN_EXECUTION],
    }
}

/// Returns the mode that `word` names, ignoring case and surrounding space.
pub(super) fn mode(variant: Variant, word: &str) -> Option<&'static Mode> {
    modes(variant).iter().find(|mode| mode.name.eq_ignore_ascii_case(word.trim()))
}
