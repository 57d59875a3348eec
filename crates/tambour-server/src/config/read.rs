//! Loads the configuration from its file and the environment. Errors name the file and line, or the variable.
//!
//! An unknown field of the file is an error; an unknown variable is only a warning. Other programs set
//! variables that begin with `TAMBOUR_` too: Kubernetes does for a service named `tambour`.

use std::path::Path;

use tambour::texts::explain_parse_error;

use super::{ClusterConfig, Config, ConfigError, RetentionConfig, TelemetryConfig};
use crate::base::origins::{ValueOrigins, field_at, format_place};
use crate::tools::SECRET_ENV_PREFIX;
use crate::upstream::UPSTREAM_KEY;

impl Config {
    /// Loads the configuration from `file` (or `tambour.toml`, if it exists) and the environment.
    ///
    /// # Errors
    /// The file cannot be read or has an unknown field, or the file or a variable has an invalid value. An
    /// unknown variable is not an error: it is listed in `unknown_variables`.
    pub fn load(
        file: Option<&Path>,
        environment: impl Iterator<Item = (String, String)>,
    ) -> Result<Config, ConfigError> {
        let default_file = Path::new("tambour.toml");
        let (mut table, mut origins) = match file.or_else(|| default_file.exists().then_some(default_file)) {
            Some(path) => read_file(path)?,
            None => Default::default(),
        };
        let mut config = parse_table(&table).map_err(ConfigError)?;
        let (mut upstream, mut model) = (None, None);
        let mut unknown_variables = Vec::new();
        for (name, value) in environment {
            match name.strip_prefix("TAMBOUR_") {
                None => {}
                Some("UPSTREAM") => upstream = Some(value),
                Some("MODEL") => model = Some(value),
                // Path of the configuration file, which the caller passes as `file`.
                Some("CONFIG") => {}
                // API key of the upstream; read where it is used.
                Some(_) if name == UPSTREAM_KEY => {}
                // Secrets that registered tools refer to.
                Some(_) if name.starts_with(SECRET_ENV_PREFIX) => {}
                Some(field) if is_kubernetes_variable(field, &value) => {}
                Some(field) => {
                    let field = field.to_ascii_lowercase();
                    let Some(dotted_name) = set_field(&mut table, &name, &field, &value)? else {
                        unknown_variables.push(name);
                        continue;
                    };
                    // Parsed after each variable, so that only this one can cause an error.
                    config = parse_table(&table).map_err(|error| ConfigError(format!("{name}: {error}")))?;
                    origins.note_source(&dotted_name, &name);
                }
            }
        }
        config.origins = origins;
        config.unknown_variables = unknown_variables;
        config.api_key = config.api_key.filter(|key| !key.trim().is_empty());
        if let Some(upstream) = upstream {
            config.add_upstream_from("TAMBOUR_UPSTREAM", &upstream, model)?;
        }
        config.check_database()?;
        Ok(config)
    }
}

/// Reads and checks a configuration file. Returns its table, and the places of its values.
fn read_file(path: &Path) -> Result<(toml::Table, ValueOrigins), ConfigError> {
    let text =
        std::fs::read_to_string(path).map_err(|error| ConfigError(format!("{}: {error}", path.display())))?;
    let file_error = |error: &toml::de::Error, prefix: &str| {
        let place = error
            .span()
            .map_or_else(|| path.display().to_string(), |span| format_place(path, &text, span.start));
        ConfigError(format!("{place}: {prefix}{}", explain_parse_error(error.message().trim())))
    };
    let table: toml::Table = text.parse().map_err(|error| file_error(&error, "not TOML: "))?;
    // Parsed for its errors only, and from the text, since a table has no positions.
    toml::from_str::<Config>(&text).map_err(|error| {
        let field = error.span().and_then(|span| field_at(&text, span.start));
        file_error(&error, &field.map_or_else(String::new, |field| format!("`{field}`: ")))
    })?;
    Ok((table, ValueOrigins::from_file(path, &text)))
}

/// Converts a table to a configuration, with defaults for absent fields.
fn parse_table(table: &toml::Table) -> Result<Config, String> {
    table.clone().try_into().map_err(|error: toml::de::Error| explain_parse_error(error.message().trim()))
}

