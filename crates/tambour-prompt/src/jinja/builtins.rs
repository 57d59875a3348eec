//! The engine's filters, tests and functions, with charges for all but the cheapest. The environment
//! starts empty: of minijinja's filters, tests and functions, only those registered here exist. Charges for
//! memory are multiplied, to allow for buffers that grow by doubling and for copies that minijinja makes.

use minijinja::value::{Kwargs, Rest, Value, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, State, filters, functions, tests};

use super::budget::{self, ValueWeight, charge, charge_bytes, charge_slots, weigh, weigh_keys};
use super::operators::{self, assert_defined};

/// Cost charged before a filter runs.
#[derive(Clone, Copy)]
enum FilterCost {
    /// No cost: the filter takes no longer than an instruction.
    None,
    /// Steps for the bytes of the first argument, which is a text, and memory for this multiple of its bytes.
    Text(u64),
    /// Memory for a list as long as the first argument.
    Items,
    /// Steps for all values of all arguments in each round of sorting, and memory for lists of the items.
    Sorted,
    /// Steps and memory for a text of as many bytes as the function computes from the arguments and their
    /// weight.
    Printed(fn(&State<'_, '_>, &[Value], ValueWeight) -> Result<u64, Error>),
    /// A charge that the function makes.
    Custom(fn(&State<'_, '_>, &[Value]) -> Result<(), Error>),
}

/// Returns the filters that behave as in minijinja, each with its cost.
fn engine_filters() -> Vec<(&'static str, Value, FilterCost)> {
    // Entry of the list: name, function of minijinja and cost.
    macro_rules! of {
        ($name:literal, $function:path, $cost:expr) => {
            ($name, Value::from_function($function), $cost)
        };
    }
    vec![
        of!("safe", filters::safe, FilterCost::Printed(|_, _, weight| Ok(weight.printed_bytes()))),
        of!("escape", filters::escape, FilterCost::Printed(|_, _, weight| Ok(weight.printed_bytes()))),
        of!("e", filters::escape, FilterCost::Printed(|_, _, weight| Ok(weight.printed_bytes()))),
        of!("lower", filters::lower, FilterCost::Text(4)),
        of!("upper", filters::upper, FilterCost::Text(4)),
        of!("title", filters::title, FilterCost::Text(4)),
        of!("capitalize", filters::capitalize, FilterCost::Text(4)),
        of!("trim", filters::trim, FilterCost::Custom(charge_trim)),
        of!("replace", filters::replace, FilterCost::Custom(charge_replace)),
        of!("split", filters::split, FilterCost::Custom(charge_split)),
        of!("lines", filters::lines, FilterCost::Custom(charge_split)),
        of!("indent", filters::indent, FilterCost::Custom(charge_indent)),
        of!("reverse", filters::reverse, FilterCost::Items),
        of!("default", filters::default, FilterCost::None),
        of!("d", filters::default, FilterCost::None),
        // A flat charge: rounding takes longer than an instruction.
        of!("round", filters::round, FilterCost::Custom(|state, _| charge(state, 30, 0))),
        of!("abs", filters::abs, FilterCost::None),
        of!("int", filters::int, FilterCost::Text(0)),
        of!("float", filters::float, FilterCost::Text(0)),
        of!(
            "attr",
            filters::attr,
            FilterCost::Custom(|state, args| args
                .iter()
                .skip(1)
                .try_for_each(|arg| weigh(state, arg).map(drop)))
        ),
        of!("first", filters::first, FilterCost::None),
        of!("last", filters::last, FilterCost::Custom(charge_last)),
        of!("min", filters::min, FilterCost::Sorted),
        of!("max", filters::max, FilterCost::Sorted),
        of!("string", filters::string, FilterCost::Printed(|_, _, weight| Ok(weight.printed_bytes()))),
        of!("join", filters::join, FilterCost::Printed(join_bytes)),
        of!("sort", filters::sort, FilterCost::Sorted),
        of!("dictsort", filters::dictsort, FilterCost::Sorted),
        of!("groupby", filters::groupby, FilterCost::Sorted),
        of!("unique", filters::unique, FilterCost::Sorted),
        of!("list", filters::list, FilterCost::Items),
        of!("bool", filters::bool, FilterCost::None),
        of!("batch", filters::batch, FilterCost::Custom(charge_batch)),
        of!("slice", filters::slice, FilterCost::Custom(charge_slice)),
        of!("select", filters::select, FilterCost::Items),
        of!("reject", filters::reject, FilterCost::Items),
        of!("selectattr", filters::selectattr, FilterCost::Custom(charge_by_attribute)),
        of!("rejectattr", filters::rejectattr, FilterCost::Custom(charge_by_attribute)),
        of!("map", filters::map, FilterCost::Custom(charge_by_attribute)),
        of!("chain", filters::chain, FilterCost::Custom(charge_combined)),
        of!("zip", filters::zip, FilterCost::Custom(charge_combined)),
        of!("pprint", filters::pprint, FilterCost::Printed(|_, _, weight| Ok(weight.indented_bytes(8)))),
        of!("format", filters::format, FilterCost::Printed(format_bytes)),
        of!("tojson", filters::tojson, FilterCost::Printed(json_bytes)),
    ]
}

