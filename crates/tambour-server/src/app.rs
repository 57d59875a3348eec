//! What all requests share.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use serde_json::Value;
use tambour::encode::Protocol;
use tambour::options::{Language, Texts};

use crate::config::{Config, ConfigError, UpstreamConfig};
use crate::http::keys::Keys;
use crate::metrics::Metrics;
use crate::store::{Live, Store};
use crate::upstream::{OpenAi, Replay, Upstream};

/// The state of the server.
pub(crate) struct App {
    /// How it was configured.
    pub config: Config,
    /// What survives.
    pub store: Store,
    /// Messages that are running.
    pub live: Running,
    /// Settings that can be changed while it runs.
    pub settings: RwLock<Settings>,
    /// Upstreams by name.
    pub upstreams: RwLock<BTreeMap<String, Arc<Upstream>>>,
    /// API keys.
    pub keys: Keys,
    /// Counters.
    pub metrics: Metrics,
    /// Ends when the server stops taking requests.
    pub closing: tokio_util::sync::CancellationToken,
    /// The runs.
    pub runs: tokio_util::task::TaskTracker,
}

/// The messages that are running, by id.
#[derive(Default)]
pub(crate) struct Running {
    by_id: Mutex<HashMap<String, (String, Arc<Live>)>>,
}

impl Running {
    /// Adds a message of an owner, unless that one has `most` already.
    pub(crate) fn add(&self, owner: &str, live: Arc<Live>, most: usize) -> bool {
        let mut by_id = self.by_id.lock().unwrap_or_else(PoisonError::into_inner);
        if by_id.len() >= most && by_id.values().filter(|(of, _)| of == owner).count() >= most {
            return false;
        }
        by_id.insert(live.id.clone(), (owner.to_owned(), live));
        true
    }

    /// The running message of that id.
    pub(crate) fn get(&self, id: &str) -> Option<Arc<Live>> {
        let by_id = self.by_id.lock().unwrap_or_else(PoisonError::into_inner);
        by_id.get(id).map(|(_, live)| live.clone())
    }

    /// Removes a message that has ended.
    pub(crate) fn remove(&self, id: &str) {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<Arc<Live>> {
        let by_id = self.by_id.lock().unwrap_or_else(PoisonError::into_inner);
        by_id.values().map(|(_, live)| live.clone()).collect()
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// Settings that can be changed while the server runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Settings {
    /// Stored values by dotted name.
    pub values: BTreeMap<String, Value>,
}

/// Names of settings, and whether a value fits.
pub(crate) const SETTINGS: &[(&str, fn(&Value) -> bool)] = &[
    // An unknown protocol is stored and means the legacy one (J-032).
    ("llm_app_settings.app_output_protocol", Value::is_string),
    ("text_language", |value| matches!(value.as_str(), Some("zh" | "en"))),
    ("thought_display", |value| matches!(value.as_str(), Some("collapsed" | "hidden" | "shown"))),
    ("texts.fallback", is_text),
    ("texts.phase_title", is_text),
];

fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.trim().is_empty() && text.len() <= 2000)
}

impl Settings {
    fn text(&self, name: &str) -> Option<&str> {
        self.values.get(name)?.as_str()
    }

    /// The output protocol of requests that name none.
    #[must_use]
    pub(crate) fn protocol(&self) -> Protocol {
        Protocol::of_setting(self.text("llm_app_settings.app_output_protocol"))
    }

    /// The default texts.
    #[must_use]
    pub(crate) fn texts(&self) -> Texts {
        let language = if self.text("text_language") == Some("en") { Language::En } else { Language::Zh };
        let mut texts = Texts::of(language);
        if let Some(text) = self.text("texts.fallback") {
            texts.fallback = text.to_owned().into();
        }
        if let Some(text) = self.text("texts.phase_title") {
            texts.phase_title = text.to_owned().into();
        }
        texts
    }
}

impl App {
    /// The upstream of that name, or the default one.
    #[must_use]
    pub(crate) fn upstream(&self, name: Option<&str>) -> Option<Arc<Upstream>> {
        let upstreams = self.upstreams.read().unwrap_or_else(PoisonError::into_inner);
        upstreams.get(name.or_else(|| self.config.default_upstream())?).cloned()
    }

    /// The settings as they are now.
    #[must_use]
    pub(crate) fn settings(&self) -> Settings {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Makes the upstreams of a configuration.
pub(crate) fn upstreams(config: &Config) -> Result<BTreeMap<String, Arc<Upstream>>, ConfigError> {
    let make = |(name, given): (&String, &UpstreamConfig)| {
        let made =
            upstream(given, config).map_err(|error| ConfigError(format!("upstream `{name}`: {error}")))?;
        Ok((name.clone(), Arc::new(made)))
    };
    config.upstreams.iter().map(make).collect()
}

fn upstream(given: &UpstreamConfig, config: &Config) -> Result<Upstream, String> {
    match given.kind.as_str() {
        "demo" => Replay::demo().map(Upstream::Replay),
        "replay" => Replay::file(given.url.as_ref()).map(Upstream::Replay),
        "openai" => {
            let from_file = |path: &std::path::PathBuf| {
                std::fs::read_to_string(path)
                    .map(|key| key.trim().to_owned())
                    .map_err(|error| format!("{}: {error}", path.display()))
            };
            let key = match (&given.key_env, &given.key_file) {
                (_, Some(path)) => Some(from_file(path)?),
                (Some(name), None) => std::env::var(name).ok().filter(|key| !key.is_empty()),
                (None, None) => None,
            };
            OpenAi::new(&given.url, given.model.clone(), key, config.timeouts)
                .map(Upstream::OpenAi)
                .map_err(|error| error.to_string())
        }
        other => Err(format!("there is no kind `{other}`; known: openai, replay, demo")),
    }
}
