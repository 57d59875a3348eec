//! Operations as a model writes them (F-111): `["ADD", "纯田真奈.好感度", 5]`.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use super::command::StateCommand;
use super::number::is_in_range;
use super::path::{StatePath, StateStep};
use super::rules;
use crate::error::{Error, Result};
use crate::finding::{FindingReport, Rule, clip};
use crate::schema::type_name;
use crate::span::Place;

/// Kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Op {
    /// Overwrites the value, or creates it with its parents.
    Set,
    /// Adds to a number.
    Add,
    /// Subtracts from a number.
    Sub,
    /// Multiplies a number.
    Mul,
    /// Divides a number.
    Div,
    /// Appends to a list, or creates it.
    Push,
    /// Removes the last element of a list.
    Pop,
    /// Removes a field of an object, or an element of a list.
    Delete,
}

/// All operations.
pub const OPS: [Op; 8] = [Op::Set, Op::Add, Op::Sub, Op::Mul, Op::Div, Op::Push, Op::Pop, Op::Delete];

/// Maximum number of characters of a model's text shown in a message.
const MAX_SHOWN: usize = 60;

impl Op {
    /// Returns the name in upper case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Op::Set => "SET",
            Op::Add => "ADD",
            Op::Sub => "SUB",
            Op::Mul => "MUL",
            Op::Div => "DIV",
            Op::Push => "PUSH",
            Op::Pop => "POP",
            Op::Delete => "DELETE",
        }
    }

    /// Returns the operation of that name, ignoring case.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Op> {
        OPS.into_iter().find(|op| op.name().eq_ignore_ascii_case(name))
    }

    /// Returns true if the operation takes a value.
    #[must_use]
    pub(crate) fn takes_value(self) -> bool {
        !matches!(self, Op::Pop | Op::Delete)
    }

    /// Returns true for an arithmetic operation.
    #[must_use]
    pub(crate) fn is_arithmetic(self) -> bool {
        matches!(self, Op::Add | Op::Sub | Op::Mul | Op::Div)
    }
}

/// Reason why an operation was not carried out (F-113, F-117). The names are public.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RefusalReason {
    /// Not a list of a name, a path and optionally a value.
    OperationMalformed,
    /// No operation has that name.
    OperationUnknown,
    /// A value is missing, or there are superfluous items.
    OperationArity,
    /// The value, or the value at the path, has the wrong type.
    OperationTypeMismatch,
    /// The path is invalid.
    PathInvalid,
    /// There is no value at the path.
    PathMissing,
    /// The path continues below a scalar.
    PathThroughScalar,
    /// A key into a list, or an index into an object.
    PathMismatch,
    /// The list has no such element.
    IndexOutOfRange,
    /// The list is empty.
    ListEmpty,
    /// A division by 0.
    DivisionByZero,
    /// The result is infinite.
    NumberNotFinite,
    /// The result is beyond the range in which numbers are exact.
    NumberOutOfRange,
    /// The result violates the schema of the state.
    SchemaViolation,
    /// The result cannot be checked against the schema in bounded time, or the block has used up its steps
    /// for checks.
    SchemaTooComplex,
    /// The text was not valid JSON, so the value may not be the intended one.
    ValueGuessed,
    /// A limit of the state is exceeded.
    LimitExceeded,
    /// Another operation of an atomic block was refused, or the caller stopped the block.
    NotApplied,
}

/// Refusal of an operation, with a message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperationRefusal {
    /// Stable reason.
    pub reason: RefusalReason,
    /// Description of the fault, with the path.
    pub message: String,
}

impl OperationRefusal {
    pub(super) fn new(reason: RefusalReason, message: impl Into<String>) -> OperationRefusal {
        OperationRefusal { reason, message: message.into() }
    }
}

