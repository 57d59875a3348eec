//! Templates shipped with the library.

use super::LayeredTemplate;
use tambour::texts::Language;

/// A shipped template. A stored template or a file with the same id replaces it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ShippedTemplate {
    /// Id, such as `ai-say-mainline-a-introduce-concept`.
    pub id: &'static str,
    /// Path below the template folder.
    pub path: &'static str,
    /// Language. A translation has the id of the original followed by `-en`.
    pub language: Language,
    /// Source of the template.
    pub text: &'static str,
}

impl ShippedTemplate {
    /// Parses the template.
    #[must_use]
    pub fn parse(&self) -> LayeredTemplate {
        LayeredTemplate::parse(self.text)
    }
}

macro_rules! builtin {
    ($id:literal, $path:literal, $language:ident) => {
        ShippedTemplate {
            id: $id,
            path: $path,
            language: Language::$language,
            text: include_str!(concat!("../../prompts/", $path)),
        }
    };
}

/// All shipped templates.
pub static SHIPPED_TEMPLATES: &[ShippedTemplate] = &[
    builtin!("ai-say-mainline-a-introduce-concept", "ai-say/mainline-a-introduce-concept.md", Zh),
    builtin!("ai-say-mainline-a-introduce-concept-en", "ai-say/mainline-a-introduce-concept-en.md", En),
    builtin!("ai-ask-default", "ai-ask/default.md", Zh),
    builtin!("ai-ask-default-en", "ai-ask/default-en.md", En),
    builtin!("ai-think-default", "ai-think/default.md", Zh),
    builtin!("ai-think-default-en", "ai-think/default-en.md", En),
];

/// Returns the shipped template with this id.
#[must_use]
pub fn find_shipped(id: &str) -> Option<&'static ShippedTemplate> {
    SHIPPED_TEMPLATES.iter().find(|builtin| builtin.id == id)
}

/// Returns the id to look up first for texts in `language`: that of the translation, if a shipped one exists.
#[must_use]
pub fn localized_id(id: &str, language: Language) -> String {
    let english_id = format!("{id}-en");
    match language {
        Language::En if find_shipped(&english_id).is_some() => english_id,
        _ => id.to_owned(),
    }
}
