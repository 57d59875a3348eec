//! Reader of `variable_update`: state operations in their current, earlier and later forms (F-110, F-140,
//! F-141).

use serde_json::{Map, Value};

use super::block::{BlockContext, BlockOutcome, FilamentBlock, emit_notice};
use super::body::{BlockElement, BlockElements, BlockJson, read_elements, read_json};
use super::commands::{self, guessed_report};
use super::operation_findings::{self, OperationFinding};
use super::rules;
use super::tags::ElementForm;
use crate::dialect::{IntentSink, NullSink, ReplyAction, UpdateIntent};
use crate::finding::{Doubt, FindingReport};
use crate::lex::space::trim;
use crate::repair::json::{PathStep, ValueDoubt};
use crate::span::{Extent, Place};
use crate::state::{Op, Operation, RefusalReason, StateCommand, StatePath, StateStep, bound_numbers};

/// Code of the notice about updates that could not be read or applied (F-212).
pub(super) const FAILED_CODE: &str = "state_update_partial_failure";

/// Doubt about a value from which a closing tag was removed, which may have been text of the value (R-81).
pub(super) const TAG_IN_VALUE_DOUBT: &str = "a closing tag was left out of a value, or is next to one";

/// Keys under which a JSON object may have a list of operations.
const LIST_KEYS: [&str; 3] = ["ops", "operations", "patch"];

/// Keys under which a JSON object may have a reason for its operations.
const REASON_KEYS: [&str; 2] = ["analysis", "reason"];

/// Operations read from a block.
#[derive(Default)]
struct ParsedUpdate {
    /// Texts that give the reason for the operations.
    analysis: Vec<String>,
    /// Operations; `None` if there is no list of them.
    operations: Option<Vec<Operation>>,
    /// Set if the operations were complete as written (F-214).
    is_complete: bool,
}

/// Reads the operations of a block and emits them; if the block cannot be read, no part of it runs.
pub(super) fn read_update(
    block: &FilamentBlock,
    cx: &BlockContext,
    out: &mut dyn IntentSink,
) -> BlockOutcome {
    let mut update = read_operations(block, cx, out);
    // An operation that reads differently with letters in place of removed tags is refused.
    if let (Some(operations), Some(other_block)) = (&mut update.operations, block.with_gap_text()) {
        let other_operations =
            read_operations(&other_block, cx, &mut NullSink).operations.unwrap_or_default();
        let has_same_len = other_operations.len() == operations.len();
        for (index, operation) in operations.iter_mut().enumerate() {
            if !has_same_len || *operation != other_operations[index] {
                *operation = operation.clone().refuse(RefusalReason::ValueGuessed, TAG_IN_VALUE_DOUBT);
            }
        }
        if operations
            .iter()
            .any(|operation| operation.refusal().is_some_and(|refusal| refusal.message == TAG_IN_VALUE_DOUBT))
        {
            out.report(guessed_report(TAG_IN_VALUE_DOUBT, block.body_start, block.end()));
        }
    }
    let analysis = update.analysis.join("\n");
    match update.operations {
        Some(operations) if update.is_complete => {
            out.emit_action(ReplyAction::Update(UpdateIntent {
                analysis,
                operations,
                is_atomic: cx.dialect_options.is_atomic,
            }));
            BlockOutcome::Read
        }
        Some(_) => {
            let report = block.report(rules::JSON_INCOMPLETE, "the operations are not complete");
            out.report(report.with_repair("no part of the block runs"));
            fail_block(block, out)
        }
        None => {
            let message = format!("`<{}>` has no list of operations", block.name);
            out.report(block.report(rules::OPERATIONS_MISSING, message).with_repair("shown as text"));
            fail_block(block, out)
        }
    }
}

