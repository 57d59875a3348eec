//! The budget of one rendering: steps and bytes, charged before the work is done and before anything is allocated, and a
//! question that ends it early. All templates of a prompt share one.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind, State};

use super::scope::Scope;
use super::values::{self, Messages};
use super::{JinjaLimits, text};

/// Bytes of text that cost one step.
const BYTES_A_STEP: u64 = 64;

/// Bytes of a slot in a list or map; more than one takes, since lists grow by doubling.
pub(super) const SLOT: u64 = 64;

/// Lists in lists that are gone through.
const DEPTH: usize = 128;

/// Steps after which the question is asked again whether to stop.
const STEPS_A_QUESTION: u64 = 2_000;

/// Message of the error of a rendering that was told to stop.
const STOPPED: &str = "the rendering was stopped: it took too long, or nobody waits for it";

/// What the templates of one prompt may still cost; cheap to clone, and shared by its clones.
#[derive(Clone)]
pub struct Budget(Arc<Inner>);

struct Inner {
    steps: AtomicU64,
    bytes: AtomicU64,
    since_question: AtomicU64,
    stopped: AtomicBool,
    stop: Option<Box<dyn Fn() -> bool + Send + Sync>>,
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left = |of: &AtomicU64| of.load(Ordering::Relaxed);
        f.debug_struct("Budget")
            .field("steps", &left(&self.0.steps))
            .field("bytes", &left(&self.0.bytes))
            .finish()
    }
}

impl Budget {
    /// A budget for the templates of one prompt.
    #[must_use]
    pub fn new(limits: &JinjaLimits) -> Budget {
        Budget::with(limits, None)
    }

    /// As [`Budget::new`]; the rendering ends with the error `limit_exceeded` soon after `stop` says so. The library has no
    /// clock: whoever has one gives it here, and with it whether anybody waits.
    #[must_use]
    pub fn until(limits: &JinjaLimits, stop: impl Fn() -> bool + Send + Sync + 'static) -> Budget {
        Budget::with(limits, Some(Box::new(stop)))
    }

    fn with(limits: &JinjaLimits, stop: Option<Box<dyn Fn() -> bool + Send + Sync>>) -> Budget {
        Budget(Arc::new(Inner {
            steps: AtomicU64::new(limits.prompt_fuel),
            bytes: AtomicU64::new(limits.memory as u64),
            since_question: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            stop,
        }))
    }

    /// Takes steps away that were done; false if there are no more, or the rendering is to stop.
    pub(super) fn spend(&self, steps: u64) -> bool {
        let left = take(&self.0.steps, steps);
        self.goes_on(STEPS_A_QUESTION) && left
    }

    /// Takes the steps of reading so many bytes away; false as [`Budget::spend`].
    pub(crate) fn read(&self, bytes: u64) -> bool {
        self.spend(bytes / BYTES_A_STEP)
    }

    /// Takes bytes away before they are allocated; false if there are not so many.
    pub(super) fn allocate(&self, bytes: u64) -> bool {
        take(&self.0.bytes, bytes)
    }

    /// Whether steps are left and nobody told it to stop.
    pub(super) fn is_left(&self) -> bool {
        self.goes_on(STEPS_A_QUESTION) && self.0.steps.load(Ordering::Relaxed) > 0
    }

    /// Whether the rendering was told to stop.
    pub(super) fn is_stopped(&self) -> bool {
        self.0.stopped.load(Ordering::Relaxed)
    }

    /// Asks whether to go on, once in a while.
    pub(super) fn goes_on(&self, steps: u64) -> bool {
        let Some(stop) = &self.0.stop else { return true };
        let since = self.0.since_question.fetch_add(steps, Ordering::Relaxed) + steps;
        if since >= STEPS_A_QUESTION {
            self.0.since_question.store(0, Ordering::Relaxed);
            if stop() {
                self.0.stopped.store(true, Ordering::Relaxed);
            }
        }
        !self.is_stopped()
    }
}

/// Takes `count` away, at most all there is; false if there is less.
fn take(from: &AtomicU64, count: u64) -> bool {
    let taken =
        from.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left.saturating_sub(count)));
    taken.is_ok_and(|left| left >= count)
}

/// Charges for going through so many values and so many bytes of text.
pub(super) fn charge(state: &State<'_, '_>, values: u64, bytes: u64) -> Result<(), Error> {
    let steps = values.saturating_add(bytes / BYTES_A_STEP);
    state.consume_fuel(steps)?;
    match Scope::find(state) {
        Some(scope) if !scope.budget.goes_on(steps.max(1)) => Err(stopped()),
        _ => Ok(()),
    }
}

/// Charges for a value of so many bytes before it is made.
pub(super) fn allocate(state: &State<'_, '_>, bytes: u64) -> Result<(), Error> {
    // Short ones are paid for by the instruction that makes them.
    if bytes <= 256 {
        return Ok(());
    }
    charge(state, 0, bytes)?;
    match Scope::find(state) {
        Some(scope) if !scope.budget.allocate(bytes) => Err(too_large()),
        _ => Ok(()),
    }
}

/// Charges for a list of so many items before it is made.
pub(super) fn allocate_slots(state: &State<'_, '_>, items: usize) -> Result<(), Error> {
    charge(state, items as u64, 0)?;
    allocate(state, (items as u64).saturating_mul(SLOT))
}

pub(super) fn stopped() -> Error {
    Error::new(ErrorKind::OutOfFuel, STOPPED)
}

pub(super) fn too_large() -> Error {
    Error::new(ErrorKind::OutOfFuel, "the values of the prompt take too much memory")
}

