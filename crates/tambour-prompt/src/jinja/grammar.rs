//! Parser of template expressions, following the engine's own grammar. It produces the edits that replace
//! each operator by a filter of ours: the engine does not charge for operators, a filter charges before it
//! runs.
//!
//! Filters bind more tightly than any operator, so `a + b * c` becomes `a |__add( b |__mul( c))`. An operator
//! is left in place if a literal operand bounds its cost. A template that this parser cannot read is not
//! rendered.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use super::operator_table::{METHODS, filter};
use super::source::{Token, TokenKind};
use super::{builtins, functions};

/// Deepest nesting of expressions, the same as in the engine.
const DEPTH: usize = 150;

/// Longest literal whose cost is that of the step it is used in.
const LITERAL: usize = 256;

/// An edit of the source: replaces the bytes `at..end` by `text`.
#[derive(Debug)]
pub(super) struct Edit {
    pub(super) at: usize,
    pub(super) end: usize,
    pub(super) text: Cow<'static, str>,
    /// Offset in the source that errors in the new text refer to.
    pub(super) origin: usize,
    /// Order of edits at the same offset: closing ones, opening ones (outermost first), replacements.
    order: (u8, i64),
}

/// Grammar of a tag after its keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// One expression.
    Expression,
    /// Expressions separated by commas.
    Expressions,
    /// An expression without `if`.
    Condition,
    /// `a, b in expression if expression recursive`.
    Loop,
    /// `a = expression, b = expression`.
    Assignments,
    /// `name(a, b=expression)`.
    Macro,
    /// `(a) expression`.
    Call,
    /// `name(expression) | name`.
    Filters,
    /// Nothing.
    Empty,
}

/// Returns the edits for the code in `tokens`, in order; `None` if it cannot be parsed. Macros defined in the
/// template take precedence over our functions of the same name; without `macros`, our functions are not
/// available.
pub(super) fn edits(
    source: &str,
    tokens: &[Token],
    form: Form,
    macros: Option<&HashSet<&str>>,
) -> Option<Vec<Edit>> {
    let reader = Reader { source, tokens, at: 0, edits: Vec::new(), depth: 0, macros, compared: None };
    read(reader, form).map(|(edits, _)| edits)
}

/// Operands of a comparison, as byte ranges of the source, with the operator between them.
pub(super) type Compared = (Range<usize>, &'static str, Range<usize>);

/// Returns the edits of one expression in which every comparison becomes a filter, and the list of
/// comparisons.
pub(super) fn comparing(source: &str, tokens: &[Token]) -> Option<(Vec<Edit>, Vec<Compared>)> {
    let compared = Some(Vec::new());
    let reader = Reader { source, tokens, at: 0, edits: Vec::new(), depth: 0, macros: None, compared };
    read(reader, Form::Expression)
}

fn read(mut reader: Reader<'_>, form: Form) -> Option<(Vec<Edit>, Vec<Compared>)> {
    let tokens = reader.tokens;
    match form {
        Form::Expression => drop(reader.expression()?),
        Form::Expressions => {
            reader.expression()?;
            while reader.eat(",") && reader.at < tokens.len() {
                reader.expression()?;
            }
        }
        Form::Condition => drop(reader.or()?),
        Form::Loop => reader.for_loop()?,
        Form::Assignments => reader.assignments()?,
        Form::Macro => {
            reader.name()?;
            reader.parameters()?;
        }
        Form::Call => {
            if reader.word() == "(" {
                reader.parameters()?;
            }
            reader.expression()?;
        }
        Form::Filters => reader.filter_chain()?,
        Form::Empty => {}
    }
    if reader.at < tokens.len() {
        return None;
    }
    let mut edits = reader.edits;
    edits.sort_by_key(|edit| (edit.at, edit.order));
    Some((edits, reader.compared.unwrap_or_default()))
}

/// Static knowledge about the value of an expression.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    Number,
    /// A text, `true` or `none`.
    Scalar,
    /// A list of numbers and scalars.
    Scalars,
    Nothing,
}

