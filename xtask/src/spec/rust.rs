//! Scanner of Rust sources for the comments of tests that run.
//!
//! It understands comments, string literals, attributes and the brackets of items, and nothing else of the
//! language.

/// Comments and modules of a source file that count.
#[derive(Debug, Default)]
pub(super) struct SourceScan {
    /// Comments in tests or directly above them: line (from 1) and text.
    pub(super) comments: Vec<(usize, String)>,
    /// Modules in other files that are compiled for tests: name, and the file of a `#[path]`.
    pub(super) modules: Vec<(String, Option<String>)>,
}

/// Scans a source file.
pub(super) fn scan_source(text: &str) -> SourceScan {
    let mut scan = SourceScan::default();
    ItemReader { tokens: &tokenize(text), position: 0 }.read_items(&mut scan);
    scan
}

/// Token of a source file.
#[derive(Clone, Debug, PartialEq)]
enum SourceToken {
    /// Comment, without the two characters that begin it.
    Comment(String),
    /// Name, keyword or number.
    Word(String),
    /// Content of a string literal; a raw one keeps its delimiters, and a character literal is empty.
    Text(String),
    /// Any other character.
    Mark(char),
}

/// Splits a source into tokens, each with its line, from 1.
fn tokenize(text: &str) -> Vec<(usize, SourceToken)> {
    let mut tokens = Vec::new();
    let (mut remaining, mut line) = (text, 1);
    while let Some(c) = remaining.chars().next() {
        let (token, len) = read_token(remaining, c);
        tokens.extend(token.map(|token| (line, token)));
        line += remaining[..len].matches('\n').count();
        remaining = &remaining[len..];
    }
    tokens
}

/// Reads the token at the start of `remaining`, whose first character is `c`. Returns the token, `None` for
/// white space, and its length in bytes. The functions below count in bytes too.
fn read_token(remaining: &str, c: char) -> (Option<SourceToken>, usize) {
    if remaining.starts_with("//") {
        let len = remaining.find('\n').unwrap_or(remaining.len());
        return (Some(SourceToken::Comment(remaining[2..len].to_owned())), len);
    }
    if remaining.starts_with("/*") {
        let len = block_comment_len(remaining);
        return (Some(SourceToken::Comment(remaining[2..len].to_owned())), len);
    }
    if let Some(len) = raw_text_len(remaining) {
        return (Some(SourceToken::Text(remaining[..len].to_owned())), len);
    }
    if c == '"' {
        let len = quoted_text_len(remaining, '"');
        return (Some(SourceToken::Text(remaining[1..len].trim_end_matches('"').to_owned())), len);
    }
    if c == '\'' {
        return read_quote(remaining);
    }
    if c.is_alphanumeric() || c == '_' {
        let len = remaining.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(remaining.len());
        return (Some(SourceToken::Word(remaining[..len].to_owned())), len);
    }
    ((!c.is_whitespace()).then_some(SourceToken::Mark(c)), c.len_utf8())
}

