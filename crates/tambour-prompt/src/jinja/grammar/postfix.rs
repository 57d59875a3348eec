//! Parser of what follows a value: attributes, subscripts, calls and filters.

use super::{ExpressionParser, is_number};
use crate::jinja::expression_part::{ExpressionPart, StaticType};
use crate::jinja::operators::{METHODS, replacement_filter};
use crate::jinja::source::TokenKind;
use crate::jinja::{builtins, functions};

impl ExpressionParser<'_> {
    /// Parses fields, subscripts and calls after an operand.
    pub(super) fn parse_postfix(&mut self, mut part: ExpressionPart) -> Option<ExpressionPart> {
        loop {
            match self.peek_text() {
                "." => {
                    let dot = self.start();
                    self.position += 1;
                    let token = self.token()?;
                    let is_index = token.kind == TokenKind::Number && is_number(self.peek_text());
                    if token.kind != TokenKind::Name && !is_index {
                        return None;
                    }
                    if is_index {
                        self.charge_container(part.start, dot);
                    }
                    let method = METHODS
                        .iter()
                        .find(|method| method[1..].strip_suffix("()") == Some(self.peek_text()));
                    self.position += 1;
                    if let Some(method) = method.filter(|_| self.peek_text() == "(") {
                        let bracket = self.start() + 1;
                        self.insert_open(part.start, "(");
                        self.replace(dot, bracket, format!("|{}(", replacement_filter(method)), part.start);
                        self.parse_plain_arguments()?;
                        let end = self.end();
                        self.insert_close(end, ")");
                    }
                }
                "[" => self.parse_subscript(part.start)?,
                // The call may be `loop(…)`, which runs a recursive loop again; a template can give `loop`
                // another name.
                "(" => self.parse_arguments(self.may_be_loop(part))?,
                _ => return Some(part),
            }
            part = self.tight_part(part.start, StaticType::Unknown);
        }
    }

    /// Appends a filter to the container at `start..end`, which charges for the access to one of its items.
    fn charge_container(&mut self, start: usize, end: usize) {
        self.insert_open(start, "(");
        self.insert_close(end, format!("|{})", replacement_filter("[.]")));
    }

    /// Parses `[key]` or `[start:stop:step]` of the value that begins at `start`.
    fn parse_subscript(&mut self, start: usize) -> Option<()> {
        let bracket = self.start();
        self.expect("[")?;
        let bound = |parser: &mut Self| match parser.peek_text() {
            ":" | "]" => Some(None),
            _ => parser.parse_expression().map(Some),
        };
        let first = bound(self)?;
        if self.peek_text() == "]" {
            let key = first?;
            self.position += 1;
            self.charge_container(start, bracket);
            if !key.is_literal() {
                self.append_filter(key, "[]");
            }
            return Some(());
        }
        self.insert_open(start, "(");
        let none_text = |bound: Option<ExpressionPart>| if bound.is_none() { "none" } else { "" };
        let opening = format!("|{}({}", replacement_filter("[:]"), none_text(first));
        self.replace(bracket, bracket + 1, opening, start);
        let mut bound_count = 1;
        while self.peek_text() == ":" && bound_count < 3 {
            let colon = self.start();
            self.position += 1;
            let bound_part = bound(self)?;
            self.replace(colon, colon + 1, format!(", {}", none_text(bound_part)), start);
            bound_count += 1;
        }
        let end = self.start();
        self.expect("]")?;
        self.replace(end, end + 1, if bound_count == 2 { ", none))" } else { "))" }, start);
        Some(())
    }

    /// Parses filters and tests after an operand.
    pub(super) fn parse_filters(&mut self, mut part: ExpressionPart) -> Option<ExpressionPart> {
        loop {
            if self.eat("|") {
                self.parse_filter_name()?;
                if self.peek_text() == "(" {
                    self.parse_plain_arguments()?;
                }
            } else if self.eat("is") {
                self.eat("not");
                self.parse_filter_name()?;
                let kind = self.token().map(|token| token.kind);
                match (self.peek_text(), kind) {
                    ("(", _) => self.parse_plain_arguments()?,
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
            part = self.tight_part(part.start, StaticType::Unknown);
        }
    }

    /// Parses the name of a filter or test.
    fn parse_filter_name(&mut self) -> Option<()> {
        self.expect_name()?;
        while self.eat(".") {
            self.expect_name()?;
        }
        Some(())
    }

    /// Parses `name(expression) | name`.
    pub(super) fn parse_filter_chain(&mut self) -> Option<()> {
        loop {
            self.parse_filter_name()?;
            if self.peek_text() == "(" {
                self.parse_plain_arguments()?;
            }
            if !self.eat("|") {
                return Some(());
            }
        }
    }

    /// Returns true if a part is a name that the template may have given to a recursive loop.
    fn may_be_loop(&self, part: ExpressionPart) -> bool {
        let name = &self.source[part.start..part.end];
        let is_known = functions::needs_call_site(name) || builtins::FUNCTIONS.contains(&name);
        !is_known && name.chars().all(|c| c == '_' || unicode_ident::is_xid_continue(c))
    }

    /// Parses arguments in parentheses that are charged elsewhere, such as those of a filter.
    fn parse_plain_arguments(&mut self) -> Option<()> {
        let charges_values = false;
        self.parse_arguments(charges_values)
    }

    /// Parses arguments in parentheses. `charges_values` is set if the call may traverse their values: each
    /// is then charged.
    fn parse_arguments(&mut self, charges_values: bool) -> Option<()> {
        self.expect("(")?;
        while !self.eat(")") {
            let is_spread = self.eat("*") || self.eat("**");
            let is_name = self.token().is_some_and(|token| token.kind == TokenKind::Name);
            if !is_spread && is_name && self.text_at(self.position + 1) == "=" {
                self.position += 2;
            }
            let value = self.parse_expression()?;
            if is_spread {
                self.append_filter(value, "*()");
            } else if charges_values && !value.is_literal() {
                self.append_filter(value, "f()");
            }
            if !self.eat(",") {
                return self.expect(")");
            }
        }
        Some(())
    }
}
