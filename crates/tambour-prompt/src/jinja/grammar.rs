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

use super::expression_part::{ExpressionPart, StaticType};
use super::operators::{METHODS, filter};
use super::source::{ExpressionToken, TokenKind};
use super::{builtins, functions};

/// Deepest nesting of expressions, the same as in the engine.
const MAX_EXPRESSION_DEPTH: usize = 150;

/// Longest literal whose cost is that of the step it is used in.
const LITERAL: usize = 256;

/// An edit of the source: replaces the bytes `at..end` by `text`.
#[derive(Debug)]
pub(super) struct SourceEdit {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) text: Cow<'static, str>,
    /// Offset in the source that errors in the new text refer to.
    pub(super) origin: usize,
    /// Order of edits at the same offset: closing ones, opening ones (outermost first), replacements.
    order: (u8, i64),
}

/// Grammar of a tag after its keyword.
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

/// Returns the edits for the code in `tokens`, in order; `None` if it cannot be parsed. Macros defined in the
/// template take precedence over our functions of the same name; without `macros`, our functions are not
/// available.
pub(super) fn parse_edits(
    source: &str,
    tokens: &[ExpressionToken],
    form: TagGrammar,
    macros: Option<&HashSet<&str>>,
) -> Option<Vec<SourceEdit>> {
    let reader = ExpressionParser {
        source,
        tokens,
        position: 0,
        edits: Vec::new(),
        depth: 0,
        macros,
        comparisons: None,
    };
    parse_form(reader, form).map(|(edits, _)| edits)
}

/// Operands of a comparison, as byte ranges of the source, with the operator between them.
pub(super) type OperandComparison = (Range<usize>, &'static str, Range<usize>);

/// Returns the edits of one expression in which every comparison becomes a filter, and the list of
/// comparisons.
pub(super) fn parse_comparisons(
    source: &str,
    tokens: &[ExpressionToken],
) -> Option<(Vec<SourceEdit>, Vec<OperandComparison>)> {
    let comparisons = Some(Vec::new());
    let reader = ExpressionParser {
        source,
        tokens,
        position: 0,
        edits: Vec::new(),
        depth: 0,
        macros: None,
        comparisons,
    };
    parse_form(reader, TagGrammar::Expression)
}

fn parse_form(
    mut reader: ExpressionParser<'_>,
    form: TagGrammar,
) -> Option<(Vec<SourceEdit>, Vec<OperandComparison>)> {
    let tokens = reader.tokens;
    match form {
        TagGrammar::Expression => drop(reader.parse_expression()?),
        TagGrammar::Expressions => {
            reader.parse_expression()?;
            while reader.eat(",") && reader.position < tokens.len() {
                reader.parse_expression()?;
            }
        }
        TagGrammar::Condition => drop(reader.parse_or()?),
        TagGrammar::Loop => reader.parse_for_loop()?,
        TagGrammar::Assignments => reader.parse_assignments()?,
        TagGrammar::Macro => {
            reader.expect_name()?;
            reader.parse_parameters()?;
        }
        TagGrammar::Call => {
            if reader.peek_text() == "(" {
                reader.parse_parameters()?;
            }
            reader.parse_expression()?;
        }
        TagGrammar::Filters => reader.parse_filter_chain()?,
        TagGrammar::Empty => {}
    }
    if reader.position < tokens.len() {
        return None;
    }
    let mut edits = reader.edits;
    edits.sort_by_key(|edit| (edit.start, edit.order));
    Some((edits, reader.comparisons.unwrap_or_default()))
}

struct ExpressionParser<'s> {
    source: &'s str,
    tokens: &'s [ExpressionToken],
    position: usize,
    edits: Vec<SourceEdit>,
    depth: usize,
    macros: Option<&'s HashSet<&'s str>>,
    /// Comparisons found so far, if all of them are to become filters.
    comparisons: Option<Vec<OperandComparison>>,
}

