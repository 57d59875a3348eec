//! Writing of `{{if}}` and its tests.

use std::borrow::Cow;

use super::super::WARNINGS;
use super::super::args::{branches, dedent, quoted};
use super::super::node::{Form, Macro, Node, shorten, trim};
use super::super::table;
use super::{Writer, still};
use tambour::finding::clip;

impl<'s> Writer<'s> {
    pub(super) fn condition(&mut self, mut one: Macro<'s>) {
        self.count(if one.keep { "M-015" } else { "M-006" });
        let keep = one.keep;
        let (mut then, mut otherwise) = branches(&mut one);
        let test = self.test(&mut one);
        if !keep {
            dedent(&mut then);
            otherwise.iter_mut().for_each(dedent);
        }
        self.tag(&format!("{{% if {test} %}}"));
        self.inside(then);
        if let Some(otherwise) = otherwise {
            self.tag("{% else %}");
            self.inside(otherwise);
        }
        self.tag("{% endif %}");
    }

    /// Returns the test of a condition as an expression.
    pub(super) fn test(&mut self, one: &mut Macro<'s>) -> String {
        let mut test = std::mem::take(&mut one.args[0]);
        let mut negated = false;
        if let Some(Node::Text(text)) = test.first_mut()
            && text.starts_with('!')
        {
            negated = true;
            shorten(text, |text| text[1..].trim_start());
        }
        trim(&mut test);
        let word = still(&test);
        let holds = match word {
            Some(word) => self.word(&word, one),
            None => format!("st_if({})", self.join(test)),
        };
        if negated { format!("not {holds}") } else { holds }
    }

    /// Returns the value of the macro with this name, if it needs no arguments.
    fn named(&mut self, word: &str, one: &Macro<'s>) -> Option<String> {
        let rule = table::find(word).filter(|rule| rule.least == 0 && !rule.raw)?;
        let alone = Macro {
            rule,
            name: Cow::Owned(word.to_owned()),
            keep: false,
            form: Form::None,
            args: Vec::new(),
            body: None,
            written: one.written,
            at: one.at,
            closes: false,
        };
        let value = self.inner(alone).ok()?;
        Some(if value.is_empty() { "''".to_owned() } else { value })
    }

    /// Returns the test of a word without braces: a short form, a macro, a variable, else the word itself.
    fn word(&mut self, word: &str, one: &Macro<'s>) -> String {
        let call = |prefix: &str, name: &str| format!("st_if({prefix}({}))", quoted(name, '\''));
        if let Some(name) = word.strip_prefix('.').filter(|name| table::name_length(name) == name.len()) {
            return call("st_get", name);
        }
        if let Some(name) = word.strip_prefix('$').filter(|name| table::name_length(name) == name.len()) {
            return call("st_get_global", name);
        }
        if let Some(value) = self.named(word, one) {
            return format!("st_if({value})");
        }
        if one.keep {
            return format!("st_test({})", quoted(word, '\''));
        }
        let full = self.warnings.len() >= WARNINGS;
        let constant =
            full || ["", "true", "false", "on", "off"].iter().any(|known| word.eq_ignore_ascii_case(known));
        if table::is_name(word) && !constant {
            let message =
                format!("`{}` in a condition is a word, not a variable, and always true", clip(word, 60));
            self.warn("condition_literal", word, one.at, message);
        }
        format!("st_if({})", quoted(word, '\''))
    }
}
