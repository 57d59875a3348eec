//! `variable_update`: state operations in their current, earlier and later forms (F-110, F-140, F-141).

use serde_json::Value;

use super::block::{Block, Came, Context, notice};
use super::body::{Field, Fields, Json, fields, json};
use super::commands::{self, guessed};
use super::items::{self, Finding};
use super::patch;
use super::rules;
use super::tags::Form;
use crate::dialect::{Action, Output, Unheard, Update};
use crate::finding::{Doubt, Report};
use crate::lex::space::trim;
use crate::repair::json::{PathStep, ValueDoubt};
use crate::span::Place;
use crate::state::{Op, Operation, Reason, bounded};

/// Code of the notice about updates that could not be read or applied (F-212).
pub(super) const FAILED: &str = "state_update_partial_failure";

/// Doubt about the operations of a block in which a closing tag may be text.
pub(super) const TAG_WITHIN: &str = "a closing tag was left out of a value, or stands beside one";

/// Keys of lists that may hold operations.
const LISTS: [&str; 3] = ["ops", "operations", "patch"];

/// Keys of texts that give the reason.
const REASONS: [&str; 2] = ["analysis", "reason"];

/// Operations read from a block.
#[derive(Default)]
struct Read {
    analysis: Vec<String>,
    /// Operations; `None` if there is no list of them.
    operations: Option<Vec<Operation>>,
    complete: bool,
}

/// Reads a closed block.
pub(super) fn read(block: &Block, cx: &Context, out: &mut dyn Output) -> Came {
    let mut found = operations(block, cx, out);
    if let (Some(read), Some(other)) = (&mut found.operations, block.with_other_gaps()) {
        let other = operations(&other, cx, &mut Unheard).operations.unwrap_or_default();
        let same = other.len() == read.len();
        for (index, operation) in read.iter_mut().enumerate() {
            if !same || !operation.is_same(&other[index]) {
                *operation = operation.clone().refuse(Reason::ValueGuessed, TAG_WITHIN);
            }
        }
        if read
            .iter()
            .any(|operation| operation.refusal().is_some_and(|refusal| refusal.message == TAG_WITHIN))
        {
            out.report(guessed(TAG_WITHIN, block.at, block.end()));
        }
    }
    let analysis = found.analysis.join("\n");
    match found.operations {
        Some(operations) if found.complete => {
            out.act(Action::Update(Update { analysis, operations, atomic: cx.own.atomic }));
            Came::Done
        }
        Some(_) => {
            let report = block.report(rules::JSON_INCOMPLETE, "the operations are not complete");
            out.report(report.repaired("nothing of the block runs"));
            failed(block, out)
        }
        None => {
            let message = format!("`<{}>` has no list of operations", block.name);
            out.report(block.report(rules::OPERATIONS_MISSING, message).repaired("shown as text"));
            failed(block, out)
        }
    }
}

/// Reads the operations of a block in the form it is written in.
fn operations(block: &Block, cx: &Context, out: &mut dyn Output) -> Read {
    match block.known.form {
        Form::Commands => {
            block.form(rules::LEGACY_FORM, "`variable_update`", out);
            of_commands(block, cx, out)
        }
        Form::Patch => {
            block.form(rules::NEWER_FORM, "`variable_update`", out);
            of_json(block, cx, (&block.body, block.at), 0, out)
        }
        Form::OneUpdate => one(block, cx, out),
        Form::StateUpdate if is_one(block) => one(block, cx, out),
        Form::StateUpdate => {
            let newer = trim(&block.body).starts_with(['{', '｛']);
            let rule = if newer { rules::NEWER_FORM } else { rules::LEGACY_FORM };
            block.form(rule, "`variable_update`", out);
            with_analysis(block, cx, out)
        }
        _ => with_analysis(block, cx, out),
    }
}

/// Reports that nothing of the block runs.
pub(super) fn failed(block: &Block, out: &mut dyn Output) -> Came {
    notice(FAILED, None, out);
    block.raw(out)
}

