//! Policy stage: decides what happens to intents (what a dialect has read: phases, queries, actions) before
//! they are sequenced, so that a sequenced stream stays valid.

pub mod queries;
pub(crate) mod rules;

use serde_json::Value;

use crate::dialect::{CallIntent, DialectEntry, PlanIntent, RawQueries, ReplyAction, UpdateIntent};
use crate::error::Result;
use crate::event::{Extension, Notice, PlanOutcome, ToolCall};
use crate::exit::{ExitRound, decide};
use crate::finding::FindingReport;
use crate::grammar::{Grammar, GrammarLimits};
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
    /// Number of phases of the reply so far, including those beyond the limit.
    phase_count: usize,
    /// Maximum number of phases (`limits.phases`).
    max_phases: usize,
    /// Number of calls of the message so far; the id of the next call is built from it.
    call_count: usize,
    /// Set if the reply has ended and is not truncated: only then do calls run.
    is_complete: bool,
    /// Dialogue round that the reply answers.
    round: Option<ExitRound>,
    /// Texts of notices and exit decisions.
    texts: Texts,
    /// State that operations are applied to.
    state: Option<AttachedState>,
    /// Updates applied since [`Policy::take_applied_updates`] was last called.
    applied_updates: Vec<AppliedBlock>,
    /// Policy for queries with sensitive data.
    sensitive: SensitivePolicy,
    /// Detectors of sensitive data in queries.
    privacy: DetectorSet,
    limits: Limits,
}

impl Policy {
    /// Creates the policy of one reply.
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

    /// Counts a phase that begins at `place`. Returns false beyond the limit: the title is then text of the
    /// last phase.
    pub fn begin_phase(&mut self, place: Place, report: &mut dyn FnMut(FindingReport)) -> bool {
        self.phase_count += 1;
        // Reported once, for the first phase beyond the limit.
        if self.phase_count == self.max_phases + 1 {
            let message = format!("more than {}", format_count(self.max_phases, "phase"));
            let finding = FindingReport::new(&json_rules::LIMIT_EXCEEDED, place, place.offset, message);
            report(finding.with_repair("read as text of the last phase"));
        }
        self.phase_count <= self.max_phases
    }

    /// Continues the numbering of calls and the state of the previous reply of the same message.
    pub fn carry_over(&mut self, previous_policy: &Policy) {
        self.call_count = previous_policy.call_count;
        self.state.clone_from(&previous_policy.state);
    }

    /// Marks the end of the reply: calls may act from now on, unless it is truncated.
    pub fn end_reply(&mut self, is_truncated: bool) {
        self.is_complete = !is_truncated;
    }

    /// Returns the current state, if one is attached.
    #[must_use]
    pub fn state(&self) -> Option<&Value> {
        self.state.as_ref().map(|attached| &attached.state)
    }

    /// Takes the updates applied since the last call of this method.
    pub fn take_applied_updates(&mut self) -> Vec<AppliedBlock> {
        std::mem::take(&mut self.applied_updates)
    }

    /// Turns an action into extension events, in order. Without `sends_extensions` no client sees the plan,
    /// so it is emitted without its calls, which may be many and are also sent as separate events.
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

    /// Gives a call the next id of the message.
    fn number_call(&mut self, CallIntent { name, args }: CallIntent) -> Extension {
        self.call_count += 1;
        ToolCall { call_id: format!("call_{}", self.call_count), name, args }.into()
    }

    /// Builds the notice `code`, in the language of the texts. `reference` names its subject.
    fn notice(&self, code: &'static str, reference: Option<String>) -> Extension {
        Notice { code: code.into(), message: self.texts.notice_text(code).to_owned(), reference }.into()
    }

    /// Applies operations to the state, if one is attached, and emits them as an event. One notice lists the
    /// refused ones (F-113).
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

    /// Cleans queries that the model wrote between `place` and the offset `end`; broken JSON is repaired
    /// first. Returns `None` if they are not a list.
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
                    let finding =
                        FindingReport::new(rules::SERP_QUERIES_JSON, place, end, "the queries are not JSON");
                    report(finding.with_repair(repair));
                    cleaner.clean_text(&value?, text, place, end)
                }
            },
        };
        reports.into_iter().for_each(report);
        queries
    }
}

/// Extracts the calls of a plan. The plan keeps them only with `keeps_calls`.
fn take_calls(plan: &mut Value, keeps_calls: bool) -> Vec<CallIntent> {
    let Some(Value::Array(list)) = plan.get_mut("tool_calls") else { return Vec::new() };
    let take_call = |call: &mut Value| {
        let mut take_field = |name| match keeps_calls {
            true => call.get(name).cloned(),
            false => call.get_mut(name).map(Value::take),
        };
        let Some(Value::String(name)) = take_field("name") else { return None };
        Some(CallIntent { name, args: take_field("args")? })
    };
    let calls = list.iter_mut().filter_map(take_call).collect();
    if !keeps_calls {
        list.clear();
    }
    calls
}

/// Repairs queries in broken JSON. A truncated last query is dropped. Also returns whether all of the text
/// was used.
fn repair_queries(text: &str, limits: &Limits) -> (Option<Value>, bool) {
    let found = json::find(text, limits);
    let Span { start, end } = found.span;
    let mut is_complete =
        end - start == text.trim().len() && !found.reports.iter().any(|report| loses_text(report.rule.code));
    let mut value = found.value;
    // The last query is whole if the text ends with a quotation mark or a comma.
    if let (Some(Value::Array(items)), true) = (&mut value, found.is_auto_closed)
        && !text.trim_end().ends_with(['"', '\'', '”', ',', '，'])
    {
        // The truncated query is dropped; an empty list loses nothing.
        is_complete &= items.pop().is_none();
    }
    (value, is_complete)
}

/// Returns whether the JSON repair of the rule `code` drops meaningful text.
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

/// Builds the grammar of a dialect under these options; `None` if the dialect has none.
#[must_use]
pub fn grammar(entry: &DialectEntry, options: &Options) -> Option<Result<Grammar>> {
    let bounded = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let limits = GrammarLimits::new(bounded(queries::MAX_QUERIES), bounded(queries::MAX_QUERY_CHARS))
        .with_text_chars(options.grammar_text);
    let build = entry.grammar?;
    Some(build(options, &limits).and_then(|mut grammar| {
        options.grammar_text.map_or(Ok(()), |chars| grammar.bound(chars))?;
        Ok(grammar)
    }))
}
