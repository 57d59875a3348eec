//! Reader of calls in Python syntax, such as `[add(a=1, b=[True, None]), say("hi")]`: names and literals
//! only, never evaluated.

use serde_json::{Map, Number, Value};

use crate::dialect::MAX_EXCERPT_CHARS;
use crate::finding::{Doubt, clip};
use crate::limits::Limits;
use crate::repair::json::{self, ValueDoubt};
use crate::span::Place;
use crate::texts::format_count;

/// A call in Python syntax: its name and named arguments, and a doubt about them.
pub(super) struct PythonCall {
    pub(super) name: String,
    pub(super) args: Map<String, Value>,
    pub(super) doubt: Option<ValueDoubt>,
}

/// Reads one call, or a list of them. `Err` is a message that says what was expected.
pub(super) fn parse_calls(text: &str, limits: &Limits) -> Result<Vec<PythonCall>, String> {
    let mut reader = PythonReader::new(text, limits);
    let mut calls = Vec::new();
    reader.skip_space();
    if !reader.take_word("[") {
        calls.push(reader.read_call()?);
    } else {
        while !reader.take_word("]") {
            calls.push(reader.read_call()?);
            if !reader.take_word(",") && reader.peek() != Some(']') {
                return Err(reader.expected_error("a comma or the end of the list"));
            }
        }
    }
    reader.skip_space();
    if reader.offset < text.len() { Err(reader.expected_error("the end")) } else { Ok(calls) }
}

/// Reads text that is exactly one literal, and returns it with a doubt about it, if any.
pub(super) fn parse_literal(text: &str, limits: &Limits) -> Option<(Value, Option<ValueDoubt>)> {
    let mut reader = PythonReader { may_be_broken_json: true, ..PythonReader::new(text, limits) };
    let value = reader.read_value().ok()?;
    reader.skip_space();
    (reader.offset == text.len()).then_some((value, reader.doubt))
}

/// Recursive reader. Its methods read at `offset`, after white space, and return a message as error.
struct PythonReader<'a> {
    text: &'a str,
    /// Offset of the next byte to read.
    offset: usize,
    /// Number of nesting levels still allowed.
    levels_left: usize,
    /// Number of values still allowed.
    values_left: usize,
    limits: &'a Limits,
    /// Set if the text may also be broken JSON rather than Python: an escape that the two read differently
    /// then raises a doubt.
    may_be_broken_json: bool,
    /// The first doubt: about a value that is not exact, or that may differ from the intended one.
    doubt: Option<ValueDoubt>,
}

/// Maximum number of nesting levels, even if `limits.depth` allows more, since the reader is recursive.
const MAX_DEPTH: usize = 48;

/// Returns the nesting depth that these limits and the reader allow.
fn max_depth(limits: &Limits) -> usize {
    limits.depth.min(MAX_DEPTH)
}

