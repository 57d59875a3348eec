//! `{{if}}` and its tests.

use super::super::WARNINGS;
use super::super::args::{branches, dedent, quoted};
use super::super::node::{Macro, Node, shorten, trim};
use super::super::table::{self, Target};
use super::{Writer, still};
use crate::finding::clip;

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

    /// The test of a condition.
    pub(super) fn test(&mut self, one: &mut Macro<'s>) -> String {
        let mut test = std::mem::take(&mut one.args[0]);
        let mut negated = false;
        if let Some(Node::Text(text)) = test.first_mut() {
            while text.starts_with('!') {
                negated = !negated;
                shorten(text, |text| text[1..].trim_start());
            }
        }
        trim(&mut test);
        let word = still(&test);
        let holds = match word {
            Some(word) => self.word(&word, one),
            None => format!("st_if({})", self.join(test)),
        };
        if negated { format!("not {holds}") } else { holds }
    }

    /// The test of a word without braces: a short form, a macro, a variable, else the word itself.
    fn word(&mut self, word: &str, one: &Macro<'_>) -> String {
        let call = |prefix: &str, name: &str| format!("st_if({prefix}({}))", quoted(name, '\''));
        if let Some(name) = word.strip_prefix('.').filter(|name| table::name_length(name) == name.len()) {
            return call("st_get", name);
        }
        if let Some(name) = word.strip_prefix('$').filter(|name| table::name_length(name) == name.len()) {
            return call("st_get_global", name);
        }
        if let Some(Target::Expression(expression)) = table::find(word).map(|rule| rule.target) {
            return format!("st_if({expression})");
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
