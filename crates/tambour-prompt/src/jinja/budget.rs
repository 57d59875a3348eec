//! Budget of one prompt, which all its templates share: steps and bytes, charged before the work runs or
//! memory is allocated, and a callback that can stop the rendering early.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind, State};

use super::scope::PromptScope;
use super::values::{self, MessageList};
use super::{JinjaLimits, text};

/// Bytes of text that count as one step.
const BYTES_PER_STEP: u64 = 64;

/// Bytes charged for one slot of a list or map. A slot needs less; the excess covers lists that grow by
/// doubling.
pub(super) const SLOT_BYTES: u64 = 64;

/// Maximum length, in bytes, of a value that costs no more than the step of the instruction that creates it.
pub(super) const SHORT_BYTES: u64 = 256;

/// Maximum nesting depth of lists and maps that are traversed.
const MAX_WEIGHT_DEPTH: usize = 128;

/// Number of steps after which the stop callback is called again.
const STEPS_PER_STOP_CHECK: u64 = 2_000;

/// Error message of a rendering that the stop callback ended.
const STOPPED_MESSAGE: &str = "the rendering was stopped: it took too long, or nobody waits for it";

/// Remaining budget of the templates of one prompt. Cheap to clone; clones share the same counters.
#[derive(Clone)]
pub struct Budget(Arc<BudgetCounters>);

struct BudgetCounters {
    /// Steps that are left. Those that minijinja counts in a template are deducted when the template ends.
    steps: AtomicU64,
    /// Bytes that the templates may still allocate.
    bytes: AtomicU64,
    /// Steps since the last call of `should_stop`.
    steps_since_check: AtomicU64,
    /// Set once `should_stop` has returned true.
    is_stopped: AtomicBool,
    /// Callback of the caller; `None` if nothing stops the rendering.
    should_stop: Option<Box<dyn Fn() -> bool + Send + Sync>>,
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let remaining = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        f.debug_struct("Budget")
            .field("steps", &remaining(&self.0.steps))
            .field("bytes", &remaining(&self.0.bytes))
            .finish()
    }
}

impl Budget {
    /// Creates a budget for the templates of one prompt.
    #[must_use]
    pub fn new(limits: &JinjaLimits) -> Budget {
        Budget::with_callback(limits, None)
    }

    /// Like [`Budget::new`], but fails the rendering with `limit_exceeded` soon after `stop` returns true.
    /// The library has no clock, so the caller implements deadlines and cancellation here.
    #[must_use]
    pub fn with_stop(limits: &JinjaLimits, stop: impl Fn() -> bool + Send + Sync + 'static) -> Budget {
        Budget::with_callback(limits, Some(Box::new(stop)))
    }

    /// Creates a budget with or without a stop callback.
    fn with_callback(
        limits: &JinjaLimits,
        should_stop: Option<Box<dyn Fn() -> bool + Send + Sync>>,
    ) -> Budget {
        Budget(Arc::new(BudgetCounters {
            steps: AtomicU64::new(limits.prompt_fuel),
            bytes: AtomicU64::new(limits.memory as u64),
            steps_since_check: AtomicU64::new(0),
            is_stopped: AtomicBool::new(false),
            should_stop,
        }))
    }

    /// Deducts `steps`; returns false if too few are left or the rendering must stop.
    pub(super) fn spend(&self, steps: u64) -> bool {
        let has_steps = subtract(&self.0.steps, steps);
        // Counts as a whole interval, so that the callback is called at once.
        self.may_continue(STEPS_PER_STOP_CHECK) && has_steps
    }

    /// Deducts the steps for reading `bytes` bytes; returns false like [`Budget::spend`].
    pub(crate) fn spend_read(&self, bytes: u64) -> bool {
        self.spend(bytes / BYTES_PER_STEP)
    }