/// An operation. An unreadable one is kept with its refusal, so that indexes stay the same.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "StoredOperation")]
pub struct Operation {
    /// The name in upper case, or as written if it is unknown.
    op: String,
    /// The path as written; empty if there was none.
    path: String,
    /// The value; for an item that is no operation, the entire item.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
    /// Reason given to [`Operation::refuse`]. It is stored, since the other fields do not show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<RefusalReason>,
    /// Kind and path, or the reason why the operation cannot be carried out on any state.
    #[serde(skip)]
    parsed: std::result::Result<(Op, StatePath), OperationRefusal>,
    /// Name as written, if it was not in upper case.
    #[serde(skip)]
    original_name: Option<String>,
    /// Effect of the operation, if that depends on the state; `None` for a plain operation.
    #[serde(skip)]
    command: Option<Box<StateCommand>>,
}

/// An operation as stored and sent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredOperation {
    op: String,
    path: String,
    #[serde(default, deserialize_with = "super::deserialize_present")]
    value: Option<Value>,
    #[serde(default)]
    refused: Option<RefusalReason>,
}

impl From<StoredOperation> for Operation {
    fn from(stored: StoredOperation) -> Operation {
        let operation = Operation::parse(stored.op, stored.path, stored.value);
        match stored.refused {
            Some(reason) => operation.refuse(reason, "it was refused when it was read"),
            None => operation,
        }
    }
}

impl Operation {
    /// Creates an operation from its parts.
    #[must_use]
    pub fn new(op: Op, path: StatePath, value: Option<Value>) -> Operation {
        let name = op.name().to_owned();
        let text = path.to_string();
        let parsed = check_value(op, value.as_ref()).map(|()| (op, path));
        Operation { op: name, path: text, value, refused: None, parsed, original_name: None, command: None }
    }

    /// Reads the operations of a block: a JSON array of arrays `[op, path, value?]`.
    ///
    /// ```
    /// use serde_json::json;
    /// use tambour::state::Operation;
    ///
    /// let operations = Operation::parse_list(&json!([["SET", "a", 1], ["NOD", "a"]]))?;
    /// assert!(operations[0].refusal().is_none());
    /// assert!(operations[1].refusal().is_some());
    /// # Ok::<(), tambour::Error>(())
    /// ```
    ///
    /// # Errors
    /// The block is not an array. A fault in one operation becomes its refusal.
    pub fn parse_list(block: &Value) -> Result<Vec<Operation>> {
        match block {
            Value::Array(items) => Ok(items.iter().map(Operation::from_value).collect()),
            other => {
                Err(Error::invalid(format!("operations must be a JSON array, not {}", type_name(other))))
            }
        }
    }

    /// Reads one operation, `[op, path, value?]`.
    #[must_use]
    pub fn from_value(item: &Value) -> Operation {
        match item.as_array().map(Vec::as_slice) {
            Some([Value::String(op), Value::String(path), values @ ..]) => {
                // Several values are a fault. An unknown operation keeps them all, as a list. An operation
                // that takes a value keeps none, since nobody knows which one is meant. An operation that
                // takes no value keeps the first one, and is refused because of it.
                let max_values = usize::from(Op::from_name(op).is_some_and(Op::takes_value));
                let value = match values {
                    [_, _, ..] if Op::from_name(op).is_none() => Some(Value::Array(values.to_vec())),
                    _ => values.first().filter(|_| values.len() == 1 || max_values == 0).cloned(),
                };
                Operation::parse(op.clone(), path.clone(), value)
            }
            Some([Value::String(op)]) => Operation::parse(op.clone(), String::new(), None),
            _ => Operation::parse(String::new(), String::new(), Some(item.clone())),
        }
    }

    /// Restores an operation from its stored name, path and value, as returned by [`Operation::op`] and the
    /// other getters.
    #[doc(hidden)]
    #[must_use]
    pub fn from_stored(op: String, path: String, value: Option<Value>) -> Operation {
        Operation::parse(op, path, value)
    }

