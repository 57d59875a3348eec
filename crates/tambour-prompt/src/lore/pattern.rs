//! Translates regular expressions in JavaScript syntax, as books use them, to equivalent ones that run in
//! linear time.

use std::iter::Peekable;
use std::str::Chars;

/// Reason why a pattern cannot be translated.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PatternError {
    /// The pattern is invalid in JavaScript too.
    Invalid(&'static str),
    /// The pattern is valid in JavaScript but cannot run in linear time.
    Unsupported(&'static str),
}

type PatternResult<T> = Result<T, PatternError>;

// Contents of character classes. In JavaScript, digits and words are ASCII only, and the byte order mark
// counts as white space.
const DIGITS: &str = "0-9";
const WORD: &str = "0-9A-Za-z_";
const SPACE: &str = "\\s\\x{feff}";

/// Translates a pattern to the syntax of the `regex` crate. `flags` are the letters after the closing slash:
/// `s`, `u` and `y` are translated here, the caller sets `i` and `m` on the expression, `g` has no effect.
pub(super) fn translate_pattern(pattern: &str, flags: &str) -> PatternResult<String> {
    let mut translator = PatternTranslator {
        chars: pattern.chars().peekable(),
        out: String::with_capacity(pattern.len() + pattern.len() / 2),
        is_unicode: flags.contains('u'),
        dot_class: if flags.contains('s') { "(?s:.)" } else { "[^\\n\\r\\x{2028}\\x{2029}]" },
    };
    translator.run()?;
    let out = translator.out;
    // A sticky pattern matches at the start of the text.
    Ok(if flags.contains('y') { format!("\\A(?:{out})") } else { out })
}

/// Translator of one pattern.
struct PatternTranslator<'p> {
    /// Characters of the pattern not yet read.
    chars: Peekable<Chars<'p>>,
    /// Translation so far.
    out: String,
    /// True with the flag `u`.
    is_unicode: bool,
    /// Translation of `.`.
    dot_class: &'static str,
}

/// Meaning of an escape, or an element of a character class.
enum ClassAtom {
    Char(char),
    /// A set of characters, in the syntax for the inside of brackets.
    Set(String),
}