/// Reads the operations of a block in the form it is written in.
fn read_operations(block: &FilamentBlock, cx: &BlockContext, out: &mut dyn IntentSink) -> ParsedUpdate {
    let earlier_count = 0;
    match block.element.form {
        ElementForm::Commands => {
            block.report_form(rules::LEGACY_FORM, "`variable_update`", out);
            update_from_commands(block, cx, out)
        }
        ElementForm::Patch => {
            block.report_form(rules::NEWER_FORM, "`variable_update`", out);
            update_from_json(block, cx, (&block.body, block.body_start), earlier_count, out)
        }
        ElementForm::SingleUpdate => read_single_update(block, cx, out),
        ElementForm::StateUpdate if is_single_update(block) => read_single_update(block, cx, out),
        ElementForm::StateUpdate => {
            let is_newer_form = trim(&block.body).starts_with(['{', '｛']);
            let rule = if is_newer_form { rules::NEWER_FORM } else { rules::LEGACY_FORM };
            block.report_form(rule, "`variable_update`", out);
            read_with_analysis(block, cx, out)
        }
        _ => read_with_analysis(block, cx, out),
    }
}

/// Tells the user that no part of the block runs; its body becomes text of the content.
pub(super) fn fail_block(block: &FilamentBlock, out: &mut dyn IntentSink) -> BlockOutcome {
    emit_notice(FAILED_CODE, None, out);
    block.raw_outcome(out)
}

/// Reads `<analysis>` elements and a list of operations.
fn read_with_analysis(block: &FilamentBlock, cx: &BlockContext, out: &mut dyn IntentSink) -> ParsedUpdate {
    let (body, earlier_count) = (&block.body, 0);
    if !trim(body).starts_with(['<', '＜']) {
        return update_from_json(block, cx, (body, block.body_start), earlier_count, out);
    }
    let fields = read_elements(body, block.body_start, &["analysis"], &[], &cx.options.limits, out);
    let mut analysis: Vec<String> = element_texts(&fields, "analysis");
    let tagged_count = analysis.len();
    let mut update = ParsedUpdate::default();
    for (text, at) in &fields.surrounding_text {
        if update.operations.is_some() {
            analysis.push(trim(text).to_owned());
            continue;
        }
        update = update_from_json(block, cx, (text, *at), earlier_count, out);
        match update.operations {
            Some(_) => analysis.append(&mut update.analysis),
            None => analysis.push(trim(text).to_owned()),
        }
    }
    if update.operations.is_none()
        && let Some(BlockElement { text, start, is_closed: false, .. }) = fields.elements.last()
        && let Some(list_start) = find_final_list(text)
    {
        // The analysis is not closed before the list.
        let (reason, list) = text.split_at(list_start);
        update = update_from_json(block, cx, (list, start.end_of(reason)), earlier_count, out);
        if update.operations.is_some() {
            analysis.remove(tagged_count - 1);
            analysis.extend(Some(trim(reason).to_owned()).filter(|text| !text.is_empty()));
            analysis.append(&mut update.analysis);
        }
    }
    update.analysis = analysis;
    update
}

/// Returns the start of the first line that begins a list, an object or a fence, if the text ends with a
/// closing bracket or fence.
fn find_final_list(text: &str) -> Option<usize> {
    let is_list_end = trim(text).ends_with([']', '}', '］', '｝', '`']);
    let mut lines = text.split_inclusive('\n').scan(0, |next_start, line| {
        let start = *next_start;
        *next_start += line.len();
        Some((start, line))
    });
    let list_line = lines.find(|(_, line)| trim(line).starts_with(['[', '{', '［', '｛', '`']));
    list_line.map(|(start, _)| start).filter(|_| is_list_end)
}

/// Returns the trimmed texts of the elements called `name`; blank ones are dropped.
fn element_texts(fields: &BlockElements<'_>, name: &'static str) -> Vec<String> {
    let texts = fields.elements_named(name).map(|field| trim(field.text).to_owned());
    texts.filter(|text| !text.is_empty()).collect()
}

