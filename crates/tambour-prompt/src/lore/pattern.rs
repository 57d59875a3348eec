//! Translates regular expressions in JavaScript syntax, as books use them, to equivalent ones that run in
//! linear time.

use std::iter::Peekable;
use std::str::Chars;

/// Reason why a pattern cannot be translated.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The pattern is invalid in JavaScript too.
    Invalid(&'static str),
    /// The pattern is valid in JavaScript but cannot run in linear time.
    Beyond(&'static str),
}

type Done<T> = Result<T, Fault>;

/// JavaScript's classes cover ASCII only.
const DIGITS: &str = "0-9";
const WORD: &str = "0-9A-Za-z_";
const SPACE: &str = "\\s\\x{feff}";

/// Translates a pattern to the syntax of the `regex` crate. `flags` are those after the closing slash.
pub(super) fn translate(pattern: &str, flags: &str) -> Done<String> {
    let mut translator = Translator {
        rest: pattern.chars().peekable(),
        out: String::with_capacity(pattern.len() + pattern.len() / 2),
        unicode: flags.contains('u'),
        dot: if flags.contains('s') { "(?s:.)" } else { "[^\\n\\r\\x{2028}\\x{2029}]" },
    };
    translator.run()?;
    let out = translator.out;
    // A sticky pattern matches at the start of the text.
    Ok(if flags.contains('y') { format!("\\A(?:{out})") } else { out })
}

struct Translator<'p> {
    rest: Peekable<Chars<'p>>,
    out: String,
    unicode: bool,
    dot: &'static str,
}

/// An element of a character class.
enum Atom {
    Char(char),
    /// A set, written as inside brackets.
    Set(String),
}

