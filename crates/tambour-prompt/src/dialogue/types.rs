//! Types of a session's variables that are known before it runs, and comparisons of different types.

use std::collections::BTreeMap;

use serde_json::Value;

use super::condition::type_name;
use crate::jinja::{Operand, Type, comparisons, number};
use crate::script::{Action, ActionKind, AnswerKind, Session};
use tambour::finding::clip;
use tambour::texts::{Language, bilingual};

/// Possible values of a variable.
#[derive(Clone, Debug, PartialEq)]
enum Holds {
    /// Always this value.
    One(Value),
    /// Values of this type; none before the first.
    Any(Type),
    /// Any value.
    Unknown,
}

/// Known types of a session's variables, by name.
#[derive(Default)]
pub(super) struct Known(BTreeMap<String, Holds>);

/// Collects the types of the variables that a session declares and sets.
pub(super) fn of(session: &Session) -> Known {
    let mut known = Known::default();
    let phases = session.phases.iter();
    let inner = phases
        .flat_map(|phase| phase.declare.iter().chain(phase.steps.iter().flat_map(|step| &step.declare)));
    for declared in session.declare.iter().chain(inner) {
        // A null variable has no type until it gets a value.
        if !declared.value.is_null() {
            known.learn(&declared.var, Holds::One(declared.value.clone()));
        }
    }
    session.actions().for_each(|action| known.set_by(action));
    known
}

impl Known {
    fn learn(&mut self, name: &str, holds: Holds) {
        let entry = self.0.entry(name.to_owned());
        entry
            .and_modify(|before| {
                *before = match (before.type_of(), holds.type_of()) {
                    _ if *before == holds => holds.clone(),
                    (Some(one), Some(other)) if one == other => Holds::Any(one),
                    _ => Holds::Unknown,
                };
            })
            .or_insert(holds);
    }

    fn set_by(&mut self, action: &Action) {
        match &action.kind {
            ActionKind::Ask(ask) => {
                let holds = match &ask.answer.kind {
                    AnswerKind::Number => Holds::Any(Type::Number),
                    AnswerKind::Boolean => Holds::Any(Type::Flag),
                    AnswerKind::Choice if !ask.answer.options.iter().all(Value::is_string) => Holds::Unknown,
                    _ => Holds::Any(Type::Text),
                };
                ask.variable.iter().for_each(|name| self.learn(name, holds.clone()));
            }
            ActionKind::Say(_) => {}
            _ => super::check::assigned(action).into_iter().for_each(|name| self.learn(name, Holds::Unknown)),
        }
    }

    fn of_operand(&self, operand: &Operand) -> Holds {
        match operand {
            Operand::Literal(value) => Holds::One(value.clone()),
            Operand::Variable(name) => self.0.get(name).cloned().unwrap_or(Holds::Unknown),
            Operand::Other => Holds::Unknown,
        }
    }
}

impl Holds {
    fn type_of(&self) -> Option<Type> {
        match self {
            Holds::One(value) => Some(Type::of(value)),
            Holds::Any(of) => Some(*of),
            Holds::Unknown => None,
        }
    }

    /// Returns true for a text that is known to be a number.
    fn is_number(&self) -> bool {
        matches!(self, Holds::One(Value::String(text)) if number(text).is_some())
    }
}

/// Describes the comparisons in a condition whose types differ.
pub(super) fn differ(condition: &str, known: &Known, language: Language) -> Vec<String> {
    let mut told = Vec::new();
    for (left, sign, right) in comparisons(condition) {
        let (a, b) = (known.of_operand(&left), known.of_operand(&right));
        let (Some(one), Some(other)) = (a.type_of(), b.type_of()) else { continue };
        let equality = sign == "==" || sign == "!=";
        if one == other || equality && [one, other].contains(&Type::Nothing) {
            continue;
        }
        let numbers = [one, other].contains(&Type::Number) && [one, other].contains(&Type::Text);
        if numbers && (a.is_number() || b.is_number()) {
            continue;
        }
        // The text may turn out to be a number or not.
        let open = numbers && [&a, &b].contains(&&Holds::Any(Type::Text));
        let what = |operand: &Operand, of: Type| match operand {
            Operand::Variable(name) => {
                bilingual!(language, "`{}`（{}）", "`{}`, {}", clip(name, 80), type_name(of, language))
            }
            _ => type_name(of, language).to_owned(),
        };
        let (a, b) = (what(&left, one), what(&right, other));
        let message = bilingual!(
            language,
            "`{}` 比较了不同类型的值：{}与{}",
            "`{}` compares values of different types: {}, and {}",
            sign,
            a,
            b
        );
        let more = if open {
            bilingual!(
                language,
                "；只有整个文本是数字时才会比较，提问时写 `answer: {{type: number}}` 可以得到数字",
                "; they are compared only where the text is a number as a whole; `answer: {{type: number}}` makes the question give one",
            )
        } else {
            bilingual!(language, "；这样的条件按不成立处理", "; the condition counts as false then")
        };
        let message = message + &more;
        if !told.contains(&message) {
            told.push(message);
        }
    }
    told
}
