//! Programs of the first page of the documentation: each runs as it is printed and prints what the page says.

use std::path::Path;
use std::process::Command;

use anyhow::Context;
use serde_json::Value;

use crate::server::LocalServer;
use crate::{build_debug, read_command, repository_root};

/// First page of the documentation.
pub(crate) struct FirstPage {
    text: String,
    /// Output of each program but that of curl.
    pub(crate) output: String,
}

impl FirstPage {
    pub(crate) fn read() -> anyhow::Result<FirstPage> {
        let text = std::fs::read_to_string(repository_root().join("docs/README.md"))?;
        let output = find_block(&text, "text")?;
        Ok(FirstPage { text, output })
    }

    /// Program in a language, as printed.
    pub(crate) fn program(&self, language: &str) -> anyhow::Result<String> {
        find_block(&self.text, language)
    }

    /// Fails unless a program has printed the output of the page.
    pub(crate) fn compare(&self, language: &str, output: &str) -> anyhow::Result<()> {
        anyhow::ensure!(output == self.output, "the {language} program of docs/README.md printed\n{output}");
        Ok(())
    }

    /// Runs the Rust program, which is also an example of the library: there it is formatted and compiled.
    pub(crate) fn check_rust(&self) -> anyhow::Result<()> {
        let path = repository_root().join("crates/tambour/examples/first.rs");
        let example = std::fs::read_to_string(&path)?;
        anyhow::ensure!(self.program("rust")? == example, "{} is not that of docs/README.md", path.display());
        let folder = build_debug(&["--example", "first"])?;
        self.compare("Rust", &read_command(&mut Command::new(folder.join("examples/first")))?)
    }

    /// Runs the program that asks a server, curl, against one of `program`. The events that it gets must be those of
    /// the output.
    pub(crate) fn check_request(&self, program: &Path) -> anyhow::Result<()> {
        let folder = repository_root().join("target/book/first-page");
        crate::renew_folder(&folder)?;
        let server = LocalServer::start(program, &folder)?;
        // Port 8787 of the page may be in use.
        let request = self.program("sh")?.replace("127.0.0.1:8787", &server.address);
        let response = read_command(Command::new("sh").args(["-c", &request]).current_dir(&folder))?;
        let decoded: Value = serde_json::from_str(&response).with_context(|| response.clone())?;
        self.compare("curl", &print_decoded(&decoded))
    }
}

/// Prints a decoded reply as the programs do.
fn print_decoded(decoded: &Value) -> String {
    let mut output = String::new();
    for event in decoded["events"].as_array().into_iter().flatten() {
        let text = |field: &str| event["data"][field].as_str().unwrap_or_default().to_owned();
        match event["event"].as_str() {
            Some("phase_start") => output += &format!("thinks: {}\n", text("title")),
            Some("final_delta") => output += &text("text"),
            Some("final_end") => output.push('\n'),
            _ => {}
        }
    }
    for finding in decoded["findings"].as_array().into_iter().flatten() {
        let message = finding["message"].as_str().unwrap_or_default();
        output += &format!("{}:{} {message}\n", finding["line"], finding["column"]);
    }
    output
}

/// First code block of a language.
fn find_block(text: &str, language: &str) -> anyhow::Result<String> {
    let start = format!("```{language}\n");
    let (_, rest) =
        text.split_once(&start).with_context(|| format!("the page has no block of {language}"))?;
    let (block, _) = rest.split_once("```\n").context("the block ends")?;
    Ok(block.to_owned())
}

#[cfg(test)]
mod tests {
    use super::FirstPage;

    #[test]
    fn the_page_has_a_program_in_each_language() {
        let page = FirstPage::read().unwrap();
        for language in ["python", "ts", "rust", "sh"] {
            let program = page.program(language).unwrap();
            assert!(program.contains("Sum") && !program.contains("```"), "{program}");
        }
        assert_eq!(page.output.lines().next(), Some("thinks: Sum"));
    }
}