/// Registers tests of minijinja that cost nothing, since they do not go through the contents of a value.
macro_rules! simple_tests {
    ($env:expr, $($name:literal => $function:path),* $(,)?) => {
        $($env.add_test($name, $function);)*
    };
}

/// Filters of minijinja that are implemented in this file.
const REPLACED_FILTERS: &[&str] = &["length", "count", "items", "sum"];

/// Returns the names of minijinja's filters that templates may use.
pub(super) fn filter_names() -> Vec<&'static str> {
    engine_filters().iter().map(|(name, ..)| *name).chain(REPLACED_FILTERS.iter().copied()).collect()
}

/// Names of minijinja's tests that templates may use.
pub(super) const TESTS: &[&str] = &[
    "undefined",
    "defined",
    "none",
    "safe",
    "escaped",
    "boolean",
    "odd",
    "even",
    "divisibleby",
    "number",
    "integer",
    "int",
    "float",
    "string",
    "sequence",
    "iterable",
    "mapping",
    "startingwith",
    "endingwith",
    "lower",
    "upper",
    "sameas",
    "eq",
    "equalto",
    "==",
    "ne",
    "!=",
    "lt",
    "lessthan",
    "<",
    "le",
    "<=",
    "gt",
    "greaterthan",
    ">",
    "ge",
    ">=",
    "in",
    "true",
    "false",
    "filter",
    "test",
];

/// Names of minijinja's functions that templates may use.
pub(super) const FUNCTIONS: &[&str] = &["range", "dict", "namespace"];

/// Registers the filters, tests and functions; all but the cheapest charge for their work.
pub(super) fn register(env: &mut Environment<'_>) {
    for (name, builtin, cost) in engine_filters() {
        env.add_filter(name, move |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| {
            let args = args.into_values();
            run_filter(state, &builtin, cost, &args)
        });
    }
    env.add_filter("length", length);
    env.add_filter("count", length);
    env.add_filter("items", items);
    env.add_filter("sum", sum);
    simple_tests!(env,
        "undefined" => tests::is_undefined, "defined" => tests::is_defined, "none" => tests::is_none,
        "safe" => tests::is_safe, "escaped" => tests::is_safe, "boolean" => tests::is_boolean, "odd" => tests::is_odd,
        "even" => tests::is_even, "number" => tests::is_number, "integer" => tests::is_integer,
        "int" => tests::is_integer, "float" => tests::is_float, "string" => tests::is_string,
        "sequence" => tests::is_sequence, "iterable" => tests::is_iterable, "mapping" => tests::is_mapping,
        "true" => tests::is_true, "false" => tests::is_false, "filter" => tests::is_filter, "test" => tests::is_test,
    );
    env.add_test("divisibleby", is_divisible);
    for (name, builtin) in [
        ("lower", Value::from_function(tests::is_lower)),
        ("upper", Value::from_function(tests::is_upper)),
        ("startingwith", Value::from_function(tests::is_startingwith)),
        ("endingwith", Value::from_function(tests::is_endingwith)),
    ] {
        env.add_test(name, move |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| {
            let args = args.into_values();
            let weight = weigh_all(state, &args)?;
            if args.iter().any(|arg| arg.as_object().is_some()) {
                charge_bytes(state, weight.printed_bytes().saturating_mul(2))?;
            }
            builtin.call(state, &args).map(|value| value.is_true())
        });
    }
    for (names, builtin) in [
        (&["eq", "equalto", "=="][..], Value::from_function(tests::is_eq)),
        (&["ne", "!="], Value::from_function(tests::is_ne)),
        (&["lt", "lessthan", "<"], Value::from_function(tests::is_lt)),
        (&["le", "<="], Value::from_function(tests::is_le)),
        (&["gt", "greaterthan", ">"], Value::from_function(tests::is_gt)),
        (&["ge", ">="], Value::from_function(tests::is_ge)),
        (&["sameas"], Value::from_function(tests::is_sameas)),
    ] {
        for name in names {
            let builtin = builtin.clone();
            env.add_test(*name, move |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| {
                let args = args.into_values();
                if let [a, b, ..] = &args[..] {
                    operators::charge_comparison(state, a, b)?;
                }
                builtin.call(state, &args).map(|value| value.is_true())
            });
        }
    }
    env.add_test("in", |state: &State<'_, '_>, value: &Value, container: &Value| {
        // Only a used-up budget and an undefined value are errors. Any other failed check is false.
        match operators::contains(state, container, value) {
            Err(error) if matches!(error.kind(), ErrorKind::OutOfFuel | ErrorKind::UndefinedError) => {
                Err(error)
            }
            found => Ok(found.unwrap_or(false)),
        }
    });
    env.add_function("range", functions::range);
    for (name, builtin) in [
        ("dict", Value::from_function(functions::dict)),
        ("namespace", Value::from_function(functions::namespace)),
    ] {
        env.add_function(name, move |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| {
            let args = args.into_values();
            for arg in args.iter().filter(|arg| arg.as_object().is_some()) {
                charge_slots(state, count_items(state, arg)?.saturating_mul(2))?;
                weigh_keys(state, arg)?;
            }
            builtin.call(state, &args)
        });
    }
}

