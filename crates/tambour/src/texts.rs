//! Texts that users see and the specifications leave to the product.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// A text in the language that is wanted, filled in like `format!`.
macro_rules! bilingual {
    ($language:expr, $zh:literal, $en:literal) => {
        match $language {
            $crate::texts::Language::Zh => $zh.to_owned(),
            $crate::texts::Language::En => $en.to_owned(),
        }
    };
    ($language:expr, $zh:literal, $en:literal $(, $value:expr)* $(,)?) => {
        match $language {
            $crate::texts::Language::Zh => format!($zh $(, $value)*),
            $crate::texts::Language::En => format!($en $(, $value)*),
        }
    };
}
pub(crate) use bilingual;

/// Language of the default texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Language {
    /// Chinese, the specification's own.
    #[default]
    Zh,
    /// English.
    En,
}

/// Texts that the specifications leave to the product.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Texts {
    /// The language they are in.
    pub language: Language,
    /// Title of a phase that has none.
    pub phase_title: Cow<'static, str>,
    /// Answer of a reply that has none.
    pub fallback: Cow<'static, str>,
    /// Answer of a plan that only calls tools.
    pub running: Cow<'static, str>,
    /// Thought of the fallback plan (P-017).
    pub plan_thought: Cow<'static, str>,
    /// What stands in a prompt for a conversation that has not begun.
    pub no_history: Cow<'static, str>,
}

impl Texts {
    /// The defaults of one language.
    #[must_use]
    pub fn of(language: Language) -> Texts {
        match language {
            Language::Zh => Texts {
                language,
                phase_title: "思考过程".into(),
                fallback: "抱歉，我的响应格式有问题，请重新尝试您的请求。".into(),
                running: "正在执行所需的操作。".into(),
                plan_thought: "解析响应格式时出现错误，使用安全降级模式".into(),
                no_history: "（暂无对话历史）".into(),
            },
            Language::En => Texts {
                language,
                phase_title: "Thinking".into(),
                fallback: "Sorry, my reply had a format problem. Please try your request again.".into(),
                running: "Running the requested tools.".into(),
                plan_thought: "The reply format could not be parsed; using the safe fallback".into(),
                no_history: "(no conversation yet)".into(),
            },
        }
    }
}

impl Texts {
    /// What the user is told by the notice of that code.
    #[must_use]
    pub fn notice(&self, code: &str) -> &'static str {
        let [zh, en] = match code {
            "state_update_partial_failure" => ["部分状态更新失败", "Part of the state update failed"],
            "tool_call_refused" => ["工具调用未执行", "A tool call was not run"],
            "tool_call_cut" => {
                ["回复被截断，工具调用未执行", "The reply was cut, so a tool call was not run"]
            }
            "ui_component_invalid" => ["界面组件无法显示", "A component cannot be shown"],
            "media_refused" => ["媒体无法显示", "A medium cannot be shown"],
            _ => ["部分内容无法处理", "A part of the reply could not be read"],
        };
        if self.language == Language::Zh { zh } else { en }
    }
}

impl Default for Texts {
    fn default() -> Texts {
        Texts::of(Language::Zh)
    }
}
