//! Detection of JavaScript in commands and around them; none of it is evaluated. An argument without
//! quotes is text if it is a word or a date, but code if it would have to be computed. In a condition, loop
//! or function it is not known whether a command runs.

use std::collections::HashSet;

use crate::lex::space::trim;

/// Operators of JavaScript that are words and come before their operand.
const PREFIX_OPERATORS: &[&str] = &["new", "typeof", "await", "void", "delete", "yield"];

/// Numbers of JavaScript that JSON cannot write.
const NON_JSON_NUMBERS: &[&str] = &["NaN", "Infinity"];

/// Returns whether a value without quotes is an expression, or a number in a notation that only JavaScript
/// has.
pub(super) fn is_value_computed(text: &str) -> bool {
    let text = trim(text);
    let unsigned = text.trim_start_matches(['+', '-']);
    if NON_JSON_NUMBERS.contains(&unsigned) || is_javascript_number(text) || is_member_access(text) {
        return true;
    }
    text.contains(['\'', '"', '[', ']']) || is_expression(text)
}

/// Returns whether a path without quotes is an expression. Dots, brackets and quotes are allowed in a path.
pub(super) fn is_path_computed(text: &str) -> bool {
    is_expression(trim(text))
}

/// Returns whether a text has a substitution `${…}` between backticks.
pub(super) fn has_template(text: &str) -> bool {
    let bytes = text.as_bytes();
    unescaped_bytes(text).any(|(at, quote)| quote == Some(b'`') && bytes[at..].starts_with(b"${"))
}

/// Returns whether text follows the bracket that closes the first bracket, as in `[1, 2][0]`.
pub(super) fn continues_after_bracket(text: &str) -> bool {
    let mut depth = 0_usize;
    for (at, _) in unescaped_bytes(text).filter(|(_, quote)| quote.is_none()) {
        match text.as_bytes()[at] {
            b'[' | b'{' | b'(' => depth += 1,
            b']' | b'}' | b')' => depth = depth.saturating_sub(1),
            _ => continue,
        }
        if depth == 0 {
            return at + 1 < text.len();
        }
    }
    false
}

/// Iterates over the offsets of the bytes that are not escaped, each with the quote that is open before it.
fn unescaped_bytes(text: &str) -> impl Iterator<Item = (usize, Option<u8>)> {
    let (mut quote, mut is_escaped) = (None, false);
    text.bytes().enumerate().filter_map(move |(at, byte)| {
        let quote_before = quote;
        match (quote, byte) {
            _ if is_escaped => {
                is_escaped = false;
                return None;
            }
            (Some(_), b'\\') => is_escaped = true,
            (Some(open_quote), byte) if byte == open_quote => quote = None,
            (None, b'\'' | b'"' | b'`') => quote = Some(byte),
            _ => {}
        }
        Some((at, quote_before))
    })
}

/// Returns whether a trimmed text is an expression with operators, calls or substitutions.
fn is_expression(text: &str) -> bool {
    let (first_word, rest) = text.split_once([' ', '\t', '\n']).unwrap_or((text, ""));
    let has_prefix = PREFIX_OPERATORS.contains(&first_word) && !trim(rest).is_empty();
    has_prefix
        || text.starts_with("...")
        || text.contains(['(', ')', '{', '}', '`', ';'])
        || text.contains(" instanceof ")
        || !is_date(text) && has_operator(text)
}

/// Returns whether a text has an operator before an operand. Signs within words, such as a hyphen, do not
/// count as operators.
fn has_operator(text: &str) -> bool {
    let is_operator_char = |c: char| "+-*/%=<>&|^?!~".contains(c);
    // A conditional expression `a ? b : c` has a colon after its question mark.
    let last_colon = text.rfind(':');
    let mut rest = text;
    while let Some(offset) = rest.find(is_operator_char) {
        let start = text.len() - rest.len() + offset;
        rest = rest[offset..].trim_start_matches(is_operator_char);
        let end = text.len() - rest.len();
        let (before, operator, after) = (&text[..start], &text[start..end], rest);
        if operator.contains("++") || operator.contains("--") {
            return true;
        }
        let (left, right) = (before.chars().next_back(), after.chars().next());
        if trim(after).is_empty() {
            // `A+`, `50%`, `who?`
            continue;
        }
        let is_letter = |c: Option<char>| c.is_some_and(char::is_alphabetic);
        // `A-B`, `and/or`, `Who? Me` and `Oh! Yes` are text.
        let is_text = match operator {
            "-" | "/" | "&" => is_letter(left) && is_letter(right),
            "?" => {
                !trim(before).is_empty() && right != Some('.') && last_colon.is_none_or(|colon| colon < end)
            }
            _ => !trim(before).is_empty() && operator.bytes().all(|byte| byte == b'!'),
        };
        if !is_text {
            return true;
        }
    }
    false
}

/// Returns whether a text is a number that JavaScript knows, but JSON does not: `0x1F`, `007`, `1_000`, `5.`,
/// `5n`. Also true for ordinary whole numbers; callers have parsed those before.
fn is_javascript_number(text: &str) -> bool {
    let is_digits =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let is_radix_number = |text: &str| {
        let has_base = text.as_bytes().first().is_some_and(|base| b"xXoObB".contains(base));
        has_base
            && text.len() > 1
            && text.bytes().skip(1).all(|byte| byte.is_ascii_hexdigit() || byte == b'_')
    };
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    unsigned.starts_with(|c: char| c.is_ascii_digit())
        && (is_digits(unsigned)
            || unsigned.strip_prefix('0').is_some_and(is_radix_number)
            || unsigned.strip_suffix(['.', 'n']).is_some_and(is_digits))
}