impl Translator<'_> {
    fn run(&mut self) -> Done<()> {
        let mut depth = 0_usize;
        // True if the previous element can be repeated.
        let mut atom = false;
        while let Some(c) = self.rest.next() {
            match c {
                '\\' => atom = self.escape()?,
                '[' => {
                    self.class()?;
                    atom = true;
                }
                '(' => {
                    self.group()?;
                    depth += 1;
                    atom = false;
                }
                ')' => {
                    depth =
                        depth.checked_sub(1).ok_or(Fault::Invalid("a bracket closes that is not open"))?;
                    self.out.push(')');
                    atom = true;
                }
                '|' | '^' | '$' => {
                    self.out.push(c);
                    atom = false;
                }
                '.' => {
                    self.out.push_str(self.dot);
                    atom = true;
                }
                '*' | '+' | '?' => {
                    self.repeat(&c.to_string(), atom)?;
                    atom = false;
                }
                '{' => atom = self.braces(atom)?,
                '}' | ']' if self.unicode => return Err(Fault::Invalid("a bracket closes that is not open")),
                c => {
                    self.literal(c);
                    atom = true;
                }
            }
        }
        if depth == 0 { Ok(()) } else { Err(Fault::Invalid("a bracket is not closed")) }
    }

    fn literal(&mut self, c: char) {
        if "\\.+*?()|[]{}^$#&-~".contains(c) {
            self.out.push('\\');
        }
        self.out.push(c);
    }

    fn repeat(&mut self, sign: &str, atom: bool) -> Done<()> {
        if !atom {
            return Err(Fault::Invalid("there is nothing to repeat"));
        }
        self.out.push_str(sign);
        if self.rest.next_if_eq(&'?').is_some() {
            self.out.push('?');
        }
        Ok(())
    }

    /// Reads a repetition count, or a literal brace; returns whether the result can be repeated.
    fn braces(&mut self, atom: bool) -> Done<bool> {
        let mut ahead = self.rest.clone();
        let inside: String = ahead.by_ref().take(24).take_while(|c| *c != '}').collect();
        let closed = self.rest.clone().nth(inside.chars().count()) == Some('}');
        let (least, most) = inside.split_once(',').unwrap_or((&inside, &inside));
        let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !closed || !number(least) || !(number(most) || most.is_empty()) {
            if self.unicode {
                return Err(Fault::Invalid("a brace is no number of repetitions"));
            }
            self.literal('{');
            return Ok(true);
        }
        let value = |text: &str| text.parse::<u32>().unwrap_or(u32::MAX);
        if !most.is_empty() && value(least) > value(most) {
            return Err(Fault::Invalid("a number of repetitions is the wrong way round"));
        }
        (0..=inside.chars().count()).for_each(|_| {
            self.rest.next();
        });
        self.repeat(&format!("{{{inside}}}"), atom)?;
        Ok(false)
    }

    /// Reads the beginning of a group, after its opening parenthesis.
    fn group(&mut self) -> Done<()> {
        self.out.push('(');
        if self.rest.next_if_eq(&'?').is_none() {
            return Ok(());
        }
        match self.rest.next() {
            Some(':') => self.out.push_str("?:"),
            Some('=' | '!') => return Err(Fault::Beyond("it looks ahead")),
            Some('<') => match self.rest.peek() {
                Some('=' | '!') => return Err(Fault::Beyond("it looks behind")),
                _ => {
                    // The name matters only to back references, which are not supported.
                    let name: String = self.rest.by_ref().take_while(|c| *c != '>').collect();
                    if !name.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '$') {
                        return Err(Fault::Invalid("a group has no name"));
                    }
                }
            },
            _ => return Err(Fault::Invalid("a group begins in a way that is not known")),
        }
        Ok(())
    }

    /// Reads an escape after its backslash; returns whether it can be repeated.
    fn escape(&mut self) -> Done<bool> {
        let Some(&c) = self.rest.peek() else { return Err(Fault::Invalid("it ends with a backslash")) };
        match c {
            'b' | 'B' => {
                self.rest.next();
                self.out.push_str(if c == 'b' { "(?-u:\\b)" } else { "(?-u:\\B)" });
                return Ok(false);
            }
            '1'..='9' => return Err(Fault::Beyond("it refers back to a group")),
            'k' if self.rest.clone().nth(1) == Some('<') => {
                return Err(Fault::Beyond("it refers back to a group"));
            }
            _ => {}
        }
        match self.escaped()? {
            Atom::Char(c) => self.literal(c),
            Atom::Set(set) => {
                self.out.push('[');
                self.out.push_str(&set);
                self.out.push(']');
            }
        }
        Ok(true)
    }

    /// Reads the characters that an escape stands for, inside or outside of a class.
    fn escaped(&mut self) -> Done<Atom> {
        let Some(c) = self.rest.next() else { return Err(Fault::Invalid("it ends with a backslash")) };
        let not = |set: &str| Atom::Set(format!("[^{set}]"));
        Ok(match c {
            'd' => Atom::Set(DIGITS.to_owned()),
            'D' => not(DIGITS),
            'w' => Atom::Set(WORD.to_owned()),
            'W' => not(WORD),
            's' => Atom::Set(SPACE.to_owned()),
            'S' => not(SPACE),
            'n' => Atom::Char('\n'),
            'r' => Atom::Char('\r'),
            't' => Atom::Char('\t'),
            'f' => Atom::Char('\x0c'),
            'v' => Atom::Char('\x0b'),
            '0' => Atom::Char('\0'),
            'c' => match self.rest.next_if(char::is_ascii_alphabetic) {
                Some(letter) => Atom::Char(char::from(letter as u8 % 32)),
                None => Atom::Char('c'),
            },
            'x' => Atom::Char(self.hex(2).and_then(char::from_u32).unwrap_or('x')),
            'u' => self.unicode_escape()?,
            'p' | 'P' if self.unicode && self.rest.peek() == Some(&'{') => {
                let name: String = self.rest.by_ref().skip(1).take_while(|c| *c != '}').collect();
                Atom::Set(format!("\\{c}{{{name}}}"))
            }
            c => Atom::Char(c),
        })
    }

    fn unicode_escape(&mut self) -> Done<Atom> {
        if self.unicode && self.rest.next_if_eq(&'{').is_some() {
            let digits: String = self.rest.by_ref().take_while(|c| *c != '}').collect();
            let code = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
            return code.map(Atom::Char).ok_or(Fault::Invalid("a character has no such number"));
        }
        let Some(first) = self.hex(4) else { return Ok(Atom::Char('u')) };
        if let Some(c) = char::from_u32(first) {
            return Ok(Atom::Char(c));
        }
        // A surrogate pair encodes one character.
        let mut ahead = self.rest.clone();
        if ahead.next() == Some('\\') && ahead.next() == Some('u') {
            let before = std::mem::replace(&mut self.rest, ahead);
            let second = self.hex(4).filter(|second| (0xdc00..0xe000).contains(second));
            if let Some(second) = second.filter(|_| first < 0xdc00) {
                let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return char::from_u32(code).map(Atom::Char).ok_or(Fault::Beyond("it has half a character"));
            }
            self.rest = before;
        }
        Err(Fault::Beyond("it has half a character"))
    }

    /// Reads a number of exactly `digits` hexadecimal digits, or nothing.
    fn hex(&mut self, digits: usize) -> Option<u32> {
        let text: String = self.rest.clone().take(digits).collect();
        let whole = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = whole.then(|| u32::from_str_radix(&text, 16).ok())??;
        (0..digits).for_each(|_| {
            self.rest.next();
        });
        Some(number)
    }

    /// Reads a character class after its opening bracket.
    fn class(&mut self) -> Done<()> {
        let negated = self.rest.next_if_eq(&'^').is_some();
        let mut set = String::new();
        while let Some(first) = self.atom()? {
            let range = self.rest.peek() == Some(&'-') && self.rest.clone().nth(1).is_some_and(|c| c != ']');
            let low = match (first, range) {
                (Atom::Char(low), true) => low,
                (Atom::Char(c), false) => {
                    set += &point(c);
                    continue;
                }
                (Atom::Set(part), _) => {
                    set += &part;
                    continue;
                }
            };
            self.rest.next();
            match self.atom()? {
                Some(Atom::Char(high)) if low > high => {
                    return Err(Fault::Invalid("a range of characters is the wrong way round"));
                }
                Some(Atom::Char(high)) => set += &format!("{}-{}", point(low), point(high)),
                Some(Atom::Set(part)) => set += &format!("{}{}{part}", point(low), point('-')),
                None => break,
            }
        }
        self.out.push_str(&match (set.is_empty(), negated) {
            (true, true) => "(?s:.)".to_owned(),
            (true, false) => "[a&&b]".to_owned(),
            (false, true) => format!("[^{set}]"),
            (false, false) => format!("[{set}]"),
        });
        Ok(())
    }

    /// Reads the next element of a class; `None` at its end.
    fn atom(&mut self) -> Done<Option<Atom>> {
        match self.rest.next() {
            None => Err(Fault::Invalid("a bracket is not closed")),
            Some(']') => Ok(None),
            Some('\\') if self.rest.next_if_eq(&'b').is_some() => Ok(Some(Atom::Char('\x08'))),
            Some('\\') => self.escaped().map(Some),
            Some(c) => Ok(Some(Atom::Char(c))),
        }
    }
}