    fn parse(name: String, path: String, value: Option<Value>) -> Operation {
        let Some(op) = Op::from_name(&name) else {
            let refusal = if name.is_empty() {
                let message = "an operation must be a list of its name, a path and perhaps a value";
                OperationRefusal::new(RefusalReason::OperationMalformed, message)
            } else {
                let known_names: Vec<&str> = OPS.iter().map(|op| op.name()).collect();
                let message =
                    format!("unknown operation {}; known: {}", format_shown(&name), known_names.join(", "));
                OperationRefusal::new(RefusalReason::OperationUnknown, message)
            };
            return Operation {
                op: name,
                path,
                value,
                refused: None,
                parsed: Err(refusal),
                original_name: None,
                command: None,
            };
        };
        let parsed = check_value(op, value.as_ref()).and_then(|()| match path.parse() {
            Ok(path) => Ok((op, path)),
            Err(error) => {
                let message = format!("{} is not a path: {error}", format_shown(&path));
                Err(OperationRefusal::new(RefusalReason::PathInvalid, message))
            }
        });
        let original_name = (name != op.name()).then_some(name);
        Operation {
            op: op.name().to_owned(),
            path,
            value,
            refused: None,
            parsed,
            original_name,
            command: None,
        }
    }

    /// Refuses the operation because of the way in which it was written. Its value may not be the intended
    /// one, so it is dropped and cannot be used. An earlier refusal is kept, unless it is about the type of
    /// that value.
    #[doc(hidden)]
    #[must_use]
    pub fn refuse(mut self, reason: RefusalReason, message: impl Into<String>) -> Operation {
        let is_type_mismatch =
            |refusal: &OperationRefusal| refusal.reason == RefusalReason::OperationTypeMismatch;
        if self.parsed.as_ref().err().is_none_or(is_type_mismatch) {
            self.parsed = Err(OperationRefusal::new(reason, message));
            self.refused = Some(reason);
            self.value = None;
        }
        self
    }

    /// Refuses the operation and keeps its value.
    pub(super) fn refuse_with_value(
        mut self,
        reason: RefusalReason,
        message: impl Into<String>,
    ) -> Operation {
        self.parsed = Err(OperationRefusal::new(reason, message));
        self
    }

    /// Attaches a command that is resolved on the state when the operation is applied. Without a state, the
    /// operation stays as it is.
    #[must_use]
    pub(crate) fn with_command(self, command: StateCommand) -> Operation {
        Operation { command: Some(Box::new(command)), ..self }
    }

    /// Returns the command that resolves the operation.
    #[must_use]
    pub(crate) fn command(&self) -> Option<&StateCommand> {
        self.command.as_deref()
    }

    /// Removes the command.
    pub(super) fn without_command(self) -> Operation {
        Operation { command: None, ..self }
    }

    /// Returns the reason why the value must not be used; `None` if it may be.
    pub(super) fn unusable_value_reason(&self) -> Option<RefusalReason> {
        let is_out_of_range = |refusal: &&OperationRefusal| refusal.reason == RefusalReason::NumberOutOfRange;
        self.refused.or_else(|| self.refusal().filter(is_out_of_range).map(|refusal| refusal.reason))
    }

    /// Returns the name in upper case, or as written if it is unknown; empty if there was none.
    #[must_use]
    pub fn op(&self) -> &str {
        &self.op
    }

    /// Returns the path as written.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the value; for an item that is no operation, the entire item.
    #[must_use]
    pub fn value(&self) -> Option<&Value> {
        self.value.as_ref()
    }

    /// Returns the refusal of an operation that cannot be carried out on any state, for any reason.
    #[must_use]
    pub fn refusal(&self) -> Option<&OperationRefusal> {
        self.parsed.as_ref().err()
    }

    /// Returns the kind and path if the operation is readable.
    pub(super) fn parts(&self) -> std::result::Result<(Op, &StatePath), OperationRefusal> {
        self.parsed.as_ref().map(|(op, path)| (*op, path)).map_err(OperationRefusal::clone)
    }