/// Length of a block comment, with the comments nested in it.
fn block_comment_len(remaining: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < remaining.len() {
        if remaining[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if remaining[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += remaining[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    remaining.len()
}

/// Length of a raw text (`r"…"`, `br#"…"#`), if one starts here. A raw name (`r#name`) has no quote.
fn raw_text_len(remaining: &str) -> Option<usize> {
    let prefix = ["r", "br", "cr"].into_iter().find(|prefix| {
        let after_prefix = remaining.strip_prefix(prefix);
        after_prefix.is_some_and(|after_prefix| after_prefix.trim_start_matches('#').starts_with('"'))
    })?;
    let hash_count = remaining[prefix.len()..].bytes().take_while(|byte| *byte == b'#').count();
    let text_start = prefix.len() + hash_count + 1;
    let end = format!("\"{}", "#".repeat(hash_count));
    Some(remaining[text_start..].find(&end).map_or(remaining.len(), |at| text_start + at + end.len()))
}

/// Length of a text between two `quote` characters, with the quotes.
fn quoted_text_len(remaining: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in remaining.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    remaining.len()
}

/// Reads a character literal, or the quote of a lifetime.
fn read_quote(remaining: &str) -> (Option<SourceToken>, usize) {
    let mut chars = remaining[1..].chars();
    let is_lifetime = match (chars.next(), chars.next()) {
        (Some('\\'), _) | (_, Some('\'')) => false,
        (Some(c), _) => c.is_alphabetic() || c == '_',
        (None, _) => true,
    };
    if is_lifetime {
        return (Some(SourceToken::Mark('\'')), 1);
    }
    (Some(SourceToken::Text(String::new())), quoted_text_len(remaining, '\''))
}

/// Reader of the items of a module.
struct ItemReader<'a> {
    tokens: &'a [(usize, SourceToken)],
    position: usize,
}

impl ItemReader<'_> {
    /// Reads items up to the end of their block, and adds the comments and modules that count to `scan`.
    fn read_items(&mut self, scan: &mut SourceScan) {
        let mut attributes: Vec<String> = Vec::new();
        let mut comments_above: Vec<(usize, String)> = Vec::new();
        while let Some((line, token)) = self.tokens.get(self.position).cloned() {
            self.position += 1;
            match token {
                // Comments about a whole module do not count for the test below.
                SourceToken::Comment(text) if text.starts_with('!') => continue,
                SourceToken::Comment(text) => {
                    // A comment belongs to the item on the next line.
                    let end = line + text.matches('\n').count();
                    comments_above.push((line, text));
                    let next_line = self.tokens.get(self.position).map_or(end, |(line, _)| *line);
                    if next_line > end + 1 {
                        comments_above.clear();
                    }
                    continue;
                }
                SourceToken::Mark('#') => {
                    attributes.push(self.read_attribute());
                    continue;
                }
                SourceToken::Mark('}') => return,
                SourceToken::Word(word) if word == "mod" => self.read_module(&attributes, scan),
                SourceToken::Word(word) if word == "fn" => {
                    let body = self.skip_item();
                    if is_test(&attributes) {
                        scan.comments.append(&mut comments_above);
                        scan.comments.extend(body.iter().filter_map(|(line, token)| match token {
                            SourceToken::Comment(text) => Some((*line, text.clone())),
                            _ => None,
                        }));
                    }
                }
                SourceToken::Word(word) if word == "proptest" && self.skip_macro_open() => {
                    self.read_items(scan)
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
            comments_above.clear();
        }
    }

    /// Skips `! {`, if it comes next, and returns whether it did.
    fn skip_macro_open(&mut self) -> bool {
        let token_at = |at| self.tokens.get(at).map(|(_, token)| token);
        let is_macro = token_at(self.position) == Some(&SourceToken::Mark('!'))
            && token_at(self.position + 1) == Some(&SourceToken::Mark('{'));
        self.position += 2 * usize::from(is_macro);
        is_macro
    }

    /// Reads an attribute after its `#` and joins its tokens.
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
    fn read_module(&mut self, attributes: &[String], scan: &mut SourceScan) {
        let Some((_, SourceToken::Word(name))) = self.tokens.get(self.position).cloned() else { return };
        self.position += 1;
        let has_own_file =
            self.tokens.get(self.position).is_some_and(|(_, token)| *token == SourceToken::Mark(';'));
        self.position += 1;
        let is_counted = is_compiled(attributes);
        if has_own_file {
            let path = attributes.iter().find_map(|attribute| attribute.strip_prefix("path=\""));
            if is_counted {
                scan.modules.push((name, path.map(|path| path.trim_end_matches('"').to_owned())));
            }
        } else if is_counted {
            self.read_items(scan);
        } else {
            // Back to the `{`, so that the block is skipped.
            self.position -= 1;
            self.skip_item();
        }
    }

    /// Skips the rest of an item, to its `;` or to the end of its block, and returns the skipped tokens.
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

/// Returns `true` if a function with these attributes is a test that runs.
fn is_test(attributes: &[String]) -> bool {
    let is_test_attribute = |attribute: &String| {
        let name = attribute.split('(').next().unwrap_or_default();
        name == "test" || name.ends_with("::test")
    };
    let is_ignored = |attribute: &String| attribute == "ignore" || attribute.starts_with("ignore=");
    attributes.iter().any(is_test_attribute) && !attributes.iter().any(is_ignored) && is_compiled(attributes)
}

/// Conditions that hold where the tests run.
const TRUE_CONDITIONS: &[&str] = &["cfg(test)", "cfg(unix)", "cfg(target_os=\"linux\")"];

/// Returns `true` if an item with these attributes is compiled where the tests run.
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
    fn comments_count_in_and_above_tests_only() {
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
    fn texts_and_lifetimes_are_not_comments() {
        let text = "#[test]\nfn a<'a>(x: &'a str) {\n    let (b, c) = ('{', '\\'');\n    let d = r#\"// \"no\" {\"#;\n    \
                    f(\"// no\"); // in\n}\n// out\n";
        assert_eq!(comments(text), ["5:in"]);
    }

    #[test]
    fn compiled_modules_in_other_files_are_listed() {
        let text = "mod a;\n#[cfg(test)]\nmod b;\n#[cfg(feature = \"x\")]\nmod c;\n#[path = \"e.rs\"]\npub(crate) mod d;\n";
        let modules = scan_source(text).modules;
        let file = Some("e.rs".to_owned());
        assert_eq!(modules, [("a".to_owned(), None), ("b".to_owned(), None), ("d".to_owned(), file)]);
    }
}