/// Returns one of minijinja's filters, wrapped so that it is charged and its result is not lazy. A call
/// fails if the name is unknown.
pub(super) fn charged_filter(
    name: &str,
) -> impl Fn(&mut State<'_, '_>, &[Value]) -> Result<Value, Error> + use<> {
    let found = engine_filters().into_iter().find(|(candidate, ..)| *candidate == name);
    move |state, args| match &found {
        Some((_, builtin, cost)) => run_filter(state, builtin, *cost, args),
        None => Err(Error::from(ErrorKind::UnknownFilter)),
    }
}

/// Charges for a filter, calls it and makes its result eager.
fn run_filter(
    state: &mut State<'_, '_>,
    builtin: &Value,
    cost: FilterCost,
    args: &[Value],
) -> Result<Value, Error> {
    match cost {
        FilterCost::None => {}
        FilterCost::Text(times) => {
            if let Some(text) = args.first().and_then(Value::as_str) {
                charge(state, 0, text.len() as u64)?;
                charge_bytes(state, (text.len() as u64).saturating_mul(times))?;
            }
        }
        FilterCost::Items => {
            let items = args.first().map_or(Ok(0), |first| count_items(state, first))?;
            charge_slots(state, items)?;
        }
        FilterCost::Sorted => {
            let weight = weigh_all(state, args)?;
            let items = args.first().map_or(Ok(0), |first| count_items(state, first))?;
            // Sorting compares each item about log2(items) times, by each attribute. The path of the
            // attributes is followed in each item, and the values found are stored.
            let (attribute_count, path_bytes) = attribute_cost(args);
            let rounds = u64::from(usize::BITS - items.leading_zeros()).saturating_mul(attribute_count);
            charge(state, weight.values.saturating_mul(rounds), weight.bytes.saturating_mul(rounds))?;
            charge(state, 0, (items as u64).saturating_mul(path_bytes))?;
            let slots_per_item = 2 + usize::try_from(attribute_count).unwrap_or(usize::MAX);
            charge_slots(state, items.saturating_mul(slots_per_item))?;
            charge_bytes(state, weight.bytes.saturating_mul(1 + attribute_count))?;
        }
        FilterCost::Printed(count_bytes) => {
            let weight = weigh_all(state, args)?;
            let printed_bytes = count_bytes(state, args, weight)?;
            charge(state, 0, printed_bytes)?;
            charge_bytes(state, printed_bytes.saturating_mul(2))?;
        }
        FilterCost::Custom(charge_filter) => charge_filter(state, args)?,
    }
    let result = builtin.call(state, args)?;
    materialize(state, result)
}

