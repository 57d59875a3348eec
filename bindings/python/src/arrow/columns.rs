//! Columns of results.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Int64Array, ListArray, StringArray, StructArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field, Fields};
use tambour::Severity;
use tambour_bindings::batch::{CheckedRow, DecodedRow, FaultCount, Row};

/// Columns of `check`, in order.
pub(super) const CHECK_COLUMNS: &[&str] = &["contract", "passed", "first_error", "faults", "findings"];

/// Columns of `decode`, in order.
pub(super) const DECODE_COLUMNS: &[&str] = &[
    "dialect",
    "answer",
    "reasoning",
    "queries",
    "plan",
    "plan_executable",
    "calls",
    "faults",
    REPAIRED,
    "truncated",
    "fallback_reason",
    "error",
];

/// Column of `decode` that costs a second reading of the reply.
pub(super) const REPAIRED: &str = "repaired";

/// Rows of one kind; `None` is a null row.
pub(super) type Rows = [Option<Row>];

/// Builds the column called `name`.
///
/// # Errors
/// The column has more bytes or items than an Arrow array with offsets of 32 bits holds.
pub(super) fn build_column(name: &str, rows: &Rows) -> Result<ArrayRef, ArrowError> {
    match name {
        "contract" => text_of(rows, |row| checked(row).map(|row| row.contract.as_str())),
        "passed" => Ok(flags(rows, |row| checked(row).map(|row| row.passed))),
        "first_error" => text_of(rows, |row| checked(row).and_then(|row| row.first_error.as_deref())),
        "findings" => build_findings(rows),
        "faults" => build_faults(rows),
        "dialect" => text_of(rows, |row| decoded(row).map(|row| row.dialect.as_str())),
        "answer" => text_of(rows, |row| decoded(row).map(|row| row.answer.as_str())),
        "reasoning" => text_of(rows, |row| decoded(row).and_then(|row| row.reasoning.as_deref())),
        "queries" => build_queries(rows),
        "plan" => {
            let plans = json_texts(
                rows.iter()
                    .flatten()
                    .filter_map(decoded)
                    .filter_map(|row| row.plan.as_ref().map(|plan| &plan.plan)),
            );
            let mut plans = plans.iter();
            let present = rows.iter().map(|row| {
                let row = row.as_ref().and_then(decoded)?;
                row.plan.as_ref().and_then(|_| plans.next())
            });
            let texts: Vec<Option<&String>> = present.collect();
            text(texts.iter().map(|text| text.map(String::as_str)))
        }
        "plan_executable" => {
            Ok(flags(rows, |row| decoded(row).and_then(|row| Some(row.plan.as_ref()?.executable))))
        }
        "calls" => build_calls(rows),
        REPAIRED => text_of(rows, |row| decoded(row).and_then(|row| row.repaired.as_deref())),
        "truncated" => Ok(flags(rows, |row| decoded(row).map(|row| row.truncated))),
        "fallback_reason" => text_of(rows, |row| decoded(row).and_then(|row| row.fallback_reason.as_deref())),
        "error" => text_of(rows, |row| decoded(row).and_then(|row| row.error.as_deref())),
        _ => Err(ArrowError::SchemaError(format!("there is no column `{name}`"))),
    }
}

fn checked(row: &Row) -> Option<&CheckedRow> {
    match row {
        Row::Checked(row) => Some(row),
        Row::Decoded(_) => None,
    }
}

fn decoded(row: &Row) -> Option<&DecodedRow> {
    match row {
        Row::Decoded(row) => Some(row),
        Row::Checked(_) => None,
    }
}

