//! Types of a session's variables that are known before it runs, and comparisons of different types.

use std::collections::BTreeMap;

use serde_json::Value;

use super::condition::type_name;
use crate::jinja::{Operand, OperandType, list_comparisons, parse_number};
use crate::script::{AnswerKind, ScriptAction, ScriptActionKind, ScriptSession};
use tambour::finding::clip;
use tambour::texts::{Language, bilingual};

/// Possible values of a variable.
#[derive(Clone, Debug, PartialEq)]
enum PossibleValues {
    /// Always this value.
    Constant(Value),
    /// Values of this type; none before the first.
    OfType(OperandType),
    /// Any value.
    Unknown,
}

/// Known types of a session's variables, by name.
#[derive(Default)]
pub(super) struct VariableTypes(BTreeMap<String, PossibleValues>);

/// Collects the types of the variables that a session declares and sets.
pub(super) fn collect_types(session: &ScriptSession) -> VariableTypes {
    let mut known = VariableTypes::default();
    let phases = session.phases.iter();
    let inner = phases
        .flat_map(|phase| phase.declare.iter().chain(phase.steps.iter().flat_map(|step| &step.declare)));
    for declared in session.declare.iter().chain(inner) {
        // A null variable has no type until it gets a value.
        if !declared.value.is_null() {
            known.add_values(&declared.var, PossibleValues::Constant(declared.value.clone()));
        }
    }
    session.actions().for_each(|action| known.add_action(action));
    known
}

impl VariableTypes {
    fn add_values(&mut self, name: &str, holds: PossibleValues) {
        let entry = self.0.entry(name.to_owned());
        entry
            .and_modify(|before| {
                *before = match (before.value_type(), holds.value_type()) {
                    _ if *before == holds => holds.clone(),
                    (Some(one), Some(other)) if one == other => PossibleValues::OfType(one),
                    _ => PossibleValues::Unknown,
                };
            })
            .or_insert(holds);
    }

    fn add_action(&mut self, action: &ScriptAction) {
        match &action.kind {
            ScriptActionKind::Ask(ask) => {
                let holds = match &ask.answer.kind {
                    AnswerKind::Number => PossibleValues::OfType(OperandType::Number),
                    AnswerKind::Boolean => PossibleValues::OfType(OperandType::Boolean),
                    AnswerKind::Choice if !ask.answer.options.iter().all(Value::is_string) => {
                        PossibleValues::Unknown
                    }
                    _ => PossibleValues::OfType(OperandType::Text),
                };
                ask.variable.iter().for_each(|name| self.add_values(name, holds.clone()));
            }
            ScriptActionKind::Say(_) => {}
            _ => super::check::assigned_variables(action)
                .into_iter()
                .for_each(|name| self.add_values(name, PossibleValues::Unknown)),
        }
    }

    fn operand_values(&self, operand: &Operand) -> PossibleValues {
        match operand {
            Operand::Literal(value) => PossibleValues::Constant(value.clone()),
            Operand::Variable(name) => self.0.get(name).cloned().unwrap_or(PossibleValues::Unknown),
            Operand::Other => PossibleValues::Unknown,
        }
    }
}

impl PossibleValues {
    fn value_type(&self) -> Option<OperandType> {
        match self {
            PossibleValues::Constant(value) => Some(OperandType::from_json(value)),
            PossibleValues::OfType(of) => Some(*of),
            PossibleValues::Unknown => None,
        }
    }

    /// Returns true for a text that is known to be a number.
    fn is_number(&self) -> bool {
        matches!(self, PossibleValues::Constant(Value::String(text)) if parse_number(text).is_some())
    }
}

/// Describes the comparisons in a condition whose types differ.
pub(super) fn find_mismatches(condition: &str, known: &VariableTypes, language: Language) -> Vec<String> {
    let mut told = Vec::new();
    for (left, sign, right) in list_comparisons(condition) {
        let (a, b) = (known.operand_values(&left), known.operand_values(&right));
        let (Some(one), Some(other)) = (a.value_type(), b.value_type()) else { continue };
        let equality = sign == "==" || sign == "!=";
        if one == other || equality && [one, other].contains(&OperandType::Null) {
            continue;
        }
        let numbers =
            [one, other].contains(&OperandType::Number) && [one, other].contains(&OperandType::Text);
        if numbers && (a.is_number() || b.is_number()) {
            continue;
        }
        // The text may turn out to be a number or not.
        let open = numbers && [&a, &b].contains(&&PossibleValues::OfType(OperandType::Text));
        let what = |operand: &Operand, of: OperandType| match operand {
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
