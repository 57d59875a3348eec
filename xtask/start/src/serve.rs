//! `cargo xtask serve`: runs the server and the studio with the shipped recordings, from a fresh clone.

use std::process::Command;

/// Builds the studio and the server, and runs `tambour serve` with `arguments`. The profile `serve` builds
/// faster than the release profile, which optimises again at link time.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    crate::studio::build_studio();
    eprintln!("building the server, which takes minutes the first time");
    // A keyboard interrupt reaches the server too, which finishes its work (drains). This command ends when
    // the server exits.
    let status = serve_command(arguments).status()?;
    anyhow::ensure!(status.success(), "the server ended with {status}");
    Ok(())
}

/// Makes the Cargo command that builds and runs the server. It is not quiet, since compilation takes long.
fn serve_command(arguments: &[String]) -> Command {
    let mut serve = crate::cargo_command();
    serve.args(["run", "--profile", "serve", "--package", "tambour-cli", "--", "serve"]).args(arguments);
    serve
}

#[cfg(test)]
mod tests {
    use super::serve_command;

    #[test]
    fn compilation_shows_its_progress() {
        let serve = serve_command(&["--listen".to_owned()]);
        let arguments: Vec<&str> = serve.get_args().filter_map(|argument| argument.to_str()).collect();
        assert_eq!(arguments.last(), Some(&"--listen"));
        assert!(!arguments.iter().any(|argument| ["--quiet", "-q"].contains(argument)), "{arguments:?}");
    }
}
