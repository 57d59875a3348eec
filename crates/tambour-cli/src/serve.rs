//! `tambour serve`: the server.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context, Result};
use tambour_server::{Config, Server};

use crate::Outcome;

/// Start the server; the first line of the output is `listening on http://ADDRESS`
#[derive(clap::Args)]
#[command(after_help = "Example:\n  tambour serve --listen 127.0.0.1:0 --upstream demo --print-config\n\n\
    Flags go before TAMBOUR_* variables, these before the configuration file.")]
pub(crate) struct Args {
    /// Configuration file; `tambour.toml` in this folder if it is there
    #[arg(long, value_name = "FILE", env = "TAMBOUR_CONFIG")]
    config: Option<PathBuf>,
    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// Folder of the database
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where replies come from: `openai=URL`, `replay=FILE` or `demo`
    #[arg(long, value_name = "KIND=WHERE", env = "TAMBOUR_UPSTREAM")]
    upstream: Option<String>,
    /// Model to ask the upstream for
    #[arg(long, value_name = "NAME", env = "TAMBOUR_MODEL", requires = "upstream")]
    model: Option<String>,
    /// Print the configuration with secrets masked, and stop
    #[arg(long)]
    print_config: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome> {
    let mut config = Config::load(args.config.as_deref(), std::env::vars())?;
    if let Some(listen) = args.listen {
        config.listen = listen;
    }
    if let Some(data) = &args.data {
        config.data.clone_from(data);
    }
    if let Some(upstream) = &args.upstream {
        config.add_upstream(upstream, args.model.clone())?;
    }
    if args.print_config {
        print!("{}", config.masked());
        return Ok(Outcome::Fine);
    }
    logging(config.log_json);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("the runtime cannot be started")?;
    runtime.block_on(async {
        let server = match Server::start(config).await {
            Ok(server) => server,
            Err(error) => {
                crate::output::complain(&error.to_string());
                return Ok(Outcome::Refused);
            }
        };
        let mut stdout = std::io::stdout().lock();
        writeln!(stdout, "listening on http://{}", server.address())?;
        stdout.flush()?;
        drop(stdout);
        server.serve(stopped()).await;
        Ok(Outcome::Fine)
    })
}

/// Waits for the interrupt or terminate signal.
async fn stopped() {
    let interrupt = tokio::signal::ctrl_c();
    #[cfg(unix)]
    {
        let terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate());
        if let Ok(mut terminate) = terminate {
            tokio::select! {
                _ = interrupt => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    let _ = interrupt.await;
}

fn logging(json: bool) {
    let filter = tracing_subscriber::EnvFilter::try_from_env("TAMBOUR_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info,sqlx=warn"));
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A second call in one process finds the first one's subscriber.
    let _ = if json { logs.json().try_init() } else { logs.with_target(false).try_init() };
}