/// Reads a list of operations, or an object that holds one; text around it is the reason. The block has
/// `earlier_count` operations before them.
fn update_from_json(
    block: &FilamentBlock,
    cx: &BlockContext,
    (text, at): (&str, Place),
    earlier_count: usize,
    out: &mut dyn IntentSink,
) -> ParsedUpdate {
    let mut filter = SurroundingTextFilter { out };
    let Some(json) = read_json(text, at, &cx.options.limits, &mut filter) else {
        return ParsedUpdate::default();
    };
    let mut analysis = Vec::new();
    for surrounding_text in [&text[..json.span.start], &text[json.span.end..]] {
        // A fence around the JSON is not a reason.
        let reason = trim(surrounding_text).trim_start_matches('`').trim_end_matches('`');
        let reason = trim(reason.strip_suffix("```json").unwrap_or(reason));
        if !reason.is_empty() && reason != "json" {
            analysis.push(reason.to_owned());
        }
    }
    let is_patch = block.element.form == ElementForm::Patch;
    let (path, guesses, reports) = (Vec::new(), Vec::new(), Vec::new());
    let mut reader = OperationReader {
        block,
        json: &json,
        path,
        count: earlier_count,
        guesses,
        reports,
        is_patch,
        form_fault: None,
        is_newer: false,
    };
    let operations = reader.read_value(&json.value, &mut analysis);
    // An incomplete block does not run at all, so its guesses are not reported one by one.
    let guesses = reader.guesses.drain(..).filter(|_| json.is_complete);
    let mut findings: Vec<OperationFinding> =
        guesses.chain(reader.reports.drain(..).filter(|_| operations.is_some())).collect();
    operation_findings::place_findings(&mut findings, text, at, &json, &cx.options.limits);
    findings.into_iter().for_each(|finding| out.report(finding.report));
    if let Some(form_fault) = reader.form_fault {
        let report = FindingReport::new(rules::OPERATION_FORM, at, at.offset + text.len(), form_fault);
        out.report(report.with_repair("read as lists, other fields not used"));
    }
    if reader.is_newer && block.element.form == ElementForm::Current {
        block.report_form(rules::NEWER_FORM, "a list of lists, other fields not used", out);
    }
    ParsedUpdate { analysis, operations, is_complete: json.is_complete }
}

/// Sink that drops findings about text around JSON, because that text is kept, and passes on all else.
pub(super) struct SurroundingTextFilter<'a> {
    pub(super) out: &'a mut dyn IntentSink,
}