/// Returns true for a variable that Kubernetes sets for a service called `tambour` or `tambour-…`, such as
/// `TAMBOUR_SERVICE_HOST` and `TAMBOUR_PORT=tcp://10.0.0.1:80`; `field` is the name without `TAMBOUR_`.
fn is_kubernetes_variable(field: &str, value: &str) -> bool {
    let is_address = ["tcp://", "udp://", "sctp://"].iter().any(|scheme| value.starts_with(scheme));
    // Returns the text after `word`; `None` unless `word` begins the field or follows an underscore.
    let after_word = |word: &str| {
        let start = field.find(word).filter(|start| *start == 0 || field.as_bytes()[start - 1] == b'_')?;
        Some(&field[start + word.len()..])
    };
    // True for `_80_TCP`, alone or followed by `_PROTO`, `_PORT` or `_ADDR`.
    let is_port_detail = |suffix: &str| {
        let parts: Vec<_> = suffix.split('_').collect();
        matches!(parts[..], ["", port, "TCP" | "UDP" | "SCTP"] | ["", port, "TCP" | "UDP" | "SCTP", "PROTO" | "PORT" | "ADDR"]
            if port.parse::<u16>().is_ok())
    };
    after_word("SERVICE_HOST").is_some_and(str::is_empty)
        || after_word("SERVICE_PORT").is_some_and(|suffix| suffix.is_empty() || suffix.starts_with('_'))
        || after_word("PORT")
            .is_some_and(|suffix| (suffix.is_empty() && is_address) || is_port_detail(suffix))
}

/// Sets the field of `table` that `variable` names. `field` is the variable's name in lower case, without
/// `TAMBOUR_`. `limits_hold` sets `limits.hold`, since `limits` is a table of the configuration. The value
/// gets the type of the default, so that an API key made of digits stays text. Returns the dotted name of the
/// field, or `None` if there is no such field.
fn set_field(
    table: &mut toml::Table,
    variable: &str,
    field: &str,
    value: &str,
) -> Result<Option<String>, ConfigError> {
    let defaults = toml::Table::try_from(complete_defaults())
        .map_err(|error| ConfigError(format!("the defaults cannot be written: {error}")))?;
    // Tables whose fields variables can set.
    let group_of_field = ["limits", "timeouts", "tools", "retention", "telemetry", "cluster"]
        .into_iter()
        .find_map(|group| Some((group, field.strip_prefix(group)?.strip_prefix('_')?)));
    let dotted_name =
        group_of_field.map_or_else(|| field.to_owned(), |(group, field)| format!("{group}.{field}"));
    let default = match group_of_field {
        Some((group, field)) => defaults[group].get(field),
        None => defaults.get(field),
    };
    let Some(default) = default else { return Ok(None) };
    let (table, field) = match group_of_field {
        Some((group, field)) => {
            let group_table = table.entry(group).or_insert_with(|| toml::Value::Table(toml::Table::new()));
            let toml::Value::Table(group_table) = group_table else {
                return Err(ConfigError(format!("`{group}` is not a table in the configuration file")));
            };
            (group_table, field)
        }
        None => (table, field),
    };
    let value_error = |expected| ConfigError(format!("{variable}: it takes {expected}, not `{value}`"));
    let value = match default {
        toml::Value::Integer(_) => {
            toml::Value::Integer(value.trim().parse().map_err(|_| value_error("a whole number"))?)
        }
        toml::Value::Float(_) => {
            toml::Value::Float(value.trim().parse().map_err(|_| value_error("a number"))?)
        }
        toml::Value::Boolean(_) => {
            toml::Value::Boolean(value.trim().parse().map_err(|_| value_error("true or false"))?)
        }
        toml::Value::Array(_) => {
            let items = value.split(',').map(str::trim).filter(|item| !item.is_empty());
            toml::Value::Array(items.map(|item| toml::Value::String(item.to_owned())).collect())
        }
        toml::Value::Table(_) => return Err(value_error("no value of its own (it is a table)")),
        _ => toml::Value::String(value.to_owned()),
    };
    table.insert(field.to_owned(), value);
    Ok(Some(dotted_name))
}

/// Returns the defaults, with a value even for fields that are absent by default, so that each field that a
/// variable can set has a type.
fn complete_defaults() -> Config {
    let empty_text = || Some(String::new());
    let mut telemetry = TelemetryConfig::default();
    telemetry.otlp_endpoint = empty_text();
    Config {
        database: empty_text(),
        default_upstream: empty_text(),
        api_key: empty_text(),
        retention: RetentionConfig { days: Some(0), bytes: Some(0) },
        telemetry,
        cluster: ClusterConfig {
            address: empty_text(),
            secret_env: empty_text(),
            password_env: empty_text(),
            password_file: empty_text(),
            ..ClusterConfig::default()
        },
        ..Config::default()
    }
}
