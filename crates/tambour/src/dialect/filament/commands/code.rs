//! Code in commands and around them, of which nothing is evaluated: signs that an argument without quotes is code
//! and would have to be computed, where a bare word or date is a text; and conditions, loops and functions, in which
//! nobody knows whether a command is to be carried out.

use std::collections::HashSet;

use crate::lex::space::trim;

/// Words of JavaScript before an operand.
const PREFIXES: &[&str] = &["new", "typeof", "await", "void", "delete", "yield"];

/// Values of JavaScript that are no numbers of JSON.
const UNKNOWN: &[&str] = &["NaN", "Infinity"];

/// Returns whether a value is an expression, or a number as only JavaScript writes it.
pub(super) fn is_value_computed(text: &str) -> bool {
    let text = trim(text);
    let unsigned = text.trim_start_matches(['+', '-']);
    if UNKNOWN.contains(&unsigned) || is_numeral(text) || is_member(text) {
        return true;
    }
    text.contains(['\'', '"', '[', ']']) || is_expression(text)
}

/// Returns whether a path is an expression: one may have dots, brackets and quotes of its own.
pub(super) fn is_path_computed(text: &str) -> bool {
    is_expression(trim(text))
}

/// Returns whether a text between backticks has a substitution.
pub(super) fn has_template(text: &str) -> bool {
    let bytes = text.as_bytes();
    unescaped_bytes(text).any(|(at, quote)| quote == Some(b'`') && bytes[at..].starts_with(b"${"))
}

/// Returns whether text follows the bracket that closes the first one, as in `[1, 2][0]`.
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

/// The bytes of a text that are not escaped, each with the quote that is open there.
fn unescaped_bytes(text: &str) -> impl Iterator<Item = (usize, Option<u8>)> {
    let (mut quote, mut escaped) = (None, false);
    text.bytes().enumerate().filter_map(move |(at, byte)| {
        let open = quote;
        match (quote, byte) {
            _ if escaped => {
                escaped = false;
                return None;
            }
            (Some(_), b'\\') => escaped = true,
            (Some(open_quote), byte) if byte == open_quote => quote = None,
            (None, b'\'' | b'"' | b'`') => quote = Some(byte),
            _ => {}
        }
        Some((at, open))
    })
}

fn is_expression(text: &str) -> bool {
    let (first, rest) = text.split_once([' ', '\t', '\n']).unwrap_or((text, ""));
    let prefixed = PREFIXES.contains(&first) && !trim(rest).is_empty();
    prefixed
        || text.starts_with("...")
        || text.contains(['(', ')', '{', '}', '`', ';'])
        || text.contains(" instanceof ")
        || !is_date(text) && has_operator(text)
}

/// Returns whether an operator stands before an operand.
fn has_operator(text: &str) -> bool {
    let is_sign = |c: char| "+-*/%=<>&|^?!~".contains(c);
    // A question mark of a condition has a colon behind it.
    let colon = text.rfind(':');
    let mut rest = text;
    while let Some(found) = rest.find(is_sign) {
        let start = text.len() - rest.len() + found;
        rest = rest[found..].trim_start_matches(is_sign);
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
        let letter = |c: Option<char>| c.is_some_and(char::is_alphabetic);
        let is_text = match operator {
            "-" | "/" | "&" => letter(left) && letter(right),
            "?" => !trim(before).is_empty() && right != Some('.') && colon.is_none_or(|colon| colon < end),
            _ => !trim(before).is_empty() && operator.bytes().all(|byte| byte == b'!'),
        };
        if !is_text {
            return true;
        }
    }
    false
}

/// Returns whether a text is a number of JavaScript alone: `0x1F`, `007`, `1_000`, `5.`, `5n`.
fn is_numeral(text: &str) -> bool {
    let digits =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let is_radix_number = |text: &str| {
        let base = text.as_bytes().first().is_some_and(|base| b"xXoObB".contains(base));
        base && text.len() > 1 && text.bytes().skip(1).all(|byte| byte.is_ascii_hexdigit() || byte == b'_')
    };
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    unsigned.starts_with(|c: char| c.is_ascii_digit())
        && (digits(unsigned)
            || unsigned.strip_prefix('0').is_some_and(is_radix_number)
            || unsigned.strip_suffix(['.', 'n']).is_some_and(digits))
}

/// Returns whether a text is one name behind another, `a.b.c`.
fn is_member(text: &str) -> bool {
    let name = |part: &str| {
        let mark = |c: char| c == '_' || c == '$';
        part.starts_with(|c: char| c.is_alphabetic() || mark(c))
            && part.chars().all(|c| c.is_alphanumeric() || mark(c))
    };
    text.contains('.') && text.split('.').all(name)
}

