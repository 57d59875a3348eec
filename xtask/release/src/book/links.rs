//! Links of the pages of a book: each one inside must lead to a file, and to a place in it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use anyhow::Context;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};

/// Places and links of a page.
#[derive(Default)]
struct PageLinks {
    /// Values of `id` and `name`.
    places: BTreeSet<String>,
    /// Values of `href` and `src`.
    links: BTreeSet<String>,
}

/// Reader of a page.
#[derive(Default)]
struct LinkSink(RefCell<PageLinks>);

impl TokenSink for LinkSink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let Token::TagToken(tag) = token else { return TokenSinkResult::Continue };
        if tag.kind == TagKind::EndTag {
            return TokenSinkResult::Continue;
        }
        let mut page = self.0.borrow_mut();
        for attribute in &tag.attrs {
            let value = attribute.value.to_string();
            match &*attribute.name.local {
                "id" | "name" => page.places.insert(value),
                "href" | "src" => page.links.insert(value),
                _ => continue,
            };
        }
        match &*tag.name {
            "script" => TokenSinkResult::RawData(RawKind::ScriptData),
            "style" => TokenSinkResult::RawData(RawKind::Rawtext),
            _ => TokenSinkResult::Continue,
        }
    }
}

/// Reads the places and links of a page.
fn read_page(html: &str) -> PageLinks {
    let tokenizer = Tokenizer::new(LinkSink::default(), TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from(html));
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    tokenizer.sink.0.into_inner()
}

/// Links below a folder of pages that lead nowhere, each with its page. Links to other sites are not followed.
pub(super) fn find_dead_links(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut pages = BTreeMap::new();
    let mut pending = vec![PathBuf::new()];
    while let Some(inner) = pending.pop() {
        for entry in std::fs::read_dir(folder.join(&inner))? {
            let entry = entry?;
            let path = inner.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|extension| extension == "html") {
                let html = std::fs::read_to_string(entry.path()).context("a page is text")?;
                pages.insert(path, read_page(&html));
            }
        }
    }
    let mut dead = Vec::new();
    for (path, page) in &pages {
        // The page of missing pages has its links from the root of a site.
        if path == Path::new("404.html") {
            continue;
        }
        for link in &page.links {
            if !is_alive(folder, &pages, path, link) {
                dead.push(format!("{}: {link}", path.display()));
            }
        }
    }
    Ok(dead)
}

/// Returns whether a link of a page leads somewhere, or to another site.
fn is_alive(folder: &Path, pages: &BTreeMap<PathBuf, PageLinks>, page: &Path, link: &str) -> bool {
    let has_scheme = link.split(['/', '#', '?']).next().is_some_and(|first| first.contains(':'));
    if has_scheme {
        return true;
    }
    let (target, place) = link.split_once('#').unwrap_or((link, ""));
    let target = target.split('?').next().unwrap_or_default();
    let mut path = if target.is_empty() { page.to_owned() } else { page.parent().unwrap_or(page).to_owned() };
    for component in Path::new(target).components() {
        match component {
            // A link out of the book leads nowhere.
            Component::ParentDir if !path.pop() => return false,
            Component::ParentDir | Component::CurDir => {}
            Component::Normal(name) => path.push(name),
            Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    if folder.join(&path).is_dir() {
        path.push("index.html");
    }
    match pages.get(&path) {
        Some(found) => place.is_empty() || found.places.contains(&decode_place(place)),
        None => place.is_empty() && folder.join(&path).is_file(),
    }
}

/// Decodes `%` sequences of a place, which stand for letters that are not ASCII.
fn decode_place(place: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = place.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(|_| byte == b'%') {
            Some(decoded) => {
                bytes.push(decoded);
                rest = &after[2..];
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::find_dead_links;

    #[test]
    fn dead_links_and_places_are_found() {
        let folder = std::env::temp_dir().join(format!("tambour-links-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("inner")).unwrap();
        let write = |name: &str, html: &str| std::fs::write(folder.join(name), html).unwrap();
        write("picture.png", "");
        write(
            "index.html",
            r##"<h1 id="top">A</h1><a href="#top">1</a><a href="inner/b.html#%C3%A4">2</a>"##,
        );
        write(
            "inner/b.html",
            r#"<p id="ä"><a href="../index.html">1</a><img src="../picture.png"><script>"<a href=x>"</script>"#,
        );
        assert_eq!(find_dead_links(&folder).unwrap(), Vec::<String>::new());
        write(
            "c.html",
            r##"<a href="gone.html">1</a><a href="#gone">2</a><a href="index.html#gone">3</a><a href="../c.html">4</a>
            <a href="https://example.com/gone">5</a><a href="/index.html">6</a>"##,
        );
        let dead = find_dead_links(&folder).unwrap();
        assert_eq!(
            dead,
            ["#gone", "../c.html", "/index.html", "gone.html", "index.html#gone"]
                .map(|link| format!("c.html: {link}"))
        );
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