    /// Returns the kind, and the keys of the path after the first `len` steps if those are all keys.
    pub(super) fn keys_below(&self, len: usize) -> Option<(Op, Vec<String>)> {
        let (op, path) = self.parsed.as_ref().ok()?;
        let keys = path.steps().get(len..).unwrap_or_default().iter().map(|step| match step {
            StateStep::Key(key) | StateStep::Token(key) => Some(key.clone()),
            StateStep::Index(_) => None,
        });
        Some((*op, keys.collect::<Option<_>>()?))
    }

    /// Builds the finding about a fault in the notation of the operation, which extends from `place` to the
    /// byte offset `end`. `None` if there is no fault, or if a value was guessed: the JSON reader reports
    /// that.
    #[doc(hidden)]
    #[must_use]
    pub fn report(&self, place: Place, end: usize) -> Option<FindingReport> {
        if let Some(refusal) = self.refusal() {
            if refusal.reason == RefusalReason::ValueGuessed {
                return None;
            }
            let rule: &'static Rule = match refusal.reason {
                RefusalReason::OperationUnknown => rules::OPERATION_UNKNOWN,
                RefusalReason::OperationArity => rules::OPERATION_ARITY,
                RefusalReason::OperationTypeMismatch => rules::OPERATION_TYPE_MISMATCH,
                RefusalReason::PathInvalid => rules::PATH_INVALID,
                RefusalReason::NumberOutOfRange => rules::NUMBER_OUT_OF_RANGE,
                _ => rules::OPERATION_MALFORMED,
            };
            let report = FindingReport::new(rule, place, end, refusal.message.clone());
            let consequence = match refusal.reason {
                RefusalReason::OperationArity => ", its values are not used",
                RefusalReason::NumberOutOfRange => ", its value is not used",
                _ => "",
            };
            return Some(report.with_repair(format!("it is not carried out{consequence}")));
        }
        let original_name = self.original_name.as_deref()?;
        let message = format!("{} is not in upper case", format_shown(original_name));
        Some(
            FindingReport::new(rules::OPERATION_CASE, place, end, message)
                .with_repair(format!("read as `{}`", self.op)),
        )
    }
}

/// Checks that `op` has a value exactly if it takes one, of the proper type and with numbers that are exact.
fn check_value(op: Op, value: Option<&Value>) -> std::result::Result<(), OperationRefusal> {
    match value {
        Some(value) if op.is_arithmetic() && !value.is_number() => {
            let message = format!("{op} takes a number, not {}", type_name(value));
            Err(OperationRefusal::new(RefusalReason::OperationTypeMismatch, message))
        }
        value if value.is_some() == op.takes_value() => match value.and_then(find_inexact) {
            None => Ok(()),
            Some(number) => {
                // `bound_numbers` has replaced the number as it was written.
                let is_vast = number.as_f64().is_some_and(|float| float.abs() == f64::MAX);
                let number = if is_vast { "the number".to_owned() } else { number.to_string() };
                let message = format!("{number} is outside the range in which numbers are exact");
                Err(OperationRefusal::new(RefusalReason::NumberOutOfRange, message))
            }
        },
        _ => {
            let expectation = if op.takes_value() { "a path and one value" } else { "a path and no value" };
            Err(OperationRefusal::new(RefusalReason::OperationArity, format!("{op} takes {expectation}")))
        }
    }
}

/// Returns the first number in the value that is not kept exactly. Avoids recursion, because a caller's value
/// may have any depth.
fn find_inexact(value: &Value) -> Option<&Number> {
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        match value {
            Value::Number(number) if !is_in_range(number) => return Some(number),
            Value::Array(items) => pending.extend(items),
            Value::Object(fields) => pending.extend(fields.values()),
            _ => {}
        }
    }
    None
}

/// Formats a model's text for a message.
fn format_shown(text: &str) -> String {
    format!("`{}`", clip(text, MAX_SHOWN))
}

/// Compares what an operation does: its name, its path and its value.
impl PartialEq for Operation {
    fn eq(&self, other: &Operation) -> bool {
        (&self.op, &self.path, &self.value) == (&other.op, &other.path, &other.value)
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for RefusalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}