/// Makes a lazy value eager. Chained lazy iterators would nest one level per step and overflow the stack.
fn materialize(state: &State<'_, '_>, value: Value) -> Result<Value, Error> {
    let is_lazy = match value.kind() {
        ValueKind::Iterable => true,
        // The engine chains lists and maps in objects whose type is called `Merge…`.
        ValueKind::Seq => value.as_object().is_some_and(|object| object.type_name().contains("Merge")),
        ValueKind::Map => value.as_object().is_some_and(|object| object.type_name().contains("Merge")),
        _ => false,
    };
    if !is_lazy {
        return Ok(value);
    }
    charge_slots(state, value.len().unwrap_or(0))?;
    if value.kind() == ValueKind::Map {
        weigh_keys(state, &value)?;
        let pairs = value.as_object().and_then(|object| object.try_iter_pairs());
        return Ok(Value::from_pairs(pairs.into_iter().flatten()));
    }
    let mut items = Vec::new();
    for item in value.try_iter()?.checked() {
        charge(state, 1, 0)?;
        items.push(item?);
    }
    Ok(Value::from(items))
}

/// Returns the weight of all arguments together, and charges for it.
fn weigh_all(state: &State<'_, '_>, args: &[Value]) -> Result<ValueWeight, Error> {
    let mut sum = ValueWeight::default();
    for arg in args {
        sum = sum.combine(weigh(state, arg)?);
    }
    Ok(sum)
}

/// Returns the number of items of a list or map, or of characters of a text. Charges for counting the
/// characters.
fn count_items(state: &State<'_, '_>, value: &Value) -> Result<usize, Error> {
    if let Some(text) = value.as_str() {
        charge(state, 0, text.len() as u64)?;
    }
    Ok(value.len().unwrap_or(0))
}

/// Returns upper bounds for the number of attributes that a filter reads from each item, and for the bytes of
/// their paths. The longest text after the first argument counts as the list of paths, separated by commas.
fn attribute_cost(args: &[Value]) -> (u64, u64) {
    let keyword_argument = args
        .last()
        .filter(|last| last.is_kwargs())
        .and_then(|keyword_argument| keyword_argument.get_attr("attribute").ok());
    let texts = args.iter().skip(1).chain(keyword_argument.as_ref()).filter_map(Value::as_str);
    let longest = texts.max_by_key(|text| text.len()).unwrap_or_default();
    (1 + memchr::memchr_iter(b',', longest.as_bytes()).count() as u64, longest.len() as u64)
}

/// Returns the argument at a position; if it is missing or `none`, the keyword argument `name`.
fn find_argument(args: &[Value], position: usize, name: &str) -> Option<Value> {
    let positional = args.get(position).filter(|value| !value.is_kwargs()).cloned();
    let keyword_argument = || {
        let keyword_argument = Kwargs::try_from(args.last().filter(|last| last.is_kwargs())?.clone()).ok()?;
        keyword_argument.peek::<Value>(name).ok()
    };
    positional.filter(|value| !value.is_none()).or_else(keyword_argument)
}

/// Returns the argument at a position if it is a text, otherwise an empty text.
fn text_argument(args: &[Value], at: usize) -> &str {
    args.get(at).and_then(Value::as_str).unwrap_or_default()
}

/// Charges for `trim`, which compares each character with those to remove. Fewer than eight bytes of these
/// cost nothing extra.
fn charge_trim(state: &State<'_, '_>, args: &[Value]) -> Result<(), Error> {
    let (text, chars) = (text_argument(args, 0), text_argument(args, 1));
    charge(state, 0, (text.len() as u64).saturating_mul(chars.len() as u64 / 8 + 1))?;
    charge_bytes(state, (text.len() as u64).saturating_mul(2).saturating_add(4 * chars.len() as u64))
}

/// Charges for `replace`, whose result may be longer than the text.
fn charge_replace(state: &State<'_, '_>, args: &[Value]) -> Result<(), Error> {
    let (text, from, to) = (text_argument(args, 0), text_argument(args, 1), text_argument(args, 2));
    charge(state, 1, (text.len() as u64).saturating_mul(2))?;
    let matches = if to.len() > from.len() { text.matches(from).count() as u64 } else { 0 };
    let grown_len = matches.saturating_mul(to.len() as u64).saturating_add(text.len() as u64);
    charge_bytes(state, grown_len.saturating_mul(3))
}

