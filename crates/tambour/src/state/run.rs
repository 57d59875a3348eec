//! Applies a block of operations. Each changes the state at once and records the data to undo it.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Map, Number, Value};

use super::command::settle;
use super::measure::{Measure, measure};
use super::number::calculate;
use super::operation::{Op, Operation, Reason, Refusal};
use super::path::Path;
use super::spot::{Part, Spot, absent, at, follow, insert, shown, take};
use super::{ApplyOptions, OpResult};
use crate::limits::StateLimits;
use crate::schema::{Mismatch, Schema, type_name};
use crate::texts::counted;

/// Most schema violations that are distinguished.
const MISMATCHES: usize = 256;

/// Step budget of all schema checks of a block: each operation is checked, and each check reads the entire
/// state.
const CHECKS: u64 = 16_000_000;

/// A block being applied.
pub(super) struct Run<'a> {
    state: &'a mut Value,
    limits: &'a StateLimits,
    /// Current values and bytes of the state.
    size: Size,
    /// Steps left for schema checks.
    checks: u64,
    stopped: Option<&'a AtomicBool>,
}

#[derive(Clone, Copy)]
struct Size {
    values: usize,
    bytes: usize,
}

/// Result of a block.
pub(super) struct Ran {
    /// The resolved operations, if the state resolved any.
    pub(super) operations: Option<Vec<Operation>>,
    /// Result of each operation.
    pub(super) results: Vec<OpResult>,
    /// Places where the state changed, in order.
    pub(super) spots: Vec<Spot>,
}

/// Change made by one operation.
struct Change {
    parts: Vec<Part>,
    position: Option<usize>,
    before: Option<Value>,
    after: Option<Value>,
}