    /// Deducts `bytes` before the caller allocates them; returns false if too few are left.
    pub(super) fn charge_bytes(&self, bytes: u64) -> bool {
        subtract(&self.0.bytes, bytes)
    }

    /// Returns true if steps are left and no stop was requested.
    pub(super) fn has_steps_left(&self) -> bool {
        self.may_continue(STEPS_PER_STOP_CHECK) && self.0.steps.load(Ordering::Relaxed) > 0
    }

    /// Returns true if the stop callback has ended the rendering.
    pub(super) fn is_stopped(&self) -> bool {
        self.0.is_stopped.load(Ordering::Relaxed)
    }

    /// Returns the error after [`Budget::spend`] has returned false.
    pub(super) fn steps_error(&self) -> Error {
        match self.is_stopped() {
            true => stopped_error(),
            false => Error::new(ErrorKind::OutOfFuel, "the templates of the prompt take too many steps"),
        }
    }

    /// Counts `steps` and calls the stop callback if [`STEPS_PER_STOP_CHECK`] steps have passed since its
    /// last call. Returns false once the rendering must stop.
    pub(super) fn may_continue(&self, steps: u64) -> bool {
        let Some(should_stop) = &self.0.should_stop else { return true };
        let step_count = self.0.steps_since_check.fetch_add(steps, Ordering::Relaxed) + steps;
        if step_count >= STEPS_PER_STOP_CHECK {
            self.0.steps_since_check.store(0, Ordering::Relaxed);
            if should_stop() {
                self.0.is_stopped.store(true, Ordering::Relaxed);
            }
        }
        !self.is_stopped()
    }
}

/// Subtracts `count` from a counter, down to zero; returns false if less than `count` was left.
fn subtract(counter: &AtomicU64, count: u64) -> bool {
    let previous = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |remaining| {
        Some(remaining.saturating_sub(count))
    });
    previous.is_ok_and(|remaining| remaining >= count)
}

/// Charges for traversing `values` values and `bytes` bytes of text: one step a value and one for every
/// [`BYTES_PER_STEP`] bytes.
pub(super) fn charge(state: &State<'_, '_>, values: u64, bytes: u64) -> Result<(), Error> {
    let steps = values.saturating_add(bytes / BYTES_PER_STEP);
    state.consume_fuel(steps)?;
    match PromptScope::find(state) {
        Some(scope) if !scope.budget.may_continue(steps.max(1)) => Err(stopped_error()),
        _ => Ok(()),
    }
}

/// Charges for a value of `bytes` bytes before the caller creates it: its memory, and the steps to write it.
/// A value of at most [`SHORT_BYTES`] is free. Callers pass a multiple of a text's bytes if its buffer grows
/// by doubling or the text is copied.
pub(super) fn charge_bytes(state: &State<'_, '_>, bytes: u64) -> Result<(), Error> {
    // The step of the instruction that creates a short value covers it.
    if bytes <= SHORT_BYTES {
        return Ok(());
    }
    charge(state, 0, bytes)?;
    match PromptScope::find(state) {
        Some(scope) if !scope.budget.charge_bytes(bytes) => Err(memory_error()),
        _ => Ok(()),
    }
}

/// Charges for a list of `items` items before the caller creates it.
pub(super) fn charge_slots(state: &State<'_, '_>, items: usize) -> Result<(), Error> {
    charge(state, items as u64, 0)?;
    charge_bytes(state, (items as u64).saturating_mul(SLOT_BYTES))
}

/// Returns the error of a rendering that the stop callback ended.
pub(super) fn stopped_error() -> Error {
    Error::new(ErrorKind::OutOfFuel, STOPPED_MESSAGE)
}

/// Returns the error of a rendering that has used up its bytes.
pub(super) fn memory_error() -> Error {
    Error::new(ErrorKind::OutOfFuel, "the values of the prompt take too much memory")
}