impl<'a> PythonReader<'a> {
    fn new(text: &'a str, limits: &'a Limits) -> PythonReader<'a> {
        PythonReader {
            text,
            offset: 0,
            levels_left: max_depth(limits),
            values_left: limits.items,
            limits,
            may_be_broken_json: false,
            doubt: None,
        }
    }

    /// Returns the text that is not read yet.
    fn rest(&self) -> &str {
        &self.text[self.offset..]
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.offset += rest.len() - rest.trim_start().len();
    }

    /// Returns the next character that is not white space.
    fn peek(&mut self) -> Option<char> {
        self.skip_space();
        self.rest().chars().next()
    }

    /// Reads `word` if it comes next; returns whether it did.
    fn take_word(&mut self, word: &str) -> bool {
        self.skip_space();
        let is_match = self.rest().starts_with(word);
        self.offset += if is_match { word.len() } else { 0 };
        is_match
    }

    /// Returns an error that says what was expected here.
    fn expected_error(&self, expected: &str) -> String {
        format!("{expected} was expected at byte {} of the call", self.offset)
    }

    /// Returns an error for a second value of an argument or key; `noun` names its kind.
    fn repetition_error(&self, noun: &str, key: &str) -> String {
        format!(
            "the {noun} `{}` is given twice, at byte {} of the call",
            clip(key, MAX_EXCERPT_CHARS),
            self.offset
        )
    }

    /// Reads a name, possibly with dots.
    fn read_name(&mut self) -> Result<String, String> {
        self.skip_space();
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '.')).unwrap_or(rest.len());
        let name = rest[..end].to_owned();
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(self.expected_error("a name"));
        }
        self.offset += end;
        Ok(name)
    }

    /// Reads a call with named arguments.
    fn read_call(&mut self) -> Result<PythonCall, String> {
        let name = self.read_name()?;
        if !self.take_word("(") {
            return Err(self.expected_error("`(`"));
        }
        let mut args = Map::new();
        while !self.take_word(")") {
            let key = self.read_name()?;
            if !self.take_word("=") {
                return Err(self.expected_error("a named argument"));
            }
            let value = self.read_value()?;
            if args.contains_key(&key) {
                return Err(self.repetition_error("argument", &key));
            }
            args.insert(key, value);
            if !self.take_word(",") && self.peek() != Some(')') {
                return Err(self.expected_error("a comma or `)`"));
            }
        }
        Ok(PythonCall { name, args, doubt: self.doubt.take() })
    }

    /// Reads a value of any type.
    fn read_value(&mut self) -> Result<Value, String> {
        self.values_left =
            self.values_left.checked_sub(1).ok_or("the call has more values than `limits.items`")?;
        match self.peek() {
            Some('[') => self.read_list('[', ']'),
            Some('(') => self.read_list('(', ')'),
            Some('{') => self.read_nested(Self::read_dict),
            Some('"' | '\'') => self.read_strings(),
            Some(c) if c.is_ascii_digit() || matches!(c, '-' | '+' | '.') => self.read_number(),
            _ => self.read_keyword(),
        }
    }

    /// Calls `read` one nesting level deeper.
    fn read_nested<T>(&mut self, read: fn(&mut Self) -> Result<T, String>) -> Result<T, String> {
        self.levels_left = self.levels_left.checked_sub(1).ok_or_else(|| {
            format!("the call is nested deeper than {}", format_count(max_depth(self.limits), "level"))
        })?;
        let value = read(self);
        self.levels_left += 1;
        value
    }

    /// Reads a list or tuple; parentheses around one value without a comma only group it.
    fn read_list(&mut self, open: char, close: char) -> Result<Value, String> {
        self.offset += open.len_utf8();
        let (mut items, mut has_comma) = (Vec::new(), false);
        while self.peek() != Some(close) {
            items.push(self.read_nested(Self::read_value)?);
            if self.take_word(",") {
                has_comma = true;
            } else if self.peek() != Some(close) {
                return Err(self.expected_error("a comma or a closing bracket"));
            }
        }
        self.offset += close.len_utf8();
        match items.pop() {
            Some(item) if close == ')' && !has_comma => Ok(item),
            Some(item) => {
                items.push(item);
                Ok(Value::Array(items))
            }
            None => Ok(Value::Array(items)),
        }
    }

    /// Reads a dictionary; keys that are numbers become strings.
    fn read_dict(&mut self) -> Result<Value, String> {
        self.offset += 1;
        let mut fields = Map::new();
        while !self.take_word("}") {
            let key = match self.read_value()? {
                Value::String(key) => key,
                Value::Number(key) => key.to_string(),
                _ => return Err(self.expected_error("a key that is a string")),
            };
            if !self.take_word(":") {
                return Err(self.expected_error("`:`"));
            }
            let value = self.read_value()?;
            if fields.contains_key(&key) {
                return Err(self.repetition_error("key", &key));
            }
            fields.insert(key, value);
            if !self.take_word(",") && self.peek() != Some('}') {
                return Err(self.expected_error("a comma or `}`"));
            }
        }
        Ok(Value::Object(fields))
    }

    /// Reads a boolean or null, in the spelling of Python or JSON.
    fn read_keyword(&mut self) -> Result<Value, String> {
        let start = self.offset;
        let value = match self.read_name()?.as_str() {
            "True" | "true" => Value::Bool(true),
            "False" | "false" => Value::Bool(false),
            "None" | "null" => Value::Null,
            _ => {
                self.offset = start;
                return Err(self.expected_error("a literal"));
            }
        };
        Ok(value)
    }

    /// Reads an integer or a decimal number; a number that no double holds exactly raises a doubt.
    fn read_number(&mut self) -> Result<Value, String> {
        let rest = self.rest();
        let is_number_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.' | '_');
        // A sign belongs to the number only at the start or directly after `e`. `previous` starts as `e`, so
        // that the number may start with a sign.
        let mut previous = 'e';
        let end = rest
            .find(|c: char| {
                let ends_number = matches!(c, '-' | '+') && !matches!(previous, 'e' | 'E');
                previous = c;
                ends_number || !is_number_char(c)
            })
            .unwrap_or(rest.len());
        let number_text = rest[..end].replace('_', "");
        let (is_negative, unsigned) = match number_text.strip_prefix('-') {
            Some(unsigned) => (true, unsigned),
            None => (false, number_text.strip_prefix('+').unwrap_or(&number_text)),
        };
        let radixes = [("0x", 16), ("0o", 8), ("0b", 2)];
        let lowercase = unsigned.to_ascii_lowercase();
        let radix_value = radixes.iter().find_map(|(prefix, radix)| {
            let value = i64::from_str_radix(lowercase.strip_prefix(prefix)?, *radix).ok()?;
            Some(Number::from(if is_negative { -value } else { value }))
        });
        let decimal = || number_text.trim_start_matches('+').parse::<i64>().ok().map(Number::from);
        let float = || {
            // Other texts that Rust parses, such as `inf`, are not Python numbers.
            let is_python_float =
                unsigned.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'-' | b'+'));
            number_text.parse::<f64>().ok().filter(|_| is_python_float).and_then(Number::from_f64)
        };
        let number = radix_value
            .or_else(decimal)
            .or_else(|| unsigned.parse::<u64>().ok().filter(|_| !is_negative).map(Number::from));
        if number.is_none() {
            // The JSON reader decides whether a double holds the number exactly.
            let found = json::find(&number_text, self.limits);
            let inexact_doubt =
                found.doubts.iter().find(|doubt| doubt.doubt == Doubt::InexactNumber).cloned();
            if inexact_doubt.is_some() {
                self.offset += end;
                self.doubt = self.doubt.take().or(inexact_doubt);
                return Ok(found.value.unwrap_or_default());
            }
        }
        let number = number.or_else(float).ok_or_else(|| self.expected_error("a number"))?;
        self.offset += end;
        Ok(Value::Number(number))
    }

    /// Reads one string, or adjacent ones, which are concatenated. Adjacent strings are doubtful: a quote may
    /// be superfluous.
    fn read_strings(&mut self) -> Result<Value, String> {
        let (start, mut text, mut count) = (self.offset, String::new(), 0);
        while let Some(quote @ ('"' | '\'')) = self.peek() {
            self.read_string(quote, &mut text)?;
            count += 1;
        }
        if count > 1 {
            let place = Place::START.end_of(&self.text[..start]);
            let doubt = || ValueDoubt::guess(place, self.offset, "strings are side by side");
            self.doubt.get_or_insert_with(doubt);
        }
        Ok(Value::String(text))
    }

    /// Reads one string in single or triple quotes, and appends it to `out`.
    fn read_string(&mut self, quote: char, out: &mut String) -> Result<(), String> {
        let triple_quote = [quote; 3].iter().collect::<String>();
        let end_quote = if self.rest().starts_with(&triple_quote) { triple_quote } else { quote.to_string() };
        self.offset += end_quote.len();
        loop {
            let rest = &self.text[self.offset..];
            let len = rest.find([quote, '\\']).ok_or_else(|| self.expected_error("the end of a string"))?;
            out.push_str(&rest[..len]);
            self.offset += len;
            if self.rest().starts_with(&end_quote) {
                self.offset += end_quote.len();
                return Ok(());
            }
            self.offset += 1;
            if rest[len..].starts_with('\\') {
                self.read_escape(out)?;
            } else {
                out.push(quote);
            }
        }
    }

    /// Reads an escape after its backslash, and appends its character to `out`.
    fn read_escape(&mut self, out: &mut String) -> Result<(), String> {
        let c = self.rest().chars().next().ok_or_else(|| self.expected_error("an escaped character"))?;
        self.offset += c.len_utf8();
        match c {
            // A backslash at the end of a line joins the lines.
            '\n' => {}
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            'a' => out.push('\x07'),
            'b' => out.push('\x08'),
            'f' => out.push('\x0C'),
            'v' => out.push('\x0B'),
            '\\' | '\'' | '"' => out.push(c),
            'x' => out.push(self.read_hex_char(2)?),
            'u' => out.push(self.read_utf16_char()?),
            'U' => out.push(self.read_hex_char(8)?),
            // Up to three octal digits.
            '0'..='7' => {
                let more_len = self.rest().bytes().take(2).take_while(|b| matches!(b, b'0'..=b'7')).count();
                let digits = &self.text[self.offset - 1..self.offset + more_len];
                let code = u32::from_str_radix(digits, 8).unwrap_or_default();
                out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                self.offset += more_len;
            }
            // Unknown escape: the backslash is kept, as in Python.
            other => {
                out.extend(['\\', other]);
                if self.may_be_broken_json {
                    let (text, at) = (self.text, self.offset);
                    self.doubt.get_or_insert_with(|| {
                        let place = Place::START.end_of(&text[..at]);
                        ValueDoubt::guess(place, at, "JSON reads an escape differently")
                    });
                }
            }
        }
        Ok(())
    }

    /// Reads a character written as this many hexadecimal digits.
    fn read_hex_char(&mut self, digit_count: usize) -> Result<char, String> {
        let code = self.read_hex(digit_count)?;
        Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    /// Reads a number of this many hexadecimal digits.
    fn read_hex(&mut self, digit_count: usize) -> Result<u32, String> {
        let code = self.rest().get(..digit_count).filter(|code| code.bytes().all(|b| b.is_ascii_hexdigit()));
        let code = code.and_then(|code| u32::from_str_radix(code, 16).ok());
        let code = code.ok_or_else(|| self.expected_error("a code of hexadecimal digits"))?;
        self.offset += digit_count;
        Ok(code)
    }

    /// Reads a character written as four hexadecimal digits or, as in JSON, as a surrogate pair of two such
    /// escapes.
    fn read_utf16_char(&mut self) -> Result<char, String> {
        let first = self.read_hex(4)?;
        if (0xD800..0xDC00).contains(&first) && self.rest().starts_with("\\u") {
            let start = self.offset;
            self.offset += 2;
            let second = self.read_hex(4)?;
            if (0xDC00..0xE000).contains(&second) {
                let code = 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.offset = start;
        }
        Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER))
    }
}
