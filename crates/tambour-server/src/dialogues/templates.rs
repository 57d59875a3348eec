//! The templates of a turn: the owner's stored ones, then files, then the shipped ones.

use std::collections::HashMap;
use std::fmt::Write;

use sha2::{Digest, Sha256};
use tambour::dialogue::Templates;
use tambour::prompt::template::{Files, Template};

use crate::app::App;
use crate::http::problem::Problem;
use crate::prompts;
use crate::store::DocumentKind;

/// The templates of an owner.
pub(crate) struct Prompts {
    stored: HashMap<String, String>,
    pub(crate) files: Files,
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
        Ok(Prompts { stored, files })
    }
}

impl Templates for Prompts {
    fn template(&self, id: &str) -> tambour::Result<Template> {
        match self.stored.get(id) {
            Some(text) => Ok(Template::parse(text.as_str())),
            None => self.files.get(id),
        }
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
