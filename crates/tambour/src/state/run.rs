//! Applies a block of operations. Each changes the state at once and records the data to undo it.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Map, Number, Value};

use super::command::resolve_command;
use super::number::calculate;
use super::operation::{Op, Operation, OperationRefusal, RefusalReason};
use super::path::StatePath;
use super::place::{
    ChangedPlace, StateKey, format_path, insert_value, path_missing, resolve_path, take_value, value_at,
};
use super::{ApplyOptions, OpResult, ValueSize, measure};
use crate::limits::StateLimits;
use crate::schema::{Schema, SchemaMismatch, type_name};
use crate::texts::format_count;

/// Maximum number of schema violations of a state that a check returns.
const MAX_VIOLATIONS: usize = 256;

/// Step budget of all schema checks of a block: each operation is checked, and each check reads the entire
/// state.
const CHECK_BUDGET: u64 = 16_000_000;

/// A block being applied.
pub(super) struct BlockRun<'a> {
    state: &'a mut Value,
    limits: &'a StateLimits,
    /// Current size of the state.
    size: StateSize,
    /// Steps left for schema checks.
    steps_left: u64,
    /// Flag of [`ApplyOptions::stop_flag`].
    stop_flag: Option<&'a AtomicBool>,
}

/// Size of the whole state.
#[derive(Clone, Copy)]
struct StateSize {
    /// Number of values, containers included.
    values: usize,
    /// Bytes of keys and strings.
    bytes: usize,
}

/// Result of a block.
pub(super) struct BlockResult {
    /// Operations of the block after commands were resolved; `None` if there were no commands.
    pub(super) operations: Option<Vec<Operation>>,
    /// Result of each operation.
    pub(super) results: Vec<OpResult>,
    /// Places where the state changed, in order.
    pub(super) spots: Vec<ChangedPlace>,
}

/// Change made by one operation.
struct OperationChange {
    /// Keys and indexes of the changed place.
    parts: Vec<StateKey>,
    /// Position of a removed field in its object.
    position: Option<usize>,
    /// Value before the change; `None` if there was none.
    before: Option<Value>,
    /// Value after the change; `None` if it was removed.
    after: Option<Value>,
}

