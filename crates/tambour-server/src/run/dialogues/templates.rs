//! Prompt templates of a turn, in order of precedence: those that the owner stored, files, and the built-in
//! ones.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::metrics::counter::Counter;
use sha2::{Digest, Sha256};
use tambour_prompt::dialogue::TemplateSource;
use tambour_prompt::template::{LayeredTemplate, TemplateFiles};

use crate::base::problem::Problem;
use crate::run::engine::RunEngine;
use crate::run::prompts;
use crate::store::DocumentKind;

/// Templates that the dialogues of an owner use.
pub(crate) struct OwnerTemplates {
    /// Published texts that the owner stored, by id.
    stored_templates: HashMap<String, String>,
    /// Files of the template folder, with the built-in templates behind them.
    pub(crate) files: TemplateFiles,
    template_cache: Arc<ParsedTemplateCache>,
}

/// Cache of parsed templates by text, so that a changed template is another entry (S-104).
pub(crate) struct ParsedTemplateCache {
    by_text: Mutex<HashMap<Arc<str>, LayeredTemplate>>,
    hits: Counter,
    misses: Counter,
}

/// Maximum number of cached templates. When it is reached, the whole cache is cleared, which is rare: only
/// constantly changed templates fill it.
const MAX_CACHED: usize = 1000;

impl ParsedTemplateCache {
    /// Creates the cache with its counters of hits and misses.
    pub(crate) fn new(hits: Counter, misses: Counter) -> ParsedTemplateCache {
        ParsedTemplateCache { by_text: Mutex::default(), hits, misses }
    }

    /// Returns the parsed template of a text; parses it if it is not cached.
    fn get(&self, text: &str) -> LayeredTemplate {
        let mut by_text = self.by_text.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(template) = by_text.get(text) {
            self.hits.inc();
            return template.clone();
        }
        self.misses.inc();
        if by_text.len() >= MAX_CACHED {
            by_text.clear();
        }
        let text: Arc<str> = text.into();
        let template = LayeredTemplate::parse(text.clone());
        by_text.insert(text, template.clone());
        template
    }
}

impl OwnerTemplates {
    /// Loads the templates for one turn, so that a changed file applies from the next turn on (S-104).
    ///
    /// # Errors
    /// The store failed, or the template folder cannot be read.
    pub(crate) async fn load(engine: &RunEngine, owner: &str) -> Result<OwnerTemplates, Problem> {
        let stored_templates =
            engine.store.published_texts((owner, DocumentKind::Template)).await?.into_iter().collect();
        let folder = engine.loaded_config().config.config_dir.join("prompts");
        let files = tokio::task::spawn_blocking(move || prompts::load_folder(&folder)).await;
        let files = files.map_err(|_| Problem::internal())?.map_err(|error| {
            tracing::error!(%error, "the template folder cannot be used");
            Problem::new(axum::http::StatusCode::INTERNAL_SERVER_ERROR, "templates_unusable", error)
        })?;
        Ok(OwnerTemplates { stored_templates, files, template_cache: engine.templates.clone() })
    }
}

impl TemplateSource for OwnerTemplates {
    fn template(&self, id: &str) -> tambour::Result<LayeredTemplate> {
        let text = match self.stored_templates.get(id) {
            Some(text) => text,
            None => self.files.text(id)?,
        };
        Ok(self.template_cache.get(text))
    }
}

/// Returns the SHA-256 of a text in hexadecimal digits.
pub(crate) fn hash_text(text: &str) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(text.as_bytes()) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}
