//! `tambour serve`: starts the server.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context, Result};
use tambour_server::upstream::UpstreamKind;
use tambour_server::{Config, ConfigError, Server, StartError, logs};

use crate::{CommandOutcome, output};

/// Start the server; the first line of the output is `listening on http://ADDRESS`
#[derive(clap::Args, Clone)]
#[command(after_help = "Example:\n  tambour serve --listen 127.0.0.1:0 --upstream demo --print-config\n\n\
    Flags override TAMBOUR_* variables, which override the configuration file.")]
pub(crate) struct ServeCommand {
    /// Configuration file; default: `tambour.toml` in this folder, if it exists
    #[arg(long, value_name = "FILE", env = "TAMBOUR_CONFIG")]
    config: Option<PathBuf>,
    /// Address to listen on; port 0 selects a free port
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// Data folder, with the database and its journal
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Database: `sqlite:FILE` or `postgres://USER@HOST/NAME`; default: `tambour.sqlite` in the data folder
    #[arg(long, value_name = "URL")]
    database: Option<String>,
    #[arg(long, value_name = "KIND=WHERE", env = "TAMBOUR_UPSTREAM",
        help = format!("Source of replies: {}", UpstreamKind::list_argument_forms("`")))]
    upstream: Option<String>,
    /// Model to ask the upstream for
    #[arg(long, value_name = "NAME", env = "TAMBOUR_MODEL", requires = "upstream")]
    model: Option<String>,
    /// Start even if messages were lost to journal damage; the intact rest is kept
    #[arg(long)]
    accept_loss: bool,
    /// Print the configuration with secrets masked, and exit
    #[arg(long)]
    print_config: bool,
}

pub(crate) fn run(args: &ServeCommand) -> Result<CommandOutcome> {
    let config = args.build_config()?;
    if args.print_config {
        print!("{}", config.to_masked_toml());
        return Ok(CommandOutcome::Success);
    }
    logs::start(&config)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("the runtime cannot be started")?;
    let reload_args = args.clone();
    runtime.block_on(async {
        let server = match Server::start(config).await {
            Ok(server) => server.with_reload(move || reload_args.build_config()),
            // The errors of this arm and the next are usage errors, like an unknown flag.
            Err(StartError::Config(error)) => return Err(error.into()),
            Err(error @ (StartError::Unprotected(_) | StartError::UnprotectedCluster)) => {
                return Err(error.into());
            }
            Err(error) => {
                output::print_error(&error.to_string());
                return Ok(CommandOutcome::Failed);
            }
        };
        // A supervisor may send a signal as soon as it reads the line that is printed below.
        let mut signals = StopSignals::new()?;
        let mut stdout = std::io::stdout().lock();
        writeln!(stdout, "listening on http://{}", server.address())?;
        stdout.flush()?;
        drop(stdout);
        let stop = async {
            signals.wait_next().await;
            // A second signal ends the server at once, with the exit code of an interrupted process.
            tokio::spawn(async move {
                signals.wait_next().await;
                std::process::exit(130);
            });
        };
        match server.serve(stop).await {
            Ok(()) => Ok(CommandOutcome::Success),
            Err(serve_error) => {
                output::print_error(&serve_error.to_string());
                Ok(CommandOutcome::Failed)
            }
        }
    })
}

impl ServeCommand {
    /// Reads the configuration file and the environment, then applies the flags.
    fn build_config(&self) -> Result<Config, ConfigError> {
        let mut config = Config::load(self.config.as_deref(), read_environment()?.into_iter())?;
        if let Some(listen) = self.listen {
            config.listen = listen;
        }
        if let Some(data) = &self.data {
            config.data.clone_from(data);
        }
        if let Some(database) = &self.database {
            config.database = Some(database.clone());
            config.note_source("database", "--database");
        }
        config.accept_loss = self.accept_loss;
        if let Some(upstream) = &self.upstream {
            let source = match std::env::var("TAMBOUR_UPSTREAM") {
                Ok(value) if value == *upstream => "TAMBOUR_UPSTREAM",
                _ => "--upstream",
            };
            config.add_upstream_from(source, upstream, self.model.clone())?;
        }
        Ok(config)
    }
}

/// Reads the variables that begin with `TAMBOUR_`.
///
/// # Errors
/// A value is not UTF-8. Other variables may hold anything.
pub(crate) fn read_environment() -> Result<Vec<(String, String)>, ConfigError> {
    let names = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    let tambour_variables = names.filter(|(name, _)| name.starts_with("TAMBOUR_"));
    tambour_variables
        .map(|(name, value)| match value.into_string() {
            Ok(value) => Ok((name, value)),
            Err(_) => Err(ConfigError(format!("{name}: the value is not UTF-8"))),
        })
        .collect()
}

/// Interrupt and terminate signals; none is lost while an earlier one is handled.
struct StopSignals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl StopSignals {
    fn new() -> Result<StopSignals> {
        use tokio::signal::unix::{SignalKind, signal};
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(StopSignals {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    /// Waits for the next signal.
    async fn wait_next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
impl StopSignals {
    #[expect(clippy::unnecessary_wraps, reason = "the Unix version may fail")]
    fn new() -> Result<StopSignals> {
        Ok(StopSignals {})
    }

    async fn wait_next(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}