fn faults(row: &Row) -> &[FaultCount] {
    match row {
        Row::Checked(row) => &row.faults,
        Row::Decoded(row) => &row.faults,
    }
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "info",
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

fn build_faults(rows: &Rows) -> Result<ArrayRef, ArrowError> {
    let all = || rows.iter().flatten().flat_map(faults);
    let lengths = rows.iter().map(|row| row.as_ref().map(|row| faults(row).len()));
    list(
        lengths,
        vec![
            ("rule", text(all().map(|fault| Some(fault.rule.as_str())))?),
            ("code", text(all().map(|fault| Some(fault.code.as_str())))?),
            ("severity", text(all().map(|fault| Some(severity(fault.severity))))?),
            ("count", numbers(all().map(|fault| fault.count))),
        ],
    )
}

fn build_findings(rows: &Rows) -> Result<ArrayRef, ArrowError> {
    let findings = |row| checked(row).map(|row| row.findings.as_slice());
    let all = || rows.iter().flatten().filter_map(findings).flatten();
    list(
        rows.iter().map(|row| row.as_ref().and_then(findings).map(<[_]>::len)),
        vec![
            ("rule", text(all().map(|finding| Some(finding.rule.as_ref())))?),
            ("code", text(all().map(|finding| Some(finding.code.as_ref())))?),
            ("severity", text(all().map(|finding| Some(severity(finding.severity))))?),
            ("start", numbers(all().map(|finding| finding.span.start))),
            ("end", numbers(all().map(|finding| finding.span.end))),
            ("line", numbers(all().map(|finding| finding.line as usize))),
            ("column", numbers(all().map(|finding| finding.column as usize))),
            ("message", text(all().map(|finding| Some(finding.message.as_str())))?),
            ("repair", text(all().map(|finding| finding.repair.as_deref()))?),
        ],
    )
}

fn build_calls(rows: &Rows) -> Result<ArrayRef, ArrowError> {
    let calls = |row| decoded(row).map(|row| row.calls.as_slice());
    let all = || rows.iter().flatten().filter_map(calls).flatten();
    let arguments = json_texts(all().map(|call| &call.args));
    list(
        rows.iter().map(|row| row.as_ref().and_then(calls).map(<[_]>::len)),
        vec![
            ("call_id", text(all().map(|call| Some(call.call_id.as_str())))?),
            ("name", text(all().map(|call| Some(call.name.as_str())))?),
            ("args", text(arguments.iter().map(|text| Some(text.as_str())))?),
        ],
    )
}

fn build_queries(rows: &Rows) -> Result<ArrayRef, ArrowError> {
    let queries = |row| decoded(row).map(|row| row.queries.as_slice());
    let all = rows.iter().flatten().filter_map(queries).flatten();
    let items = text(all.map(|query| Some(query.as_str())))?;
    list_of(rows.iter().map(|row| row.as_ref().and_then(queries).map(<[_]>::len)), items)
}

fn json_texts<'a>(values: impl Iterator<Item = &'a serde_json::Value>) -> Vec<String> {
    values.map(serde_json::Value::to_string).collect()
}

/// Column of texts.
fn text_of(rows: &Rows, get: impl Fn(&Row) -> Option<&str> + Copy) -> Result<ArrayRef, ArrowError> {
    text(rows.iter().map(move |row| row.as_ref().and_then(get)))
}

fn text<'a>(texts: impl Iterator<Item = Option<&'a str>> + Clone) -> Result<ArrayRef, ArrowError> {
    let bytes: usize = texts.clone().flatten().map(str::len).sum();
    if i32::try_from(bytes).is_err() {
        return Err(too_large());
    }
    Ok(Arc::new(texts.collect::<StringArray>()))
}

fn flags(rows: &Rows, get: impl Fn(&Row) -> Option<bool>) -> ArrayRef {
    Arc::new(rows.iter().map(|row| row.as_ref().and_then(&get)).collect::<BooleanArray>())
}

fn numbers(numbers: impl Iterator<Item = usize>) -> ArrayRef {
    // Counts and offsets of a text in memory are far below the largest number.
    Arc::new(numbers.map(|number| i64::try_from(number).ok()).collect::<Int64Array>())
}

/// Column of lists of structs; `lengths` are those of the lists, `None` for a null.
fn list(
    lengths: impl Iterator<Item = Option<usize>> + Clone,
    columns: Vec<(&str, ArrayRef)>,
) -> Result<ArrayRef, ArrowError> {
    let fields: Fields = columns
        .iter()
        .map(|(name, column)| Field::new(*name, column.data_type().clone(), true))
        .collect::<Vec<Field>>()
        .into();
    let items = StructArray::try_new(fields, columns.into_iter().map(|(_, column)| column).collect(), None)?;
    list_of(lengths, Arc::new(items))
}

fn list_of(
    lengths: impl Iterator<Item = Option<usize>> + Clone,
    items: ArrayRef,
) -> Result<ArrayRef, ArrowError> {
    let total: usize = lengths.clone().flatten().sum();
    if i32::try_from(total).is_err() {
        return Err(too_large());
    }
    let nulls: NullBuffer = lengths.clone().map(|length| length.is_some()).collect::<Vec<bool>>().into();
    let offsets = OffsetBuffer::from_lengths(lengths.map(Option::unwrap_or_default));
    let item: DataType = items.data_type().clone();
    let field = Arc::new(Field::new("item", item, true));
    Ok(Arc::new(ListArray::try_new(field, offsets, items, Some(nulls))?))
}

fn too_large() -> ArrowError {
    ArrowError::ComputeError("a column of the result is larger than 2 GiB; pass smaller batches".to_owned())
}