/// Size of a value with everything nested in it. Shared parts count each time they are reached.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ValueWeight {
    /// Number of values, including the value itself and the keys of maps.
    pub(super) values: u64,
    /// Bytes of all texts.
    pub(super) bytes: u64,
    /// Sum of the nesting levels of all values.
    pub(super) levels: u64,
}

impl ValueWeight {
    /// Upper bound for the bytes of the JSON text.
    pub(super) fn printed_bytes(self) -> u64 {
        printed_bytes((self.values, self.bytes))
    }

    /// Like [`ValueWeight::printed_bytes`], with each value on its own line, indented by its level.
    pub(super) fn indented_bytes(self, indent: u64) -> u64 {
        let blank_bytes = (self.levels + self.values).saturating_mul(indent);
        self.printed_bytes().saturating_add(blank_bytes)
    }

    /// Returns the weight of both values together.
    pub(super) fn combine(self, other: ValueWeight) -> ValueWeight {
        ValueWeight {
            values: self.values + other.values,
            bytes: self.bytes + other.bytes,
            levels: self.levels + other.levels,
        }
    }
}

/// Returns an upper bound for the bytes of a JSON text, from the numbers of values and of bytes of text: 6
/// per byte of text, which may be an escaped control character, and 44 per value, 40 for the longest number
/// and 4 for delimiters.
pub(super) fn printed_bytes((values, bytes): (u64, u64)) -> u64 {
    bytes.saturating_mul(6).saturating_add(values.saturating_mul(44))
}

/// Traverses a value and charges for it; stops when the budget is exhausted.
///
/// # Errors
/// The budget is exhausted, the value is nested too deeply, or a key of a map is a list or a map.
pub(super) fn weigh(state: &State<'_, '_>, value: &Value) -> Result<ValueWeight, Error> {
    // Fast path: most values are short texts and numbers.
    if let Some(text) = value.as_str() {
        let bytes = text.len() as u64;
        if bytes >= BYTES_PER_STEP {
            charge(state, 0, bytes)?;
        }
        return Ok(ValueWeight { values: 1, bytes, levels: 1 });
    }
    if !is_container(value) {
        return Ok(ValueWeight { values: 1, bytes: 0, levels: 1 });
    }
    let mut meter =
        WeightMeter { state, weight: ValueWeight::default(), pending_values: 0, pending_bytes: 0 };
    meter.add(value, MAX_WEIGHT_DEPTH)?;
    meter.charge_pending()?;
    Ok(meter.weight)
}

/// Charges for the keys of a map before it is copied: each is hashed again.
///
/// # Errors
/// The budget is exhausted, or a key is a list or a map.
pub(super) fn weigh_keys(state: &State<'_, '_>, value: &Value) -> Result<(), Error> {
    if value.kind() != ValueKind::Map {
        return Ok(());
    }
    let (mut keys, mut bytes) = (0, 0);
    for key in value.try_iter()? {
        text::check_key(&key)?;
        keys += 1;
        bytes += key.as_str().map_or(0, str::len) as u64;
    }
    charge(state, keys, bytes)
}

/// Returns true for a list, a map or another object of minijinja.
fn is_container(value: &Value) -> bool {
    value.as_object().is_some()
}

/// Traversal that weighs a value and charges for it in portions.
struct WeightMeter<'s, 't, 'e> {
    state: &'s State<'t, 'e>,
    weight: ValueWeight,
    /// Values that have not been charged yet.
    pending_values: u64,
    /// Bytes of text that have not been charged yet.
    pending_bytes: u64,
}

