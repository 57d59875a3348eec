//! Writing of `{{if}}` and its tests.

use std::borrow::Cow;

use super::super::MAX_WARNINGS;
use super::super::args::{dedent, quote_literal, split_branches};
use super::super::node::{ArgumentSeparator, KnownMacro, MacroNode, shorten, trim_nodes};
use super::super::table;
use super::{JinjaWriter, literal_text};
use tambour::finding::clip;

impl<'s> JinjaWriter<'s> {
    pub(super) fn write_condition(&mut self, mut one: KnownMacro<'s>) {
        self.count_rule(if one.keeps_white_space { "M-015" } else { "M-006" });
        let keep = one.keeps_white_space;
        let (mut then, mut otherwise) = split_branches(&mut one);
        let test = self.test_expression(&mut one);
        if !keep {
            dedent(&mut then);
            otherwise.iter_mut().for_each(dedent);
        }
        self.write_tag(&format!("{{% if {test} %}}"));
        self.write_inside(then);
        if let Some(otherwise) = otherwise {
            self.write_tag("{% else %}");
            self.write_inside(otherwise);
        }
        self.write_tag("{% endif %}");
    }

    /// Returns the test of a condition as an expression.
    pub(super) fn test_expression(&mut self, one: &mut KnownMacro<'s>) -> String {
        let mut test = std::mem::take(&mut one.args[0]);
        let mut negated = false;
        if let Some(MacroNode::Text(text)) = test.first_mut()
            && text.starts_with('!')
        {
            negated = true;
            shorten(text, |text| text[1..].trim_start());
        }
        trim_nodes(&mut test);
        let word = literal_text(&test);
        let holds = match word {
            Some(word) => self.word_test(&word, one),
            None => format!("st_if({})", self.join_expression(test)),
        };
        if negated { format!("not {holds}") } else { holds }
    }

    /// Returns the value of the macro with this name, if it needs no arguments.
    fn macro_value(&mut self, word: &str, one: &KnownMacro<'s>) -> Option<String> {
        let rule = table::find_rule(word).filter(|rule| rule.min_args == 0 && !rule.is_raw)?;
        let alone = KnownMacro {
            rule,
            name: Cow::Owned(word.to_owned()),
            keeps_white_space: false,
            form: ArgumentSeparator::None,
            args: Vec::new(),
            body: None,
            written: one.written,
            offset: one.offset,
            is_closing: false,
        };
        let value = self.inner_expression(alone).ok()?;
        Some(if value.is_empty() { "''".to_owned() } else { value })
    }

    /// Returns the test of a word without braces: a short form, a macro, a variable, else the word itself.
    fn word_test(&mut self, word: &str, one: &KnownMacro<'s>) -> String {
        let call = |prefix: &str, name: &str| format!("st_if({prefix}({}))", quote_literal(name, '\''));
        if let Some(name) = word.strip_prefix('.').filter(|name| table::name_len(name) == name.len()) {
            return call("st_get", name);
        }
        if let Some(name) = word.strip_prefix('$').filter(|name| table::name_len(name) == name.len()) {
            return call("st_get_global", name);
        }
        if let Some(value) = self.macro_value(word, one) {
            return format!("st_if({value})");
        }
        if one.keeps_white_space {
            return format!("st_test({})", quote_literal(word, '\''));
        }
        let full = self.warnings.len() >= MAX_WARNINGS;
        let constant =
            full || ["", "true", "false", "on", "off"].iter().any(|known| word.eq_ignore_ascii_case(known));
        if table::is_name(word) && !constant {
            let message =
                format!("`{}` in a condition is a word, not a variable, and always true", clip(word, 60));
            self.warn("condition_literal", word, one.offset, message);
        }
        format!("st_if({})", quote_literal(word, '\''))
    }
}
