//! Templates that are shipped.

use super::Template;
use tambour::texts::Language;

/// A shipped template. A stored one, or a file, of the same id replaces it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Builtin {
    /// Its id, such as `ai-say-mainline-a-introduce-concept`.
    pub id: &'static str,
    /// Its file below the folder of templates.
    pub path: &'static str,
    /// Its language; a translation has the id of the original with `-en` behind.
    pub language: Language,
    /// The template.
    pub text: &'static str,
}

impl Builtin {
    /// The template, read.
    #[must_use]
    pub fn template(&self) -> Template {
        Template::parse(self.text)
    }
}

macro_rules! builtin {
    ($id:literal, $path:literal, $language:ident) => {
        Builtin {
            id: $id,
            path: $path,
            language: Language::$language,
            text: include_str!(concat!("../../prompts/", $path)),
        }
    };
}

/// All of them.
pub static BUILTIN: &[Builtin] = &[
    builtin!("ai-say-mainline-a-introduce-concept", "ai-say/mainline-a-introduce-concept.md", Zh),
    builtin!("ai-say-mainline-a-introduce-concept-en", "ai-say/mainline-a-introduce-concept-en.md", En),
    builtin!("ai-ask-default", "ai-ask/default.md", Zh),
    builtin!("ai-ask-default-en", "ai-ask/default-en.md", En),
    builtin!("ai-think-default", "ai-think/default.md", Zh),
    builtin!("ai-think-default-en", "ai-think/default-en.md", En),
];

/// The shipped template of this id.
#[must_use]
pub fn builtin(id: &str) -> Option<&'static Builtin> {
    BUILTIN.iter().find(|builtin| builtin.id == id)
}

/// The id under which a template is looked up first when texts are in `language`: that of a translation, if the shipped one
/// has one.
#[must_use]
pub fn in_language(id: &str, language: Language) -> String {
    let translated = format!("{id}-en");
    match language {
        Language::En if builtin(&translated).is_some() => translated,
        _ => id.to_owned(),
    }
}