/// Charges for `split` and `lines`: each piece is a separate text.
fn charge_split(state: &State<'_, '_>, args: &[Value]) -> Result<(), Error> {
    let text = text_argument(args, 0);
    charge(state, 1, (text.len() as u64).saturating_mul(2))?;
    let piece_count = match args.get(1).and_then(Value::as_str) {
        Some(separator) => text.matches(separator).count() + 1,
        // Splitting at all white space is an upper bound for the lines.
        None => text.split(char::is_whitespace).count(),
    };
    charge_slots(state, piece_count)?;
    charge_bytes(state, (text.len() as u64).saturating_mul(3))
}

/// Charges for `indent`.
fn charge_indent(state: &State<'_, '_>, args: &[Value]) -> Result<(), Error> {
    let text = text_argument(args, 0);
    charge(state, 1, text.len() as u64)?;
    let width = find_argument(args, 1, "width").and_then(|width| width.as_usize()).unwrap_or(4) as u64;
    let lines = memchr::memchr_iter(b'\n', text.as_bytes()).count() as u64 + 1;
    charge_bytes(state, width.saturating_mul(lines).saturating_add(text.len() as u64).saturating_mul(3))
}

/// Charges for `last`, which collects the items of anything but a plain list.
fn charge_last(state: &State<'_, '_>, args: &[Value]) -> Result<(), Error> {
    match args.first() {
        Some(first) if first.as_object().is_some() && first.downcast_object_ref::<Vec<Value>>().is_none() => {
            charge_slots(state, first.len().unwrap_or(0))
        }
        _ => Ok(()),
    }
}

/// Charges for `batch`.
fn charge_batch(state: &State<'_, '_>, args: &[Value]) -> Result<(), Error> {
    let items = args.first().map_or(Ok(0), |first| count_items(state, first))?;
    let size = find_argument(args, 1, "count").and_then(|size| size.as_usize()).unwrap_or(0);
    // The engine reserves at most 1024 slots for a batch ahead of time. With a third argument it fills the
    // last batch.
    let batch_slots = if args.len() > 2 { size } else { size.min(1_024) };
    charge_slots(state, items.saturating_mul(2).saturating_add(batch_slots).saturating_add(1))
}

/// Charges for `slice`.
fn charge_slice(state: &State<'_, '_>, args: &[Value]) -> Result<(), Error> {
    let items = args.first().map_or(Ok(0), |first| count_items(state, first))?;
    let slices = find_argument(args, 1, "count").and_then(|size| size.as_usize()).unwrap_or(0);
    charge_slots(state, items.saturating_mul(2).saturating_add(slices.saturating_mul(3)))
}

/// Charges for filters that read an attribute of each item.
fn charge_by_attribute(state: &State<'_, '_>, args: &[Value]) -> Result<(), Error> {
    let items = args.first().map_or(Ok(0), |first| count_items(state, first))?;
    charge_slots(state, items)?;
    charge(state, 0, (items as u64).saturating_mul(attribute_cost(args).1))?;
    let keyword_argument = args
        .last()
        .filter(|last| last.is_kwargs())
        .and_then(|keyword_argument| keyword_argument.get_attr("attribute").ok());
    match keyword_argument.filter(|keyword_argument| keyword_argument.as_object().is_some()) {
        Some(attribute) => {
            let weight = weigh(state, &attribute)?;
            charge(
                state,
                weight.values.saturating_mul(items as u64),
                weight.bytes.saturating_mul(items as u64),
            )
        }
        None => Ok(()),
    }
}

/// Charges for `chain` and `zip`, which combine several lists.
fn charge_combined(state: &State<'_, '_>, args: &[Value]) -> Result<(), Error> {
    let mut items = 0_usize;
    for arg in args {
        items = items.saturating_add(count_items(state, arg)?.saturating_mul(2));
    }
    charge_slots(state, items)
}

/// Returns an upper bound for the output bytes of a `printf` format.
fn format_bytes(_: &State<'_, '_>, args: &[Value], weight: ValueWeight) -> Result<u64, Error> {
    let format = text_argument(args, 0);
    let specifiers = memchr::memchr_iter(b'%', format.as_bytes()).count() as u64;
    let (mut widths, mut width) = (0_u64, 0_u64);
    for byte in format.bytes() {
        match byte {
            b'0'..=b'9' => width = width.saturating_mul(10).saturating_add(u64::from(byte - b'0')),
            _ => widths = widths.saturating_add(std::mem::take(&mut width)),
        }
    }
    // A `*` reads the width from an argument.
    if format.contains('*') {
        let max_width = args.iter().filter_map(|arg| arg.as_i64()).map(i64::unsigned_abs).max().unwrap_or(0);
        widths = widths.saturating_add(max_width.saturating_mul(specifiers));
    }
    let value_bytes = weight.printed_bytes().saturating_sub(format.len() as u64 * 6);
    let specifier_bytes = if specifiers == 0 { 0 } else { value_bytes };
    Ok(specifier_bytes.saturating_mul(specifiers).saturating_add(widths).saturating_add(format.len() as u64))
}

