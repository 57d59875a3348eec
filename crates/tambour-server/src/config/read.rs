//! Loading of file and environment. Errors name the file and line, or the variable.

use std::path::Path;

use tambour::texts::in_words;

use super::origins::{field_at, place};
use super::{Config, ConfigError, Origins, Retention, UPSTREAM_KEY};
use crate::tools::SECRET_ENV;

impl Config {
    /// Loads the configuration from `file` (or `tambour.toml`, if it exists) and the environment.
    ///
    /// # Errors
    /// The file cannot be read or has an unknown field; a variable has an invalid value.
    pub fn load(
        file: Option<&Path>,
        environment: impl Iterator<Item = (String, String)>,
    ) -> Result<Config, ConfigError> {
        let standard = Path::new("tambour.toml");
        let (mut table, mut origins) = match file.or_else(|| standard.exists().then_some(standard)) {
            Some(path) => read(path)?,
            None => Default::default(),
        };
        let mut config = of_table(&table).map_err(ConfigError)?;
        let (mut upstream, mut model) = (None, None);
        for (name, value) in environment {
            match name.strip_prefix("TAMBOUR_") {
                None => {}
                Some("UPSTREAM") => upstream = Some(value),
                Some("MODEL") => model = Some(value),
                // Names the file itself and is no field.
                Some("CONFIG") => {}
                Some(_) if name == UPSTREAM_KEY => {}
                // Secrets of tools, named by registered tools.
                Some(_) if name.starts_with(SECRET_ENV) => {}
                Some(field) => {
                    let set = set(&mut table, &name, &field.to_ascii_lowercase(), &value)?;
                    // Parsed after each variable, so that an error belongs to this one.
                    config = of_table(&table).map_err(|error| ConfigError(format!("{name}: {error}")))?;
                    origins.given_by(&set, &name);
                }
            }
        }
        config.origins = origins;
        config.api_key = config.api_key.filter(|key| !key.trim().is_empty());
        if let Some(upstream) = upstream {
            let said = |error| ConfigError(format!("TAMBOUR_UPSTREAM: {error}"));
            config.add_upstream(&upstream, model).map_err(said)?;
            config.given_by(&format!("upstreams.{}", kind(&upstream)), "TAMBOUR_UPSTREAM");
        }
        config.database_file()?;
        Ok(config)
    }
}

/// Returns the kind of an upstream given as `KIND=WHERE`, which is also its name.
fn kind(given: &str) -> &str {
    given.split_once('=').map_or(given, |(kind, _)| kind)
}

fn read(path: &Path) -> Result<(toml::Table, Origins), ConfigError> {
    let text =
        std::fs::read_to_string(path).map_err(|error| ConfigError(format!("{}: {error}", path.display())))?;
    let wrong = |error: &toml::de::Error, what: &str| {
        let place =
            error.span().map_or_else(|| path.display().to_string(), |at| place(path, &text, at.start));
        ConfigError(format!("{place}: {what}{}", in_words(error.message().trim())))
    };
    let table: toml::Table = text.parse().map_err(|error| wrong(&error, "not TOML: "))?;
    // Parsed from the text, since only that has positions.
    toml::from_str::<Config>(&text).map_err(|error| {
        let field = error.span().and_then(|at| field_at(&text, at.start));
        wrong(&error, &field.map_or_else(String::new, |field| format!("`{field}`: ")))
    })?;
    Ok((table, Origins::of_file(path, &text)))
}

fn of_table(table: &toml::Table) -> Result<Config, String> {
    table.clone().try_into().map_err(|error: toml::de::Error| in_words(error.message().trim()))
}

/// Sets a field of the table from a variable: `LIMITS_HOLD` is `limits.hold` where `limits` is a table of the
/// configuration. The type is that of the default, so that a key made of digits stays text. Returns the
/// dotted name.
fn set(table: &mut toml::Table, variable: &str, field: &str, value: &str) -> Result<String, ConfigError> {
    // Fields absent by default need a type too.
    let retention = Retention { days: Some(0), bytes: Some(0) };
    let defaults = toml::Table::try_from(Config { retention, ..Config::default() })
        .map_err(|error| ConfigError(format!("the defaults cannot be written: {error}")))?;
    let grouped = ["limits", "timeouts", "tools", "retention", "telemetry"]
        .into_iter()
        .find_map(|group| Some((group, field.strip_prefix(group)?.strip_prefix('_')?)));
    let dotted = grouped.map_or_else(|| field.to_owned(), |(group, field)| format!("{group}.{field}"));
    let (default, table, field) = match grouped {
        Some((group, field)) => {
            let inner = table.entry(group).or_insert_with(|| toml::Value::Table(toml::Table::new()));
            let toml::Value::Table(inner) = inner else {
                return Err(ConfigError(format!("`{group}` is not a table in the configuration file")));
            };
            (defaults[group].get(field), inner, field)
        }
        None => (defaults.get(field), table, field),
    };
    let wrong = |wanted| ConfigError(format!("{variable}: it takes {wanted}, not `{value}`"));
    let value = match default {
        Some(toml::Value::Integer(_)) => {
            toml::Value::Integer(value.trim().parse().map_err(|_| wrong("a whole number"))?)
        }
        Some(toml::Value::Float(_)) => {
            toml::Value::Float(value.trim().parse().map_err(|_| wrong("a number"))?)
        }
        Some(toml::Value::Boolean(_)) => {
            toml::Value::Boolean(value.trim().parse().map_err(|_| wrong("true or false"))?)
        }
        Some(toml::Value::Array(_)) => {
            let items = value.split(',').map(str::trim).filter(|item| !item.is_empty());
            toml::Value::Array(items.map(|item| toml::Value::String(item.to_owned())).collect())
        }
        Some(toml::Value::Table(_)) => return Err(wrong("nothing by itself; it is a table")),
        // An unknown name is refused when the table is parsed.
        Some(_) | None => toml::Value::String(value.to_owned()),
    };
    table.insert(field.to_owned(), value);
    Ok(dotted)
}
