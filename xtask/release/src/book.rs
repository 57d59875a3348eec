//! `cargo xtask book`: the pages of `docs/`, the catalogue of rules and the HTTP interface as a book with a
//! search, in `target/book/html`.
//!
//! The book has no page that is not readable in `docs/` as it is, but those that are generated.

mod interface;
mod links;
mod rules;

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use anyhow::Context;
use mdbook_driver::MDBook;
use pulldown_cmark::{Event, Parser, Tag};

use crate::first_page::FirstPage;
use crate::server::LocalServer;
use crate::{build_debug, renew_folder, repository_root};

/// Configuration of the generator. `{{…}}` in the pages is of Tambour's templates, so that the preprocessor
/// which would read it is off.
const CONFIGURATION: &str = r#"[book]
title = "Tambour"
description = "Structured replies of language models as one typed, repaired, contract-checked stream of events"
language = "en"
src = "source"

[build]
build-dir = "html"
create-missing = false
use-default-preprocessors = false

[preprocessor.index]

[output.html]
additional-css = ["programs.css"]
no-section-label = true

[output.html.playground]
runnable = false

[output.html.search]
use-boolean-and = true
limit-results = 40
boost-title = 3
boost-paragraph = 1
"#;

/// Style of the first page: programs side by side, each with its own scroll bar.
const STYLE: &str = ".content main:has(table.programs) { max-width: 1200px; }\n\
    table.programs { width: 100%; table-layout: fixed; }\n\
    table.programs td { vertical-align: top; padding: 0.5em 1em; }\n\
    table.programs pre { overflow-x: auto; }\n";

/// Contents of the generated part.
const GENERATED_CONTENTS: &str = "\n# Reference, generated\n\n\
    - [Rules](rules.md)\n\
    - [Operations of the HTTP interface](interface.md)\n\
    - [Objects of the HTTP interface](objects.md)\n";

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (is_check, program) = match arguments[..] {
        [] => (false, None),
        ["--check"] => (true, None),
        ["--binary", path] => (false, Some(PathBuf::from(path))),
        _ => anyhow::bail!("usage: cargo xtask book [--check | --binary PATH]"),
    };
    let program = match program {
        Some(program) => program.canonicalize().with_context(|| program.display().to_string())?,
        None => build_debug(&["--bin", "tambour"])?.join("tambour"),
    };
    let page = build(&program)?;
    println!("{}", page.display());
    if is_check {
        let first_page = FirstPage::read()?;
        first_page.check_rust()?;
        first_page.check_request(&program)?;
    }
    Ok(())
}

/// Builds the book with a program whose server describes its interface. Returns the path of its first page.
fn build(program: &Path) -> anyhow::Result<PathBuf> {
    let docs = repository_root().join("docs");
    let folder = repository_root().join("target/book");
    renew_folder(&folder)?;
    let source = folder.join("source");
    let pages = copy_pages(&docs, &source)?;
    check_contents(&docs, &pages)?;
    let contents = std::fs::read_to_string(docs.join("SUMMARY.md"))? + GENERATED_CONTENTS;
    std::fs::write(source.join("SUMMARY.md"), contents)?;
    std::fs::write(source.join("rules.md"), rules::write_page())?;
    let server = LocalServer::start(program, &folder)?;
    let document = serde_json::from_str(&server.get("/openapi.json")?)?;
    drop(server);
    std::fs::write(source.join("interface.md"), interface::write_operations(&document))?;
    std::fs::write(source.join("objects.md"), interface::write_objects(&document))?;
    std::fs::write(folder.join("book.toml"), CONFIGURATION)?;
    std::fs::write(folder.join("programs.css"), STYLE)?;
    MDBook::load(&folder)?.build()?;
    let html = folder.join("html");
    let dead_links = links::find_dead_links(&html)?;
    anyhow::ensure!(dead_links.is_empty(), "dead links:\n{}", dead_links.join("\n"));
    check_search(&html)?;
    Ok(html.join("index.html"))
}

/// Copies the pages and pictures of the documentation, and the examples that they link to. Returns the paths
/// of the pages, relative to the folder.
fn copy_pages(docs: &Path, source: &Path) -> anyhow::Result<BTreeSet<PathBuf>> {
    let mut pages = BTreeSet::new();
    let mut pending = vec![PathBuf::new()];
    while let Some(folder) = pending.pop() {
        std::fs::create_dir_all(source.join(&folder))?;
        for entry in std::fs::read_dir(docs.join(&folder))? {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                let text = std::fs::read_to_string(entry.path())?;
                let text = adapt_links(docs, source, &folder, &text)?;
                std::fs::write(source.join(&path), text)?;
                pages.insert(path);
            } else {
                std::fs::copy(entry.path(), source.join(&path))?;
            }
        }
    }
    pages.remove(Path::new("SUMMARY.md"));
    Ok(pages)
}