/// Reads `<analysis>` and a list.
fn with_analysis(block: &Block, cx: &Context, out: &mut dyn Output) -> Read {
    let body = &block.body;
    if !trim(body).starts_with(['<', '＜']) {
        return of_json(block, cx, (body, block.at), 0, out);
    }
    let fields = fields(body, block.at, &["analysis"], &[], &cx.options.limits, out);
    let mut analysis: Vec<String> = texts(&fields, "analysis");
    let tagged = analysis.len();
    let mut read = Read::default();
    for (text, at) in &fields.rest {
        if read.operations.is_some() {
            analysis.push(trim(text).to_owned());
            continue;
        }
        read = of_json(block, cx, (text, *at), 0, out);
        match read.operations {
            Some(_) => analysis.append(&mut read.analysis),
            None => analysis.push(trim(text).to_owned()),
        }
    }
    if read.operations.is_none()
        && let Some(Field { text, at, closed: false, .. }) = fields.fields.last()
        && let Some(list) = list_at_end(text)
    {
        // The analysis is not closed before the list.
        read = of_json(block, cx, (&text[list..], at.after(&text[..list])), 0, out);
        if read.operations.is_some() {
            analysis.remove(tagged - 1);
            analysis.extend(Some(trim(&text[..list]).to_owned()).filter(|text| !text.is_empty()));
            analysis.append(&mut read.analysis);
        }
    }
    read.analysis = analysis;
    read
}

/// Returns the start of a list or object at the end of a text, on a line of its own after sentences.
fn list_at_end(text: &str) -> Option<usize> {
    let closes = trim(text).ends_with([']', '}', '］', '｝', '`']);
    let mut lines = text.split_inclusive('\n').scan(0, |at, line| {
        let begin = *at;
        *at += line.len();
        Some((begin, line))
    });
    let begins = lines.find(|(_, line)| trim(line).starts_with(['[', '{', '［', '｛', '`']));
    begins.map(|(at, _)| at).filter(|_| closes)
}

fn texts(fields: &Fields<'_>, name: &'static str) -> Vec<String> {
    let texts = fields.named(name).map(|field| trim(field.text).to_owned());
    texts.filter(|text| !text.is_empty()).collect()
}

/// Reads a list, or an object that holds one; text around it is the reason. The block has `before` earlier
/// operations.
fn of_json(
    block: &Block,
    cx: &Context,
    (text, at): (&str, Place),
    before: usize,
    out: &mut dyn Output,
) -> Read {
    let mut inner = Around { out, told: false };
    let Some(json) = json(text, at, &cx.options.limits, &mut inner) else { return Read::default() };
    let mut analysis = Vec::new();
    for part in [&text[..json.span.start], &text[json.span.end..]] {
        let part = trim(part).trim_start_matches('`').trim_end_matches('`');
        let part = trim(part.strip_suffix("```json").unwrap_or(part));
        if !part.is_empty() && part != "json" {
            analysis.push(part.to_owned());
        }
    }
    let patch = block.known.form == Form::Patch;
    let (path, guesses, reports) = (Vec::new(), Vec::new(), Vec::new());
    let mut list =
        Listed { block, json: &json, path, number: before, guesses, reports, patch, odd: None, newer: false };
    let operations = list.all(&json.value, &mut analysis);
    // If nothing runs, no single operation is refused.
    let guesses = list.guesses.drain(..).filter(|_| json.complete);
    let mut findings: Vec<Finding> =
        guesses.chain(list.reports.drain(..).filter(|_| operations.is_some())).collect();
    items::place(&mut findings, text, at, &json, &cx.options.limits);
    findings.into_iter().for_each(|one| out.report(one.report));
    if let Some(odd) = list.odd {
        let report = Report::new(rules::OPERATION_FORM, at, at.offset + text.len(), odd);
        out.report(report.repaired("read as lists, other fields not used"));
    }
    if list.newer && block.known.form == Form::Current {
        block.form(rules::NEWER_FORM, "a list of lists, other fields not used", out);
    }
    Read { analysis, operations, complete: json.complete }
}

/// Output that drops findings about text around JSON, because that text is kept, and passes on all else.
pub(super) struct Around<'a> {
    pub(super) out: &'a mut dyn Output,
    pub(super) told: bool,
}

impl Output for Around<'_> {
    fn intent(&mut self, intent: crate::dialect::Intent<'_>) {
        self.out.intent(intent);
    }

    fn queries(&mut self, written: crate::dialect::Written<'_>, place: Place, end: usize) -> Option<usize> {
        self.out.queries(written, place, end)
    }

    fn act(&mut self, action: Action) {
        self.out.act(action);
    }

    fn report(&mut self, report: Report) {
        if report.rule.code == crate::repair::rules::TEXT_AROUND.code {
            self.told = true;
        } else {
            self.out.report(report);
        }
    }

    fn fall_back(&mut self, reason: &'static str) {
        self.out.fall_back(reason);
    }

    fn fail(&mut self, code: &'static str, message: &str) {
        self.out.fail(code, message);
    }
}

