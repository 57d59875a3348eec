//! Scanner of Rust sources for the comments of tests that run.
//!
//! Covers comments, texts, attributes and the braces of items; nothing else of the language.

/// Relevant content of a source file.
#[derive(Debug, Default)]
pub(super) struct SourceScan {
    /// Comments in tests or directly above them: line (from 1) and text.
    pub(super) comments: Vec<(usize, String)>,
    /// Modules in files of their own that are compiled for tests: name, and the file of a `#[path]`.
    pub(super) modules: Vec<(String, Option<String>)>,
}

/// Scans a source file.
pub(super) fn scan_source(text: &str) -> SourceScan {
    let mut source = SourceScan::default();
    ItemReader { tokens: &tokenize(text), position: 0 }.read_items(&mut source);
    source
}

#[derive(Clone, Debug, PartialEq)]
enum SourceToken {
    Comment(String),
    Word(String),
    /// Text or character, without its quotes.
    Text(String),
    Mark(char),
}

/// Splits a source into tokens, each with its line.
fn tokenize(text: &str) -> Vec<(usize, SourceToken)> {
    let mut found = Vec::new();
    let (mut rest, mut line) = (text, 1);
    while let Some(c) = rest.chars().next() {
        let (token, len) = read_token(rest, c);
        found.extend(token.map(|token| (line, token)));
        line += rest[..len].matches('\n').count();
        rest = &rest[len..];
    }
    found
}

/// Reads the token at the start of `rest`, `None` for white space, and its length.
fn read_token(rest: &str, c: char) -> (Option<SourceToken>, usize) {
    if rest.starts_with("//") {
        let len = rest.find('\n').unwrap_or(rest.len());
        return (Some(SourceToken::Comment(rest[2..len].to_owned())), len);
    }
    if rest.starts_with("/*") {
        let len = block_comment_len(rest);
        return (Some(SourceToken::Comment(rest[2..len].to_owned())), len);
    }
    if let Some(len) = raw_text_len(rest) {
        return (Some(SourceToken::Text(rest[..len].to_owned())), len);
    }
    if c == '"' {
        let len = quoted_text_len(rest, '"');
        return (Some(SourceToken::Text(rest[1..len].trim_end_matches('"').to_owned())), len);
    }
    if c == '\'' {
        return read_quote(rest);
    }
    if c.is_alphanumeric() || c == '_' {
        let len = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        return (Some(SourceToken::Word(rest[..len].to_owned())), len);
    }
    ((!c.is_whitespace()).then_some(SourceToken::Mark(c)), c.len_utf8())
}

