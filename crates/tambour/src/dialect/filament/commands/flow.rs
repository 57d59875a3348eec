//! Code around commands: whether one stands under a condition, in a loop or in a function, of which nothing is evaluated, so that
//! nobody knows whether it is to be carried out; and names of variables.

use std::collections::HashSet;

/// Words before a condition in brackets.
const CONDITIONS: &[&str] = &["if", "while", "for", "switch", "catch"];

/// Words before the name of a variable.
const DECLARATIONS: &[&str] = &["let", "const", "var"];

/// Reads the text beside commands, each byte once.
#[derive(Default)]
pub(super) struct Flow<'t> {
    /// Names that were declared.
    variables: HashSet<&'t str>,
    /// Brackets that are open, and whether a condition stands in them.
    brackets: Vec<bool>,
    /// Braces that are open, and whether what is in them is carried out only perhaps; and how many of these there are.
    braces: Vec<bool>,
    doubtful_count: usize,
    /// True if the next command is conditional.
    is_next_conditional: bool,
}

impl<'t> Flow<'t> {
    /// Goes on with text that is no command.
    pub(super) fn text(&mut self, text: &'t str) {
        let (mut rest, mut last) = (text, "");
        while let Some(c) = rest.chars().next() {
            let part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
            let len = rest.find(|c| !part(c)).unwrap_or(rest.len());
            if len > 0 {
                let word = &rest[..len];
                if DECLARATIONS.contains(&last) {
                    self.variables.insert(word);
                }
                self.is_next_conditional = word == "else";
                (last, rest) = (word, &rest[len..]);
                continue;
            }
            if c.is_whitespace() {
                rest = &rest[c.len_utf8()..];
                continue;
            }
            let mut step = c.len_utf8();
            match c {
                '(' => {
                    self.brackets.push(CONDITIONS.contains(&last));
                    self.is_next_conditional = false;
                }
                ')' => self.is_next_conditional = self.brackets.pop().unwrap_or(false),
                // Behind a bracket it is the body of a function.
                '{' => {
                    let function = text[..text.len() - rest.len()].trim_end().ends_with(')');
                    let is_doubtful = std::mem::take(&mut self.is_next_conditional) || function;
                    self.braces.push(is_doubtful);
                    self.doubtful_count += usize::from(is_doubtful);
                }
                '}' => {
                    self.doubtful_count -= usize::from(self.braces.pop().unwrap_or(false));
                    self.is_next_conditional = false;
                }
                _ => {
                    let operator = ["=>", "&&", "||"].into_iter().find(|op| rest.starts_with(op));
                    step = operator.map_or(step, str::len);
                    self.is_next_conditional = operator.is_some();
                }
            }
            last = "";
            rest = &rest[step..];
        }
    }

    /// Goes on with what was to be a command and is none. `open`: another one begins right behind it.
    pub(super) fn fault(&mut self, text: &'t str, open: bool) {
        self.text(text);
        if open {
            self.is_next_conditional = !text.trim_end_matches([' ', '\t']).ends_with([';', '}']);
        }
    }

    /// Returns whether a command at this place is conditional, and ends its statement.
    pub(super) fn command(&mut self) -> bool {
        std::mem::take(&mut self.is_next_conditional) || self.doubtful_count > 0
    }

    /// Returns whether a bare word is the name of a variable.
    pub(super) fn is_variable(&self, word: &str) -> bool {
        self.variables.contains(word)
    }
}