/// Reader of the operations in a value.
struct Listed<'a> {
    block: &'a Block,
    json: &'a Json,
    /// Path from the root to the current value.
    path: Vec<PathStep>,
    /// Number of operations of the block so far.
    number: usize,
    /// Findings about guessed values, and other findings about operations.
    guesses: Vec<Finding>,
    reports: Vec<Finding>,
    patch: bool,
    /// Peculiarity of their form.
    odd: Option<String>,
    newer: bool,
}

impl Listed<'_> {
    fn all(&mut self, value: &Value, analysis: &mut Vec<String>) -> Option<Vec<Operation>> {
        match value {
            Value::Array(items) if is_operation(items) => {
                self.odd("an operation stands in no list");
                let operation = Operation::from_value(value);
                Some(vec![self.certain(operation, false)])
            }
            Value::Array(items) => {
                let mut operations = Vec::with_capacity(items.len());
                for (at, item) in items.iter().enumerate() {
                    self.path.push(PathStep::Index(at));
                    self.item(item, &mut operations);
                    self.path.pop();
                }
                let some = items.is_empty() || operations.iter().any(|one| !one.op().is_empty());
                some.then_some(operations)
            }
            Value::Object(fields) => {
                for key in REASONS {
                    let text =
                        fields.get(key).and_then(Value::as_str).map(trim).filter(|text| !text.is_empty());
                    analysis.extend(text.map(str::to_owned));
                }
                let list = LISTS.iter().find_map(|key| Some((*key, fields.get(*key)?)));
                if let Some((key, list)) = list.filter(|(_, list)| list.is_array()) {
                    self.newer = true;
                    self.path.push(PathStep::Key(key.to_owned()));
                    let operations = self.all(list, analysis);
                    self.path.pop();
                    return operations;
                }
                let mut operations = Vec::new();
                self.item(value, &mut operations);
                operations.iter().any(|one| !one.op().is_empty()).then_some(operations)
            }
            _ => None,
        }
    }

    fn item(&mut self, item: &Value, operations: &mut Vec<Operation>) {
        match item {
            Value::Array(items) if !items.is_empty() && items.iter().all(Value::is_array) => {
                self.odd("operations stand in a list of lists");
                for (at, item) in items.iter().enumerate() {
                    self.path.push(PathStep::Index(at));
                    let operation = self.certain(Operation::from_value(item), false);
                    operations.push(operation);
                    self.path.pop();
                }
            }
            Value::Object(fields) => {
                let text = |key: &str| fields.get(key).and_then(Value::as_str);
                let (Some(op), Some(path)) = (text("op"), text("path")) else {
                    let operation = self.certain(Operation::from_value(item), true);
                    return operations.push(operation);
                };
                if self.patch || path.starts_with('/') || patch::is_patch(op) {
                    self.newer = true;
                    let operation = self.certain(patch::operation(op, path, fields), true);
                    return operations.push(operation);
                }
                self.odd("an operation is an object");
                let mut written = vec![Value::from(op), Value::from(path)];
                written.extend(fields.get("value").cloned());
                let operation = self.certain(Operation::from_value(&Value::Array(written)), true);
                operations.push(operation);
            }
            _ => {
                let operation = self.certain(Operation::from_value(item), false);
                operations.push(operation);
            }
        }
    }

    /// Returns the operation of the current value, and reports its faults. With `object`, its parts are under
    /// keys.
    fn certain(&mut self, operation: Operation, object: bool) -> Operation {
        self.number += 1;
        let operation = self.checked(operation, object);
        // Faults that depend on the state are reported with its results.
        let report = operation.report(self.block.at, self.block.end());
        if let Some(report) = report.filter(|_| operation.command().is_none()) {
            let report = items::about(self.number, &operation, report);
            self.reports.push(Finding { path: self.path.clone(), report });
        }
        operation
    }

    /// Returns the operation, refused if there is a doubt about it.
    fn checked(&mut self, operation: Operation, object: bool) -> Operation {
        let refuses = |one: &&ValueDoubt| match one.doubt {
            Doubt::Guess => true,
            // A decimal with many digits is within the range; a whole number is not.
            Doubt::Range => self.number_is_beyond(one),
            // The operation's own keys are duplicated.
            Doubt::DuplicateKey => object && one.path.len() <= self.path.len() + 1,
        };
        let json = self.json;
        let doubts = &json.doubts;
        let own = doubts.iter().filter(|one| one.path.starts_with(&self.path)).find(refuses);
        let Some(doubt) = own.or_else(|| doubts.within(&self.path).filter(refuses)) else { return operation };
        // A type mismatch of a guessed value is caused by the guess.
        if operation.refusal().is_some_and(|refusal| refusal.reason != Reason::OperationTypeMismatch) {
            return operation;
        }
        if doubt.doubt == Doubt::Range {
            return operation.refuse(Reason::NumberOutOfRange, doubt.message.clone());
        }
        let message = format!("the value of an operation was guessed: {}", doubt.message);
        // The whole value is lost with it.
        let report = guessed(&message, self.block.at, self.block.end());
        let report = items::about(self.number, &operation, report);
        self.guesses.push(Finding { path: self.path.clone(), report });
        operation.refuse(Reason::ValueGuessed, doubt.message.clone())
    }

    fn number_is_beyond(&self, doubt: &ValueDoubt) -> bool {
        let (place, end) = self.json.place(doubt);
        let body = self.block.at.offset;
        let number = self.block.body.get(place.offset.saturating_sub(body)..end.saturating_sub(body));
        number.and_then(|number| number.parse().ok()).is_none_or(|number: f64| number.abs() > 9e15)
    }

    fn odd(&mut self, what: &str) {
        self.odd.get_or_insert_with(|| format!("{what} in `<{}>`", self.block.name));
    }
}

