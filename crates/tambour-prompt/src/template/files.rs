//! Templates of a folder, by id (S-020 to S-022). Reading the folder is the caller's.

use std::collections::BTreeMap;

use super::{BUILTIN, Template, builtin};
use tambour::error::{Error, Result};

/// The code of the error for an id that no template has (S-022).
pub const NOT_FOUND: &str = "template_not_found";

/// The id of the template in a file: its path below the folder, without suffix, with `-` for `/` (S-020).
///
/// ```
/// # use tambour_prompt::template::id_of;
/// assert_eq!(id_of("ai-say/mainline-a-introduce-concept.md"), "ai-say-mainline-a-introduce-concept");
/// ```
#[must_use]
pub fn id_of(path: &str) -> String {
    let path = path.replace('\\', "/");
    let path = path.trim_start_matches("./").trim_matches('/');
    path.strip_suffix(".md").unwrap_or(path).replace('/', "-")
}

/// Files of a folder, and the shipped templates behind them.
#[derive(Clone, Debug, Default)]
pub struct Files {
    by_id: BTreeMap<String, (String, String)>,
}

impl Files {
    /// Reads the files of a folder: pairs of a path below it and a text.
    ///
    /// # Errors
    /// Two files have the same id; the message names both.
    pub fn new(files: impl IntoIterator<Item = (String, String)>) -> Result<Files> {
        let mut all = Files::default();
        for (path, text) in files {
            all.add(path, text)?;
        }
        Ok(all)
    }

    /// Adds a file, or reads it anew if it is there under the same path; returns its id.
    ///
    /// # Errors
    /// Another file has its id.
    pub fn add(&mut self, path: String, text: String) -> Result<String> {
        let id = id_of(&path);
        if let Some((other, _)) = self.by_id.get(&id).filter(|(other, _)| *other != path) {
            return Err(Error::invalid(format!(
                "the templates `{other}` and `{path}` have the same id `{id}`; rename one of them"
            )));
        }
        self.by_id.insert(id.clone(), (path, text));
        Ok(id)
    }

    /// The template of this id, read from its text.
    ///
    /// # Errors
    /// There is none; the error's code is [`NOT_FOUND`].
    pub fn get(&self, id: &str) -> Result<Template> {
        self.text(id).map(Template::parse)
    }

    /// The text of the template of this id: a file's, else the shipped one.
    ///
    /// # Errors
    /// There is none; the error's code is [`NOT_FOUND`].
    pub fn text(&self, id: &str) -> Result<&str> {
        let file = self.by_id.get(id).map(|(_, text)| text.as_str());
        let text = file.or_else(|| builtin(id).map(|shipped| shipped.text));
        text.ok_or_else(|| Error::unknown("template", id, self.ids()).coded(NOT_FOUND))
    }

    /// All ids, sorted, none twice.
    #[must_use]
    pub fn ids(&self) -> Vec<&str> {
        let shipped = BUILTIN.iter().map(|builtin| builtin.id);
        let mut ids: Vec<&str> = self.by_id.keys().map(String::as_str).chain(shipped).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}