impl BlockRun<'_> {
    /// Applies a block and returns its results and the changed places, in order.
    pub(super) fn apply(
        state: &mut Value,
        operations: &[Operation],
        options: &ApplyOptions<'_>,
    ) -> BlockResult {
        let ValueSize { values, bytes, .. } = measure(state);
        let mut steps_left = CHECK_BUDGET;
        let mut mismatches =
            options.schema.map(|schema| schema.check_within(state, MAX_VIOLATIONS, &mut steps_left));
        let (size, stop_flag) = (StateSize { values, bytes }, options.stop_flag);
        let mut run = BlockRun { state, limits: &options.limits, size, steps_left, stop_flag };
        let (mut results, mut spots) = (Vec::with_capacity(operations.len()), Vec::new());
        let mut resolved_operations = operations.iter().any(|item| item.command().is_some()).then(Vec::new);
        let mut rewritable_bytes = options.limits.bytes;
        for (at, written_operation) in operations.iter().enumerate() {
            let command_operations = written_operation.command().map(|command| {
                // One operation more than the limit allows, so that the excess is reported.
                let limit = (options.limits.operations + 1).saturating_sub(results.len()).max(1);
                resolve_command(run.state, written_operation, command, limit, &mut rewritable_bytes)
            });
            let plain_operations =
                command_operations.as_deref().unwrap_or(std::slice::from_ref(written_operation));
            if let Some(resolved_operations) = &mut resolved_operations {
                resolved_operations.extend_from_slice(plain_operations);
            }
            for operation in plain_operations {
                let index = results.len();
                match run.apply_operation(index, operation, options.schema, &mut mismatches) {
                    Ok(OperationChange { parts, position, before, after }) => {
                        spots.push(ChangedPlace { index, parts, position });
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
                        results.push(refused_result(index, refusal));
                        if options.is_atomic {
                            if let Some(resolved_operations) = &mut resolved_operations {
                                let later_operations = operations[at + 1..].iter().cloned();
                                resolved_operations.extend(later_operations.map(Operation::without_command));
                            }
                            let applied_operations = resolved_operations.as_deref().unwrap_or(operations);
                            run.undo_all(applied_operations, &mut results, &spots);
                            return BlockResult {
                                operations: resolved_operations,
                                results,
                                spots: Vec::new(),
                            };
                        }
                    }
                }
            }
        }
        BlockResult { operations: resolved_operations, results, spots }
    }

    /// Applies one operation, or leaves the state unchanged. `mismatches` are the faults of the state against
    /// the schema before the operation; they are replaced by those after it.
    fn apply_operation(
        &mut self,
        index: usize,
        operation: &Operation,
        schema: Option<&Schema>,
        mismatches: &mut Option<Vec<SchemaMismatch>>,
    ) -> Result<OperationChange, OperationRefusal> {
        let (op, path) = operation.parts()?;
        if index >= self.limits.operations {
            return Err(limit_exceeded(format!(
                "more than {}",
                format_count(self.limits.operations, "operation")
            )));
        }
        if self.stop_flag.is_some_and(|flag| flag.load(Ordering::Relaxed)) {
            return Err(OperationRefusal::new(
                RefusalReason::NotApplied,
                "no caller waits for the result any more",
            ));
        }
        self.check_path(operation.path(), path)?;
        let size_before = self.size;
        let change = self.change_state(op, path, operation.value())?;
        if let (Some(schema), Some(mismatches)) = (schema, mismatches.as_mut()) {
            let current_mismatches = schema.check_within(self.state, MAX_VIOLATIONS, &mut self.steps_left);
            // A fault is new only if its message occurs more often: the pointer of an old fault differs if
            // its element has moved.
            let count_message = |list: &[SchemaMismatch], mismatch: &SchemaMismatch| {
                list.iter().filter(|other| other.message == mismatch.message).count()
            };
            let new_mismatch = current_mismatches.iter().find(|mismatch| {
                !mismatches.contains(mismatch)
                    && count_message(&current_mismatches, mismatch) > count_message(mismatches, mismatch)
            });
            // Earlier faults do not count, but if a check is impossible the operation is refused.
            let too_complex = current_mismatches.iter().find(|mismatch| mismatch.is_too_complex);
            if let Some(SchemaMismatch { pointer, message, is_too_complex, .. }) =
                too_complex.or(new_mismatch)
            {
                let refusal = if *is_too_complex {
                    OperationRefusal::new(RefusalReason::SchemaTooComplex, message.as_str())
                } else {
                    OperationRefusal::new(
                        RefusalReason::SchemaViolation,
                        format!("{message}, at `{pointer}` of the state"),
                    )
                };
                let OperationChange { parts, position, before, after } = change;
                undo_change(self.state, &parts, position, before, after.is_some());
                self.size = size_before;
                return Err(refusal);
            }
            *mismatches = current_mismatches;
        }
        Ok(change)
    }

    /// Carries out an operation within the limits, without a check against the schema.
    fn change_state(
        &mut self,
        op: Op,
        path: &StatePath,
        value: Option<&Value>,
    ) -> Result<OperationChange, OperationRefusal> {
        let resolved = resolve_path(self.state, path)?;
        match (op, value) {
            (Op::Set | Op::Push, Some(value)) if !resolved.has_value => {
                self.create(op, resolved.parts, &resolved.missing_keys, path, value)
            }
            _ if !resolved.has_value => Err(path_missing(path.steps())),
            (Op::Set, Some(value)) => self.replace(resolved.parts, path, value),
            (Op::Push, Some(value)) => self.push(resolved.parts, path, value),
            (Op::Pop, _) => self.pop(resolved.parts, path),
            (Op::Delete, _) => self.delete(resolved.parts, path),
            (op, Some(Value::Number(operand))) => self.calculate(op, resolved.parts, path, operand),
            _ => Err(OperationRefusal::new(RefusalReason::OperationArity, format!("{op} needs a value"))),
        }
    }

    /// Creates a value with its missing parents. The changed place is that of the outermost new value.
    fn create(
        &mut self,
        op: Op,
        parts: Vec<StateKey>,
        parent_keys: &[String],
        path: &StatePath,
        value: &Value,
    ) -> Result<OperationChange, OperationRefusal> {
        // `PUSH` creates a list around the value.
        let list_count = usize::from(op == Op::Push);
        let size = self.check_size(value, path, list_count)?;
        let key_bytes: usize =
            parent_keys.iter().map(String::len).sum::<usize>() + parts.last().map_or(0, key_len);
        self.grow(None, size.values + parent_keys.len() + list_count, size.bytes + key_bytes)?;
        let tree = wrap_in_parents(parent_keys, op, value.clone());
        if insert_value(self.state, &parts, None, tree).is_err() {
            return Err(path_missing(path.steps()));
        }
        Ok(OperationChange { parts, position: None, before: None, after: Some(value.clone()) })
    }

    fn replace(
        &mut self,
        parts: Vec<StateKey>,
        path: &StatePath,
        value: &Value,
    ) -> Result<OperationChange, OperationRefusal> {
        let new_size = self.check_size(value, path, 0)?;
        let old_size = measure(self.value_at(&parts, path)?);
        self.grow(Some(old_size), new_size.values, new_size.bytes)?;
        let before = std::mem::replace(self.value_at(&parts, path)?, value.clone());
        Ok(OperationChange { parts, position: None, before: Some(before), after: Some(value.clone()) })
    }

    fn push(
        &mut self,
        mut parts: Vec<StateKey>,
        path: &StatePath,
        value: &Value,
    ) -> Result<OperationChange, OperationRefusal> {
        let size = self.check_size(value, path, 1)?;
        let max_items = self.limits.list;
        let items = self.list_at(&parts, path, Op::Push)?;
        let index = items.len();
        if index >= max_items {
            return Err(limit_exceeded(format!(
                "the list at {} already has {max_items} elements, the most allowed",
                format_path(path.steps())
            )));
        }
        self.grow(None, size.values, size.bytes)?;
        self.list_at(&parts, path, Op::Push)?.push(value.clone());
        parts.push(StateKey::Index(index));
        Ok(OperationChange { parts, position: None, before: None, after: Some(value.clone()) })
    }

    fn pop(
        &mut self,
        mut parts: Vec<StateKey>,
        path: &StatePath,
    ) -> Result<OperationChange, OperationRefusal> {
        let items = self.list_at(&parts, path, Op::Pop)?;
        let Some(before) = items.pop() else {
            return Err(OperationRefusal::new(
                RefusalReason::ListEmpty,
                format!("the list at {} is empty", format_path(path.steps())),
            ));
        };
        parts.push(StateKey::Index(items.len()));
        // An element has no key.
        self.shrink(&before, 0);
        Ok(OperationChange { parts, position: None, before: Some(before), after: None })
    }

    fn delete(
        &mut self,
        parts: Vec<StateKey>,
        path: &StatePath,
    ) -> Result<OperationChange, OperationRefusal> {
        let Some((before, position)) = take_value(self.state, &parts) else {
            return Err(path_missing(path.steps()));
        };
        self.shrink(&before, parts.last().map_or(0, key_len));
        Ok(OperationChange { parts, position, before: Some(before), after: None })
    }

    fn calculate(
        &mut self,
        op: Op,
        parts: Vec<StateKey>,
        path: &StatePath,
        operand: &Number,
    ) -> Result<OperationChange, OperationRefusal> {
        let value = self.value_at(&parts, path)?;
        let Value::Number(number) = value else {
            return Err(type_mismatch(op, "a number", value, path));
        };
        let result = Value::Number(calculate(op, number, operand)?);
        let before = std::mem::replace(value, result.clone());
        Ok(OperationChange { parts, position: None, before: Some(before), after: Some(result) })
    }

    fn value_at(&mut self, parts: &[StateKey], path: &StatePath) -> Result<&mut Value, OperationRefusal> {
        value_at(self.state, parts).ok_or_else(|| path_missing(path.steps()))
    }

    fn list_at(
        &mut self,
        parts: &[StateKey],
        path: &StatePath,
        op: Op,
    ) -> Result<&mut Vec<Value>, OperationRefusal> {
        match self.value_at(parts, path)? {
            Value::Array(items) => Ok(items),
            other => Err(type_mismatch(op, "a list", other, path)),
        }
    }

    fn check_path(&self, text: &str, path: &StatePath) -> Result<(), OperationRefusal> {
        let (bytes, steps) = (self.limits.path, self.limits.depth);
        if text.len() > bytes {
            return Err(limit_exceeded(format!("a path of more than {}", format_count(bytes, "byte"))));
        }
        if path.steps().len() > steps {
            return Err(limit_exceeded(format!("a path of more than {}", format_count(steps, "step"))));
        }
        Ok(())
    }

    /// Measures a value that will be at `path`, or inside `list_count` lists there (0 or 1), and checks it
    /// against the limits.
    fn check_size(
        &self,
        value: &Value,
        path: &StatePath,
        list_count: usize,
    ) -> Result<ValueSize, OperationRefusal> {
        let size = measure(value);
        let StateLimits { value: bytes, depth, list, .. } = *self.limits;
        if size.bytes > bytes {
            return Err(limit_exceeded(format!(
                "a value with more than {} of text",
                format_count(bytes, "byte")
            )));
        }
        if size.depth - 1 + path.steps().len() + list_count > depth {
            return Err(limit_exceeded(format!(
                "a value deeper than {} below the root",
                format_count(depth, "level")
            )));
        }
        if size.longest_list > list {
            return Err(limit_exceeded(format!("a list of more than {}", format_count(list, "element"))));
        }
        Ok(size)
    }

    /// Updates the size of the state for a new value, of `values` values and `bytes` bytes, that replaces one
    /// of `old_size`. Refuses to exceed the limits, but a state already beyond them may shrink.
    fn grow(
        &mut self,
        old_size: Option<ValueSize>,
        values: usize,
        bytes: usize,
    ) -> Result<(), OperationRefusal> {
        let old_size = old_size.unwrap_or_default();
        let size = StateSize {
            values: self.size.values.saturating_sub(old_size.values).saturating_add(values),
            bytes: self.size.bytes.saturating_sub(old_size.bytes).saturating_add(bytes),
        };
        if size.values > self.limits.values.max(self.size.values) {
            return Err(limit_exceeded(format!(
                "a state of more than {}",
                format_count(self.limits.values, "value")
            )));
        }
        if size.bytes > self.limits.bytes.max(self.size.bytes) {
            return Err(limit_exceeded(format!(
                "a state with more than {} of text",
                format_count(self.limits.bytes, "byte")
            )));
        }
        self.size = size;
        Ok(())
    }

    /// Updates the size of the state for a removed value and the bytes of its key.
    fn shrink(&mut self, removed_value: &Value, key_bytes: usize) {
        let removed_size = measure(removed_value);
        self.size.values = self.size.values.saturating_sub(removed_size.values);
        self.size.bytes = self.size.bytes.saturating_sub(removed_size.bytes + key_bytes);
    }

    /// Undoes all operations, because the last result is a refusal and the block is atomic.
    fn undo_all(
        &mut self,
        operations: &[Operation],
        results: &mut Vec<OpResult>,
        changed_places: &[ChangedPlace],
    ) {
        let last = results.len() - 1;
        for changed_place in changed_places.iter().rev() {
            let OpResult { before, after, .. } = &mut results[changed_place.index];
            undo_change(
                self.state,
                &changed_place.parts,
                changed_place.position,
                before.take(),
                after.take().is_some(),
            );
        }
        let withdrawal = || {
            let message = format!("operation {last} was refused, and all are applied or none");
            OperationRefusal::new(RefusalReason::NotApplied, message)
        };
        for result in &mut results[..last] {
            *result = refused_result(result.index, withdrawal());
        }
        for (index, operation) in operations.iter().enumerate().skip(last + 1) {
            results.push(refused_result(index, operation.refusal().cloned().unwrap_or_else(withdrawal)));
        }
    }
}