/// Returns an upper bound for the output bytes of `join`.
fn join_bytes(state: &State<'_, '_>, args: &[Value], weight: ValueWeight) -> Result<u64, Error> {
    let items = args.first().map_or(Ok(0), |first| count_items(state, first))? as u64;
    let longest_text = args.iter().skip(1).filter_map(Value::as_str).map(str::len).max().unwrap_or(0);
    // By name only: the positional separator is among the texts above.
    let separator_len = find_argument(args, usize::MAX, "d")
        .and_then(|separator| separator.as_str().map(str::len))
        .unwrap_or(0);
    Ok(weight.printed_bytes().saturating_add(items.saturating_mul(longest_text.max(separator_len) as u64)))
}

/// Returns an upper bound for the output bytes of `tojson`.
fn json_bytes(_: &State<'_, '_>, args: &[Value], weight: ValueWeight) -> Result<u64, Error> {
    let indent = match find_argument(args, 1, "indent") {
        Some(indent) if indent.kind() == ValueKind::Bool => 2,
        Some(indent) => indent.as_usize().unwrap_or(0),
        None => 0,
    };
    Ok(weight.indented_bytes(indent as u64))
}

/// Implements `length` and `count`.
fn length(state: &State<'_, '_>, value: &Value) -> Result<usize, Error> {
    assert_defined(state, value)?;
    if let Some(text) = value.as_str() {
        charge(state, 0, text.len() as u64)?;
    }
    filters::length(value)
}

/// Implements `items`: the pairs of a map.
fn items(state: &State<'_, '_>, value: &Value) -> Result<Value, Error> {
    assert_defined(state, value)?;
    charge_slots(state, count_items(state, value)?.saturating_mul(3))?;
    materialize(state, filters::items(value)?)
}

/// Implements `sum`, also by an attribute. Items without it are skipped.
#[expect(clippy::needless_pass_by_value, reason = "minijinja passes it by value")]
fn sum(
    state: &State<'_, '_>,
    values: &Value,
    attribute: Option<String>,
    start: Option<Value>,
    options: Kwargs,
) -> Result<Value, Error> {
    let attribute = match attribute {
        Some(attribute) => Some(attribute),
        None => options.get::<Option<String>>("attribute")?,
    };
    let start = match start {
        Some(start) => start,
        None => options.get::<Option<Value>>("start")?.unwrap_or_else(|| Value::from(0)),
    };
    options.assert_all_used()?;
    assert_defined(state, values)?;
    if values.is_undefined() {
        return Ok(start);
    }
    let mut sum = start;
    for item in values.try_iter()? {
        charge(state, 1, attribute.as_ref().map_or(0, |attribute| attribute.len() as u64))?;
        let item = match &attribute {
            Some(path) => {
                path.split('.').try_fold(item, |item, key| item.get_attr(key)).unwrap_or(Value::UNDEFINED)
            }
            None => item,
        };
        if item.is_undefined() {
            continue;
        }
        if sum.is_number() && !item.is_number() && item.kind() != ValueKind::Bool {
            let message = format!("can only sum numbers, got {}", item.kind());
            return Err(Error::new(ErrorKind::InvalidOperation, message));
        }
        sum = operators::add(state, &sum, &item)?;
    }
    Ok(sum)
}

/// Implements `divisibleby`; dividing by zero is an error.
fn is_divisible(state: &State<'_, '_>, value: &Value, other: &Value) -> Result<bool, Error> {
    let is_numeric = |value: &Value| matches!(value.kind(), ValueKind::Number | ValueKind::Bool);
    if is_numeric(value) && is_numeric(other) && !other.is_true() {
        // `other` is 0: this gives minijinja's error.
        return operators::apply_numeric(state, "%", value, other).map(|_| false);
    }
    Ok(tests::is_divisibleby(value, other))
}

/// Returns a value in printed form, for engine functions that expect a text.
pub(super) fn to_text_value(state: &State<'_, '_>, value: &Value) -> Result<Value, Error> {
    Ok(Value::from(budget::print_charged(state, value)?.into_owned()))
}
