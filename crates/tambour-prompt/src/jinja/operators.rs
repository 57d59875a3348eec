//! Filters that replace operators of expressions (see `grammar`), with the same semantics but charged before
//! they run, and the table of minijinja's operators.

use std::cmp::Ordering;

use minijinja::value::{Rest, Value, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, State, UndefinedBehavior, context};

use super::budget::{self, SHORT_BYTES, charge, charge_bytes, charge_slots, weigh, weigh_keys};
use super::text::check_key;

/// Maximum number of items of a list that is unpacked into names.
const MAX_UNPACKED_ITEMS: usize = 1_000;

/// Registers the filters of [`OPERATORS`].
pub(super) fn register(env: &mut Environment<'_>) {
    env.add_filter("__add", |state: &State<'_, '_>, a: &Value, b: &Value| add(state, a, b));
    env.add_filter("__mul", multiply);
    env.add_filter("__sub", |state: &State<'_, '_>, a: &Value, b: &Value| apply_numeric(state, "-", a, b));
    env.add_filter("__div", |state: &State<'_, '_>, a: &Value, b: &Value| apply_numeric(state, "/", a, b));
    env.add_filter("__int_div", |state: &State<'_, '_>, a: &Value, b: &Value| {
        apply_numeric(state, "//", a, b)
    });
    env.add_filter("__rem", |state: &State<'_, '_>, a: &Value, b: &Value| apply_numeric(state, "%", a, b));
    for operator in ["==", "!=", "<", "<=", ">", ">="] {
        let name = match operator {
            "==" => "__eq",
            "!=" => "__ne",
            "<" => "__lt",
            "<=" => "__le",
            ">" => "__gt",
            _ => "__ge",
        };
        env.add_filter(name, move |state: &State<'_, '_>, a: &Value, b: &Value| {
            compare(state, operator, a, b)
        });
    }
    env.add_filter("__in", |state: &State<'_, '_>, a: &Value, b: &Value| contains(state, b, a));
    env.add_filter("__not_in", |state: &State<'_, '_>, a: &Value, b: &Value| {
        contains(state, b, a).map(|found| !found)
    });
    env.add_filter("__chain", compare_chain);
    env.add_filter("__join", concatenate);
    env.add_filter("__slice", slice);
    env.add_filter("__container", charge_container);
    env.add_filter("__key", charge_key);
    env.add_filter("__map_key", charge_map_key);
    env.add_filter("__passed", charge_passed_value);
    env.add_filter("__changed", |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| {
        let args = args.into_values();
        // `loop.changed()` compares its arguments with those of the previous iteration.
        args.iter().skip(1).try_for_each(|arg| weigh(state, arg).map(drop))?;
        call_method(state, "changed", &args)
    });
    env.add_filter("__cycle", |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| {
        let args = args.into_values();
        if args.len() < 2 {
            return Err(Error::new(ErrorKind::MissingArgument, "`cycle` needs at least one value"));
        }
        call_method(state, "cycle", &args)
    });
    env.add_filter("__splat", charge_spread);
    env.add_filter("__rows", check_rows);
}

/// Evaluates an expression over the operands `a` and `b` with minijinja's own operator.
fn evaluate_native(
    state: &State<'_, '_>,
    expression: &'static str,
    a: &Value,
    b: &Value,
) -> Result<Value, Error> {
    let compiled_expression = state.env().compile_expression(expression)?;
    let result = compiled_expression.eval(context! { a => a, b => b });
    // The position must be that of the template, not of this expression.
    result.map_err(|error| match error.detail() {
        Some(detail) => Error::new(error.kind(), detail.to_owned()),
        None => Error::from(error.kind()),
    })
}

/// Applies `-`, `/`, `//` or `%`, which take only numbers; for other operands minijinja builds the error.
pub(super) fn apply_numeric(
    state: &State<'_, '_>,
    operator: &str,
    a: &Value,
    b: &Value,
) -> Result<Value, Error> {
    // Differences are common, so they do not go through minijinja.
    if let ("-", Some((a, b))) = (operator, as_integers(a, b))
        && let Some(difference) = a.checked_sub(b)
    {
        return Ok(Value::from(difference));
    }
    if let ("-", Some((a, b))) = (operator, as_floats(a, b)) {
        return Ok(Value::from(a - b));
    }
    match operator {
        "-" => evaluate_native(state, "a - b", a, b),
        "/" => evaluate_native(state, "a / b", a, b),
        "//" => evaluate_native(state, "a // b", a, b),
        _ => evaluate_native(state, "a % b", a, b),
    }
}