/// Returns a class element for a character.
fn point(c: char) -> String {
    format!("\\x{{{:x}}}", u32::from(c))
}

#[cfg(test)]
mod tests {
    use super::{Fault, translate};

    /// Returns true if the pattern matches the text.
    fn found(pattern: &str, flags: &str, text: &str) -> bool {
        let translated = translate(pattern, flags).unwrap_or_else(|fault| panic!("{pattern}: {fault:?}"));
        let mut builder = regex::RegexBuilder::new(&translated);
        let builder = builder.case_insensitive(flags.contains('i')).multi_line(flags.contains('m'));
        builder.build().unwrap_or_else(|error| panic!("{pattern}: {error}")).is_match(text)
    }

    #[test]
    fn they_find_what_they_find_in_javascript() {
        for (pattern, flags, text, is) in [
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
            assert_eq!(found(pattern, flags, text), is, "/{pattern}/{flags} in {text:?}");
        }
    }

    #[test]
    fn what_is_none_is_told_from_what_is_beyond() {
        for pattern in ["c++", "(a", "a)", "[a", "*a", "a\\", "[z-a]", "a{3,2}", "(?a)", "a**"] {
            assert!(matches!(translate(pattern, ""), Err(Fault::Invalid(_))), "{pattern}");
        }
        for pattern in ["(?<=a)b", "a(?!b)", "(a)\\1", "(?<n>a)\\k<n>", "\\ud83d"] {
            assert!(matches!(translate(pattern, ""), Err(Fault::Beyond(_))), "{pattern}");
        }
    }
}
