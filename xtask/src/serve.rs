//! `cargo xtask serve`: the server with the recordings that come with the product, from a fresh clone.

use std::process::Command;

/// Builds the command and runs `tambour serve`; arguments are passed on.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let mut serve = Command::new(env!("CARGO"));
    serve.args(["run", "--quiet", "--release", "--package", "tambour-cli", "--", "serve"]).args(arguments);
    // The keyboard's interrupt reaches the server too; it drains, and its end is this command's end.
    let status = serve.current_dir(crate::root()).status()?;
    anyhow::ensure!(status.success(), "the server ended with {status}");
    Ok(())
}