/// Returns whether a list is one operation.
fn is_operation(items: &[Value]) -> bool {
    matches!(items, [Value::String(op), Value::String(_), ..] if Op::named(op).is_some())
}

/// Reads commands, or JSON in their place.
fn of_commands(block: &Block, cx: &Context, out: &mut dyn Output) -> Read {
    let fields =
        fields(&block.body, block.at, &["analysis", "jsonpatch", "json_patch"], &[], &cx.options.limits, out);
    let mut read = Read { complete: true, ..Read::default() };
    read.analysis = texts(&fields, "analysis");
    let mut operations = Vec::new();
    let mut any = false;
    for field in fields.fields.iter().filter(|field| field.name != "analysis") {
        let mut found = of_json(block, cx, (field.text, field.at), operations.len(), out);
        any |= found.operations.is_some();
        read.complete &= found.complete || found.operations.is_none();
        operations.extend(found.operations.take().unwrap_or_default());
        read.analysis.append(&mut found.analysis);
    }
    for (text, at) in &fields.rest {
        if trim(text).starts_with(['[', '{', '`']) {
            let mut found = of_json(block, cx, (text, *at), operations.len(), out);
            if let Some(more) = found.operations.take() {
                any = true;
                read.complete &= found.complete;
                operations.extend(more);
                read.analysis.append(&mut found.analysis);
                continue;
            }
        }
        let found = commands::read((text, *at), operations.len(), &cx.options.limits, out);
        any |= !found.operations.is_empty();
        read.complete &= !found.cut;
        operations.extend(found.operations);
        read.analysis.extend(found.reasons);
    }
    read.operations = any.then_some(operations);
    read
}

/// Returns whether an element holds one path and value.
fn is_one(block: &Block) -> bool {
    block.attribute("path").is_some() || {
        let body = trim(&block.body);
        body.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("<path"))
    }
}

/// Reads one path and value (version 1.0).
fn one(block: &Block, cx: &Context, out: &mut dyn Output) -> Read {
    block.form(rules::LEGACY_FORM, "`variable_update`", out);
    let fields =
        fields(&block.body, block.at, &["path", "value", "op", "analysis"], &[], &cx.options.limits, out);
    let child = |name: &'static str| fields.named(name).next().map(|field| trim(field.text).to_owned());
    let Some(path) = block.attribute("path").map(str::to_owned).or_else(|| child("path")) else {
        return Read::default();
    };
    let op = block.attribute("op").map(str::to_owned).or_else(|| child("op"));
    let op = op.unwrap_or_else(|| Op::Set.name().to_owned());
    let written = child("value").or_else(|| block.attribute("value").map(str::to_owned));
    let rest = Some(fields.rest()).filter(|text| !text.is_empty());
    let mut analysis = texts(&fields, "analysis");
    let text = match (written, rest) {
        (None, rest) => rest,
        (written, rest) => {
            analysis.extend(rest);
            written
        }
    };
    let mut list = vec![Value::from(op), Value::from(path)];
    list.extend(text.map(|text| serde_json::from_str(&bounded(&text)).unwrap_or(Value::String(text))));
    let operation = Operation::from_value(&Value::Array(list));
    if let Some(report) = operation.report(block.at, block.end()) {
        out.report(items::about(1, &operation, report));
    }
    let operations = Some(vec![operation]);
    Read { analysis, operations, complete: true }
}