/// Returns whether a text consists of names separated by dots, `a.b.c`.
fn is_member_access(text: &str) -> bool {
    let is_name = |name: &str| {
        let is_name_sign = |c: char| c == '_' || c == '$';
        name.starts_with(|c: char| c.is_alphabetic() || is_name_sign(c))
            && name.chars().all(|c| c.is_alphanumeric() || is_name_sign(c))
    };
    text.contains('.') && text.split('.').all(is_name)
}

/// Returns whether a text is a day, `2024-03-05`, `2024/3/5` or `2024.3.5`, with or without a time after it.
fn is_date(text: &str) -> bool {
    let (day, time) = text.split_once(['T', ' ']).unwrap_or((text, ""));
    ['-', '/', '.'].into_iter().any(|separator| is_day(day, separator)) && is_time(trim(time))
}

/// Returns whether a text consists of year, month and day in digits, in this order.
fn is_day(text: &str, separator: char) -> bool {
    let parts: Vec<&str> = text.splitn(4, separator).collect();
    matches!(&parts[..], [year, month, day]
        if year.len() == 4 && is_number(year, 4) && is_number(month, 2) && is_number(day, 2))
}

/// Returns whether a text is empty, or a time such as `12:30`, `12:30:00.5Z`, `12:30+08:00`.
fn is_time(text: &str) -> bool {
    let is_clock = |text: &str| {
        // Seconds may have a fraction of up to nine digits.
        let whole_seconds = match text.split_once('.') {
            None => text,
            Some((whole_seconds, fraction)) if is_number(fraction, 9) => whole_seconds,
            Some(_) => "",
        };
        whole_seconds.contains(':')
            && whole_seconds.splitn(4, ':').count() < 4
            && whole_seconds.split(':').all(|number| is_number(number, 2))
    };
    let text = text.strip_suffix('Z').unwrap_or(text);
    match text.split_once(['+', '-']) {
        Some((time, zone)) => is_clock(time) && (is_clock(zone) || is_number(zone, 4)),
        None => text.is_empty() || is_clock(text),
    }
}

/// Returns whether a text consists of digits, at least one and at most `max_len`.
fn is_number(text: &str, max_len: usize) -> bool {
    (1..=max_len).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Keywords before a condition in brackets.
const CONDITION_KEYWORDS: &[&str] = &["if", "while", "for", "switch", "catch"];

/// Keywords before the name of a variable.
const DECLARATION_KEYWORDS: &[&str] = &["let", "const", "var"];

/// Tracks JavaScript around commands: variables, and conditions under which a command runs. Reads each byte
/// once.
#[derive(Default)]
pub(super) struct JavaScriptTracker<'t> {
    /// Names of the variables that were declared.
    variables: HashSet<&'t str>,
    /// One flag for each open round bracket: true if the bracket holds a condition.
    brackets: Vec<bool>,
    /// One flag for each open brace: true if it is uncertain that the content runs.
    braces: Vec<bool>,
    /// Number of `true` in `braces`.
    doubtful_count: usize,
    /// Set if the next command is conditional.
    is_next_conditional: bool,
}

impl<'t> JavaScriptTracker<'t> {
    /// Reads text between commands.
    pub(super) fn push_text(&mut self, text: &'t str) {
        let (mut rest, mut last_word) = (text, "");
        while let Some(c) = rest.chars().next() {
            let is_word_char = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
            let len = rest.find(|c| !is_word_char(c)).unwrap_or(rest.len());
            if len > 0 {
                let word = &rest[..len];
                if DECLARATION_KEYWORDS.contains(&last_word) {
                    self.variables.insert(word);
                }
                self.is_next_conditional = word == "else";
                (last_word, rest) = (word, &rest[len..]);
                continue;
            }
            if c.is_whitespace() {
                rest = &rest[c.len_utf8()..];
                continue;
            }
            let mut token_len = c.len_utf8();
            match c {
                '(' => {
                    self.brackets.push(CONDITION_KEYWORDS.contains(&last_word));
                    self.is_next_conditional = false;
                }
                ')' => self.is_next_conditional = self.brackets.pop().unwrap_or(false),
                '{' => {
                    // A brace after a round bracket may begin the body of a function.
                    let is_function_body = text[..text.len() - rest.len()].trim_end().ends_with(')');
                    let is_doubtful = std::mem::take(&mut self.is_next_conditional) || is_function_body;
                    self.braces.push(is_doubtful);
                    self.doubtful_count += usize::from(is_doubtful);
                }
                '}' => {
                    self.doubtful_count -= usize::from(self.braces.pop().unwrap_or(false));
                    self.is_next_conditional = false;
                }
                _ => {
                    let operator = ["=>", "&&", "||"].into_iter().find(|op| rest.starts_with(op));
                    token_len = operator.map_or(token_len, str::len);
                    self.is_next_conditional = operator.is_some();
                }
            }
            last_word = "";
            rest = &rest[token_len..];
        }
    }

    /// Reads text that begins like a command but is not one. `precedes_command` is set if a command follows
    /// directly.
    pub(super) fn push_invalid_command(&mut self, text: &'t str, precedes_command: bool) {
        self.push_text(text);
        if precedes_command {
            // Without an end of the statement, the next command may be part of this text.
            self.is_next_conditional = !text.trim_end_matches([' ', '\t']).ends_with([';', '}']);
        }
    }

    /// Reads a command, which ends its statement. Returns whether it is uncertain that the command runs.
    pub(super) fn push_command(&mut self) -> bool {
        std::mem::take(&mut self.is_next_conditional) || self.doubtful_count > 0
    }

    /// Returns whether a bare word is the name of a variable.
    pub(super) fn is_variable(&self, word: &str) -> bool {
        self.variables.contains(word)
    }
}