impl Run<'_> {
    /// Applies a block and returns its results and the changed places, in order.
    pub(super) fn of(state: &mut Value, operations: &[Operation], options: &ApplyOptions<'_>) -> Ran {
        let Measure { values, bytes, .. } = measure(state);
        let mut checks = CHECKS;
        let mut broken = options.schema.map(|schema| schema.check_within(state, MISMATCHES, &mut checks));
        let (size, stopped) = (Size { values, bytes }, options.stopped);
        let mut run = Run { state, limits: &options.limits, size, checks, stopped };
        let (mut results, mut spots) = (Vec::with_capacity(operations.len()), Vec::new());
        let mut settled = operations.iter().any(|one| one.command().is_some()).then(Vec::new);
        let mut room = options.limits.bytes;
        for (at, written) in operations.iter().enumerate() {
            let command = written.command().map(|command| {
                // One operation more than the limit allows, so that the excess is reported.
                let most = (options.limits.operations + 1).saturating_sub(results.len()).max(1);
                settle(run.state, written, command, most, &mut room)
            });
            let these = command.as_deref().unwrap_or(std::slice::from_ref(written));
            if let Some(settled) = &mut settled {
                settled.extend_from_slice(these);
            }
            for operation in these {
                let index = results.len();
                match run.operation(index, operation, options.schema, &mut broken) {
                    Ok(Change { parts, position, before, after }) => {
                        spots.push(Spot { index, parts, position });
                        results.push(OpResult {
                            index,
                            ok: true,
                            before,
                            after,
                            reason: None,
                            message: None,
                        });
                    }
                    Err(refusal) => {
                        results.push(refused(index, refusal));
                        if options.atomic {
                            if let Some(settled) = &mut settled {
                                let rest = operations[at + 1..].iter().cloned();
                                settled.extend(rest.map(Operation::settled));
                            }
                            let all = settled.as_deref().unwrap_or(operations);
                            run.withdraw(all, &mut results, &spots);
                            return Ran { operations: settled, results, spots: Vec::new() };
                        }
                    }
                }
            }
        }
        Ran { operations: settled, results, spots }
    }

    fn operation(
        &mut self,
        index: usize,
        operation: &Operation,
        schema: Option<&Schema>,
        broken: &mut Option<Vec<Mismatch>>,
    ) -> Result<Change, Refusal> {
        let (op, path) = operation.parts()?;
        if index >= self.limits.operations {
            return Err(limit(format!("more than {}", counted(self.limits.operations, "operation"))));
        }
        if self.stopped.is_some_and(|stopped| stopped.load(Ordering::Relaxed)) {
            return Err(Refusal::new(Reason::NotApplied, "nobody waits for it any more"));
        }
        self.path_fits(operation.path(), path)?;
        let size = self.size;
        let change = self.change(op, path, operation.value())?;
        if let (Some(schema), Some(before)) = (schema, broken.as_mut()) {
            let now = schema.check_within(self.state, MISMATCHES, &mut self.checks);
            // The fault of an element that has moved down is not new.
            let count =
                |list: &[Mismatch], one: &Mismatch| list.iter().filter(|m| m.message == one.message).count();
            let new = now.iter().find(|one| !before.contains(one) && count(&now, one) > count(before, one));
            // Earlier faults do not count, but if a check is impossible the operation is refused.
            let cut = now.iter().find(|one| one.too_complex);
            if let Some(Mismatch { pointer, message, too_complex, .. }) = cut.or(new) {
                let refusal = if *too_complex {
                    Refusal::new(Reason::SchemaTooComplex, message.as_str())
                } else {
                    Refusal::new(Reason::SchemaViolation, format!("{message}, at `{pointer}` of the state"))
                };
                let Change { parts, position, before, after } = change;
                undo(self.state, &parts, position, before, after.is_some());
                self.size = size;
                return Err(refusal);
            }
            *before = now;
        }
        Ok(change)
    }

    fn change(&mut self, op: Op, path: &Path, value: Option<&Value>) -> Result<Change, Refusal> {
        let way = follow(self.state, path)?;
        match (op, value) {
            (Op::Set | Op::Push, Some(value)) if !way.found => {
                self.create(op, way.parts, &way.below, path, value)
            }
            _ if !way.found => Err(absent(path.steps())),
            (Op::Set, Some(value)) => self.replace(way.parts, path, value),
            (Op::Push, Some(value)) => self.push(way.parts, path, value),
            (Op::Pop, _) => self.pop(way.parts, path),
            (Op::Delete, _) => self.delete(way.parts, path),
            (op, Some(Value::Number(operand))) => self.calculate(op, way.parts, path, operand),
            _ => Err(Refusal::new(Reason::OperationArity, format!("{op} takes a value"))),
        }
    }

    /// Creates a value with its missing parents. The change is the outermost new one.
    fn create(
        &mut self,
        op: Op,
        parts: Vec<Part>,
        below: &[String],
        path: &Path,
        value: &Value,
    ) -> Result<Change, Refusal> {
        let list = usize::from(op == Op::Push);
        let measure = self.measured(value, path, list)?;
        let keys: usize = below.iter().map(String::len).sum::<usize>() + parts.last().map_or(0, part_len);
        self.grow(None, measure.values + below.len() + list, measure.bytes + keys)?;
        let made = nested(below, op, value.clone());
        if insert(self.state, &parts, None, made).is_err() {
            return Err(absent(path.steps()));
        }
        Ok(Change { parts, position: None, before: None, after: Some(value.clone()) })
    }

    fn replace(&mut self, parts: Vec<Part>, path: &Path, value: &Value) -> Result<Change, Refusal> {
        let new = self.measured(value, path, 0)?;
        let old = measure(self.place(&parts, path)?);
        self.grow(Some(old), new.values, new.bytes)?;
        let before = std::mem::replace(self.place(&parts, path)?, value.clone());
        Ok(Change { parts, position: None, before: Some(before), after: Some(value.clone()) })
    }

    fn push(&mut self, mut parts: Vec<Part>, path: &Path, value: &Value) -> Result<Change, Refusal> {
        let new = self.measured(value, path, 1)?;
        let most = self.limits.list;
        let items = self.list(&parts, path, Op::Push)?;
        let index = items.len();
        if index >= most {
            return Err(limit(format!("the list at {} has {most} elements", shown(path.steps()))));
        }
        self.grow(None, new.values, new.bytes)?;
        self.list(&parts, path, Op::Push)?.push(value.clone());
        parts.push(Part::Index(index));
        Ok(Change { parts, position: None, before: None, after: Some(value.clone()) })
    }

    fn pop(&mut self, mut parts: Vec<Part>, path: &Path) -> Result<Change, Refusal> {
        let items = self.list(&parts, path, Op::Pop)?;
        let Some(before) = items.pop() else {
            return Err(Refusal::new(
                Reason::ListEmpty,
                format!("the list at {} is empty", shown(path.steps())),
            ));
        };
        parts.push(Part::Index(items.len()));
        self.shrink(&before, 0);
        Ok(Change { parts, position: None, before: Some(before), after: None })
    }

    fn delete(&mut self, parts: Vec<Part>, path: &Path) -> Result<Change, Refusal> {
        let Some((before, position)) = take(self.state, &parts) else { return Err(absent(path.steps())) };
        self.shrink(&before, parts.last().map_or(0, part_len));
        Ok(Change { parts, position, before: Some(before), after: None })
    }

    fn calculate(
        &mut self,
        op: Op,
        parts: Vec<Part>,
        path: &Path,
        operand: &Number,
    ) -> Result<Change, Refusal> {
        let place = self.place(&parts, path)?;
        let Value::Number(number) = place else {
            return Err(mismatch(op, "a number", place, path));
        };
        let result = Value::Number(calculate(op, number, operand)?);
        let before = std::mem::replace(place, result.clone());
        Ok(Change { parts, position: None, before: Some(before), after: Some(result) })
    }

    fn place(&mut self, parts: &[Part], path: &Path) -> Result<&mut Value, Refusal> {
        at(self.state, parts).ok_or_else(|| absent(path.steps()))
    }

    fn list(&mut self, parts: &[Part], path: &Path, op: Op) -> Result<&mut Vec<Value>, Refusal> {
        match self.place(parts, path)? {
            Value::Array(items) => Ok(items),
            other => Err(mismatch(op, "a list", other, path)),
        }
    }

    fn path_fits(&self, written: &str, path: &Path) -> Result<(), Refusal> {
        let (bytes, steps) = (self.limits.path, self.limits.depth);
        if written.len() > bytes {
            return Err(limit(format!("a path of more than {}", counted(bytes, "byte"))));
        }
        if path.steps().len() > steps {
            return Err(limit(format!("a path of more than {}", counted(steps, "step"))));
        }
        Ok(())
    }

    /// Measures a value that will be `lists` levels below a path.
    fn measured(&self, value: &Value, path: &Path, lists: usize) -> Result<Measure, Refusal> {
        let found = measure(value);
        let StateLimits { value: bytes, depth, list, .. } = *self.limits;
        if found.bytes > bytes {
            return Err(limit(format!("a value with more than {} of text", counted(bytes, "byte"))));
        }
        if found.depth - 1 + path.steps().len() + lists > depth {
            return Err(limit(format!("a value deeper than {} below the root", counted(depth, "level"))));
        }
        if found.longest > list {
            return Err(limit(format!("a list of more than {}", counted(list, "element"))));
        }
        Ok(found)
    }

    /// Updates the size for a value that replaces `old`. A state already beyond the limits may shrink.
    fn grow(&mut self, old: Option<Measure>, values: usize, bytes: usize) -> Result<(), Refusal> {
        let old = old.unwrap_or_default();
        let size = Size {
            values: self.size.values.saturating_sub(old.values).saturating_add(values),
            bytes: self.size.bytes.saturating_sub(old.bytes).saturating_add(bytes),
        };
        if size.values > self.limits.values.max(self.size.values) {
            return Err(limit(format!("a state of more than {}", counted(self.limits.values, "value"))));
        }
        if size.bytes > self.limits.bytes.max(self.size.bytes) {
            return Err(limit(format!(
                "a state with more than {} of text",
                counted(self.limits.bytes, "byte")
            )));
        }
        self.size = size;
        Ok(())
    }

    fn shrink(&mut self, gone: &Value, key: usize) {
        let gone = measure(gone);
        self.size.values = self.size.values.saturating_sub(gone.values);
        self.size.bytes = self.size.bytes.saturating_sub(gone.bytes + key);
    }

    /// Undoes all operations, because the last result is a refusal and the block is atomic.
    fn withdraw(&mut self, operations: &[Operation], results: &mut Vec<OpResult>, spots: &[Spot]) {
        let last = results.len() - 1;
        for spot in spots.iter().rev() {
            let OpResult { before, after, .. } = &mut results[spot.index];
            undo(self.state, &spot.parts, spot.position, before.take(), after.take().is_some());
        }
        let withdrawn = || {
            let message = format!("operation {last} was refused, and all are applied or none");
            Refusal::new(Reason::NotApplied, message)
        };
        for result in &mut results[..last] {
            *result = refused(result.index, withdrawn());
        }
        for (index, operation) in operations.iter().enumerate().skip(last + 1) {
            results.push(refused(index, operation.refusal().cloned().unwrap_or_else(withdrawn)));
        }
    }
}