impl PatternTranslator<'_> {
    /// Translates the whole pattern.
    fn run(&mut self) -> PatternResult<()> {
        let mut group_depth = 0_usize;
        // True if the previous element can be repeated.
        let mut is_repeatable = false;
        while let Some(c) = self.chars.next() {
            match c {
                '\\' => is_repeatable = self.read_escape()?,
                '[' => {
                    self.read_class()?;
                    is_repeatable = true;
                }
                '(' => {
                    self.read_group()?;
                    group_depth += 1;
                    is_repeatable = false;
                }
                ')' => {
                    group_depth = group_depth
                        .checked_sub(1)
                        .ok_or(PatternError::Invalid("a closing bracket has no opening bracket"))?;
                    self.out.push(')');
                    is_repeatable = true;
                }
                '|' | '^' | '$' => {
                    self.out.push(c);
                    is_repeatable = false;
                }
                '.' => {
                    self.out.push_str(self.dot_class);
                    is_repeatable = true;
                }
                '*' | '+' | '?' => {
                    self.push_repeat(&c.to_string(), is_repeatable)?;
                    is_repeatable = false;
                }
                '{' => is_repeatable = self.read_braces(is_repeatable)?,
                '}' | ']' if self.is_unicode => {
                    return Err(PatternError::Invalid("a closing bracket has no opening bracket"));
                }
                c => {
                    self.push_literal(c);
                    is_repeatable = true;
                }
            }
        }
        if group_depth == 0 { Ok(()) } else { Err(PatternError::Invalid("a bracket is not closed")) }
    }

    /// Writes a character that stands for itself.
    fn push_literal(&mut self, c: char) {
        if "\\.+*?()|[]{}^$#&-~".contains(c) {
            self.out.push('\\');
        }
        self.out.push(c);
    }

    /// Writes a quantifier, and the `?` that makes it lazy. `is_repeatable` tells whether the previous
    /// element can be repeated.
    fn push_repeat(&mut self, quantifier: &str, is_repeatable: bool) -> PatternResult<()> {
        if !is_repeatable {
            return Err(PatternError::Invalid("there is nothing to repeat"));
        }
        self.out.push_str(quantifier);
        if self.chars.next_if_eq(&'?').is_some() {
            self.out.push('?');
        }
        Ok(())
    }

    /// Reads a repetition count, or a literal brace; returns true if the result can be repeated.
    fn read_braces(&mut self, is_repeatable: bool) -> PatternResult<bool> {
        // Braces around more than 24 characters do not count as a repetition.
        let mut lookahead = self.chars.clone();
        let content: String = lookahead.by_ref().take(24).take_while(|c| *c != '}').collect();
        let is_closed = self.chars.clone().nth(content.chars().count()) == Some('}');
        let (min, max) = content.split_once(',').unwrap_or((&content, &content));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_closed || !is_number(min) || !(is_number(max) || max.is_empty()) {
            if self.is_unicode {
                return Err(PatternError::Invalid("the braces do not hold a number of repetitions"));
            }
            self.push_literal('{');
            return Ok(true);
        }
        let parse_count = |text: &str| text.parse::<u32>().unwrap_or(u32::MAX);
        if !max.is_empty() && parse_count(min) > parse_count(max) {
            return Err(PatternError::Invalid("the least number of repetitions is above the most"));
        }
        // Skips the content and the closing brace.
        (0..=content.chars().count()).for_each(|_| {
            self.chars.next();
        });
        self.push_repeat(&format!("{{{content}}}"), is_repeatable)?;
        Ok(false)
    }

    /// Reads the beginning of a group, after its opening parenthesis: a marker such as `?:`, if there is one.
    fn read_group(&mut self) -> PatternResult<()> {
        self.out.push('(');
        if self.chars.next_if_eq(&'?').is_none() {
            return Ok(());
        }
        match self.chars.next() {
            Some(':') => self.out.push_str("?:"),
            Some('=' | '!') => return Err(PatternError::Unsupported("it looks ahead")),
            Some('<') => match self.chars.peek() {
                Some('=' | '!') => return Err(PatternError::Unsupported("it looks behind")),
                _ => {
                    // The name matters only to back references, which are not supported.
                    let name: String = self.chars.by_ref().take_while(|c| *c != '>').collect();
                    if !name.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '$') {
                        return Err(PatternError::Invalid("a group has no name"));
                    }
                }
            },
            _ => return Err(PatternError::Invalid("a group begins with an unknown marker after `(?`")),
        }
        Ok(())
    }

    /// Reads an escape after its backslash; returns true if it can be repeated.
    fn read_escape(&mut self) -> PatternResult<bool> {
        let Some(&c) = self.chars.peek() else {
            return Err(PatternError::Invalid("it ends with a backslash"));
        };
        match c {
            'b' | 'B' => {
                self.chars.next();
                // Word boundaries are ASCII only in JavaScript.
                self.out.push_str(if c == 'b' { "(?-u:\\b)" } else { "(?-u:\\B)" });
                return Ok(false);
            }
            '1'..='9' => return Err(PatternError::Unsupported("it refers back to a group")),
            'k' if self.chars.clone().nth(1) == Some('<') => {
                return Err(PatternError::Unsupported("it refers back to a group"));
            }
            _ => {}
        }
        match self.read_escaped()? {
            ClassAtom::Char(c) => self.push_literal(c),
            ClassAtom::Set(set) => {
                self.out.push('[');
                self.out.push_str(&set);
                self.out.push(']');
            }
        }
        Ok(true)
    }

    /// Reads the characters that an escape stands for, inside or outside of a class.
    fn read_escaped(&mut self) -> PatternResult<ClassAtom> {
        let Some(c) = self.chars.next() else {
            return Err(PatternError::Invalid("it ends with a backslash"));
        };
        let complement = |set: &str| ClassAtom::Set(format!("[^{set}]"));
        Ok(match c {
            'd' => ClassAtom::Set(DIGITS.to_owned()),
            'D' => complement(DIGITS),
            'w' => ClassAtom::Set(WORD.to_owned()),
            'W' => complement(WORD),
            's' => ClassAtom::Set(SPACE.to_owned()),
            'S' => complement(SPACE),
            'n' => ClassAtom::Char('\n'),
            'r' => ClassAtom::Char('\r'),
            't' => ClassAtom::Char('\t'),
            'f' => ClassAtom::Char('\x0c'),
            'v' => ClassAtom::Char('\x0b'),
            '0' => ClassAtom::Char('\0'),
            'c' => match self.chars.next_if(char::is_ascii_alphabetic) {
                // A control character: `\cA` is 1.
                Some(letter) => ClassAtom::Char(char::from(letter as u8 % 32)),
                None => ClassAtom::Char('c'),
            },
            'x' => ClassAtom::Char(self.read_hex(2).and_then(char::from_u32).unwrap_or('x')),
            'u' => self.read_unicode_escape()?,
            'p' | 'P' if self.is_unicode && self.chars.peek() == Some(&'{') => {
                let name: String = self.chars.by_ref().skip(1).take_while(|c| *c != '}').collect();
                ClassAtom::Set(format!("\\{c}{{{name}}}"))
            }
            c => ClassAtom::Char(c),
        })
    }

    /// Reads the digits after `\u`: `{…}` with the flag `u`, else four digits, or two escapes of a surrogate
    /// pair.
    fn read_unicode_escape(&mut self) -> PatternResult<ClassAtom> {
        if self.is_unicode && self.chars.next_if_eq(&'{').is_some() {
            let digits: String = self.chars.by_ref().take_while(|c| *c != '}').collect();
            let code = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
            return code.map(ClassAtom::Char).ok_or(PatternError::Invalid("a character number is not valid"));
        }
        let Some(first_unit) = self.read_hex(4) else { return Ok(ClassAtom::Char('u')) };
        if let Some(c) = char::from_u32(first_unit) {
            return Ok(ClassAtom::Char(c));
        }
        // A surrogate pair encodes one character.
        let mut lookahead = self.chars.clone();
        if lookahead.next() == Some('\\') && lookahead.next() == Some('u') {
            let saved_chars = std::mem::replace(&mut self.chars, lookahead);
            let second_unit = self.read_hex(4).filter(|unit| (0xdc00..0xe000).contains(unit));
            if let Some(second_unit) = second_unit.filter(|_| first_unit < 0xdc00) {
                let code = 0x1_0000 + ((first_unit - 0xd800) << 10) + (second_unit - 0xdc00);
                return char::from_u32(code)
                    .map(ClassAtom::Char)
                    .ok_or(PatternError::Unsupported("it has half of a surrogate pair"));
            }
            self.chars = saved_chars;
        }
        Err(PatternError::Unsupported("it has half of a surrogate pair"))
    }

    /// Reads a number of exactly `digits` hexadecimal digits; reads nothing and returns `None` if there are
    /// fewer.
    fn read_hex(&mut self, digits: usize) -> Option<u32> {
        let text: String = self.chars.clone().take(digits).collect();
        let is_complete = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = is_complete.then(|| u32::from_str_radix(&text, 16).ok())??;
        (0..digits).for_each(|_| {
            self.chars.next();
        });
        Some(number)
    }

    /// Reads a character class after its opening bracket.
    fn read_class(&mut self) -> PatternResult<()> {
        let is_negated = self.chars.next_if_eq(&'^').is_some();
        let mut set = String::new();
        while let Some(first) = self.read_atom()? {
            let is_range =
                self.chars.peek() == Some(&'-') && self.chars.clone().nth(1).is_some_and(|c| c != ']');
            let low = match (first, is_range) {
                (ClassAtom::Char(low), true) => low,
                (ClassAtom::Char(c), false) => {
                    set += &escape_code_point(c);
                    continue;
                }
                (ClassAtom::Set(inner_set), _) => {
                    set += &inner_set;
                    continue;
                }
            };
            self.chars.next();
            match self.read_atom()? {
                Some(ClassAtom::Char(high)) if low > high => {
                    return Err(PatternError::Invalid("a range of characters is in the wrong order"));
                }
                Some(ClassAtom::Char(high)) => {
                    set += &format!("{}-{}", escape_code_point(low), escape_code_point(high))
                }
                // Next to a set, the hyphen stands for itself.
                Some(ClassAtom::Set(inner_set)) => {
                    set += &format!("{}{}{inner_set}", escape_code_point(low), escape_code_point('-'))
                }
                None => break,
            }
        }
        self.out.push_str(&match (set.is_empty(), is_negated) {
            // `[^]` matches every character, and `[]` none.
            (true, true) => "(?s:.)".to_owned(),
            (true, false) => "[a&&b]".to_owned(),
            (false, true) => format!("[^{set}]"),
            (false, false) => format!("[{set}]"),
        });
        Ok(())
    }

    /// Reads the next element of a class; `None` at its end.
    fn read_atom(&mut self) -> PatternResult<Option<ClassAtom>> {
        match self.chars.next() {
            None => Err(PatternError::Invalid("a bracket is not closed")),
            Some(']') => Ok(None),
            // In a class, `\b` is a backspace.
            Some('\\') if self.chars.next_if_eq(&'b').is_some() => Ok(Some(ClassAtom::Char('\x08'))),
            Some('\\') => self.read_escaped().map(Some),
            Some(c) => Ok(Some(ClassAtom::Char(c))),
        }
    }
}

