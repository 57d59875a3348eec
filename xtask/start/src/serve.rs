//! `cargo xtask serve`: the server with the recordings that come with the product, from a fresh clone.

/// Builds the command and runs `tambour serve`; arguments are passed on. The profile is built faster than that of a
/// release, which waits for the linker to optimise everything again.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let mut serve = crate::cargo();
    serve.args(["run", "--quiet", "--profile", "serve", "--package", "tambour-cli", "--", "serve"]);
    // The keyboard's interrupt reaches the server too; it drains, and its end is this command's end.
    let status = serve.args(arguments).status()?;
    anyhow::ensure!(status.success(), "the server ended with {status}");
    Ok(())
}