/// What a value comes to with all that is in it, shared parts as often as they are met.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Weight {
    /// Values in it, itself among them.
    pub(super) values: u64,
    /// Bytes of its texts.
    pub(super) bytes: u64,
    /// Levels that each of its values is deep, in sum.
    pub(super) levels: u64,
}

impl Weight {
    /// Most bytes of its JSON text: a control character takes six, a number at most forty, a pair of marks two.
    pub(super) fn printed(self) -> u64 {
        self.bytes.saturating_mul(6).saturating_add(self.values.saturating_mul(44))
    }

    /// As [`Weight::printed`], each value in a line of its own, with blanks for each level.
    pub(super) fn indented(self, indent: u64) -> u64 {
        let blanks = (self.levels + self.values).saturating_mul(indent);
        self.printed().saturating_add(blanks)
    }

    pub(super) fn plus(self, other: Weight) -> Weight {
        Weight {
            values: self.values + other.values,
            bytes: self.bytes + other.bytes,
            levels: self.levels + other.levels,
        }
    }
}

/// Goes through a value and charges for it; ends when the budget does.
///
/// # Errors
/// The budget is used up, or the value is nested too deeply.
pub(super) fn weigh(state: &State<'_, '_>, value: &Value) -> Result<Weight, Error> {
    // Most values are small texts and numbers.
    if let Some(text) = value.as_str() {
        let bytes = text.len() as u64;
        if bytes >= BYTES_A_STEP {
            charge(state, 0, bytes)?;
        }
        return Ok(Weight { values: 1, bytes, levels: 1 });
    }
    if !is_container(value) {
        return Ok(Weight { values: 1, bytes: 0, levels: 1 });
    }
    let mut scales = Scales { state, weight: Weight::default(), values: 0, bytes: 0 };
    scales.add(value, DEPTH)?;
    scales.pay()?;
    Ok(scales.weight)
}

/// Charges for the keys of a map before it is copied: each is hashed again.
///
/// # Errors
/// The budget is used up, or a key is a list or a mapping.
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

fn is_container(value: &Value) -> bool {
    value.as_object().is_some()
}

struct Scales<'s, 't, 'e> {
    state: &'s State<'t, 'e>,
    weight: Weight,
    /// Values and bytes that are not paid for yet.
    values: u64,
    bytes: u64,
}

impl Scales<'_, '_, '_> {
    fn pay(&mut self) -> Result<(), Error> {
        let (values, bytes) = (std::mem::take(&mut self.values), std::mem::take(&mut self.bytes));
        self.weight.values += values;
        self.weight.bytes += bytes;
        charge(self.state, values, bytes)
    }

    fn add(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        self.values += 1;
        self.weight.levels += (DEPTH - depth) as u64 + 1;
        if let Some(text) = value.as_str() {
            self.bytes += text.len() as u64;
        }
        if self.values >= 256 || self.bytes >= 16 << 10 {
            self.pay()?;
        }
        if !is_container(value) {
            return Ok(());
        }
        let Some(depth) = depth.checked_sub(1) else { return Err(text::too_deep()) };
        if let Some(items) = value.downcast_object_ref::<Vec<Value>>() {
            return items.iter().try_for_each(|item| self.add(item, depth));
        }
        if let Some(messages) = value.downcast_object_ref::<Messages>() {
            return messages.0.iter().try_for_each(|item| self.add(item, depth));
        }
        if let Some(text) = values::own_text(value) {
            self.bytes += text.len() as u64;
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

/// A value as it is printed, paid for.
///
/// # Errors
/// As [`weigh`].
pub(super) fn text<'v>(state: &State<'_, '_>, value: &'v Value) -> Result<Cow<'v, str>, Error> {
    if is_container(value) {
        // A tree of JSON first, then its text.
        let weight = weigh(state, value)?;
        allocate(state, weight.values.saturating_mul(SLOT).saturating_add(weight.printed()))?;
    }
    text::text(value)
}

/// A value as JSON, paid for.
///
/// # Errors
/// As [`weigh`].
pub(super) fn json(state: &State<'_, '_>, value: &Value) -> Result<serde_json::Value, Error> {
    let weight = weigh(state, value)?;
    allocate(state, weight.values.saturating_mul(SLOT).saturating_add(weight.bytes))?;
    text::json(value)
}

/// Charges for a copy of a value of the context or of the global state before it is made.
pub(super) fn charge_json(state: &State<'_, '_>, value: &serde_json::Value) -> Result<(), Error> {
    charge_copy(state, json_weight(value))
}

/// As [`charge_json`], of so many values with so many bytes of text.
pub(super) fn charge_copy(state: &State<'_, '_>, (values, bytes): (u64, u64)) -> Result<(), Error> {
    charge(state, values, bytes)?;
    allocate(state, values.saturating_mul(SLOT).saturating_add(bytes))
}

/// Values in a value, itself among them, and bytes of its texts.
pub(super) fn json_weight(value: &serde_json::Value) -> (u64, u64) {
    let sum = |sum: (u64, u64), part: (u64, u64)| (sum.0 + part.0, sum.1 + part.1);
    match value {
        serde_json::Value::String(text) => (1, text.len() as u64),
        serde_json::Value::Array(items) => items.iter().map(json_weight).fold((1, 0), sum),
        serde_json::Value::Object(fields) => {
            let fields = fields.iter().map(|(key, field)| sum((1, key.len() as u64), json_weight(field)));
            fields.fold((1, 0), sum)
        }
        _ => (1, 0),
    }
}
