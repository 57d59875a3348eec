//! Reloads the configuration of a running server. Upstreams, limits and timeouts are replaced; streams
//! continue.

use std::sync::Arc;

use crate::base::settings::Settings;
use crate::config::{Config, ConfigError};
use crate::http::app::App;
use crate::run::loaded_config::LoadedConfig;

/// Handle that replaces the configuration of a running server. Running messages keep the configuration that
/// they began with.
#[derive(Clone)]
pub struct ReloadHandle {
    pub(crate) app: Arc<App>,
}

impl ReloadHandle {
    /// Applies a configuration and reloads the stored settings. Returns the names of changed fields that need
    /// a restart; these keep their old values.
    ///
    /// # Errors
    /// The configuration is invalid, or the store fails; nothing has changed then.
    pub async fn apply(&self, mut config: Config) -> Result<Vec<&'static str>, ConfigError> {
        let old_config = self.app.loaded_config();
        let mut restart_fields = Vec::new();
        // Keeps the old value of each field that needs a restart, and notes the names of those that changed.
        macro_rules! keep {
            ($($field:ident),+) => {$(
                if config.$field != old_config.config.$field {
                    restart_fields.push(stringify!($field));
                    config.$field.clone_from(&old_config.config.$field);
                }
            )+};
        }
        keep!(listen, data, database, durable, api_key, max_request, max_import, log, log_json, telemetry);
        let loaded_config = LoadedConfig::new(config, &self.app.metrics, Some(&old_config))?;
        let _change_guard = self.app.settings_change.lock().await;
        let stored_settings =
            self.app.store.settings().await.map_err(|error| ConfigError(error.to_string()))?;
        let settings = Settings::from_stored(stored_settings);
        self.app.replace(loaded_config);
        self.app.replace_settings(settings);
        Ok(restart_fields)
    }

    /// Calls `load_config` and applies its result. An invalid configuration is logged and changes nothing.
    pub(crate) async fn load_and_apply(
        &self,
        load_config: &(dyn Fn() -> Result<Config, ConfigError> + Send + Sync),
    ) {
        let result = match load_config() {
            Ok(config) => self.apply(config).await,
            Err(error) => Err(error),
        };
        match result {
            Ok(restart_fields) if restart_fields.is_empty() => {
                tracing::info!("the configuration was reloaded")
            }
            Ok(restart_fields) => {
                tracing::warn!(
                    needs_restart = restart_fields.join(", "),
                    "the configuration was reloaded in part"
                );
            }
            Err(error) => {
                tracing::error!(%error, "the configuration was not reloaded; the old one stays in effect")
            }
        }
    }
}

/// Stream of hang-up signals (SIGHUP) to this process.
pub(crate) struct HangUpSignals {
    #[cfg(unix)]
    signals: Option<tokio::signal::unix::Signal>,
}

impl HangUpSignals {
    /// Subscribes to the signal if `is_enabled`; otherwise `next` never returns.
    pub(crate) fn new(is_enabled: bool) -> HangUpSignals {
        #[cfg(unix)]
        return HangUpSignals {
            signals: is_enabled
                .then(|| tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()).ok())
                .flatten(),
        };
        #[cfg(not(unix))]
        {
            let _ = is_enabled;
            HangUpSignals {}
        }
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) {
        #[cfg(unix)]
        if let Some(signals) = &mut self.signals
            && signals.recv().await.is_some()
        {
            return;
        }
        std::future::pending::<()>().await;
    }
}
