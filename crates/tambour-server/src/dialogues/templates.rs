//! The templates of a turn: the owner's stored ones, then files, then the shipped ones.

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

/// The templates of an owner.
pub(crate) struct Prompts {
    stored: HashMap<String, String>,
    pub(crate) files: Files,
    read: Arc<ReadTemplates>,
}

/// Templates that were read once, by their texts: one that changes is another one (S-104).
pub(crate) struct ReadTemplates {
    by_text: Mutex<HashMap<Arc<str>, Template>>,
    hits: Counter,
    misses: Counter,
}

/// Templates that are kept. All are forgotten when there are more: owners who change theirs all the time are rare.
const KEPT: usize = 1000;

impl ReadTemplates {
    /// With the counters of what was there and what was read.
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
    /// Reads them as they are now: a changed file counts from the next turn on (S-104).
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

/// SHA-256 of a text, in hexadecimal digits.
pub(crate) fn hash(text: &str) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(text.as_bytes()) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}
