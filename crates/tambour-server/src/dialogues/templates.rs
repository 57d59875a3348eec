//! Templates of a turn, in order of precedence: the owner's stored ones, files, and the built-in ones.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::metrics::counter::Counter;
use sha2::{Digest, Sha256};
use tambour_prompt::dialogue::Templates;
use tambour_prompt::template::{Files, Template};

use crate::app::App;
use crate::http::problem::Problem;
use crate::prompts;
use crate::store::DocumentKind;

/// Templates of an owner.
pub(crate) struct Prompts {
    stored: HashMap<String, String>,
    pub(crate) files: Files,
    read: Arc<ReadTemplates>,
}

/// Cache of parsed templates by text: a changed template is another entry (S-104).
pub(crate) struct ReadTemplates {
    by_text: Mutex<HashMap<Arc<str>, Template>>,
    hits: Counter,
    misses: Counter,
}

/// Most cached templates. Beyond that the cache is cleared: owners who change theirs constantly are rare.
const KEPT: usize = 1000;

impl ReadTemplates {
    /// Creates the cache with its counters of hits and misses.
    pub(crate) fn new(hits: Counter, misses: Counter) -> ReadTemplates {
        ReadTemplates { by_text: Mutex::default(), hits, misses }
    }

    fn get(&self, text: &str) -> Template {
        let mut by_text = self.by_text.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(template) = by_text.get(text) {
            self.hits.inc();
            return template.clone();
        }
        self.misses.inc();
        if by_text.len() >= KEPT {
            by_text.clear();
        }
        let text: Arc<str> = text.into();
        let template = Template::parse(text.clone());
        by_text.insert(text, template.clone());
        template
    }
}

impl Prompts {
    /// Loads the templates: a changed file applies from the next turn on (S-104).
    pub(crate) async fn of(app: &App, owner: &str) -> Result<Prompts, Problem> {
        let stored = app.store.published((owner, DocumentKind::Template)).await?.into_iter().collect();
        let folder = app.loaded().config.config_dir.join("prompts");
        let files = tokio::task::spawn_blocking(move || prompts::folder(&folder)).await;
        let files = files.map_err(|_| Problem::internal())?.map_err(|error| {
            tracing::error!(%error, "the folder of templates cannot be used");
            Problem::new(axum::http::StatusCode::INTERNAL_SERVER_ERROR, "templates_unusable", error)
        })?;
        Ok(Prompts { stored, files, read: app.templates.clone() })
    }
}

impl Templates for Prompts {
    fn template(&self, id: &str) -> tambour::Result<Template> {
        let text = match self.stored.get(id) {
            Some(text) => text,
            None => self.files.text(id)?,
        };
        Ok(self.read.get(text))
    }
}

/// Returns the SHA-256 of a text in hexadecimal digits.
pub(crate) fn hash(text: &str) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(text.as_bytes()) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}
