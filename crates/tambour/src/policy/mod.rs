//! Policy stage: decides what happens to intents before they are sequenced, so that a sequenced stream stays
//! valid.

pub mod queries;
pub(crate) mod rules;

use serde_json::Value;

use crate::dialect::{CallIntent, PlanIntent, RawQueries, ReplyAction, UpdateIntent};
use crate::event::{Extension, Notice, PlanOutcome, ToolCall};
use crate::exit::{ExitRound, decide};
use crate::finding::FindingReport;
use crate::limits::Limits;
use crate::options::{Options, SensitivePolicy};
use crate::privacy::DetectorSet;
use crate::repair::{json, rules as json_rules};
use crate::span::{Place, Span};
use crate::state::{self, AppliedBlock, AttachedState};
use crate::texts::Texts;
use crate::texts::format_count;
use queries::QuerySource;

/// Limits, numbers and filters the intents of one reply.
pub struct Policy {
    phase_count: usize,
    max_phases: usize,
    /// Calls of the message so far; source of their ids.
    call_count: usize,
    /// True if the reply has ended and is not truncated: nothing is called before.
    is_complete: bool,
    /// Round that is answered, and texts of the decision about it.
    round: Option<ExitRound>,
    texts: Texts,
    /// State that operations are applied to, and the updates applied since the last request for them.
    state: Option<AttachedState>,
    applied_updates: Vec<AppliedBlock>,
    sensitive: SensitivePolicy,
    privacy: DetectorSet,
    limits: Limits,
}

impl Policy {
    /// Creates a policy with these options.
    #[must_use]
    pub fn new(options: &Options) -> Policy {
        Policy {
            phase_count: 0,
            call_count: 0,
            is_complete: false,
            round: options.round.clone(),
            texts: options.texts.clone(),
            state: options.state.clone(),
            applied_updates: Vec::new(),
            max_phases: options.limits.phases,
            sensitive: options.sensitive_queries,
            privacy: DetectorSet::default(),
            limits: options.limits.clone(),
        }
    }

    /// Counts a phase that begins at `place`. Returns false past the limit: its title is then text of the
    /// last phase.
    pub fn begin_phase(&mut self, place: Place, report: &mut dyn FnMut(FindingReport)) -> bool {
        self.phase_count += 1;
        if self.phase_count == self.max_phases + 1 {
            let message = format!("more than {}", format_count(self.max_phases, "phase"));
            let found = FindingReport::new(&json_rules::LIMIT_EXCEEDED, place, place.offset, message);
            report(found.with_repair("read as text of the last phase"));
        }
        self.phase_count <= self.max_phases
    }

    /// Takes over the calls and state of `before`, an earlier reply of the same message.
    pub fn carry_over(&mut self, before: &Policy) {
        self.call_count = before.call_count;
        self.state.clone_from(&before.state);
    }

    /// Marks the end of the reply: calls may act from now on, unless it is truncated.
    pub fn end_reply(&mut self, is_truncated: bool) {
        self.is_complete = !is_truncated;
    }

    /// Current state, if one is attached.
    #[must_use]
    pub fn state(&self) -> Option<&Value> {
        self.state.as_ref().map(|attached| &attached.state)
    }

    /// Updates applied since the last call.
    pub fn take_applied_updates(&mut self) -> Vec<AppliedBlock> {
        std::mem::take(&mut self.applied_updates)
    }

    /// Turns an action into extension events, in order. A plan that is not `sends_extensions` is sent without its calls,
    /// which may be many and are sent separately.
    pub fn act(&mut self, action: ReplyAction, sends_extensions: bool, emit: &mut dyn FnMut(Extension)) {
        match action {
            ReplyAction::Plan(PlanIntent { mut plan, is_fallback }) => {
                let calls =
                    if self.is_complete { take_calls(&mut plan, sends_extensions) } else { Vec::new() };
                emit(PlanOutcome { plan, executable: !calls.is_empty(), is_fallback }.into());
                calls.into_iter().for_each(|call| emit(self.number_call(call)));
            }
            ReplyAction::Call(call) if self.is_complete => emit(self.number_call(call)),
            ReplyAction::Call(call) => emit(self.notice("tool_call_cut", Some(call.name))),
            ReplyAction::Update(update) => self.apply_update(update, emit),
            ReplyAction::Extension(extension) => emit(extension),
            ReplyAction::Notice(code, reference) => emit(self.notice(code, reference)),
            ReplyAction::Answer(answer) => {
                if let Some(ExitRound { round, max_rounds, criteria }) = &self.round {
                    emit(decide(*round, *max_rounds, criteria, &answer, self.texts.language).into());
                }
            }
        }
    }