/// Length of a block comment, with nested ones.
fn block_comment_len(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// Length of a raw text (`r"…"`, `br#"…"#`), if one starts here.
fn raw_text_len(rest: &str) -> Option<usize> {
    let start = ["r", "br", "cr"].into_iter().find(|prefix| {
        rest.strip_prefix(prefix).is_some_and(|rest| rest.trim_start_matches('#').starts_with('"'))
    })?;
    let hashes = rest[start.len()..].bytes().take_while(|byte| *byte == b'#').count();
    // `r#"` may also begin a raw name; a name has no quote.
    let from = start.len() + hashes + 1;
    let end = format!("\"{}", "#".repeat(hashes));
    Some(rest[from..].find(&end).map_or(rest.len(), |at| from + at + end.len()))
}

/// Length of a text that ends with `mark`.
fn quoted_text_len(rest: &str, mark: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if c == mark => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Reads a character, or the mark of a lifetime.
fn read_quote(rest: &str) -> (Option<SourceToken>, usize) {
    let mut chars = rest[1..].chars();
    let is_lifetime = match (chars.next(), chars.next()) {
        (Some('\\'), _) | (_, Some('\'')) => false,
        (Some(c), _) => c.is_alphabetic() || c == '_',
        (None, _) => true,
    };
    if is_lifetime {
        return (Some(SourceToken::Mark('\'')), 1);
    }
    (Some(SourceToken::Text(String::new())), quoted_text_len(rest, '\''))
}

/// Reader of the items of a module.
struct ItemReader<'a> {
    tokens: &'a [(usize, SourceToken)],
    position: usize,
}

impl ItemReader<'_> {
    /// Reads items up to the end of their block.
    fn read_items(&mut self, source: &mut SourceScan) {
        let mut attributes: Vec<String> = Vec::new();
        let mut attributes_above: Vec<(usize, String)> = Vec::new();
        while let Some((line, token)) = self.tokens.get(self.position).cloned() {
            self.position += 1;
            match token {
                // Comments about a whole module do not count for the test below.
                SourceToken::Comment(text) if text.starts_with('!') => continue,
                SourceToken::Comment(text) => {
                    // A comment belongs to the item on the next line.
                    let end = line + text.matches('\n').count();
                    attributes_above.push((line, text));
                    let next = self.tokens.get(self.position).map_or(end, |(line, _)| *line);
                    if next > end + 1 {
                        attributes_above.clear();
                    }
                    continue;
                }
                SourceToken::Mark('#') => {
                    attributes.push(self.read_attribute());
                    continue;
                }
                SourceToken::Mark('}') => return,
                SourceToken::Word(word) if word == "mod" => self.read_module(&attributes, source),
                SourceToken::Word(word) if word == "fn" => {
                    let body = self.skip_item();
                    if is_test(&attributes) {
                        source.comments.append(&mut attributes_above);
                        source.comments.extend(body.iter().filter_map(|(line, token)| match token {
                            SourceToken::Comment(text) => Some((*line, text.clone())),
                            _ => None,
                        }));
                    }
                }
                SourceToken::Word(word) if word == "proptest" && self.skip_macro_open() => {
                    self.read_items(source)
                }
                // Words before the item keyword: `pub(crate) async unsafe fn`.
                SourceToken::Word(word) if ITEM_MODIFIERS.contains(&word.as_str()) => continue,
                SourceToken::Mark('(') => {
                    self.skip_group(')');
                    continue;
                }
                SourceToken::Mark(';') => {}
                _ => {
                    self.skip_item();
                }
            }
            attributes.clear();
            attributes_above.clear();
        }
    }

    /// Skips `! {`, if it comes next, and returns whether it did.
    fn skip_macro_open(&mut self) -> bool {
        let next = |at| self.tokens.get(at).map(|(_, token)| token);
        let is_macro = next(self.position) == Some(&SourceToken::Mark('!'))
            && next(self.position + 1) == Some(&SourceToken::Mark('{'));
        self.position += 2 * usize::from(is_macro);
        is_macro
    }

    /// Joins the words of an attribute, from after its `#`.
    fn read_attribute(&mut self) -> String {
        let start = self.position;
        while let Some((_, token)) = self.tokens.get(self.position) {
            self.position += 1;
            if *token == SourceToken::Mark('[') {
                self.skip_group(']');
                break;
            }
        }
        let words = self.tokens[start..self.position].iter().map(|(_, token)| match token {
            SourceToken::Word(word) => word.clone(),
            SourceToken::Text(text) => format!("\"{text}\""),
            SourceToken::Mark(mark) => mark.to_string(),
            SourceToken::Comment(_) => String::new(),
        });
        let text: String = words.collect();
        text.trim_start_matches(['!', '[']).trim_end_matches(']').to_owned()
    }

    /// Reads a module: its block, or its name if it has its own file.
    fn read_module(&mut self, attributes: &[String], source: &mut SourceScan) {
        let Some((_, SourceToken::Word(name))) = self.tokens.get(self.position).cloned() else { return };
        self.position += 1;
        let own_file =
            self.tokens.get(self.position).is_some_and(|(_, token)| *token == SourceToken::Mark(';'));
        self.position += 1;
        let compiled = is_compiled(attributes);
        if own_file {
            let path = attributes.iter().find_map(|attribute| attribute.strip_prefix("path=\""));
            if compiled {
                source.modules.push((name, path.map(|path| path.trim_end_matches('"').to_owned())));
            }
        } else if compiled {
            self.read_items(source);
        } else {
            self.position -= 1;
            self.skip_item();
        }
    }

    /// Skips the rest of an item: to its `;`, or to the end of its block.
    fn skip_item(&mut self) -> &[(usize, SourceToken)] {
        let start = self.position;
        while let Some((_, token)) = self.tokens.get(self.position) {
            self.position += 1;
            match token {
                SourceToken::Mark(';') => break,
                SourceToken::Mark('{') => {
                    self.skip_group('}');
                    break;
                }
                SourceToken::Mark('(') => self.skip_group(')'),
                SourceToken::Mark('[') => self.skip_group(']'),
                _ => {}
            }
        }
        &self.tokens[start..self.position]
    }

    /// Skips to the bracket that closes the group just opened.
    fn skip_group(&mut self, close: char) {
        while let Some((_, token)) = self.tokens.get(self.position) {
            self.position += 1;
            match token {
                SourceToken::Mark('{') => self.skip_group('}'),
                SourceToken::Mark('(') => self.skip_group(')'),
                SourceToken::Mark('[') => self.skip_group(']'),
                SourceToken::Mark(mark) if *mark == close => return,
                _ => {}
            }
        }
    }
}