impl IntentSink for SurroundingTextFilter<'_> {
    fn emit_intent(&mut self, intent: crate::dialect::Intent<'_>) {
        self.out.emit_intent(intent);
    }

    fn emit_queries(
        &mut self,
        raw_queries: crate::dialect::RawQueries<'_>,
        place: Place,
        end: usize,
    ) -> Option<usize> {
        self.out.emit_queries(raw_queries, place, end)
    }

    fn emit_action(&mut self, action: ReplyAction) {
        self.out.emit_action(action);
    }

    fn report(&mut self, report: FindingReport) {
        if report.rule.code != crate::repair::rules::TEXT_AROUND.code {
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
struct OperationReader<'a> {
    block: &'a FilamentBlock,
    json: &'a BlockJson,
    /// Path from the root to the current value.
    path: Vec<PathStep>,
    /// Number of operations of the block so far.
    count: usize,
    /// Findings about guessed values.
    guesses: Vec<OperationFinding>,
    /// Other findings about operations.
    reports: Vec<OperationFinding>,
    /// Set if the block must be a JSON Patch.
    is_patch: bool,
    /// The first deviation from the current form, as a message.
    form_fault: Option<String>,
    /// Set if operations were read in the later form (F-141).
    is_newer: bool,
}

impl OperationReader<'_> {
    /// Reads the operations of a list or object. Reasons in an object are appended to `analysis`. `None` if
    /// the value has no operation and is not an empty list.
    fn read_value(&mut self, value: &Value, analysis: &mut Vec<String>) -> Option<Vec<Operation>> {
        match value {
            Value::Array(items) if is_operation(items) => {
                self.note_form("an operation is not inside a list");
                let (operation, is_keyed) = (Operation::from_value(value), false);
                Some(vec![self.finish_operation(operation, is_keyed)])
            }
            Value::Array(items) => {
                let mut operations = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    self.path.push(PathStep::Index(index));
                    self.read_item(item, &mut operations);
                    self.path.pop();
                }
                let has_operation =
                    items.is_empty() || operations.iter().any(|operation| !operation.op().is_empty());
                has_operation.then_some(operations)
            }
            Value::Object(fields) => {
                for key in REASON_KEYS {
                    let text =
                        fields.get(key).and_then(Value::as_str).map(trim).filter(|text| !text.is_empty());
                    analysis.extend(text.map(str::to_owned));
                }
                let list = LIST_KEYS.iter().find_map(|key| Some((*key, fields.get(*key)?)));
                if let Some((key, list)) = list.filter(|(_, list)| list.is_array()) {
                    self.is_newer = true;
                    self.path.push(PathStep::Key(key.to_owned()));
                    let operations = self.read_value(list, analysis);
                    self.path.pop();
                    return operations;
                }
                let mut operations = Vec::new();
                self.read_item(value, &mut operations);
                operations.iter().any(|operation| !operation.op().is_empty()).then_some(operations)
            }
            _ => None,
        }
    }

    /// Reads an item of a list, and appends its operation, or the operations of a nested list.
    fn read_item(&mut self, item: &Value, operations: &mut Vec<Operation>) {
        let is_keyed = item.is_object();
        match item {
            Value::Array(items) if !items.is_empty() && items.iter().all(Value::is_array) => {
                self.note_form("operations are in a nested list");
                for (index, item) in items.iter().enumerate() {
                    self.path.push(PathStep::Index(index));
                    let operation = self.finish_operation(Operation::from_value(item), is_keyed);
                    operations.push(operation);
                    self.path.pop();
                }
            }
            Value::Object(fields) => {
                let text_of = |key: &str| fields.get(key).and_then(Value::as_str);
                let (Some(op), Some(path)) = (text_of("op"), text_of("path")) else {
                    let operation = self.finish_operation(Operation::from_value(item), is_keyed);
                    return operations.push(operation);
                };
                if self.is_patch || path.starts_with('/') || is_patch_operation(op) {
                    self.is_newer = true;
                    let operation = self.finish_operation(patch_operation(op, path, fields), is_keyed);
                    return operations.push(operation);
                }
                self.note_form("an operation is written as an object");
                let mut list = vec![Value::from(op), Value::from(path)];
                list.extend(fields.get("value").cloned());
                let operation = self.finish_operation(Operation::from_value(&Value::Array(list)), is_keyed);
                operations.push(operation);
            }
            _ => {
                let operation = self.finish_operation(Operation::from_value(item), is_keyed);
                operations.push(operation);
            }
        }
    }

    /// Counts the operation of the current value and reports its faults; returns it, refused if there is a
    /// doubt about it. `is_keyed` is set if it was written as an object.
    fn finish_operation(&mut self, operation: Operation, is_keyed: bool) -> Operation {
        self.count += 1;
        let operation = self.refuse_doubtful(operation, is_keyed);
        // Faults of a command depend on the state, so they are reported when it is applied.
        let report = operation.report(self.block.body_start, self.block.end());
        if let Some(report) = report.filter(|_| operation.command().is_none()) {
            let report = operation_findings::name_operation(self.count, &operation, report);
            self.reports.push(OperationFinding { path: self.path.clone(), report });
        }
        operation
    }

    /// Returns the operation, refused if there is a doubt about it.
    fn refuse_doubtful(&mut self, operation: Operation, is_keyed: bool) -> Operation {
        let is_refused = |doubt: &&ValueDoubt| match doubt.doubt {
            Doubt::Guess => true,
            // A decimal that lost digits is still in range, a large whole number is not.
            Doubt::InexactNumber => self.is_number_out_of_range(doubt),
            // Only duplicates among the keys of the operation itself.
            Doubt::DuplicateKey => is_keyed && doubt.path.len() <= self.path.len() + 1,
        };
        let json = self.json;
        let doubts = &json.doubts;
        // A doubt within the operation takes precedence over one about the whole JSON.
        let own_doubt = doubts.iter().filter(|doubt| doubt.path.starts_with(&self.path)).find(is_refused);
        let Some(doubt) = own_doubt.or_else(|| doubts.find_within(&self.path).filter(is_refused)) else {
            return operation;
        };
        // An earlier refusal stays, except a type mismatch, which the guessed value may have caused.
        if operation.refusal().is_some_and(|refusal| refusal.reason != RefusalReason::OperationTypeMismatch) {
            return operation;
        }
        if doubt.doubt == Doubt::InexactNumber {
            return operation.refuse(RefusalReason::NumberOutOfRange, doubt.message.clone());
        }
        let message = format!("the value of an operation was guessed: {}", doubt.message);
        let report = guessed_report(&message, self.block.body_start, self.block.end());
        let report = operation_findings::name_operation(self.count, &operation, report);
        self.guesses.push(OperationFinding { path: self.path.clone(), report });
        operation.refuse(RefusalReason::ValueGuessed, doubt.message.clone())
    }

    /// Returns whether the number of a doubt is beyond the whole numbers that are kept exactly, or cannot be
    /// read.
    fn is_number_out_of_range(&self, doubt: &ValueDoubt) -> bool {
        let Extent { place, end } = self.json.extent_of(doubt);
        let body_offset = self.block.body_start.offset;
        let number =
            self.block.body.get(place.offset.saturating_sub(body_offset)..end.saturating_sub(body_offset));
        // Just below 2^53, beyond which an `f64` cannot hold every whole number.
        number.and_then(|number| number.parse().ok()).is_none_or(|number: f64| number.abs() > 9e15)
    }

    /// Records the first deviation from the current form.
    fn note_form(&mut self, fault: &str) {
        self.form_fault.get_or_insert_with(|| format!("{fault} in `<{}>`", self.block.name));
    }
}