    fn number_call(&mut self, CallIntent { name, args }: CallIntent) -> Extension {
        self.call_count += 1;
        ToolCall { call_id: format!("call_{}", self.call_count), name, args }.into()
    }

    fn notice(&self, code: &'static str, reference: Option<String>) -> Extension {
        Notice { code: code.into(), message: self.texts.notice_text(code).to_owned(), reference }.into()
    }

    /// Applies operations to the state, if one is attached; refused ones are reported in one notice (F-113).
    fn apply_update(&mut self, update: UpdateIntent, emit: &mut dyn FnMut(Extension)) {
        let UpdateIntent { analysis, operations, is_atomic } = update;
        let refusals = match &mut self.state {
            None => {
                emit(state::to_event(&analysis, &operations, None).into());
                state::describe_refusals(&operations, None)
            }
            Some(attached) => {
                let block = attached.apply(&analysis, operations, is_atomic);
                emit(state::to_event(&analysis, &block.operations, Some(&block.results)).into());
                let refusals = state::describe_refusals(&block.operations, Some(&block.results));
                self.applied_updates.push(block);
                refusals
            }
        };
        if refusals.is_some() {
            emit(self.notice("state_update_partial_failure", refusals));
        }
    }

    /// Cleans queries as the model wrote them; `None` if there are none to use.
    pub fn clean_queries(
        &mut self,
        raw: RawQueries<'_>,
        place: Place,
        end: usize,
        report: &mut dyn FnMut(FindingReport),
    ) -> Option<Vec<String>> {
        let source = match raw {
            RawQueries::Text(_) => QuerySource::Block,
            RawQueries::Value(_) => QuerySource::Event,
        };
        let cleaner = queries::QueryCleaner { sensitive: self.sensitive, privacy: &self.privacy, source };
        let (queries, reports) = match raw {
            RawQueries::Value(value) => cleaner.clean(value, place, end),
            RawQueries::Text(text) => match serde_json::from_str(text) {
                Ok(value) => cleaner.clean_text(&value, text, place, end),
                Err(_) => {
                    let (value, is_complete) = repair_queries(text, &self.limits);
                    let repair = match value {
                        Some(_) if is_complete => "JSON repaired",
                        Some(_) => "JSON repaired, the rest not used",
                        None => "no queries are sent",
                    };
                    let found =
                        FindingReport::new(rules::SERP_QUERIES_JSON, place, end, "the queries are not JSON");
                    report(found.with_repair(repair));
                    cleaner.clean_text(&value?, text, place, end)
                }
            },
        };
        reports.into_iter().for_each(report);
        queries
    }
}

/// Extracts the calls of a plan; they stay in it if `keeps_calls` is set.
fn take_calls(plan: &mut Value, keeps_calls: bool) -> Vec<CallIntent> {
    let Some(Value::Array(list)) = plan.get_mut("tool_calls") else { return Vec::new() };
    let call = |call: &mut Value| {
        let mut field = |name| match keeps_calls {
            true => call.get(name).cloned(),
            false => call.get_mut(name).map(Value::take),
        };
        let Some(Value::String(name)) = field("name") else { return None };
        Some(CallIntent { name, args: field("args")? })
    };
    let calls = list.iter_mut().filter_map(call).collect();
    if !keeps_calls {
        list.clear();
    }
    calls
}

/// Repairs queries in broken JSON and returns whether the text holds nothing else. A truncated last query is
/// dropped.
fn repair_queries(text: &str, limits: &Limits) -> (Option<Value>, bool) {
    let found = json::find(text, limits);
    let Span { start, end } = found.span;
    let mut is_complete =
        end - start == text.trim().len() && !found.reports.iter().any(|report| loses_text(report.rule.code));
    let mut value = found.value;
    if let (Some(Value::Array(items)), true) = (&mut value, found.is_auto_closed)
        && !text.trim_end().ends_with(['"', '\'', '”', ',', '，'])
    {
        is_complete &= items.pop().is_none();
    }
    (value, is_complete)
}

/// Returns whether a JSON repair drops meaningful text.
fn loses_text(code: &str) -> bool {
    use crate::repair::rules;
    let rules = [
        rules::TEXT_AROUND,
        rules::STRAY_TEXT,
        rules::SEVERAL_VALUES,
        rules::COMMENT,
        rules::ELLIPSIS,
        rules::DUPLICATE_KEY,
        rules::WRAPPER,
    ];
    rules.iter().any(|rule| rule.code == code)
}