/// Words allowed before `fn`, `mod` and other items.
const ITEM_MODIFIERS: &[&str] = &["pub", "async", "unsafe", "const", "extern", "default"];

/// Returns whether a function with these attributes is a test that runs.
fn is_test(attributes: &[String]) -> bool {
    let test = |attribute: &String| {
        let name = attribute.split('(').next().unwrap_or_default();
        name == "test" || name.ends_with("::test")
    };
    let is_ignored = |attribute: &String| attribute == "ignore" || attribute.starts_with("ignore=");
    attributes.iter().any(test) && !attributes.iter().any(is_ignored) && is_compiled(attributes)
}

/// Conditions that hold where the tests run.
const TRUE_CONDITIONS: &[&str] = &["cfg(test)", "cfg(unix)", "cfg(target_os=\"linux\")"];

fn is_compiled(attributes: &[String]) -> bool {
    attributes
        .iter()
        .filter(|attribute| attribute.starts_with("cfg("))
        .all(|cfg| TRUE_CONDITIONS.contains(&cfg.as_str()))
}

#[cfg(test)]
mod tests {
    use super::scan_source;

    fn comments(text: &str) -> Vec<String> {
        scan_source(text).comments.into_iter().map(|(line, text)| format!("{line}:{}", text.trim())).collect()
    }

    #[test]
    fn comments_count_within_tests_only() {
        let text = "// out\nfn helper() { /* out */ }\n\n/// doc\n#[test]\n// on\nfn a() {\n    b(); // in\n}\n// after\n\n\
                    /// no test\nfn c() {\n    // out\n}\n";
        assert_eq!(comments(text), ["4:/ doc", "6:on", "8:in"]);
        assert_eq!(comments("#[tokio::test(start_paused = true)]\nasync fn a() { /* in */ }"), ["2:in */"]);
        assert_eq!(comments("#[test]\n#[ignore = \"slow\"]\nfn a() { // out\n}"), [""; 0]);
        assert_eq!(comments("#[test]\n#[cfg(windows)]\nfn a() { // out\n}"), [""; 0]);
        assert_eq!(comments("// apart\n\n// right above\n#[test]\nfn a() {}"), ["3:right above"]);
    }

    #[test]
    fn comments_count_in_modules_and_macros_of_tests() {
        let text = "proptest! {\n    #![proptest_config(few())]\n\n    #[test]\n    fn a(x in \"[{]\") {\n        // in\n    }\n}\n";
        assert_eq!(comments(text), ["6:in"]);
        let text = "#[cfg(test)]\nmod tests {\n    const X: &str = \"// no {\";\n    #[test]\n    fn a() {\n        // in\n    }\n}";
        assert_eq!(comments(text), ["6:in"]);
        assert_eq!(
            comments("#[cfg(any())]\nmod tests {\n    #[test]\n    fn a() { // out\n    }\n}"),
            [""; 0]
        );
        assert_eq!(comments("impl A {\n    #[test]\n    fn a() { // out\n    }\n}"), [""; 0]);
    }

    #[test]
    fn texts_and_lifetimes_are_no_comments() {
        let text = "#[test]\nfn a<'a>(x: &'a str) {\n    let (b, c) = ('{', '\\'');\n    let d = r#\"// \"no\" {\"#;\n    \
                    f(\"// no\"); // in\n}\n// out\n";
        assert_eq!(comments(text), ["5:in"]);
    }

    #[test]
    fn modules_in_files_are_named() {
        let text = "mod a;\n#[cfg(test)]\nmod b;\n#[cfg(feature = \"x\")]\nmod c;\n#[path = \"e.rs\"]\npub(crate) mod d;\n";
        let modules = scan_source(text).modules;
        let file = Some("e.rs".to_owned());
        assert_eq!(modules, [("a".to_owned(), None), ("b".to_owned(), None), ("d".to_owned(), file)]);
    }
}
