//! Types of a session's variables as far as the script shows them, and the search for conditions that compare
//! values of different types.

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
    /// Any value of this type, or no value yet.
    OfType(OperandType),
    /// Any value.
    Unknown,
}

/// Known types of a session's variables, by name.
#[derive(Default)]
pub(super) struct VariableTypes(BTreeMap<String, PossibleValues>);

/// Collects the types of the variables that a session declares and sets.
pub(super) fn collect_types(session: &ScriptSession) -> VariableTypes {
    let mut types = VariableTypes::default();
    let phases = session.phases.iter();
    let inner_declarations = phases
        .flat_map(|phase| phase.declare.iter().chain(phase.steps.iter().flat_map(|step| &step.declare)));
    for declaration in session.declare.iter().chain(inner_declarations) {
        // A null variable has no type until it gets a value.
        if !declaration.value.is_null() {
            types.add_values(&declaration.var, PossibleValues::Constant(declaration.value.clone()));
        }
    }
    session.actions().for_each(|action| types.add_action(action));
    types
}

impl VariableTypes {
    /// Merges further possible values of a variable with those known so far.
    fn add_values(&mut self, name: &str, values: PossibleValues) {
        let entry = self.0.entry(name.to_owned());
        entry
            .and_modify(|known| {
                *known = match (known.value_type(), values.value_type()) {
                    _ if *known == values => values.clone(),
                    (Some(value_type), Some(other)) if value_type == other => {
                        PossibleValues::OfType(value_type)
                    }
                    _ => PossibleValues::Unknown,
                };
            })
            .or_insert(values);
    }

    /// Adds the variables that an action sets.
    fn add_action(&mut self, action: &ScriptAction) {
        match &action.kind {
            ScriptActionKind::Ask(ask) => {
                let values = match &ask.answer.kind {
                    AnswerKind::Number => PossibleValues::OfType(OperandType::Number),
                    AnswerKind::Boolean => PossibleValues::OfType(OperandType::Boolean),
                    AnswerKind::Choice if !ask.answer.options.iter().all(Value::is_string) => {
                        PossibleValues::Unknown
                    }
                    _ => PossibleValues::OfType(OperandType::Text),
                };
                ask.variable.iter().for_each(|name| self.add_values(name, values.clone()));
            }
            ScriptActionKind::Say(_) => {}
            _ => super::check::assigned_variables(action)
                .into_iter()
                .for_each(|name| self.add_values(name, PossibleValues::Unknown)),
        }
    }

    /// Returns the possible values of an operand of a comparison.
    fn operand_values(&self, operand: &Operand) -> PossibleValues {
        match operand {
            Operand::Literal(value) => PossibleValues::Constant(value.clone()),
            Operand::Variable(name) => self.0.get(name).cloned().unwrap_or(PossibleValues::Unknown),
            Operand::Other => PossibleValues::Unknown,
        }
    }
}

impl PossibleValues {
    /// Returns the type of the values, if it is known.
    fn value_type(&self) -> Option<OperandType> {
        match self {
            PossibleValues::Constant(value) => Some(OperandType::from_json(value)),
            PossibleValues::OfType(operand_type) => Some(*operand_type),
            PossibleValues::Unknown => None,
        }
    }

    /// Returns true for a text that is known to be a number.
    fn is_numeric_text(&self) -> bool {
        matches!(self, PossibleValues::Constant(Value::String(text)) if parse_number(text).is_some())
    }
}

/// Describes the comparisons in a condition whose operands have different types.
pub(super) fn find_mismatches(condition: &str, types: &VariableTypes, language: Language) -> Vec<String> {
    let mut messages = Vec::new();
    for (left, operator, right) in list_comparisons(condition) {
        let (left_values, right_values) = (types.operand_values(&left), types.operand_values(&right));
        let (Some(left_type), Some(right_type)) = (left_values.value_type(), right_values.value_type())
        else {
            continue;
        };
        // Any value can be compared with null for equality.
        let is_equality = operator == "==" || operator == "!=";
        if left_type == right_type || is_equality && [left_type, right_type].contains(&OperandType::Null) {
            continue;
        }
        // A number can be compared with a text that is a number.
        let is_number_with_text = [left_type, right_type].contains(&OperandType::Number)
            && [left_type, right_type].contains(&OperandType::Text);
        if is_number_with_text && (left_values.is_numeric_text() || right_values.is_numeric_text()) {
            continue;
        }
        // At run time, the text may be a number or not.
        let is_undecided = is_number_with_text
            && [&left_values, &right_values].contains(&&PossibleValues::OfType(OperandType::Text));
        let describe = |operand: &Operand, operand_type: OperandType| match operand {
            Operand::Variable(name) => {
                bilingual!(
                    language,
                    "`{}`（{}）",
                    "`{}`, {}",
                    clip(name, 80),
                    type_name(operand_type, language)
                )
            }
            _ => type_name(operand_type, language).to_owned(),
        };
        let (left_text, right_text) = (describe(&left, left_type), describe(&right, right_type));
        let message = bilingual!(
            language,
            "`{}` 比较了不同类型的值：{}与{}",
            "`{}` compares values of different types: {}, and {}",
            operator,
            left_text,
            right_text
        );
        let hint = if is_undecided {
            bilingual!(
                language,
                "；只有整个文本是数字时才会比较，提问时写 `answer: {{type: number}}` 可以得到数字",
                "; they are compared only if the whole text is a number; `answer: {{type: number}}` makes the answer a number",
            )
        } else {
            bilingual!(language, "；这样的条件按不成立处理", "; the condition counts as false then")
        };
        let message = message + &hint;
        if !messages.contains(&message) {
            messages.push(message);
        }
    }
    messages
}
