//! The server's own log: structured lines on stderr, without prompts, replies or keys unless `log_content`
//! is on.

use tracing_subscriber::EnvFilter;

use crate::config::{Config, ConfigError};

/// Starts logging for this process. The field `log` of the configuration is the filter, such as `info` or
/// `tambour_server=debug`; `log_json` selects the format.
///
/// # Errors
/// The filter cannot be read.
pub fn start(config: &Config) -> Result<(), ConfigError> {
    let filter = EnvFilter::try_new(complete_filter(&config.log))
        .map_err(|error| config.field_error("log", &format!("is not a valid filter: {error}")))?;
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A log line that cannot be written is dropped: reporting it would write to the same place and panic.
    let subscriber = subscriber.log_internal_errors(false);
    // An error means that the process already has a subscriber: a second server in it uses the first one's.
    let _ = if config.log_json {
        subscriber.json().flatten_event(true).try_init()
    } else {
        subscriber.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).try_init()
    };
    Ok(())
}

/// Completes the log filter. A level set for the server (`tambour_server`) also applies to its store and its
/// upstreams (`tambour_store`, `tambour_upstream`). The MCP client library (`rmcp`) logs messages and URLs of
/// MCP servers in full. It is silenced unless the filter names it; Tambour itself logs what matters.
fn complete_filter(directives: &str) -> String {
    let server_levels =
        directives.split(',').filter_map(|directive| directive.trim().strip_prefix("tambour_server="));
    let full_filter = server_levels.fold(directives.to_owned(), |filter, level| {
        format!("{filter},tambour_store={level},tambour_upstream={level}")
    });
    if directives.contains("rmcp") { full_filter } else { format!("{full_filter},rmcp=off") }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::EnvFilter;

    use super::complete_filter;

    #[test]
    fn the_store_follows_the_server_and_the_mcp_client_is_silent_unless_named() {
        for (directives, expected) in [
            ("info", "info,rmcp=off"),
            (
                "tambour_server=debug,warn",
                "tambour_server=debug,warn,tambour_store=debug,tambour_upstream=debug,rmcp=off",
            ),
            ("info,rmcp=debug", "info,rmcp=debug"),
        ] {
            assert_eq!(complete_filter(directives), expected);
            assert!(EnvFilter::try_new(complete_filter(directives)).is_ok());
        }
    }
}