/// Undoes a change; returns false if the state does not fit. `before` is the value before the change, and
/// `is_present` is whether there was a value after it.
pub(super) fn undo_change(
    state: &mut Value,
    parts: &[StateKey],
    position: Option<usize>,
    before: Option<Value>,
    is_present: bool,
) -> bool {
    match (before, is_present) {
        (None, _) => take_value(state, parts).is_some(),
        (Some(before), true) => value_at(state, parts).map(|place| *place = before).is_some(),
        (Some(before), false) => insert_value(state, parts, position, before).is_ok(),
    }
}

/// Wraps a value in new objects with the keys `parent_keys`, outermost first. For `PUSH`, the value is first
/// wrapped in a list.
pub(super) fn wrap_in_parents(parent_keys: &[String], op: Op, value: Value) -> Value {
    let value = if op == Op::Push { Value::Array(vec![value]) } else { value };
    parent_keys.iter().rev().fold(value, |inner, key| Value::Object(Map::from_iter([(key.clone(), inner)])))
}

/// Bytes of a key; an index has none.
fn key_len(part: &StateKey) -> usize {
    if let StateKey::Key(key) = part { key.len() } else { 0 }
}

fn refused_result(index: usize, refusal: OperationRefusal) -> OpResult {
    let OperationRefusal { reason, message } = refusal;
    OpResult { index, ok: false, before: None, after: None, reason: Some(reason), message: Some(message) }
}

fn limit_exceeded(message: String) -> OperationRefusal {
    OperationRefusal::new(RefusalReason::LimitExceeded, message)
}

fn type_mismatch(op: Op, expected_type: &str, found: &Value, path: &StatePath) -> OperationRefusal {
    let message =
        format!("{op} needs {expected_type} at {}, which is {}", format_path(path.steps()), type_name(found));
    OperationRefusal::new(RefusalReason::OperationTypeMismatch, message)
}
