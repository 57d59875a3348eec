//! Writing of `{{if}}` and its tests.

use std::borrow::Cow;

use super::super::MAX_WARNINGS;
use super::super::args::{quote_literal, split_branches, trim_body};
use super::super::node::{ArgumentSeparator, KnownMacro, MacroNode, shorten, trim_nodes};
use super::super::table;
use super::{JinjaWriter, literal_text};
use tambour::finding::clip;

impl<'s> JinjaWriter<'s> {
    /// Writes a condition with its branches as a statement.
    pub(super) fn write_condition(&mut self, mut known_macro: KnownMacro<'s>) {
        // `{{#if}}` and `{{if}}` are different rows of the macro table.
        self.count_rule(if known_macro.keeps_white_space { "M-015" } else { "M-006" });
        let keeps_white_space = known_macro.keeps_white_space;
        let (mut then_branch, mut else_branch) = split_branches(&mut known_macro);
        let test = self.test_expression(&mut known_macro);
        if !keeps_white_space {
            trim_body(&mut then_branch);
            else_branch.iter_mut().for_each(trim_body);
        }
        self.write_tag(&format!("{{% if {test} %}}"));
        self.write_inside(then_branch);
        if let Some(else_branch) = else_branch {
            self.write_tag("{% else %}");
            self.write_inside(else_branch);
        }
        self.write_tag("{% endif %}");
    }

    /// Returns the test of a condition as an expression.
    pub(super) fn test_expression(&mut self, known_macro: &mut KnownMacro<'s>) -> String {
        let mut test = std::mem::take(&mut known_macro.args[0]);
        let mut is_negated = false;
        if let Some(MacroNode::Text(text)) = test.first_mut()
            && text.starts_with('!')
        {
            is_negated = true;
            shorten(text, |text| text[1..].trim_start());
        }
        trim_nodes(&mut test);
        let word = literal_text(&test);
        let expression = match word {
            Some(word) => self.word_test(&word, known_macro),
            None => format!("st_if({})", self.join_expression(test)),
        };
        if is_negated { format!("not {expression}") } else { expression }
    }

    /// Returns the value of the macro with this name, if it needs no arguments.
    fn macro_value(&mut self, word: &str, known_macro: &KnownMacro<'s>) -> Option<String> {
        let rule = table::find_rule(word).filter(|rule| rule.min_args == 0 && !rule.is_raw)?;
        let bare_macro = KnownMacro {
            rule,
            name: Cow::Owned(word.to_owned()),
            keeps_white_space: false,
            separator: ArgumentSeparator::None,
            args: Vec::new(),
            body: None,
            source: known_macro.source,
            offset: known_macro.offset,
            is_closing: false,
        };
        let value = self.inner_expression(bare_macro).ok()?;
        Some(if value.is_empty() { "''".to_owned() } else { value })
    }

    /// Returns the test of a word without braces: a short form, a macro, a variable, else the word itself.
    fn word_test(&mut self, word: &str, known_macro: &KnownMacro<'s>) -> String {
        let call = |prefix: &str, name: &str| format!("st_if({prefix}({}))", quote_literal(name, '\''));
        if let Some(name) = word.strip_prefix('.').filter(|name| table::name_len(name) == name.len()) {
            return call("st_get", name);
        }
        if let Some(name) = word.strip_prefix('$').filter(|name| table::name_len(name) == name.len()) {
            return call("st_get_global", name);
        }
        if let Some(value) = self.macro_value(word, known_macro) {
            return format!("st_if({value})");
        }
        // `{{#if word}}` tests the variable of that name (M-015), `{{if word}}` only the word.
        if known_macro.keeps_white_space {
            return format!("st_test({})", quote_literal(word, '\''));
        }
        let is_literal =
            ["", "true", "false", "on", "off"].iter().any(|literal| word.eq_ignore_ascii_case(literal));
        let has_room = self.warnings.len() < MAX_WARNINGS;
        if has_room && table::is_name(word) && !is_literal {
            let message =
                format!("`{}` in a condition is a word, not a variable, and always true", clip(word, 60));
            self.warn("condition_literal", word, known_macro.offset, message);
        }
        format!("st_if({})", quote_literal(word, '\''))
    }
}