/// Returns both values as integers, if both are.
fn as_integers(a: &Value, b: &Value) -> Option<(i64, i64)> {
    if !a.is_integer() || !b.is_integer() {
        return None;
    }
    a.as_i64().zip(b.as_i64())
}

/// Returns both values as floats, if both are numbers and one of them is not an integer.
fn as_floats(a: &Value, b: &Value) -> Option<(f64, f64)> {
    if !a.is_number() || !b.is_number() || a.is_integer() && b.is_integer() {
        return None;
    }
    f64::try_from(a.clone()).ok().zip(f64::try_from(b.clone()).ok())
}

fn is_list(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable)
}

/// Evaluates `a + b`: a sum of numbers, or two joined texts or lists.
pub(super) fn add(state: &State<'_, '_>, a: &Value, b: &Value) -> Result<Value, Error> {
    if let Some(sum) = as_integers(a, b).and_then(|(a, b)| a.checked_add(b)) {
        return Ok(Value::from(sum));
    }
    if let Some((a, b)) = as_floats(a, b) {
        return Ok(Value::from(a + b));
    }
    if let (Some(left), Some(right)) = (a.as_str(), b.as_str()) {
        let length = left.len() + right.len();
        charge_bytes(state, 2 * length as u64)?;
        let mut sum = String::with_capacity(length);
        sum.push_str(left);
        sum.push_str(right);
        return Ok(if a.is_safe() && b.is_safe() { Value::from_safe_string(sum) } else { Value::from(sum) });
    }
    if is_list(a) && is_list(b) && a.is_tuple() == b.is_tuple() {
        let (left, right) = (list_len(a)?, list_len(b)?);
        charge_slots(state, left.saturating_add(right))?;
        let items = a.try_iter()?.chain(b.try_iter()?).collect::<Vec<Value>>();
        return Ok(make_list(items, a.is_tuple()));
    }
    evaluate_native(state, "a + b", a, b)
}

/// Creates a list or a tuple.
fn make_list(items: Vec<Value>, is_tuple: bool) -> Value {
    if is_tuple { Value::from(minijinja::value::Tuple::from(items)) } else { Value::from(items) }
}

/// Returns the number of items of a list.
fn list_len(value: &Value) -> Result<usize, Error> {
    let unknown = || Error::new(ErrorKind::InvalidOperation, "the length of the list is not known");
    value.len().ok_or_else(unknown)
}

/// Evaluates `a * b`: a product of numbers, or a repeated text or list.
fn multiply(state: &State<'_, '_>, a: &Value, b: &Value) -> Result<Value, Error> {
    if let Some(product) = as_integers(a, b).and_then(|(a, b)| a.checked_mul(b)) {
        return Ok(Value::from(product));
    }
    if let Some((a, b)) = as_floats(a, b) {
        return Ok(Value::from(a * b));
    }
    let (sequence, count) =
        if a.as_str().is_some() || b.as_str().is_none() && is_list(a) { (a, b) } else { (b, a) };
    let is_sequence = sequence.as_str().is_some() || is_list(sequence);
    let count = i128::try_from(count.clone()).ok().filter(|_| is_sequence);
    let Some(count) = count else { return evaluate_native(state, "a * b", a, b) };
    let count = usize::try_from(count.max(0)).unwrap_or(usize::MAX);
    if let Some(text) = sequence.as_str() {
        charge_bytes(state, (text.len() as u64).saturating_mul(count as u64).saturating_mul(2))?;
        let text = text.repeat(count);
        return Ok(if sequence.is_safe() { Value::from_safe_string(text) } else { Value::from(text) });
    }
    let length = list_len(sequence)?.saturating_mul(count);
    charge_slots(state, length)?;
    let mut items = Vec::with_capacity(length);
    // Repeating an empty list costs no memory, but `count` may be huge.
    let repetitions = if length == 0 { 0 } else { count };
    for _ in 0..repetitions {
        items.extend(sequence.try_iter()?);
    }
    Ok(make_list(items, sequence.is_tuple()))
}