/// Returns the escape of a character in a class, by its number.
fn escape_code_point(c: char) -> String {
    format!("\\x{{{:x}}}", u32::from(c))
}

#[cfg(test)]
mod tests {
    use super::{PatternError, translate_pattern};

    /// Returns true if the pattern matches the text.
    fn is_match(pattern: &str, flags: &str, text: &str) -> bool {
        let regex_source =
            translate_pattern(pattern, flags).unwrap_or_else(|fault| panic!("{pattern}: {fault:?}"));
        let mut builder = regex::RegexBuilder::new(&regex_source);
        let builder = builder.case_insensitive(flags.contains('i')).multi_line(flags.contains('m'));
        builder.build().unwrap_or_else(|error| panic!("{pattern}: {error}")).is_match(text)
    }

    #[test]
    fn patterns_match_as_in_javascript() {
        for (pattern, flags, text, expected) in [
            ("dra+gon", "i", "a DRAAGON", true),
            ("\\bcat\\b", "", "a cat.", true),
            ("\\bcaf\\b", "", "café", true),
            ("\\b灰\\b", "", "灰", false),
            ("\\d", "", "٣", false),
            ("a.b", "", "a\rb", false),
            ("a.b", "s", "a\nb", true),
            ("^b$", "m", "a\nb\nc", true),
            ("^b$", "", "a\nb\nc", false),
            ("a{2}", "", "aa", true),
            ("a{x}", "", "a{x}", true),
            ("a{,2}", "", "a{,2}", true),
            ("[[]", "", "[", true),
            ("[a&&b]", "", "&", true),
            ("[a-c-]", "", "-", true),
            ("[\\w-]", "", "-", true),
            ("[\\]]", "", "]", true),
            ("[]", "", "x", false),
            ("[^]", "", "\n", true),
            ("a\\/b", "", "a/b", true),
            ("\\u0041\\x42\\cA", "", "AB\u{1}", true),
            ("\\ud83d\\ude00", "", "😀", true),
            ("\\u{1f600}", "u", "😀", true),
            ("(?<name>x)y", "", "xy", true),
            ("x", "y", "ax", false),
            ("]}", "", "]}", true),
            ("\\x01Tom:", "", "\u{1}Tom: hi", true),
            ("a#b c", "", "a#b c", true),
            ("\\Bat", "", "cat", true),
        ] {
            assert_eq!(is_match(pattern, flags, text), expected, "/{pattern}/{flags} in {text:?}");
        }
    }

    #[test]
    fn invalid_patterns_differ_from_unsupported_ones() {
        for pattern in ["c++", "(a", "a)", "[a", "*a", "a\\", "[z-a]", "a{3,2}", "(?a)", "a**"] {
            assert!(matches!(translate_pattern(pattern, ""), Err(PatternError::Invalid(_))), "{pattern}");
        }
        for pattern in ["(?<=a)b", "a(?!b)", "(a)\\1", "(?<n>a)\\k<n>", "\\ud83d"] {
            assert!(matches!(translate_pattern(pattern, ""), Err(PatternError::Unsupported(_))), "{pattern}");
        }
    }
}
