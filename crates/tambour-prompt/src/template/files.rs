//! Templates by id (S-020 to S-022): those of a folder, whose files the caller reads, and those shipped with
//! the library.

use std::collections::BTreeMap;

use super::LayeredTemplate;
use tambour::error::{Error, Result};
use tambour::texts::Language;

/// Error code for an unknown template id (S-022).
pub const TEMPLATE_NOT_FOUND: &str = "template_not_found";

/// Returns the id of a template file: its path below the folder, without suffix and with `-` for `/` (S-020).
///
/// ```
/// # use tambour_prompt::template::template_id;
/// assert_eq!(template_id("ai-say/mainline-a-introduce-concept.md"), "ai-say-mainline-a-introduce-concept");
/// ```
#[must_use]
pub fn template_id(path: &str) -> String {
    let path = path.replace('\\', "/");
    let path = path.trim_start_matches("./").trim_matches('/');
    path.strip_suffix(".md").unwrap_or(path).replace('/', "-")
}

/// Template files of a folder, with the shipped templates as fallback.
#[derive(Clone, Debug, Default)]
pub struct TemplateFiles {
    /// Paths and texts of the files by template id.
    by_id: BTreeMap<String, (String, String)>,
}

impl TemplateFiles {
    /// Indexes template files, given as pairs of a path below the folder and a text.
    ///
    /// # Errors
    /// Two files have the same id; the message names both.
    pub fn new(files: impl IntoIterator<Item = (String, String)>) -> Result<TemplateFiles> {
        let mut template_files = TemplateFiles::default();
        for (path, text) in files {
            template_files.add(path, text)?;
        }
        Ok(template_files)
    }

    /// Adds a file, or replaces the file with the same path; returns its id.
    ///
    /// # Errors
    /// Another file has the same id.
    pub fn add(&mut self, path: String, text: String) -> Result<String> {
        let id = template_id(&path);
        if let Some((other, _)) = self.by_id.get(&id).filter(|(other, _)| *other != path) {
            return Err(Error::invalid(format!(
                "the templates `{other}` and `{path}` have the same id `{id}`; rename one of them"
            )));
        }
        self.by_id.insert(id.clone(), (path, text));
        Ok(id)
    }

    /// Returns the parsed template with this id.
    ///
    /// # Errors
    /// No template has this id; the error code is [`TEMPLATE_NOT_FOUND`].
    pub fn get(&self, id: &str) -> Result<LayeredTemplate> {
        self.text(id).map(LayeredTemplate::parse)
    }

    /// Returns the source of the template with this id: that of the file, else that of the shipped template.
    ///
    /// # Errors
    /// No template has this id; the error code is [`TEMPLATE_NOT_FOUND`].
    pub fn text(&self, id: &str) -> Result<&str> {
        let file = self.by_id.get(id).map(|(_, text)| text.as_str());
        let text = file.or_else(|| find_shipped(id).map(|shipped| shipped.text));
        text.ok_or_else(|| Error::unknown("template", id, self.ids()).with_code(TEMPLATE_NOT_FOUND))
    }

    /// Returns all ids, sorted and without duplicates.
    #[must_use]
    pub fn ids(&self) -> Vec<&str> {
        let shipped_ids = SHIPPED_TEMPLATES.iter().map(|shipped| shipped.id);
        let mut ids: Vec<&str> = self.by_id.keys().map(String::as_str).chain(shipped_ids).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}

/// A shipped template. A stored template or a file with the same id replaces it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ShippedTemplate {
    /// Id, such as `ai-say-mainline-a-introduce-concept`.
    pub id: &'static str,
    /// Path below the template folder.
    pub path: &'static str,
    /// Language of the text. An English translation has the id of the original followed by `-en`.
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

/// Creates a shipped template from its file below `prompts`.
macro_rules! shipped {
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
    shipped!("ai-say-mainline-a-introduce-concept", "ai-say/mainline-a-introduce-concept.md", Zh),
    shipped!("ai-say-mainline-a-introduce-concept-en", "ai-say/mainline-a-introduce-concept-en.md", En),
    shipped!("ai-ask-default", "ai-ask/default.md", Zh),
    shipped!("ai-ask-default-en", "ai-ask/default-en.md", En),
    shipped!("ai-think-default", "ai-think/default.md", Zh),
    shipped!("ai-think-default-en", "ai-think/default-en.md", En),
];

/// Returns the shipped template with this id.
#[must_use]
pub fn find_shipped(id: &str) -> Option<&'static ShippedTemplate> {
    SHIPPED_TEMPLATES.iter().find(|shipped| shipped.id == id)
}

/// Returns the id of the template for texts in `language`: that of the English translation if one is shipped,
/// else `id`.
#[must_use]
pub fn localized_id(id: &str, language: Language) -> String {
    let english_id = format!("{id}-en");
    match language {
        Language::En if find_shipped(&english_id).is_some() => english_id,
        _ => id.to_owned(),
    }
}