/// A parsed part of an expression.
#[derive(Clone, Copy)]
struct Part {
    start: usize,
    end: usize,
    known: Known,
    /// True if a filter appended to the part applies to all of it.
    tight: bool,
}

impl Part {
    fn is_literal(self) -> bool {
        matches!(self.known, Known::Number | Known::Scalar)
    }
}

struct Reader<'s> {
    source: &'s str,
    tokens: &'s [Token],
    at: usize,
    edits: Vec<Edit>,
    depth: usize,
    macros: Option<&'s HashSet<&'s str>>,
    /// Comparisons found so far, if all of them are to become filters.
    compared: Option<Vec<Compared>>,
}

impl<'s> Reader<'s> {
    fn token(&self) -> Option<&'s Token> {
        self.tokens.get(self.at)
    }

    /// Returns the text of the next token; empty at the end.
    fn word(&self) -> &'s str {
        self.word_at(self.at)
    }

    fn word_at(&self, at: usize) -> &'s str {
        self.tokens.get(at).map_or("", |token| &self.source[token.range.clone()])
    }

    fn eat(&mut self, word: &str) -> bool {
        let found = self.word() == word;
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, word: &str) -> Option<()> {
        self.eat(word).then_some(())
    }

    fn name(&mut self) -> Option<&'s Token> {
        let token = self.token().filter(|token| token.kind == TokenKind::Name)?;
        self.at += 1;
        Some(token)
    }

    fn start(&self) -> usize {
        self.token().map_or(self.source.len(), |token| token.range.start)
    }

    /// Returns the end of the last token that was read.
    fn end(&self) -> usize {
        self.at.checked_sub(1).and_then(|at| self.tokens.get(at)).map_or(0, |token| token.range.end)
    }

    fn part(&self, start: usize, known: Known, tight: bool) -> Part {
        Part { start, end: self.end(), known, tight }
    }

    fn close(&mut self, at: usize, text: impl Into<Cow<'static, str>>) {
        let order = (0, self.edits.len() as i64);
        self.edits.push(Edit { at, end: at, text: text.into(), origin: at, order });
    }

    fn open(&mut self, at: usize, text: &'static str) {
        let order = (1, -(self.edits.len() as i64));
        self.edits.push(Edit { at, end: at, text: text.into(), origin: at, order });
    }

    /// Replaces an operator whose first operand begins at `origin`.
    fn replace(&mut self, at: usize, end: usize, text: impl Into<Cow<'static, str>>, origin: usize) {
        let order = (2, self.edits.len() as i64);
        self.edits.push(Edit { at, end, text: text.into(), origin, order });
    }

    /// Adds parentheses around a part if a filter appended to it would not apply to all of it.
    fn tighten(&mut self, part: Part) {
        if !part.tight {
            self.open(part.start, "(");
            self.close(part.end, ")");
        }
    }

    /// Appends a filter without arguments to a part.
    fn filtered(&mut self, part: Part, sign: &str) {
        self.tighten(part);
        self.close(part.end, format!("|{}", filter(sign)));
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        self.depth += 1;
        if self.depth > DEPTH {
            return None;
        }
        let found = read(self);
        self.depth -= 1;
        found
    }

    fn expression(&mut self) -> Option<Part> {
        self.deeper(Reader::if_expression)
    }

    fn if_expression(&mut self) -> Option<Part> {
        let mut part = self.or()?;
        while self.eat("if") {
            self.or()?;
            if self.eat("else") {
                self.deeper(Reader::if_expression)?;
            }
            part = self.part(part.start, Known::Nothing, false);
        }
        Some(part)
    }

    fn or(&mut self) -> Option<Part> {
        let mut part = self.and()?;
        while self.eat("or") {
            self.and()?;
            part = self.part(part.start, Known::Nothing, false);
        }
        Some(part)
    }

    fn and(&mut self) -> Option<Part> {
        let mut part = self.not()?;
        while self.eat("and") {
            self.not()?;
            part = self.part(part.start, Known::Nothing, false);
        }
        Some(part)
    }

    fn not(&mut self) -> Option<Part> {
        let start = self.start();
        let mut negated = false;
        while self.eat("not") {
            negated = true;
        }
        let part = self.comparison()?;
        Some(if negated { self.part(start, Known::Nothing, false) } else { part })
    }

    fn comparison(&mut self) -> Option<Part> {
        let first = self.sum()?;
        // Operators with their offsets and right operands.
        let mut signs: Vec<(&'static str, usize, usize, Part)> = Vec::new();
        loop {
            let at = self.start();
            let sign = match self.word() {
                "==" => "==",
                "!=" => "!=",
                "<" => "<",
                "<=" => "<=",
                ">" => ">",
                ">=" => ">=",
                "in" => "in",
                "not" => {
                    self.at += 1;
                    if self.word() != "in" {
                        return None;
                    }
                    "not in"
                }
                _ => break,
            };
            self.at += 1;
            let end = self.end();
            let right = self.sum()?;
            signs.push((sign, at, end, right));
        }
        let Some(&(.., last)) = signs.last() else { return Some(first) };
        if let Some(compared) = &mut self.compared {
            let mut left = first;
            for &(sign, _, _, right) in &signs {
                compared.push((left.start..left.end, sign, right.start..right.end));
                left = right;
            }
        }
        let mut left = first;
        let short = self.compared.is_none()
            && signs.iter().all(|&(sign, _, _, right)| {
                let is_short = match sign {
                    "in" | "not in" => {
                        right.known == Known::Scalars || left.is_literal() && right.is_literal()
                    }
                    _ => left.is_literal() || right.is_literal(),
                };
                left = right;
                is_short
            });
        if short {
            return Some(self.part(first.start, Known::Nothing, false));
        }
        self.tighten(first);
        if let [(sign, at, end, right)] = signs[..] {
            self.replace(at, end, format!("|{}(", filter(sign)), first.start);
            self.close(right.end, ")");
        } else {
            for (place, &(sign, at, end, _)) in signs.iter().enumerate() {
                let head = if place == 0 { "|__chain(" } else { ", " };
                self.replace(at, end, format!("{head}\"{sign}\", "), first.start);
            }
            self.close(last.end, ")");
        }
        Some(self.part(first.start, Known::Nothing, true))
    }

    /// Parses `+` and `-`.
    fn sum(&mut self) -> Option<Part> {
        self.chain(Reader::concatenation, &["+", "-"], "+")
    }

    /// Parses `*`, `/`, `//` and `%`.
    fn product(&mut self) -> Option<Part> {
        self.chain(Reader::power, &["*", "/", "//", "%"], "*")
    }

    /// Parses operators of one precedence. The operator `grows` can make something long: unless its operands
    /// are known to be numbers, it becomes a filter, and with it all operators of the chain.
    fn chain(
        &mut self,
        operand: fn(&mut Self) -> Option<Part>,
        ranked: &[&'static str],
        grows: &str,
    ) -> Option<Part> {
        let first = operand(self)?;
        let mut left = first.known;
        let mut routed = false;
        let mut signs: Vec<(&'static str, usize, usize, usize)> = Vec::new();
        while let Some(&sign) = ranked.iter().find(|sign| **sign == self.word()) {
            let at = self.start();
            self.at += 1;
            let end = self.end();
            let right = operand(self)?;
            // A sum with a number is cheap: only numbers can be added to it.
            let number = |known| known == Known::Number;
            let short = if grows == "+" {
                number(left) || number(right.known)
            } else {
                number(left) && number(right.known)
            };
            routed |= sign == grows && !short;
            left = if number(left) && number(right.known) { Known::Number } else { Known::Nothing };
            signs.push((sign, at, end, right.end));
        }
        if signs.is_empty() {
            return Some(first);
        }
        if !routed {
            return Some(self.part(first.start, left, false));
        }
        self.tighten(first);
        for (sign, at, end, right) in signs {
            self.replace(at, end, format!("|{}(", filter(sign)), first.start);
            self.close(right, ")");
        }
        Some(self.part(first.start, Known::Nothing, true))
    }

    /// Parses `~`: all joined operands become arguments of one filter.
    fn concatenation(&mut self) -> Option<Part> {
        let first = self.product()?;
        let mut joined = false;
        while self.word() == "~" {
            let at = self.start();
            self.at += 1;
            let head: Cow<'static, str> =
                if joined { ",".into() } else { format!("|{}(", filter("~")).into() };
            self.replace(at, at + 1, head, first.start);
            self.product()?;
            joined = true;
        }
        if !joined {
            return Some(first);
        }
        self.tighten(first);
        let end = self.end();
        self.close(end, ")");
        Some(self.part(first.start, Known::Nothing, true))
    }

    /// Parses `**`, which takes only numbers.
    fn power(&mut self) -> Option<Part> {
        let mut part = self.unary()?;
        while self.eat("**") {
            self.unary()?;
            part = self.part(part.start, Known::Nothing, false);
        }
        Some(part)
    }

    fn unary(&mut self) -> Option<Part> {
        let part = self.negated()?;
        let part = self.postfix(part)?;
        self.filters(part)
    }

    fn negated(&mut self) -> Option<Part> {
        let start = self.start();
        let mut signs = 0;
        while self.eat("-") {
            signs += 1;
        }
        let part = self.deeper(Reader::primary)?;
        if signs == 0 {
            return Some(part);
        }
        let part = self.postfix(part)?;
        Some(Part {
            start,
            known: if part.known == Known::Number { Known::Number } else { Known::Nothing },
            ..part
        })
    }

    fn postfix(&mut self, mut part: Part) -> Option<Part> {
        loop {
            match self.word() {
                "." => {
                    let dot = self.start();
                    self.at += 1;
                    let token = self.token()?;
                    let index = token.kind == TokenKind::Number && is_number(self.word());
                    if token.kind != TokenKind::Name && !index {
                        return None;
                    }
                    if index {
                        self.indexed(part.start, dot);
                    }
                    let sign = METHODS.iter().find(|sign| sign[1..].strip_suffix("()") == Some(self.word()));
                    self.at += 1;
                    if let Some(sign) = sign.filter(|_| self.word() == "(") {
                        let bracket = self.start() + 1;
                        self.open(part.start, "(");
                        self.replace(dot, bracket, format!("|{}(", filter(sign)), part.start);
                        self.arguments(false)?;
                        let end = self.end();
                        self.close(end, ")");
                    }
                }
                "[" => self.subscript(part.start)?,
                // A loop that calls itself, under whatever name.
                "(" => self.arguments(self.is_unknown(part))?,
                _ => return Some(part),
            }
            part = self.part(part.start, Known::Nothing, true);
        }
    }

    /// Appends the filter that charges for item access to the container that begins at `start`.
    fn indexed(&mut self, start: usize, end: usize) {
        self.open(start, "(");
        self.close(end, format!("|{})", filter("[.]")));
    }

    /// Parses `[key]` or `[start:stop:step]` of the value that begins at `start`.
    fn subscript(&mut self, start: usize) -> Option<()> {
        let bracket = self.start();
        self.expect("[")?;
        let bound = |reader: &mut Self| match reader.word() {
            ":" | "]" => Some(None),
            _ => reader.expression().map(Some),
        };
        let first = bound(self)?;
        if self.word() == "]" {
            let key = first?;
            self.at += 1;
            self.indexed(start, bracket);
            if !key.is_literal() {
                self.filtered(key, "[]");
            }
            return Some(());
        }
        self.open(start, "(");
        let none = |bound: Option<Part>| if bound.is_none() { "none" } else { "" };
        self.replace(bracket, bracket + 1, format!("|{}({}", filter("[:]"), none(first)), start);
        let mut bounds = 1;
        while self.word() == ":" && bounds < 3 {
            let colon = self.start();
            self.at += 1;
            let next = bound(self)?;
            self.replace(colon, colon + 1, format!(", {}", none(next)), start);
            bounds += 1;
        }
        let end = self.start();
        self.expect("]")?;
        self.replace(end, end + 1, if bounds == 2 { ", none))" } else { "))" }, start);
        Some(())
    }

    /// Parses filters and tests after an operand.
    fn filters(&mut self, mut part: Part) -> Option<Part> {
        loop {
            if self.eat("|") {
                self.filter_name()?;
                if self.word() == "(" {
                    self.arguments(false)?;
                }
            } else if self.eat("is") {
                self.eat("not");
                self.filter_name()?;
                let kind = self.token().map(|token| token.kind);
                match (self.word(), kind) {
                    ("(", _) => self.arguments(false)?,
                    ("and" | "or" | "else" | "is", _) => {}
                    ("+" | "-" | "[" | "{", _)
                    | (_, Some(TokenKind::Name | TokenKind::Text | TokenKind::Number)) => {
                        let argument = self.negated()?;
                        self.postfix(argument)?;
                    }
                    _ => {}
                }
            } else {
                return Some(part);
            }
            part = self.part(part.start, Known::Nothing, true);
        }
    }

    fn filter_name(&mut self) -> Option<()> {
        self.name()?;
        while self.eat(".") {
            self.name()?;
        }
        Some(())
    }

    fn filter_chain(&mut self) -> Option<()> {
        loop {
            self.filter_name()?;
            if self.word() == "(" {
                self.arguments(false)?;
            }
            if !self.eat("|") {
                return Some(());
            }
        }
    }

    /// Returns whether a part is a name of the template's own, which may be that of a loop.
    fn is_unknown(&self, part: Part) -> bool {
        let name = &self.source[part.start..part.end];
        let known = functions::is_placed(name) || builtins::FUNCTIONS.contains(&name);
        !known && name.chars().all(|c| c == '_' || unicode_ident::is_xid_continue(c))
    }

    /// Arguments in brackets. `passed`: what is called may go through them.
    fn arguments(&mut self, passed: bool) -> Option<()> {
        self.expect("(")?;
        while !self.eat(")") {
            let splat = self.eat("*") || self.eat("**");
            let named = self.token().is_some_and(|token| token.kind == TokenKind::Name);
            if !splat && named && self.word_at(self.at + 1) == "=" {
                self.at += 2;
            }
            let value = self.expression()?;
            if splat {
                self.filtered(value, "*()");
            } else if passed && !value.is_literal() {
                self.filtered(value, "f()");
            }
            if !self.eat(",") {
                return self.expect(")");
            }
        }
        Some(())
    }

    fn primary(&mut self) -> Option<Part> {
        let token = self.token()?;
        let start = token.range.start;
        let word = self.word();
        match token.kind {
            TokenKind::Name => {
                self.at += 1;
                self.function(token, word);
                let known = match word {
                    "true" | "True" | "false" | "False" | "none" | "None" => Known::Scalar,
                    _ => Known::Nothing,
                };
                Some(self.part(start, known, true))
            }
            TokenKind::Number => {
                self.at += 1;
                is_number(word).then(|| self.part(start, Known::Number, true))
            }
            TokenKind::Text => {
                while self.token().is_some_and(|token| token.kind == TokenKind::Text) {
                    self.at += 1;
                }
                let known = if self.end() - start > LITERAL { Known::Nothing } else { Known::Scalar };
                Some(self.part(start, known, true))
            }
            TokenKind::Sign => {
                self.at += 1;
                let known = match word {
                    "(" => self.bracket()?,
                    "[" => self.list("]")?,
                    "{" => self.map()?,
                    _ => return None,
                };
                Some(self.part(start, known, true))
            }
        }
    }

    /// Adds the call site to a call of one of our functions.
    fn function(&mut self, token: &Token, name: &str) {
        let Some(macros) = self.macros else { return };
        // A macro of the template takes precedence over our function; a variable of the same name does not.
        if self.word() == "(" && functions::is_placed(name) && !macros.contains(name) {
            self.open(token.range.start, functions::OURS);
            self.close(token.range.end, format!(".at({})", token.range.start));
        }
    }

    /// Parses a parenthesized expression or a tuple.
    fn bracket(&mut self) -> Option<Known> {
        if self.eat(")") {
            return Some(Known::Nothing);
        }
        let first = self.expression()?;
        if self.eat(")") {
            return Some(first.known);
        }
        self.expect(",")?;
        self.list(")")?;
        Some(Known::Nothing)
    }

    fn list(&mut self, close: &str) -> Option<Known> {
        let mut known = Known::Scalars;
        while !self.eat(close) {
            let item = self.expression()?;
            if !item.is_literal() {
                known = Known::Nothing;
            }
            if !self.eat(",") {
                self.expect(close)?;
                break;
            }
        }
        Some(known)
    }

    fn map(&mut self) -> Option<Known> {
        while !self.eat("}") {
            let key = self.expression()?;
            if !key.is_literal() {
                self.filtered(key, "{:}");
            }
            self.expect(":")?;
            self.expression()?;
            if !self.eat(",") {
                self.expect("}")?;
                break;
            }
        }
        Some(Known::Nothing)
    }

    /// Parses assignment targets, in parentheses and separated by commas; returns whether there are several.
    fn targets(&mut self, depth: usize) -> Option<bool> {
        let (mut count, mut several) = (0, false);
        while !matches!(self.word(), ")" | "in" | "") {
            if self.eat("(") {
                several |= self.targets(depth.checked_sub(1)?)?;
                self.expect(")")?;
            } else {
                self.name()?;
            }
            count += 1;
            if !self.eat(",") {
                break;
            }
            several = true;
        }
        (count > 0).then_some(several)
    }

    fn for_loop(&mut self) -> Option<()> {
        let several = self.targets(DEPTH)?;
        self.expect("in")?;
        let items = self.or()?;
        if several {
            self.tighten(items);
            self.close(items.end, "|__rows");
        } else {
            self.filtered(items, "f()");
        }
        if self.eat("if") {
            self.expression()?;
        }
        self.eat("recursive");
        Some(())
    }

    fn assignments(&mut self) -> Option<()> {
        while self.at < self.tokens.len() {
            if self.eat("(") {
                self.targets(DEPTH)?;
                self.expect(")")?;
            } else {
                self.name()?;
            }
            self.expect("=")?;
            self.expression()?;
            if !self.eat(",") {
                break;
            }
        }
        Some(())
    }

    fn parameters(&mut self) -> Option<()> {
        self.expect("(")?;
        while !self.eat(")") {
            self.name()?;
            if self.eat("=") {
                self.expression()?;
            }
            if !self.eat(",") {
                return self.expect(")");
            }
        }
        Some(())
    }
}

/// Returns true if the engine reads the whole word as one number.
fn is_number(word: &str) -> bool {
    let is = |c: u8| c.is_ascii_digit() || c == b'_';
    let bytes = word.as_bytes();
    if let [b'0', b'x' | b'X' | b'b' | b'B' | b'o' | b'O', digits @ ..] = bytes {
        return digits.iter().all(|c| c.is_ascii_hexdigit() || *c == b'_');
    }
    let digits = |bytes: &[u8]| bytes.iter().take_while(|c| is(**c)).count();
    let mut rest = &bytes[digits(bytes)..];
    if let [b'.', more @ ..] = rest {
        rest = &more[digits(more)..];
    }
    if let [b'e' | b'E', more @ ..] = rest {
        let more = more.strip_prefix(b"+").or_else(|| more.strip_prefix(b"-")).unwrap_or(more);
        return !more.is_empty() && digits(more) == more.len();
    }
    rest.is_empty()
}