/// Returns whether a list is one operation.
fn is_operation(items: &[Value]) -> bool {
    matches!(items, [Value::String(op), Value::String(_), ..] if Op::from_name(op).is_some())
}

/// Reads commands (F-140), or JSON in their place.
fn update_from_commands(block: &FilamentBlock, cx: &BlockContext, out: &mut dyn IntentSink) -> ParsedUpdate {
    let fields = read_elements(
        &block.body,
        block.body_start,
        &["analysis", "jsonpatch", "json_patch"],
        &[],
        &cx.options.limits,
        out,
    );
    let mut update = ParsedUpdate { is_complete: true, ..ParsedUpdate::default() };
    update.analysis = element_texts(&fields, "analysis");
    let mut operations = Vec::new();
    let mut is_recognized = false;
    for field in fields.elements.iter().filter(|field| field.name != "analysis") {
        let mut patch = update_from_json(block, cx, (field.text, field.start), operations.len(), out);
        is_recognized |= patch.operations.is_some();
        update.is_complete &= patch.is_complete || patch.operations.is_none();
        operations.extend(patch.operations.take().unwrap_or_default());
        update.analysis.append(&mut patch.analysis);
    }
    for (text, at) in &fields.surrounding_text {
        if trim(text).starts_with(['[', '{', '`']) {
            let mut patch = update_from_json(block, cx, (text, *at), operations.len(), out);
            if let Some(patch_operations) = patch.operations.take() {
                is_recognized = true;
                update.is_complete &= patch.is_complete;
                operations.extend(patch_operations);
                update.analysis.append(&mut patch.analysis);
                continue;
            }
        }
        let commands = commands::read_commands((text, *at), operations.len(), &cx.options.limits, out);
        is_recognized |= !commands.operations.is_empty();
        update.is_complete &= !commands.is_truncated;
        operations.extend(commands.operations);
        update.analysis.extend(commands.reasons);
    }
    update.operations = is_recognized.then_some(operations);
    update
}

/// Returns whether a `<state_update>` holds one path and value, as in version 1.0.
fn is_single_update(block: &FilamentBlock) -> bool {
    block.attribute("path").is_some() || {
        let body = trim(&block.body);
        body.get(.."<path".len()).is_some_and(|start| start.eq_ignore_ascii_case("<path"))
    }
}