/// Returns whether a text is a day, `2024-03-05`, `2024/3/5`, perhaps with a time behind it.
fn is_date(text: &str) -> bool {
    let (day, time) = text.split_once(['T', ' ']).unwrap_or((text, ""));
    ['-', '/', '.'].into_iter().any(|separator| is_day(day, separator)) && is_time(trim(time))
}

fn is_day(text: &str, separator: char) -> bool {
    let parts: Vec<&str> = text.splitn(4, separator).collect();
    matches!(&parts[..], [year, month, day]
        if year.len() == 4 && is_number(year, 4) && is_number(month, 2) && is_number(day, 2))
}

/// Returns whether a text is empty, or a time such as `12:30`, `12:30:00.5Z`, `12:30+08:00`.
fn is_time(text: &str) -> bool {
    let clock = |text: &str| {
        let clock_text = text
            .split_once('.')
            .map_or(text, |(clock_text, part)| if is_number(part, 9) { clock_text } else { "" });
        clock_text.contains(':')
            && clock_text.splitn(4, ':').count() < 4
            && clock_text.split(':').all(|part| is_number(part, 2))
    };
    let text = text.strip_suffix('Z').unwrap_or(text);
    match text.split_once(['+', '-']) {
        Some((time, zone)) => clock(time) && (clock(zone) || is_number(zone, 4)),
        None => text.is_empty() || clock(text),
    }
}

fn is_number(text: &str, max_len: usize) -> bool {
    (1..=max_len).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Words before a condition in brackets.
const CONDITIONS: &[&str] = &["if", "while", "for", "switch", "catch"];

/// Words before the name of a variable.
const DECLARATIONS: &[&str] = &["let", "const", "var"];

/// Reads the text beside commands, each byte once.
#[derive(Default)]
pub(super) struct Flow<'t> {
    /// Names that were declared.
    variables: HashSet<&'t str>,
    /// Brackets that are open, and whether a condition stands in them.
    brackets: Vec<bool>,
    /// Braces that are open, and whether what is in them is carried out only perhaps; and how many of these there are.
    braces: Vec<bool>,
    doubtful_count: usize,
    /// True if the next command is conditional.
    is_next_conditional: bool,
}

impl<'t> Flow<'t> {
    /// Goes on with text that is no command.
    pub(super) fn text(&mut self, text: &'t str) {
        let (mut rest, mut last) = (text, "");
        while let Some(c) = rest.chars().next() {
            let part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
            let len = rest.find(|c| !part(c)).unwrap_or(rest.len());
            if len > 0 {
                let word = &rest[..len];
                if DECLARATIONS.contains(&last) {
                    self.variables.insert(word);
                }
                self.is_next_conditional = word == "else";
                (last, rest) = (word, &rest[len..]);
                continue;
            }
            if c.is_whitespace() {
                rest = &rest[c.len_utf8()..];
                continue;
            }
            let mut step = c.len_utf8();
            match c {
                '(' => {
                    self.brackets.push(CONDITIONS.contains(&last));
                    self.is_next_conditional = false;
                }
                ')' => self.is_next_conditional = self.brackets.pop().unwrap_or(false),
                // Behind a bracket it is the body of a function.
                '{' => {
                    let function = text[..text.len() - rest.len()].trim_end().ends_with(')');
                    let is_doubtful = std::mem::take(&mut self.is_next_conditional) || function;
                    self.braces.push(is_doubtful);
                    self.doubtful_count += usize::from(is_doubtful);
                }
                '}' => {
                    self.doubtful_count -= usize::from(self.braces.pop().unwrap_or(false));
                    self.is_next_conditional = false;
                }
                _ => {
                    let operator = ["=>", "&&", "||"].into_iter().find(|op| rest.starts_with(op));
                    step = operator.map_or(step, str::len);
                    self.is_next_conditional = operator.is_some();
                }
            }
            last = "";
            rest = &rest[step..];
        }
    }

    /// Goes on with what was to be a command and is none. `open`: another one begins right behind it.
    pub(super) fn fault(&mut self, text: &'t str, open: bool) {
        self.text(text);
        if open {
            self.is_next_conditional = !text.trim_end_matches([' ', '\t']).ends_with([';', '}']);
        }
    }

    /// Returns whether a command at this place is conditional, and ends its statement.
    pub(super) fn command(&mut self) -> bool {
        std::mem::take(&mut self.is_next_conditional) || self.doubtful_count > 0
    }

    /// Returns whether a bare word is the name of a variable.
    pub(super) fn is_variable(&self, word: &str) -> bool {
        self.variables.contains(word)
    }
}
