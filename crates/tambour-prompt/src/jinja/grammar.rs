//! Parser of template expressions, which follows minijinja's own grammar. It produces the edits that replace
//! operators by filters of `operators`: minijinja does not charge for operators, but a filter charges before
//! it runs.
//!
//! Filters bind more tightly than any operator, so `a + b * c` becomes `a |__add( b |__mul( c))`. An operator
//! that is always cheap stays in place, such as a comparison with a literal. A template that this parser
//! cannot read is not rendered.

mod postfix;

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use super::expression_part::{ExpressionPart, StaticType};
use super::functions;
use super::operators::replacement_filter;
use super::source::{ExpressionToken, TokenKind};

/// Maximum nesting depth of expressions, the same as in minijinja.
const MAX_EXPRESSION_DEPTH: usize = 150;

/// Maximum length, in bytes, of a literal that costs no more than the step of its instruction.
const MAX_LITERAL_BYTES: usize = 256;

/// Edit of the source: replaces the bytes `start..end` by `text`.
#[derive(Debug)]
pub(super) struct SourceEdit {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) text: Cow<'static, str>,
    /// Offset in the source that errors in the new text refer to.
    pub(super) origin: usize,
    /// Order of edits at the same offset. The first number is the kind: closing text (0), opening text (1),
    /// then replacements (2). The second number orders edits of one kind: the innermost closing text and the
    /// outermost opening text come first. It is derived from the number of edits so far, because inner parts
    /// are read first.
    order: (u8, i64),
}

/// Grammar of the code in a tag after its keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TagGrammar {
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

/// Returns the edits for the code in `tokens`, in order; `None` if it cannot be parsed. `macros` names the
/// macros of the template, which take precedence over functions of this library with the same name. With
/// `None`, as outside of a prompt, the functions of this library do not exist.
pub(super) fn parse_edits(
    source: &str,
    tokens: &[ExpressionToken],
    tag_grammar: TagGrammar,
    macros: Option<&HashSet<&str>>,
) -> Option<Vec<SourceEdit>> {
    let parser = ExpressionParser {
        source,
        tokens,
        position: 0,
        edits: Vec::new(),
        depth: 0,
        macros,
        comparisons: None,
    };
    parse_tag(parser, tag_grammar).map(|(edits, _)| edits)
}

/// Operands of a comparison, as byte ranges of the source, with the operator between them.
pub(super) type OperandComparison = (Range<usize>, &'static str, Range<usize>);

/// Returns the edits of one expression in which every comparison becomes a filter, and the list of
/// comparisons; `None` if the expression cannot be parsed.
pub(super) fn parse_comparisons(
    source: &str,
    tokens: &[ExpressionToken],
) -> Option<(Vec<SourceEdit>, Vec<OperandComparison>)> {
    let comparisons = Some(Vec::new());
    let parser = ExpressionParser {
        source,
        tokens,
        position: 0,
        edits: Vec::new(),
        depth: 0,
        macros: None,
        comparisons,
    };
    parse_tag(parser, TagGrammar::Expression)
}

/// Parses the code of a tag; returns its edits in order, and its comparisons if the parser collects them.
fn parse_tag(
    mut parser: ExpressionParser<'_>,
    tag_grammar: TagGrammar,
) -> Option<(Vec<SourceEdit>, Vec<OperandComparison>)> {
    let tokens = parser.tokens;
    match tag_grammar {
        TagGrammar::Expression => drop(parser.parse_expression()?),
        TagGrammar::Expressions => {
            parser.parse_expression()?;
            while parser.eat(",") && parser.position < tokens.len() {
                parser.parse_expression()?;
            }
        }
        TagGrammar::Condition => drop(parser.parse_or()?),
        TagGrammar::Loop => parser.parse_for_loop()?,
        TagGrammar::Assignments => parser.parse_assignments()?,
        TagGrammar::Macro => {
            parser.expect_name()?;
            parser.parse_parameters()?;
        }
        TagGrammar::Call => {
            if parser.peek_text() == "(" {
                parser.parse_parameters()?;
            }
            parser.parse_expression()?;
        }
        TagGrammar::Filters => parser.parse_filter_chain()?,
        TagGrammar::Empty => {}
    }
    if parser.position < tokens.len() {
        return None;
    }
    let mut edits = parser.edits;
    edits.sort_by_key(|edit| (edit.start, edit.order));
    Some((edits, parser.comparisons.unwrap_or_default()))
}

/// Parser of one tag. A function `parse_…` reads a part of the code and returns `None` if it is not valid.
struct ExpressionParser<'s> {
    source: &'s str,
    tokens: &'s [ExpressionToken],
    /// Index of the next token.
    position: usize,
    edits: Vec<SourceEdit>,
    /// Nesting depth of the part that is parsed.
    depth: usize,
    /// Macros that the template defines; `None` outside of a prompt.
    macros: Option<&'s HashSet<&'s str>>,
    /// Comparisons found so far, if all of them are to become filters.
    comparisons: Option<Vec<OperandComparison>>,
}

