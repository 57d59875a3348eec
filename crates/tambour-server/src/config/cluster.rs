//! Section `cluster`: several servers that share a PostgreSQL database.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Config, ConfigError};
use crate::store::PostgresOptions;

/// Minimum length of the secret in bytes.
const MIN_SECRET: usize = 16;

/// Configuration of servers that share a database.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClusterConfig {
    /// Base URL at which the other servers reach this one; absent: the address that this one listens on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Seconds without a sign of life after which the others take over the runs of a server, 2 to 60.
    pub lease_seconds: u32,
    /// Environment variable with the secret that the servers show each other; absent: the database keeps one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_env: Option<String>,
    /// Environment variable with the password of the database, in place of the one in its URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_env: Option<String>,
    /// File with the password of the database; a line break at its end does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_file: Option<String>,
    /// Maximum number of connections to the database, not counting those that append to logs.
    pub connections: u32,
    /// Number of connections that append to logs, 1 to 16.
    pub append_connections: u32,
    /// Milliseconds after which the database cancels a statement.
    pub statement_ms: u32,
}

impl Default for ClusterConfig {
    fn default() -> ClusterConfig {
        ClusterConfig {
            address: None,
            lease_seconds: 10,
            secret_env: None,
            password_env: None,
            password_file: None,
            connections: 16,
            append_connections: 3,
            statement_ms: 10_000,
        }
    }
}

impl Config {
    /// Returns the options of the PostgreSQL database; `None` if the database is SQLite.
    ///
    /// # Errors
    /// A value is out of its range, `address` is missing but `listen` is no address that others can reach, or
    /// the password cannot be read.
    pub fn postgres_options(&self) -> Result<Option<PostgresOptions>, ConfigError> {
        let Some(url) = self.database.as_deref().filter(|url| is_postgres(url)) else { return Ok(None) };
        let cluster = &self.cluster;
        self.check_range("cluster.lease_seconds", cluster.lease_seconds, 2, 60)?;
        self.check_range("cluster.connections", cluster.connections, 2, 1000)?;
        self.check_range("cluster.append_connections", cluster.append_connections, 1, 16)?;
        self.check_range("cluster.statement_ms", cluster.statement_ms, 100, 600_000)?;
        if cluster.address.is_none() && self.listen.ip().is_unspecified() {
            let reason =
                "is needed, since `listen` names no address at which the other servers reach this one";
            return Err(self.field_error("cluster.address", reason));
        }
        let mut options = PostgresOptions::new(url.to_owned());
        options.password = self.database_password()?;
        options.max_connections = cluster.connections;
        options.append_connections = cluster.append_connections;
        options.statement_timeout = Duration::from_millis(u64::from(cluster.statement_ms));
        options.lease = Duration::from_secs(u64::from(cluster.lease_seconds));
        Ok(Some(options))
    }

    /// Returns the secret that the servers show each other, if a variable has it.
    ///
    /// # Errors
    /// The variable is not set, or the secret is too short or contains white space.
    pub(crate) fn cluster_secret(&self) -> Result<Option<String>, ConfigError> {
        let Some(variable) = &self.cluster.secret_env else { return Ok(None) };
        let secret = std::env::var(variable).unwrap_or_default();
        if secret.len() < MIN_SECRET || secret.chars().any(char::is_whitespace) {
            let reason =
                format!("names `{variable}`, which must have at least {MIN_SECRET} bytes without blanks");
            return Err(self.field_error("cluster.secret_env", &reason));
        }
        Ok(Some(secret))
    }

    /// Checks the URL of the database.
    ///
    /// # Errors
    /// The database is neither SQLite nor PostgreSQL.
    pub(super) fn check_database(&self) -> Result<(), ConfigError> {
        if self.database.as_deref().is_some_and(is_postgres) {
            return Ok(());
        }
        self.database_file().map(|_| ())
    }

    fn check_range(&self, field: &str, value: u32, min: u32, max: u32) -> Result<(), ConfigError> {
        if (min..=max).contains(&value) {
            return Ok(());
        }
        Err(self.field_error(field, &format!("takes a number from {min} to {max}")))
    }

    /// Reads the password of the database from its variable or file.
    fn database_password(&self) -> Result<Option<String>, ConfigError> {
        if let Some(variable) = &self.cluster.password_env {
            return std::env::var(variable).map(Some).map_err(|_| {
                self.field_error("cluster.password_env", &format!("names `{variable}`, which is not set"))
            });
        }
        let Some(file) = &self.cluster.password_file else { return Ok(None) };
        let text = std::fs::read_to_string(file).map_err(|error| {
            self.field_error(
                "cluster.password_file",
                &format!("names `{file}`, which cannot be read: {error}"),
            )
        })?;
        Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
    }
}

/// Returns `true` if a URL names a PostgreSQL database.
fn is_postgres(url: &str) -> bool {
    url.starts_with("postgres://") || url.starts_with("postgresql://")
}
