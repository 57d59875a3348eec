//! `cargo xtask serve`: the server and the studio with the recordings that come with the product, from a fresh clone.

use std::process::Command;

/// Builds the studio and the command, and runs `tambour serve`; arguments are passed on. The profile is built faster than that of a
/// release, which waits for the linker to optimise everything again.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    crate::studio::build();
    eprintln!("building the server, which takes minutes the first time");
    // The keyboard's interrupt reaches the server too; it drains, and its end is this command's end.
    let status = serve(arguments).status()?;
    anyhow::ensure!(status.success(), "the server ended with {status}");
    Ok(())
}

/// cargo as it builds and runs the server. It is not quiet: what it compiles is told, since that takes long.
fn serve(arguments: &[String]) -> Command {
    let mut serve = crate::cargo();
    serve.args(["run", "--profile", "serve", "--package", "tambour-cli", "--", "serve"]).args(arguments);
    serve
}

#[cfg(test)]
mod tests {
    use super::serve;

    #[test]
    fn building_is_told() {
        let serve = serve(&["--listen".to_owned()]);
        let arguments: Vec<&str> = serve.get_args().filter_map(|argument| argument.to_str()).collect();
        assert_eq!(arguments.last(), Some(&"--listen"));
        assert!(!arguments.iter().any(|argument| ["--quiet", "-q"].contains(argument)), "{arguments:?}");
    }
}