impl<'s> ExpressionParser<'s> {
    fn token(&self) -> Option<&'s ExpressionToken> {
        self.tokens.get(self.position)
    }

    /// Returns the text of the next token; empty at the end.
    fn peek_text(&self) -> &'s str {
        self.text_at(self.position)
    }

    fn text_at(&self, at: usize) -> &'s str {
        self.tokens.get(at).map_or("", |token| &self.source[token.range.clone()])
    }

    fn eat(&mut self, word: &str) -> bool {
        let found = self.peek_text() == word;
        self.position += usize::from(found);
        found
    }

    fn expect(&mut self, word: &str) -> Option<()> {
        self.eat(word).then_some(())
    }

    fn expect_name(&mut self) -> Option<&'s ExpressionToken> {
        let token = self.token().filter(|token| token.kind == TokenKind::Name)?;
        self.position += 1;
        Some(token)
    }

    fn start(&self) -> usize {
        self.token().map_or(self.source.len(), |token| token.range.start)
    }

    /// Returns the end of the last token that was read.
    fn end(&self) -> usize {
        self.position.checked_sub(1).and_then(|at| self.tokens.get(at)).map_or(0, |token| token.range.end)
    }

    fn part_from(&self, start: usize, static_type: StaticType, is_tight: bool) -> ExpressionPart {
        ExpressionPart { start, end: self.end(), static_type, is_tight }
    }

    fn insert_close(&mut self, start: usize, text: impl Into<Cow<'static, str>>) {
        let order = (0, self.edits.len() as i64);
        self.edits.push(SourceEdit { start, end: start, text: text.into(), origin: start, order });
    }

    fn insert_open(&mut self, start: usize, text: &'static str) {
        let order = (1, -(self.edits.len() as i64));
        self.edits.push(SourceEdit { start, end: start, text: text.into(), origin: start, order });
    }

    /// Replaces an operator whose first operand begins at `origin`.
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

    /// Appends a filter without arguments to a part.
    fn append_filter(&mut self, part: ExpressionPart, operator: &str) {
        self.tighten(part);
        self.insert_close(part.end, format!("|{}", filter(operator)));
    }

    fn nest<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        self.depth += 1;
        if self.depth > MAX_EXPRESSION_DEPTH {
            return None;
        }
        let found = read(self);
        self.depth -= 1;
        found
    }

    fn parse_expression(&mut self) -> Option<ExpressionPart> {
        self.nest(ExpressionParser::parse_conditional)
    }

    fn parse_conditional(&mut self) -> Option<ExpressionPart> {
        let mut part = self.parse_or()?;
        while self.eat("if") {
            self.parse_or()?;
            if self.eat("else") {
                self.nest(ExpressionParser::parse_conditional)?;
            }
            part = self.part_from(part.start, StaticType::Unknown, false);
        }
        Some(part)
    }

    fn parse_or(&mut self) -> Option<ExpressionPart> {
        let mut part = self.parse_and()?;
        while self.eat("or") {
            self.parse_and()?;
            part = self.part_from(part.start, StaticType::Unknown, false);
        }
        Some(part)
    }

    fn parse_and(&mut self) -> Option<ExpressionPart> {
        let mut part = self.parse_not()?;
        while self.eat("and") {
            self.parse_not()?;
            part = self.part_from(part.start, StaticType::Unknown, false);
        }
        Some(part)
    }

    fn parse_not(&mut self) -> Option<ExpressionPart> {
        let start = self.start();
        let mut negated = false;
        while self.eat("not") {
            negated = true;
        }
        let part = self.parse_comparison()?;
        Some(if negated { self.part_from(start, StaticType::Unknown, false) } else { part })
    }

    fn parse_comparison(&mut self) -> Option<ExpressionPart> {
        let first = self.parse_sum()?;
        // Operators with their offsets and right operands.
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
        let is_direct = self.comparisons.is_none()
            && operators.iter().all(|&(operator, _, _, right)| {
                let is_short = match operator {
                    "in" | "not in" => {
                        right.static_type == StaticType::Scalars || left.is_literal() && right.is_literal()
                    }
                    _ => left.is_literal() || right.is_literal(),
                };
                left = right;
                is_short
            });
        if is_direct {
            return Some(self.part_from(first.start, StaticType::Unknown, false));
        }
        self.tighten(first);
        if let [(operator, at, end, right)] = operators[..] {
            self.replace(at, end, format!("|{}(", filter(operator)), first.start);
            self.insert_close(right.end, ")");
        } else {
            for (place, &(operator, at, end, _)) in operators.iter().enumerate() {
                let head = if place == 0 { "|__chain(" } else { ", " };
                self.replace(at, end, format!("{head}\"{operator}\", "), first.start);
            }
            self.insert_close(last.end, ")");
        }
        Some(self.part_from(first.start, StaticType::Unknown, true))
    }

    /// Parses `+` and `-`.
    fn parse_sum(&mut self) -> Option<ExpressionPart> {
        self.parse_chain(ExpressionParser::parse_concatenation, &["+", "-"], "+")
    }

    /// Parses `*`, `/`, `//` and `%`.
    fn parse_product(&mut self) -> Option<ExpressionPart> {
        self.parse_chain(ExpressionParser::parse_power, &["*", "/", "//", "%"], "*")
    }

    /// Parses operators of one precedence. The operator `growing` can make something long: unless its operands
    /// are known to be numbers, it becomes a filter, and with it all operators of the chain.
    fn parse_chain(
        &mut self,
        operand: fn(&mut Self) -> Option<ExpressionPart>,
        ranked: &[&'static str],
        growing: &str,
    ) -> Option<ExpressionPart> {
        let first = operand(self)?;
        let mut left = first.static_type;
        let mut needs_filter = false;
        let mut operators: Vec<(&'static str, usize, usize, usize)> = Vec::new();
        while let Some(&operator) = ranked.iter().find(|operator| **operator == self.peek_text()) {
            let at = self.start();
            self.position += 1;
            let end = self.end();
            let right = operand(self)?;
            // A sum with a number is cheap: only numbers can be added to it.
            let number = |operand_type| operand_type == StaticType::Number;
            let is_direct = if growing == "+" {
                number(left) || number(right.static_type)
            } else {
                number(left) && number(right.static_type)
            };
            needs_filter |= operator == growing && !is_direct;
            left = if number(left) && number(right.static_type) {
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
            return Some(self.part_from(first.start, left, false));
        }
        self.tighten(first);
        for (operator, at, end, right) in operators {
            self.replace(at, end, format!("|{}(", filter(operator)), first.start);
            self.insert_close(right, ")");
        }
        Some(self.part_from(first.start, StaticType::Unknown, true))
    }

    /// Parses `~`: all joined operands become arguments of one filter.
    fn parse_concatenation(&mut self) -> Option<ExpressionPart> {
        let first = self.parse_product()?;
        let mut has_filter = false;
        while self.peek_text() == "~" {
            let at = self.start();
            self.position += 1;
            let head: Cow<'static, str> =
                if has_filter { ",".into() } else { format!("|{}(", filter("~")).into() };
            self.replace(at, at + 1, head, first.start);
            self.parse_product()?;
            has_filter = true;
        }
        if !has_filter {
            return Some(first);
        }
        self.tighten(first);
        let end = self.end();
        self.insert_close(end, ")");
        Some(self.part_from(first.start, StaticType::Unknown, true))
    }

    /// Parses `**`, which takes only numbers.
    fn parse_power(&mut self) -> Option<ExpressionPart> {
        let mut part = self.parse_unary()?;
        while self.eat("**") {
            self.parse_unary()?;
            part = self.part_from(part.start, StaticType::Unknown, false);
        }
        Some(part)
    }

    fn parse_unary(&mut self) -> Option<ExpressionPart> {
        let part = self.parse_negation()?;
        let part = self.parse_postfix(part)?;
        self.parse_filters(part)
    }

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

    fn parse_postfix(&mut self, mut part: ExpressionPart) -> Option<ExpressionPart> {
        loop {
            match self.peek_text() {
                "." => {
                    let dot = self.start();
                    self.position += 1;
                    let token = self.token()?;
                    let index = token.kind == TokenKind::Number && is_number(self.peek_text());
                    if token.kind != TokenKind::Name && !index {
                        return None;
                    }
                    if index {
                        self.charge_index(part.start, dot);
                    }
                    let method = METHODS
                        .iter()
                        .find(|method| method[1..].strip_suffix("()") == Some(self.peek_text()));
                    self.position += 1;
                    if let Some(method) = method.filter(|_| self.peek_text() == "(") {
                        let bracket = self.start() + 1;
                        self.insert_open(part.start, "(");
                        self.replace(dot, bracket, format!("|{}(", filter(method)), part.start);
                        self.parse_arguments(false)?;
                        let end = self.end();
                        self.insert_close(end, ")");
                    }
                }
                "[" => self.parse_subscript(part.start)?,
                // A loop that calls itself, under whatever name.
                "(" => self.parse_arguments(self.is_unknown(part))?,
                _ => return Some(part),
            }
            part = self.part_from(part.start, StaticType::Unknown, true);
        }
    }

    /// Appends the filter that charges for item access to the container that begins at `start`.
    fn charge_index(&mut self, start: usize, end: usize) {
        self.insert_open(start, "(");
        self.insert_close(end, format!("|{})", filter("[.]")));
    }

    /// Parses `[key]` or `[start:stop:step]` of the value that begins at `start`.
    fn parse_subscript(&mut self, start: usize) -> Option<()> {
        let bracket = self.start();
        self.expect("[")?;
        let bound = |reader: &mut Self| match reader.peek_text() {
            ":" | "]" => Some(None),
            _ => reader.parse_expression().map(Some),
        };
        let first = bound(self)?;
        if self.peek_text() == "]" {
            let key = first?;
            self.position += 1;
            self.charge_index(start, bracket);
            if !key.is_literal() {
                self.append_filter(key, "[]");
            }
            return Some(());
        }
        self.insert_open(start, "(");
        let none_text = |bound: Option<ExpressionPart>| if bound.is_none() { "none" } else { "" };
        self.replace(bracket, bracket + 1, format!("|{}({}", filter("[:]"), none_text(first)), start);
        let mut bounds = 1;
        while self.peek_text() == ":" && bounds < 3 {
            let colon = self.start();
            self.position += 1;
            let next = bound(self)?;
            self.replace(colon, colon + 1, format!(", {}", none_text(next)), start);
            bounds += 1;
        }
        let end = self.start();
        self.expect("]")?;
        self.replace(end, end + 1, if bounds == 2 { ", none))" } else { "))" }, start);
        Some(())
    }

    /// Parses filters and tests after an operand.
    fn parse_filters(&mut self, mut part: ExpressionPart) -> Option<ExpressionPart> {
        loop {
            if self.eat("|") {
                self.parse_filter_name()?;
                if self.peek_text() == "(" {
                    self.parse_arguments(false)?;
                }
            } else if self.eat("is") {
                self.eat("not");
                self.parse_filter_name()?;
                let kind = self.token().map(|token| token.kind);
                match (self.peek_text(), kind) {
                    ("(", _) => self.parse_arguments(false)?,
                    ("and" | "or" | "else" | "is", _) => {}
                    ("+" | "-" | "[" | "{", _)
                    | (_, Some(TokenKind::Name | TokenKind::String | TokenKind::Number)) => {
                        let argument = self.parse_negation()?;
                        self.parse_postfix(argument)?;
                    }
                    _ => {}
                }
            } else {
                return Some(part);
            }
            part = self.part_from(part.start, StaticType::Unknown, true);
        }
    }

    fn parse_filter_name(&mut self) -> Option<()> {
        self.expect_name()?;
        while self.eat(".") {
            self.expect_name()?;
        }
        Some(())
    }

    fn parse_filter_chain(&mut self) -> Option<()> {
        loop {
            self.parse_filter_name()?;
            if self.peek_text() == "(" {
                self.parse_arguments(false)?;
            }
            if !self.eat("|") {
                return Some(());
            }
        }
    }

    /// Returns whether a part is a name of the template's own, which may be that of a loop.
    fn is_unknown(&self, part: ExpressionPart) -> bool {
        let name = &self.source[part.start..part.end];
        let is_known = functions::is_placed(name) || builtins::FUNCTIONS.contains(&name);
        !is_known && name.chars().all(|c| c == '_' || unicode_ident::is_xid_continue(c))
    }

    /// Arguments in brackets. `is_call`: what is called may go through them.
    fn parse_arguments(&mut self, is_call: bool) -> Option<()> {
        self.expect("(")?;
        while !self.eat(")") {
            let is_splat = self.eat("*") || self.eat("**");
            let is_name = self.token().is_some_and(|token| token.kind == TokenKind::Name);
            if !is_splat && is_name && self.text_at(self.position + 1) == "=" {
                self.position += 2;
            }
            let value = self.parse_expression()?;
            if is_splat {
                self.append_filter(value, "*()");
            } else if is_call && !value.is_literal() {
                self.append_filter(value, "f()");
            }
            if !self.eat(",") {
                return self.expect(")");
            }
        }
        Some(())
    }

    fn parse_primary(&mut self) -> Option<ExpressionPart> {
        let token = self.token()?;
        let start = token.range.start;
        let word = self.peek_text();
        match token.kind {
            TokenKind::Name => {
                self.position += 1;
                self.place_function(token, word);
                let static_type = match word {
                    "true" | "True" | "false" | "False" | "none" | "None" => StaticType::Scalar,
                    _ => StaticType::Unknown,
                };
                Some(self.part_from(start, static_type, true))
            }
            TokenKind::Number => {
                self.position += 1;
                is_number(word).then(|| self.part_from(start, StaticType::Number, true))
            }
            TokenKind::String => {
                while self.token().is_some_and(|token| token.kind == TokenKind::String) {
                    self.position += 1;
                }
                let static_type =
                    if self.end() - start > LITERAL { StaticType::Unknown } else { StaticType::Scalar };
                Some(self.part_from(start, static_type, true))
            }
            TokenKind::Punctuation => {
                self.position += 1;
                let static_type = match word {
                    "(" => self.parse_parenthesized()?,
                    "[" => self.parse_list("]")?,
                    "{" => self.parse_map()?,
                    _ => return None,
                };
                Some(self.part_from(start, static_type, true))
            }
        }
    }

    /// Adds the call site to a call of one of our functions.
    fn place_function(&mut self, token: &ExpressionToken, name: &str) {
        let Some(macros) = self.macros else { return };
        // A macro of the template takes precedence over our function; a variable of the same name does not.
        if self.peek_text() == "(" && functions::is_placed(name) && !macros.contains(name) {
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

    fn parse_list(&mut self, close: &str) -> Option<StaticType> {
        let mut static_type = StaticType::Scalars;
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

    /// Parses assignment targets, in parentheses and separated by commas; returns whether there are several.
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

/// Returns true if the engine reads the whole word as one number.
fn is_number(word: &str) -> bool {
    let is_digit = |c: u8| c.is_ascii_digit() || c == b'_';
    let bytes = word.as_bytes();
    if let [b'0', b'x' | b'X' | b'b' | b'B' | b'o' | b'O', digits @ ..] = bytes {
        return digits.iter().all(|c| c.is_ascii_hexdigit() || *c == b'_');
    }
    let digits = |bytes: &[u8]| bytes.iter().take_while(|c| is_digit(**c)).count();
    let mut rest = &bytes[digits(bytes)..];
    if let [b'.', tail @ ..] = rest {
        rest = &tail[digits(tail)..];
    }
    if let [b'e' | b'E', tail @ ..] = rest {
        let tail = tail.strip_prefix(b"+").or_else(|| tail.strip_prefix(b"-")).unwrap_or(tail);
        return !tail.is_empty() && digits(tail) == tail.len();
    }
    rest.is_empty()
}
