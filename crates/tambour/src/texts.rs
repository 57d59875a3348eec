//! Texts that users see and the specifications leave to the product.

use std::borrow::Cow;

/// Language of the default texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
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
            },
            Language::En => Texts {
                language,
                phase_title: "Thinking".into(),
                fallback: "Sorry, my reply had a format problem. Please try your request again.".into(),
                running: "Running the requested tools.".into(),
                plan_thought: "The reply format could not be parsed; using the safe fallback".into(),
            },
        }
    }
}

impl Default for Texts {
    fn default() -> Texts {
        Texts::of(Language::Zh)
    }
}