/// Changes the links of a page of `folder` that a book needs otherwise: files beside `docs` are copied into the
/// book, at the same path below it, since it has no folder above it; a `README.md` is the index of its folder.
fn adapt_links(docs: &Path, source: &Path, folder: &Path, text: &str) -> anyhow::Result<String> {
    let mut adapted = text.to_owned();
    for event in Parser::new(text) {
        let Event::Start(Tag::Link { dest_url, .. }) = event else { continue };
        let link = if let Some(path) = outside_path(folder, &dest_url) {
            let inner = dest_url.strip_prefix("../").context("a link out of a folder begins with `../`")?;
            // A page that is not of the book is shown as text: the generator renders only pages of the contents.
            let is_page = path.extension().is_some_and(|extension| extension == "md");
            let copy = source.join(if is_page { path.with_extension("txt") } else { path.clone() });
            std::fs::create_dir_all(copy.parent().context("a file is in a folder")?)?;
            std::fs::copy(docs.join("..").join(&path), &copy)
                .with_context(|| format!("{}: {dest_url}", folder.display()))?;
            match inner.split_once(".md") {
                Some((name, _)) if is_page => format!("{name}.txt"),
                _ => inner.to_owned(),
            }
        } else if dest_url.contains("README.md") && !dest_url.contains(':') {
            dest_url.replace("README.md", "index.md")
        } else {
            continue;
        };
        adapted = adapted.replace(&format!("]({dest_url})"), &format!("]({link})"));
    }
    Ok(adapted)
}

/// Path, relative to the repository, of a link that leaves `docs`; `folder` is that of its page.
fn outside_path(folder: &Path, link: &str) -> Option<PathBuf> {
    if link.contains(':') || link.starts_with('#') {
        return None;
    }
    let mut path = PathBuf::from("docs").join(folder);
    for component in Path::new(link.split('#').next()?).components() {
        match component {
            Component::ParentDir => {
                path.pop();
            }
            other => path.push(other),
        }
    }
    (!path.starts_with("docs")).then_some(path)
}

/// Checks that the contents list each page once, and nothing else.
fn check_contents(docs: &Path, pages: &BTreeSet<PathBuf>) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(docs.join("SUMMARY.md")).context("docs/SUMMARY.md")?;
    let mut listed = BTreeSet::new();
    for event in Parser::new(&text) {
        if let Event::Start(Tag::Link { dest_url, .. }) = event {
            let path = PathBuf::from(dest_url.as_ref());
            anyhow::ensure!(pages.contains(&path), "docs/SUMMARY.md lists {dest_url}, which is no page");
            anyhow::ensure!(listed.insert(path), "docs/SUMMARY.md lists {dest_url} twice");
        }
    }
    let missing: Vec<String> = pages.difference(&listed).map(|page| page.display().to_string()).collect();
    anyhow::ensure!(missing.is_empty(), "docs/SUMMARY.md lacks {}", missing.join(", "));
    Ok(())
}

/// Checks that the index of the search has words of a page, of the rules and of the interface.
fn check_search(html: &Path) -> anyhow::Result<()> {
    let index = std::fs::read_dir(html)?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .find(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("searchindex") && name.ends_with(".js")
        })
        .context("the book has no search index")?;
    let text = std::fs::read_to_string(index)?;
    for word in ["final_missing", "/api/v1/messages", "decode_into"] {
        anyhow::ensure!(text.contains(word), "the search does not find `{word}`");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::outside_path;

    #[test]
    fn only_links_out_of_the_documents_are_moved() {
        let outside = |folder: &str, link: &str| outside_path(Path::new(folder), link);
        assert_eq!(outside("dialects", "../../examples/a.yaml"), Some(PathBuf::from("examples/a.yaml")));
        assert_eq!(outside("", "../README.md#use"), Some(PathBuf::from("README.md")));
        for link in ["../cli.md#json", "#place", "https://example.com/../..", "auto.md"] {
            assert_eq!(outside("dialects", link), None, "{link}");
        }
    }
}