/// Returns an error for an undefined value in strict mode.
pub(super) fn assert_defined(state: &State<'_, '_>, value: &Value) -> Result<(), Error> {
    if value.is_undefined() && state.undefined_behavior() == UndefinedBehavior::Strict {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    Ok(())
}

/// Charges for the comparison of two values: for texts, the length of the shorter one.
pub(super) fn charge_comparison(state: &State<'_, '_>, a: &Value, b: &Value) -> Result<(), Error> {
    match (a.as_str(), b.as_str()) {
        (Some(a), Some(b)) => {
            let common_len = a.len().min(b.len());
            if common_len as u64 > SHORT_BYTES { charge(state, 0, common_len as u64) } else { Ok(()) }
        }
        (None, None) if a.as_object().is_some() && b.as_object().is_some() => {
            weigh(state, a)?;
            weigh(state, b)?;
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Evaluates a comparison with `operator`.
fn compare(state: &State<'_, '_>, operator: &str, a: &Value, b: &Value) -> Result<bool, Error> {
    assert_defined(state, a)?;
    assert_defined(state, b)?;
    charge_comparison(state, a, b)?;
    Ok(satisfies(operator, a, b))
}

/// Returns true if `a` and `b` satisfy the comparison operator `operator`.
pub(super) fn satisfies(operator: &str, a: &Value, b: &Value) -> bool {
    match operator {
        "==" => a == b,
        "!=" => a != b,
        _ => {
            let order = a.cmp(b);
            match operator {
                "<" => order == Ordering::Less,
                "<=" => order != Ordering::Greater,
                ">" => order == Ordering::Greater,
                _ => order != Ordering::Less,
            }
        }
    }
}

/// Evaluates `a < b <= c` and so on. In `pairs` each operator is followed by its right operand. Stops at the
/// first comparison that is false.
#[expect(clippy::needless_pass_by_value, reason = "minijinja passes them by value")]
fn compare_chain(state: &State<'_, '_>, first: &Value, pairs: Rest<Value>) -> Result<bool, Error> {
    let mut left = first;
    for pair in pairs.chunks_exact(2) {
        let (operator, right) = (pair[0].as_str().unwrap_or_default(), &pair[1]);
        let is_true = match operator {
            "in" => contains(state, right, left)?,
            "not in" => !contains(state, right, left)?,
            operator => compare(state, operator, left, right)?,
        };
        if !is_true {
            return Ok(false);
        }
        left = right;
    }
    Ok(true)
}

/// Returns true if `container` contains `value`.
pub(super) fn contains(state: &State<'_, '_>, container: &Value, value: &Value) -> Result<bool, Error> {
    assert_defined(state, container)?;
    assert_defined(state, value)?;
    if container.is_undefined() {
        return Ok(false);
    }
    if let Some(text) = container.as_str() {
        charge(state, 1, text.len() as u64)?;
        return Ok(match value.as_str() {
            Some(searched) => text.contains(searched),
            None => {
                let weight = weigh(state, value)?;
                charge_bytes(state, weight.printed_bytes().saturating_mul(2))?;
                text.contains(&value.to_string())
            }
        });
    }
    let Some(object) = container.as_object() else {
        let message = "cannot perform a containment check on this value";
        return Err(Error::new(ErrorKind::InvalidOperation, message));
    };
    match container.kind() {
        ValueKind::Map => {
            weigh(state, value)?;
            Ok(object.get_value(value).is_some())
        }
        ValueKind::Seq | ValueKind::Iterable => {
            for item in container.try_iter()? {
                charge(state, 1, 0)?;
                charge_comparison(state, &item, value)?;
                if item == *value {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        _ => Ok(false),
    }
}

/// Evaluates `a ~ b ~ c`: joins the operands in printed form.
#[expect(clippy::needless_pass_by_value, reason = "minijinja passes them by value")]
fn concatenate(state: &State<'_, '_>, first: &Value, others: Rest<Value>) -> Result<String, Error> {
    let mut texts = Vec::with_capacity(others.len() + 1);
    for value in std::iter::once(first).chain(others.iter()) {
        texts.push(budget::print_charged(state, value)?);
    }
    let length = texts.iter().fold(0_usize, |length, text| length.saturating_add(text.len()));
    charge_bytes(state, (length as u64).saturating_mul(2))?;
    let mut output = String::with_capacity(length);
    texts.iter().for_each(|text| output.push_str(text));
    Ok(output)
}

/// Charges for the container of `container[key]`, and returns it: minijinja scans a text or an iterable up
/// to the item.
fn charge_container(state: &State<'_, '_>, value: &Value) -> Result<Value, Error> {
    if let Some(text) = value.as_str() {
        charge(state, 0, text.len() as u64)?;
    } else if value.kind() == ValueKind::Iterable {
        charge(state, value.len().unwrap_or_default() as u64, 0)?;
    }
    Ok(value.clone())
}

/// Evaluates `value[start:stop:step]`.
fn slice(
    state: &State<'_, '_>,
    value: &Value,
    start: &Value,
    stop: &Value,
    step: &Value,
) -> Result<Value, Error> {
    assert_defined(state, value)?;
    let bound = |value: &Value| (!value.is_none()).then(|| i64::try_from(value.clone())).transpose();
    let (start, stop, step) = (bound(start)?, bound(stop)?, bound(step)?.unwrap_or(1));
    if step == 0 {
        return Err(Error::new(ErrorKind::InvalidOperation, "cannot slice by step size of 0"));
    }
    if let Some(text) = value.as_str() {
        charge(state, 1, text.len() as u64)?;
        let length = if text.is_ascii() { text.len() } else { text.chars().count() };
        if step == 1 {
            let (from, to) = slice_bounds(start, stop, length);
            let byte_offset = |at: usize| {
                if text.len() == length {
                    return at;
                }
                text.char_indices().nth(at).map_or(text.len(), |(offset, _)| offset)
            };
            let selected = &text[byte_offset(from)..byte_offset(to)];
            charge_bytes(state, selected.len() as u64)?;
            return Ok(Value::from(selected));
        }
        // Four bytes for each `char`, and two for each byte of the new text, which grows by doubling.
        charge_bytes(state, (text.len() as u64).saturating_mul(6))?;
        let chars: Vec<char> = text.chars().collect();
        return Ok(Value::from(
            slice_indexes(start, stop, step, length).map(|at| chars[at]).collect::<String>(),
        ));
    }
    if value.is_undefined() || value.is_none() {
        return Ok(Value::from(Vec::<Value>::new()));
    }
    if !is_list(value) {
        let message = format!("value of type {} cannot be sliced", value.kind());
        return Err(Error::new(ErrorKind::InvalidOperation, message));
    }
    let length = list_len(value)?;
    let count = slice_indexes(start, stop, step, length).len();
    if let Some(items) = value.downcast_object_ref::<Vec<Value>>() {
        charge_slots(state, count)?;
        let selected = slice_indexes(start, stop, step, length).map(|at| items[at].clone()).collect();
        return Ok(make_list(selected, value.is_tuple()));
    }
    charge_slots(state, length.saturating_add(count))?;
    let items: Vec<Value> = value.try_iter()?.collect();
    let selected = slice_indexes(start, stop, step, items.len()).map(|at| items[at].clone()).collect();
    Ok(make_list(selected, value.is_tuple()))
}

/// Returns the first index of a slice with a positive step, and the index after its last one.
fn slice_bounds(start: Option<i64>, stop: Option<i64>, length: usize) -> (usize, usize) {
    let clamp = |bound: i64| {
        let size = usize::try_from(bound.unsigned_abs()).unwrap_or(usize::MAX);
        if bound < 0 { length.saturating_sub(size) } else { size.min(length) }
    };
    let from = start.map_or(0, clamp);
    (from, stop.map_or(length, clamp).max(from))
}

/// Returns the indexes of a slice, with the semantics of Python.
fn slice_indexes(
    start: Option<i64>,
    stop: Option<i64>,
    step: i64,
    length: usize,
) -> impl ExactSizeIterator<Item = usize> {
    let size = usize::try_from(step.unsigned_abs()).unwrap_or(usize::MAX);
    let (first, count) = if step > 0 {
        let (from, to) = slice_bounds(start, stop, length);
        (from, (to - from).div_ceil(size))
    } else {
        // A negative step runs down to the index after `stop`. Index -1 is before the first item.
        let length = i64::try_from(length).unwrap_or(i64::MAX);
        let clamp = |bound: i64| {
            if bound < 0 { (length.saturating_add(bound)).max(-1) } else { bound.min(length - 1) }
        };
        let (from, to) = (start.map_or(length - 1, clamp), stop.map_or(-1, clamp));
        let span = usize::try_from(from - to).unwrap_or(0);
        (usize::try_from(from).unwrap_or(0), span.div_ceil(size))
    };
    (0..count).map(move |at| {
        let distance = at.saturating_mul(size);
        if step > 0 { first + distance } else { first - distance }
    })
}

/// Charges for a map key or list index, and returns it: the lookup traverses the key.
fn charge_key(state: &State<'_, '_>, value: &Value) -> Result<Value, Error> {
    weigh(state, value)?;
    Ok(value.clone())
}

/// Charges for the key of a map literal, and returns it. A list or a map cannot be a key, since each copy of
/// the map traverses its keys.
fn charge_map_key(state: &State<'_, '_>, value: &Value) -> Result<Value, Error> {
    check_key(value)?;
    charge_key(state, value)
}

/// Charges for a value that is passed to a call or looped over, and returns it: minijinja counts the
/// characters of a text.
fn charge_passed_value(state: &State<'_, '_>, value: &Value) -> Result<Value, Error> {
    if let Some(text) = value.as_str() {
        charge(state, 0, text.len() as u64)?;
    }
    Ok(value.clone())
}

/// Calls a method of the first of these values with the others as arguments.
fn call_method(state: &mut State<'_, '_>, name: &str, args: &[Value]) -> Result<Value, Error> {
    match args {
        [object, args @ ..] => object.call_method(state, name, args),
        [] => Err(Error::from(ErrorKind::UnknownMethod)),
    }
}

/// Charges for a list or map that is spread into arguments (`*value`, `**value`), and returns it.
fn charge_spread(state: &State<'_, '_>, value: &Value) -> Result<Value, Error> {
    if value.as_object().is_some() || value.as_str().is_some() {
        charge_slots(state, value.len().unwrap_or(0).saturating_mul(2))?;
        weigh_keys(state, value)?;
    }
    Ok(value.clone())
}

/// Checks a list whose items a loop unpacks into names, and returns it: minijinja unpacks an item before it
/// counts its parts.
fn check_rows(state: &State<'_, '_>, value: &Value) -> Result<Value, Error> {
    if let Some(items) = value.downcast_object_ref::<Vec<Value>>() {
        // Checking an item is much cheaper than a step.
        charge(state, items.len() as u64 / 16, 0)?;
        items.iter().try_for_each(check_row)?;
    }
    Ok(value.clone())
}

/// Checks that a list is short enough to be unpacked into names.
///
/// # Errors
/// The list is too long.
pub(super) fn check_row(value: &Value) -> Result<(), Error> {
    match value.len().filter(|length| *length > MAX_UNPACKED_ITEMS && value.as_object().is_some()) {
        Some(length) => {
            let message = format!("sequence of wrong length (at most {MAX_UNPACKED_ITEMS}, got {length})");
            Err(Error::new(ErrorKind::CannotUnpack, message))
        }
        None => Ok(()),
    }
}

/// Operators of minijinja and the filters that replace them; `None` if the operator always runs in bounded
/// time. Some entries are not operators of the language but stand for other constructs: `[:]` for a slice,
/// `[]` for the key in brackets, `[.]` for the container before the brackets, `{:}` for a key of a map
/// literal, `*()` for a spread argument, `f()` for a value that is passed to a call or looped over, and
/// `.changed()` and `.cycle()` for methods of `loop`.
pub const OPERATORS: &[(&str, Option<&str>)] = &[
    ("==", Some("__eq")),
    ("!=", Some("__ne")),
    ("<", Some("__lt")),
    ("<=", Some("__le")),
    (">", Some("__gt")),
    (">=", Some("__ge")),
    ("in", Some("__in")),
    ("not in", Some("__not_in")),
    ("+", Some("__add")),
    ("-", Some("__sub")),
    ("*", Some("__mul")),
    ("/", Some("__div")),
    ("//", Some("__int_div")),
    ("%", Some("__rem")),
    ("**", None),
    ("~", Some("__join")),
    ("[:]", Some("__slice")),
    ("[]", Some("__key")),
    ("{:}", Some("__map_key")),
    ("[.]", Some("__container")),
    ("*()", Some("__splat")),
    ("f()", Some("__passed")),
    (".changed()", Some("__changed")),
    (".cycle()", Some("__cycle")),
    ("and", None),
    ("or", None),
    ("not", None),
    ("-x", None),
    ("if", None),
    ("is", None),
    ("|", None),
    (".", None),
];

/// Entries of [`OPERATORS`] that are methods: `changed` traverses its arguments, `cycle` needs at least one.
pub(super) const METHODS: &[&str] = &[".changed()", ".cycle()"];

/// Returns the filter that replaces an operator; `__none`, which does not exist, if no filter does.
pub(super) fn replacement_filter(operator: &str) -> &'static str {
    OPERATORS
        .iter()
        .find(|(candidate, _)| *candidate == operator)
        .and_then(|(_, filter)| *filter)
        .unwrap_or("__none")
}