/// Undoes a change and returns true on success. `came` is set if there was a value after the change.
pub(super) fn undo(
    state: &mut Value,
    parts: &[Part],
    position: Option<usize>,
    before: Option<Value>,
    came: bool,
) -> bool {
    match (before, came) {
        (None, _) => take(state, parts).is_some(),
        (Some(before), true) => at(state, parts).map(|place| *place = before).is_some(),
        (Some(before), false) => insert(state, parts, position, before).is_ok(),
    }
}

/// Wraps a value in new parents with these keys.
pub(super) fn nested(below: &[String], op: Op, value: Value) -> Value {
    let value = if op == Op::Push { Value::Array(vec![value]) } else { value };
    below.iter().rev().fold(value, |inner, key| Value::Object(Map::from_iter([(key.clone(), inner)])))
}

fn part_len(part: &Part) -> usize {
    if let Part::Key(key) = part { key.len() } else { 0 }
}

fn refused(index: usize, refusal: Refusal) -> OpResult {
    let Refusal { reason, message } = refusal;
    OpResult { index, ok: false, before: None, after: None, reason: Some(reason), message: Some(message) }
}

fn limit(what: String) -> Refusal {
    Refusal::new(Reason::LimitExceeded, what)
}

fn mismatch(op: Op, needed: &str, found: &Value, path: &Path) -> Refusal {
    let message = format!("{op} needs {needed} at {}, which is {}", shown(path.steps()), type_name(found));
    Refusal::new(Reason::OperationTypeMismatch, message)
}
