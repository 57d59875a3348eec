//! The server's own log: structured lines on stderr, without prompts, replies or keys unless `log_content` is on.

use tracing_subscriber::EnvFilter;

use crate::config::{Config, ConfigError};

/// Writes the log of this process from now on; `log` says what of it (`info`, `tambour_server=debug`), `log_json` how.
///
/// # Errors
/// The filter cannot be read.
pub fn start(config: &Config) -> Result<(), ConfigError> {
    let filter = EnvFilter::try_new(filter(&config.log))
        .map_err(|error| config.wrong("log", &format!("is no filter: {error}")))?;
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A line that cannot be written is lost: to say so would be written to the same place, and panic there.
    let lines = lines.log_internal_errors(false);
    // A second server of the process writes where the first one does.
    let _ = if config.log_json {
        lines.json().flatten_event(true).try_init()
    } else {
        lines.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).try_init()
    };
    Ok(())
}

/// What of the log is written. The client of MCP would log what servers say of themselves, at any length, and their URLs; what is worth
/// knowing of them is logged here.
fn filter(given: &str) -> String {
    if given.contains("rmcp") { given.to_owned() } else { format!("{given},rmcp=off") }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::EnvFilter;

    use super::filter;

    #[test]
    fn the_client_of_mcp_logs_nothing_unless_it_is_named() {
        for (given, wanted) in [
            ("info", "info,rmcp=off"),
            ("tambour_server=debug,warn", "tambour_server=debug,warn,rmcp=off"),
            ("info,rmcp=debug", "info,rmcp=debug"),
        ] {
            assert_eq!(filter(given), wanted);
            assert!(EnvFilter::try_new(filter(given)).is_ok());
        }
    }
}