/// Reads one path and value, the form of version 1.0. Each is in an attribute or in an element.
fn read_single_update(block: &FilamentBlock, cx: &BlockContext, out: &mut dyn IntentSink) -> ParsedUpdate {
    block.report_form(rules::LEGACY_FORM, "`variable_update`", out);
    let fields = read_elements(
        &block.body,
        block.body_start,
        &["path", "value", "op", "analysis"],
        &[],
        &cx.options.limits,
        out,
    );
    let text_of =
        |name: &'static str| fields.elements_named(name).next().map(|field| trim(field.text).to_owned());
    let Some(path) = block.attribute("path").map(str::to_owned).or_else(|| text_of("path")) else {
        return ParsedUpdate::default();
    };
    let op = block.attribute("op").map(str::to_owned).or_else(|| text_of("op"));
    let op = op.unwrap_or_else(|| Op::Set.name().to_owned());
    let value_text = text_of("value").or_else(|| block.attribute("value").map(str::to_owned));
    let other_text = Some(fields.joined_surrounding_text()).filter(|text| !text.is_empty());
    let mut analysis = element_texts(&fields, "analysis");
    // Other text is the value if there is no other value, else a reason.
    let text = match (value_text, other_text) {
        (None, other_text) => other_text,
        (value_text, other_text) => {
            analysis.extend(other_text);
            value_text
        }
    };
    let mut list = vec![Value::from(op), Value::from(path)];
    list.extend(text.map(|text| serde_json::from_str(&bound_numbers(&text)).unwrap_or(Value::String(text))));
    let operation = Operation::from_value(&Value::Array(list));
    if let Some(report) = operation.report(block.body_start, block.end()) {
        out.report(operation_findings::name_operation(1, &operation, report));
    }
    let operations = Some(vec![operation]);
    ParsedUpdate { analysis, operations, is_complete: true }
}

/// Returns whether a name is an operation of JSON Patch, or an operation that MVU (MagVarUpdate) adds.
fn is_patch_operation(op: &str) -> bool {
    matches!(op, "replace" | "add" | "insert" | "remove" | "delta" | "move" | "copy" | "test")
}

/// Converts one operation of a JSON Patch (F-141). Its pointer becomes a list of keys, so that keys may
/// contain dots. An operation without a counterpart is refused.
fn patch_operation(op: &str, path: &str, fields: &Map<String, Value>) -> Operation {
    let value = fields.get("value").cloned();
    let parsed_path = match path.starts_with('/') {
        true => StatePath::from_pointer(path),
        false if path.contains('/') => StatePath::from_pointer(&format!("/{path}")),
        false => path.parse(),
    };
    let Ok(path) = parsed_path else {
        // The dot keeps an invalid path from being read as a valid one.
        return Operation::from_stored(Op::Set.name().to_owned(), format!(".{path}"), value);
    };
    let last_token = match path.steps().last() {
        Some(StateStep::Token(token)) => token.clone(),
        _ => String::new(),
    };
    let refused_operation =
        |name: &str| Operation::from_stored(name.to_owned(), path.to_string(), value.clone());
    let is_index = !last_token.is_empty() && last_token.bytes().all(|byte| byte.is_ascii_digit());
    match op {
        "replace" => Operation::new(Op::Set, path, value),
        "add" | "insert" if last_token == "-" => {
            match StatePath::new(path.steps()[..path.steps().len() - 1].to_vec()) {
                Some(list) => Operation::new(Op::Push, list, value),
                None => refused_operation("insert"),
            }
        }
        // The index of a list or the key of an object: only the state can decide.
        "add" | "insert" if is_index => {
            let list = StatePath::new(path.steps()[..path.steps().len() - 1].to_vec());
            let key =
                last_token.parse::<u64>().map_or_else(|_| Value::from(last_token.as_str()), Value::from);
            match (list, value.clone()) {
                (Some(path), Some(value)) => {
                    refused_operation("insert").with_command(StateCommand::Insert { path, key, value })
                }
                _ => refused_operation("insert"),
            }
        }
        "add" | "insert" => Operation::new(Op::Set, path, value),
        "remove" => Operation::new(Op::Delete, path, None),
        "delta" => Operation::new(Op::Add, path, value),
        other => refused_operation(other),
    }
}
