//! Remedies for conditions written in the syntax of other languages.

use tambour::texts::{Language, bilingual};

/// Operators of other languages and full-width signs, longer ones first, with their replacements.
const SIGNS: [(&str, &str); 24] = [
    ("===", "=="),
    ("!==", "!="),
    ("&&", "and"),
    ("||", "or"),
    ("<>", "!="),
    ("=>", ">="),
    ("=<", "<="),
    ("≥", ">="),
    ("≤", "<="),
    ("≠", "!="),
    ("＝", "=="),
    ("＞", ">"),
    ("＜", "<"),
    ("！", "not"),
    ("（", "("),
    ("）", ")"),
    ("，", ","),
    ("“", "\""),
    ("”", "\""),
    ("‘", "'"),
    ("’", "'"),
    ("==", "=="),
    ("!=", "!="),
    ("&", "and"),
];

/// Words of other languages, with their replacements.
const WORDS: [(&str, &str); 15] = [
    ("AND", "and"),
    ("OR", "or"),
    ("NOT", "not"),
    ("And", "and"),
    ("Or", "or"),
    ("Not", "not"),
    ("IN", "in"),
    ("且", "and"),
    ("并且", "and"),
    ("和", "and"),
    ("或", "or"),
    ("或者", "or"),
    ("非", "not"),
    ("TRUE", "true"),
    ("FALSE", "false"),
];

/// Returns the replacement for a name that stands for `none` or an operator elsewhere.
pub(super) fn find_replacement(name: &str) -> Option<&'static str> {
    match name {
        "null" | "NULL" | "Null" | "nil" | "undefined" => Some("none"),
        _ => WORDS.iter().find(|(word, _)| *word == name).map(|(_, replacement)| *replacement),
    }
}

/// Returns remedies for an invalid condition, without duplicates.
pub(super) fn find_remedies(condition: &str, language: Language) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut add = |text: String| {
        if !found.contains(&text) {
            found.push(text);
        }
    };
    let replacement = |symbol: &str, replacement: &str| {
        bilingual!(language, "`{}` 请写成 `{}`", "write `{1}` for `{0}`", symbol, replacement)
    };
    let mut at = 0;
    while let Some(c) = condition[at..].chars().next() {
        let rest = &condition[at..];
        if matches!(c, '\'' | '"') {
            // A string literal.
            let end = rest[1..].find(c).map_or(rest.len(), |end| end + 2);
            at += end;
            continue;
        }
        if c == '{' {
            let name =
                rest.trim_start_matches(['{', '%']).split(['}', '%']).next().unwrap_or_default().trim();
            if is_name(name) {
                add(bilingual!(
                    language,
                    "条件里的变量不加花括号：`{}`",
                    "in a condition a variable has no braces: `{}`",
                    name
                ));
            }
            at += 1;
            continue;
        }
        if let Some((symbol, word)) = SIGNS.iter().find(|(symbol, _)| rest.starts_with(symbol)) {
            if symbol != word {
                add(replacement(symbol, word));
            }
            at += symbol.len();
            continue;
        }
        match c {
            '<' | '>' => at += 1 + usize::from(rest[1..].starts_with('=')),
            '=' => {
                add(bilingual!(language, "比较相等请写 `==`，不是 `=`", "write `==` to compare, not `=`"));
                at += 1;
            }
            '!' => {
                add(replacement("!", "not"));
                at += 1;
            }
            c if c.is_alphanumeric() || c == '_' => {
                let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
                let word = &rest[..end];
                if let Some((word, other)) = WORDS.iter().find(|(candidate, _)| *candidate == word) {
                    add(replacement(word, other));
                }
                at += end;
            }
            c => at += c.len_utf8(),
        }
    }
    found
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}