impl<'s> ExpressionParser<'s> {
    /// Returns the next token.
    fn token(&self) -> Option<&'s ExpressionToken> {
        self.tokens.get(self.position)
    }

    /// Returns the text of the next token; empty at the end.
    fn peek_text(&self) -> &'s str {
        self.text_at(self.position)
    }

    /// Returns the text of the token at an index; empty after the last token.
    fn text_at(&self, at: usize) -> &'s str {
        self.tokens.get(at).map_or("", |token| &self.source[token.range.clone()])
    }

    /// Reads the next token if it is `word`; returns true if it was.
    fn eat(&mut self, word: &str) -> bool {
        let is_word = self.peek_text() == word;
        self.position += usize::from(is_word);
        is_word
    }

    /// Reads the next token, which must be `word`.
    fn expect(&mut self, word: &str) -> Option<()> {
        self.eat(word).then_some(())
    }

    /// Reads the next token, which must be a name.
    fn expect_name(&mut self) -> Option<&'s ExpressionToken> {
        let token = self.token().filter(|token| token.kind == TokenKind::Name)?;
        self.position += 1;
        Some(token)
    }

    /// Returns the offset of the next token; the length of the source at the end.
    fn start(&self) -> usize {
        self.token().map_or(self.source.len(), |token| token.range.start)
    }

    /// Returns the end of the last token that was read.
    fn end(&self) -> usize {
        self.position.checked_sub(1).and_then(|at| self.tokens.get(at)).map_or(0, |token| token.range.end)
    }

    /// Returns the part from `start` to the last token that was read; a filter appended to it applies to all
    /// of it.
    fn tight_part(&self, start: usize, static_type: StaticType) -> ExpressionPart {
        ExpressionPart { start, end: self.end(), static_type, is_tight: true }
    }

    /// Like [`ExpressionParser::tight_part`], for a part that needs parentheses before a filter is appended.
    fn loose_part(&self, start: usize, static_type: StaticType) -> ExpressionPart {
        ExpressionPart { start, end: self.end(), static_type, is_tight: false }
    }

    /// Inserts text that closes something: at its offset, after earlier closing text and before all other
    /// edits.
    fn insert_close(&mut self, start: usize, text: impl Into<Cow<'static, str>>) {
        let order = (0, self.edits.len() as i64);
        self.edits.push(SourceEdit { start, end: start, text: text.into(), origin: start, order });
    }

    /// Inserts text that opens something, before any opening text that was inserted at its offset earlier.
    fn insert_open(&mut self, start: usize, text: &'static str) {
        let order = (1, -(self.edits.len() as i64));
        self.edits.push(SourceEdit { start, end: start, text: text.into(), origin: start, order });
    }

    /// Replaces an operator, whose errors refer to its first operand at `origin`.
    fn replace(&mut self, start: usize, end: usize, text: impl Into<Cow<'static, str>>, origin: usize) {
        let order = (2, self.edits.len() as i64);
        self.edits.push(SourceEdit { start, end, text: text.into(), origin, order });
    }

    /// Adds parentheses around a part if a filter appended to it would not apply to all of it.
    fn tighten(&mut self, part: ExpressionPart) {
        if !part.is_tight {
            self.insert_open(part.start, "(");
            self.insert_close(part.end, ")");
        }
    }

    /// Appends the filter of an entry of [`OPERATORS`](super::operators::OPERATORS) to a part: `[]` for the
    /// key in brackets, `{:}` for the key of a map literal, `*()` for a spread argument, `f()` for a value
    /// that is passed to a call or looped over. The filter has no arguments and charges for the part.
    fn append_filter(&mut self, part: ExpressionPart, entry: &str) {
        self.tighten(part);
        self.insert_close(part.end, format!("|{}", replacement_filter(entry)));
    }

    /// Parses one level deeper; `None` if that is too deep.
    fn nest<T>(&mut self, parse: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        self.depth += 1;
        if self.depth > MAX_EXPRESSION_DEPTH {
            return None;
        }
        let result = parse(self);
        self.depth -= 1;
        result
    }

    /// Parses an expression, one level deeper.
    fn parse_expression(&mut self) -> Option<ExpressionPart> {
        self.nest(ExpressionParser::parse_conditional)
    }

    /// Parses `a if b else c`, or an operand of it.
    fn parse_conditional(&mut self) -> Option<ExpressionPart> {
        let mut part = self.parse_or()?;
        while self.eat("if") {
            self.parse_or()?;
            if self.eat("else") {
                self.nest(ExpressionParser::parse_conditional)?;
            }
            part = self.loose_part(part.start, StaticType::Unknown);
        }
        Some(part)
    }

    /// Parses `or`, and what binds more tightly.
    fn parse_or(&mut self) -> Option<ExpressionPart> {
        let mut part = self.parse_and()?;
        while self.eat("or") {
            self.parse_and()?;
            part = self.loose_part(part.start, StaticType::Unknown);
        }
        Some(part)
    }

    /// Parses `and`, and what binds more tightly.
    fn parse_and(&mut self) -> Option<ExpressionPart> {
        let mut part = self.parse_not()?;
        while self.eat("and") {
            self.parse_not()?;
            part = self.loose_part(part.start, StaticType::Unknown);
        }
        Some(part)
    }

    /// Parses `not`, and what binds more tightly.
    fn parse_not(&mut self) -> Option<ExpressionPart> {
        let start = self.start();
        let mut is_negated = false;
        while self.eat("not") {
            is_negated = true;
        }
        let part = self.parse_comparison()?;
        Some(if is_negated { self.loose_part(start, StaticType::Unknown) } else { part })
    }

    /// Parses comparisons and `in`. Unless all of them are cheap, a single one becomes a filter, and a chain
    /// becomes one filter with all operators.
    fn parse_comparison(&mut self) -> Option<ExpressionPart> {
        let first = self.parse_sum()?;
        // Operators with the offsets of their beginnings and ends, and their right operands.
        let mut operators: Vec<(&'static str, usize, usize, ExpressionPart)> = Vec::new();
        loop {
            let at = self.start();
            let operator = match self.peek_text() {
                "==" => "==",
                "!=" => "!=",
                "<" => "<",
                "<=" => "<=",
                ">" => ">",
                ">=" => ">=",
                "in" => "in",
                "not" => {
                    self.position += 1;
                    if self.peek_text() != "in" {
                        return None;
                    }
                    "not in"
                }
                _ => break,
            };
            self.position += 1;
            let end = self.end();
            let right = self.parse_sum()?;
            operators.push((operator, at, end, right));
        }
        let Some(&(.., last)) = operators.last() else { return Some(first) };
        if let Some(comparisons) = &mut self.comparisons {
            let mut left = first;
            for &(operator, _, _, right) in &operators {
                comparisons.push((left.start..left.end, operator, right.start..right.end));
                left = right;
            }
        }
        let mut left = first;
        let is_chain_cheap = self.comparisons.is_none()
            && operators.iter().all(|&(operator, _, _, right)| {
                let is_cheap = match operator {
                    "in" | "not in" => {
                        right.static_type == StaticType::LiteralList
                            || left.is_literal() && right.is_literal()
                    }
                    _ => left.is_literal() || right.is_literal(),
                };
                left = right;
                is_cheap
            });
        if is_chain_cheap {
            return Some(self.loose_part(first.start, StaticType::Unknown));
        }
        self.tighten(first);
        if let [(operator, at, end, right)] = operators[..] {
            self.replace(at, end, format!("|{}(", replacement_filter(operator)), first.start);
            self.insert_close(right.end, ")");
        } else {
            for (index, &(operator, at, end, _)) in operators.iter().enumerate() {
                let opening = if index == 0 { "|__chain(" } else { ", " };
                self.replace(at, end, format!("{opening}\"{operator}\", "), first.start);
            }
            self.insert_close(last.end, ")");
        }
        Some(self.tight_part(first.start, StaticType::Unknown))
    }

    /// Parses `+` and `-`.
    fn parse_sum(&mut self) -> Option<ExpressionPart> {
        self.parse_chain(ExpressionParser::parse_concatenation, &["+", "-"], "+")
    }

    /// Parses `*`, `/`, `//` and `%`.
    fn parse_product(&mut self) -> Option<ExpressionPart> {
        self.parse_chain(ExpressionParser::parse_power, &["*", "/", "//", "%"], "*")
    }

    /// Parses operators of one precedence, `same_rank`, between operands that `operand` parses. The result of
    /// the operator `growing` may be a long text or list: unless the types of its operands exclude that, it
    /// becomes a filter, and with it all operators of the chain.
    fn parse_chain(
        &mut self,
        operand: fn(&mut Self) -> Option<ExpressionPart>,
        same_rank: &[&'static str],
        growing: &str,
    ) -> Option<ExpressionPart> {
        let first = operand(self)?;
        let mut left = first.static_type;
        let mut needs_filter = false;
        // Operators with the offsets of their beginnings and ends, and the ends of their right operands.
        let mut operators: Vec<(&'static str, usize, usize, usize)> = Vec::new();
        while let Some(&operator) = same_rank.iter().find(|operator| **operator == self.peek_text()) {
            let at = self.start();
            self.position += 1;
            let end = self.end();
            let right = operand(self)?;
            // A sum with a number is cheap: only numbers can be added to it.
            let is_numeric = |operand_type| operand_type == StaticType::Number;
            let is_cheap = if growing == "+" {
                is_numeric(left) || is_numeric(right.static_type)
            } else {
                is_numeric(left) && is_numeric(right.static_type)
            };
            needs_filter |= operator == growing && !is_cheap;
            left = if is_numeric(left) && is_numeric(right.static_type) {
                StaticType::Number
            } else {
                StaticType::Unknown
            };
            operators.push((operator, at, end, right.end));
        }
        if operators.is_empty() {
            return Some(first);
        }
        if !needs_filter {
            return Some(self.loose_part(first.start, left));
        }
        self.tighten(first);
        for (operator, at, end, right_end) in operators {
            self.replace(at, end, format!("|{}(", replacement_filter(operator)), first.start);
            self.insert_close(right_end, ")");
        }
        Some(self.tight_part(first.start, StaticType::Unknown))
    }

    /// Parses `~`: all joined operands become arguments of one filter.
    fn parse_concatenation(&mut self) -> Option<ExpressionPart> {
        let first = self.parse_product()?;
        let mut has_filter = false;
        while self.peek_text() == "~" {
            let at = self.start();
            self.position += 1;
            let opening: Cow<'static, str> =
                if has_filter { ",".into() } else { format!("|{}(", replacement_filter("~")).into() };
            self.replace(at, at + 1, opening, first.start);
            self.parse_product()?;
            has_filter = true;
        }
        if !has_filter {
            return Some(first);
        }
        self.tighten(first);
        let end = self.end();
        self.insert_close(end, ")");
        Some(self.tight_part(first.start, StaticType::Unknown))
    }

    /// Parses `**`, which takes only numbers.
    fn parse_power(&mut self) -> Option<ExpressionPart> {
        let mut part = self.parse_unary()?;
        while self.eat("**") {
            self.parse_unary()?;
            part = self.loose_part(part.start, StaticType::Unknown);
        }
        Some(part)
    }

    /// Parses an operand with its signs, subscripts, calls and filters.
    fn parse_unary(&mut self) -> Option<ExpressionPart> {
        let part = self.parse_negation()?;
        let part = self.parse_postfix(part)?;
        self.parse_filters(part)
    }

    /// Parses a literal, a name or a part in brackets with the minus signs before it; after a sign, also
    /// subscripts and calls.
    fn parse_negation(&mut self) -> Option<ExpressionPart> {
        let start = self.start();
        let mut sign_count = 0;
        while self.eat("-") {
            sign_count += 1;
        }
        let part = self.nest(ExpressionParser::parse_primary)?;
        if sign_count == 0 {
            return Some(part);
        }
        let part = self.parse_postfix(part)?;
        Some(ExpressionPart {
            start,
            static_type: if part.static_type == StaticType::Number {
                StaticType::Number
            } else {
                StaticType::Unknown
            },
            ..part
        })
    }

    /// Parses a literal, a name, a list, a map or a parenthesized expression.
    fn parse_primary(&mut self) -> Option<ExpressionPart> {
        let token = self.token()?;
        let start = token.range.start;
        let word = self.peek_text();
        match token.kind {
            TokenKind::Name => {
                self.position += 1;
                self.add_call_site(token, word);
                let static_type = match word {
                    "true" | "True" | "false" | "False" | "none" | "None" => StaticType::Scalar,
                    _ => StaticType::Unknown,
                };
                Some(self.tight_part(start, static_type))
            }
            TokenKind::Number => {
                self.position += 1;
                is_number(word).then(|| self.tight_part(start, StaticType::Number))
            }
            TokenKind::String => {
                while self.token().is_some_and(|token| token.kind == TokenKind::String) {
                    self.position += 1;
                }
                let is_long = self.end() - start > MAX_LITERAL_BYTES;
                let static_type = if is_long { StaticType::Unknown } else { StaticType::Scalar };
                Some(self.tight_part(start, static_type))
            }
            TokenKind::Punctuation => {
                self.position += 1;
                let static_type = match word {
                    "(" => self.parse_parenthesized()?,
                    "[" => self.parse_list("]")?,
                    "{" => self.parse_map()?,
                    _ => return None,
                };
                Some(self.tight_part(start, static_type))
            }
        }
    }

    /// Adds the call site to a call of one of this library's functions.
    fn add_call_site(&mut self, token: &ExpressionToken, name: &str) {
        let Some(macros) = self.macros else { return };
        // A macro of the template takes precedence over the function; a variable of the same name does not.
        if self.peek_text() == "(" && functions::needs_call_site(name) && !macros.contains(name) {
            self.insert_open(token.range.start, functions::FUNCTION_PREFIX);
            self.insert_close(token.range.end, format!(".at({})", token.range.start));
        }
    }

    /// Parses a parenthesized expression or a tuple.
    fn parse_parenthesized(&mut self) -> Option<StaticType> {
        if self.eat(")") {
            return Some(StaticType::Unknown);
        }
        let first = self.parse_expression()?;
        if self.eat(")") {
            return Some(first.static_type);
        }
        self.expect(",")?;
        self.parse_list(")")?;
        Some(StaticType::Unknown)
    }

    /// Parses the items of a list up to `close`.
    fn parse_list(&mut self, close: &str) -> Option<StaticType> {
        let mut static_type = StaticType::LiteralList;
        while !self.eat(close) {
            let item = self.parse_expression()?;
            if !item.is_literal() {
                static_type = StaticType::Unknown;
            }
            if !self.eat(",") {
                self.expect(close)?;
                break;
            }
        }
        Some(static_type)
    }

    /// Parses the keys and values of a map up to `}`.
    fn parse_map(&mut self) -> Option<StaticType> {
        while !self.eat("}") {
            let key = self.parse_expression()?;
            if !key.is_literal() {
                self.append_filter(key, "{:}");
            }
            self.expect(":")?;
            self.parse_expression()?;
            if !self.eat(",") {
                self.expect("}")?;
                break;
            }
        }
        Some(StaticType::Unknown)
    }

    /// Parses assignment targets separated by commas, each a name or targets in parentheses; returns true if
    /// there is a comma. `depth` further levels of parentheses are allowed.
    fn parse_targets(&mut self, depth: usize) -> Option<bool> {
        let (mut count, mut has_several) = (0, false);
        while !matches!(self.peek_text(), ")" | "in" | "") {
            if self.eat("(") {
                has_several |= self.parse_targets(depth.checked_sub(1)?)?;
                self.expect(")")?;
            } else {
                self.expect_name()?;
            }
            count += 1;
            if !self.eat(",") {
                break;
            }
            has_several = true;
        }
        (count > 0).then_some(has_several)
    }

    /// Parses `a, b in expression if expression recursive`.
    fn parse_for_loop(&mut self) -> Option<()> {
        let has_several = self.parse_targets(MAX_EXPRESSION_DEPTH)?;
        self.expect("in")?;
        let items = self.parse_or()?;
        if has_several {
            self.tighten(items);
            self.insert_close(items.end, "|__rows");
        } else {
            self.append_filter(items, "f()");
        }
        if self.eat("if") {
            self.parse_expression()?;
        }
        self.eat("recursive");
        Some(())
    }

    /// Parses `a = expression, b = expression`.
    fn parse_assignments(&mut self) -> Option<()> {
        while self.position < self.tokens.len() {
            if self.eat("(") {
                self.parse_targets(MAX_EXPRESSION_DEPTH)?;
                self.expect(")")?;
            } else {
                self.expect_name()?;
            }
            self.expect("=")?;
            self.parse_expression()?;
            if !self.eat(",") {
                break;
            }
        }
        Some(())
    }

    /// Parses `(a, b=expression)`.
    fn parse_parameters(&mut self) -> Option<()> {
        self.expect("(")?;
        while !self.eat(")") {
            self.expect_name()?;
            if self.eat("=") {
                self.parse_expression()?;
            }
            if !self.eat(",") {
                return self.expect(")");
            }
        }
        Some(())
    }
}

/// Returns true if minijinja reads the whole word as one number.
fn is_number(word: &str) -> bool {
    let is_digit = |c: u8| c.is_ascii_digit() || c == b'_';
    let bytes = word.as_bytes();
    if let [b'0', b'x' | b'X' | b'b' | b'B' | b'o' | b'O', digits @ ..] = bytes {
        return digits.iter().all(|c| c.is_ascii_hexdigit() || *c == b'_');
    }
    let digits = |bytes: &[u8]| bytes.iter().take_while(|c| is_digit(**c)).count();
    let mut unread = &bytes[digits(bytes)..];
    if let [b'.', fraction @ ..] = unread {
        unread = &fraction[digits(fraction)..];
    }
    if let [b'e' | b'E', exponent @ ..] = unread {
        let unsigned =
            exponent.strip_prefix(b"+").or_else(|| exponent.strip_prefix(b"-")).unwrap_or(exponent);
        return !unsigned.is_empty() && digits(unsigned) == unsigned.len();
    }
    unread.is_empty()
}