impl WeightMeter<'_, '_, '_> {
    /// Charges for what was traversed since the last charge.
    fn charge_pending(&mut self) -> Result<(), Error> {
        let (values, bytes) =
            (std::mem::take(&mut self.pending_values), std::mem::take(&mut self.pending_bytes));
        self.weight.values += values;
        self.weight.bytes += bytes;
        charge(self.state, values, bytes)
    }

    /// Traverses a value that may be nested up to `depth` levels deep.
    fn add(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        self.pending_values += 1;
        self.weight.levels += (MAX_WEIGHT_DEPTH - depth) as u64 + 1;
        if let Some(text) = value.as_str() {
            self.pending_bytes += text.len() as u64;
        }
        // Charges in portions, because a charge for each value would be slow.
        if self.pending_values >= 256 || self.pending_bytes >= 16 << 10 {
            self.charge_pending()?;
        }
        if !is_container(value) {
            return Ok(());
        }
        let Some(depth) = depth.checked_sub(1) else { return Err(text::depth_error()) };
        if let Some(items) = value.downcast_object_ref::<Vec<Value>>() {
            return items.iter().try_for_each(|item| self.add(item, depth));
        }
        if let Some(messages) = value.downcast_object_ref::<MessageList>() {
            return messages.0.iter().try_for_each(|item| self.add(item, depth));
        }
        if let Some(text) = values::custom_text(value) {
            self.pending_bytes += text.len() as u64;
            return Ok(());
        }
        match value.kind() {
            ValueKind::Map => {
                let Some(pairs) = value.as_object().and_then(|object| object.try_iter_pairs()) else {
                    return Ok(());
                };
                for (key, field) in pairs {
                    text::check_key(&key)?;
                    self.add(&key, depth)?;
                    self.add(&field, depth)?;
                }
                Ok(())
            }
            ValueKind::Seq | ValueKind::Iterable => {
                value.try_iter()?.try_for_each(|item| self.add(&item, depth))
            }
            _ => Ok(()),
        }
    }
}

/// Returns the printed form of a value, and charges for it if the value is a list, a map or another object.
///
/// # Errors
/// Same as [`weigh`].
pub(super) fn print_charged<'v>(state: &State<'_, '_>, value: &'v Value) -> Result<Cow<'v, str>, Error> {
    if is_container(value) {
        // Printing builds a JSON tree first, then its text.
        let weight = weigh(state, value)?;
        charge_bytes(state, weight.values.saturating_mul(SLOT_BYTES).saturating_add(weight.printed_bytes()))?;
    }
    text::to_text(value)
}

/// Converts a value to JSON and charges for it.
///
/// # Errors
/// Same as [`weigh`].
pub(super) fn to_json_charged(state: &State<'_, '_>, value: &Value) -> Result<serde_json::Value, Error> {
    let weight = weigh(state, value)?;
    charge_bytes(state, weight.values.saturating_mul(SLOT_BYTES).saturating_add(weight.bytes))?;
    text::to_json(value)
}

/// Charges for a copy of a JSON value, such as a context or global value, before the copy is made.
pub(super) fn charge_json(state: &State<'_, '_>, value: &serde_json::Value) -> Result<(), Error> {
    charge_copy(state, weigh_json(value))
}

/// Like [`charge_json`], for a copy whose numbers of values and of bytes of text are known.
pub(super) fn charge_copy(state: &State<'_, '_>, (values, bytes): (u64, u64)) -> Result<(), Error> {
    charge(state, values, bytes)?;
    charge_bytes(state, values.saturating_mul(SLOT_BYTES).saturating_add(bytes))
}

/// Returns the number of values in `value`, including itself, and the bytes of its texts.
pub(super) fn weigh_json(value: &serde_json::Value) -> (u64, u64) {
    let sum = |a: (u64, u64), b: (u64, u64)| (a.0 + b.0, a.1 + b.1);
    match value {
        serde_json::Value::String(text) => (1, text.len() as u64),
        serde_json::Value::Array(items) => items.iter().map(weigh_json).fold((1, 0), sum),
        serde_json::Value::Object(fields) => {
            let fields = fields.iter().map(|(key, field)| sum((1, key.len() as u64), weigh_json(field)));
            fields.fold((1, 0), sum)
        }
        _ => (1, 0),
    }
}
