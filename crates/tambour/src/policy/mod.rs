//! Policy stage: decides what happens to intents before they are sequenced, so that a sequenced stream stays
//! valid.

mod places;
pub mod queries;
pub(crate) mod rules;

use serde_json::Value;

use crate::dialect::{Action, Call, Plan, Update, Written};
use crate::event::{Extension, Notice, PlanOutcome, ToolCall};
use crate::exit::{Round, decide};
use crate::finding::Report;
use crate::limits::Limits;
use crate::options::{Options, Sensitive};
use crate::privacy::Privacy;
use crate::repair::{json, rules as json_rules};
use crate::span::{Place, Span};
use crate::state::{self, Applied, Attached};
use crate::texts::Texts;
use crate::texts::counted;
use queries::Source;

/// Limits, numbers and filters the intents of one reply.
pub struct Policy {
    phases: usize,
    most_phases: usize,
    /// Calls of the message so far; source of their ids.
    called: usize,
    /// True if the reply has ended and is not truncated: nothing is called before.
    whole: bool,
    /// Round that is answered, and texts of the decision about it.
    round: Option<Round>,
    texts: Texts,
    /// State that operations are applied to, and the updates applied since the last request for them.
    state: Option<Attached>,
    applied: Vec<Applied>,
    sensitive: Sensitive,
    privacy: Privacy,
    limits: Limits,
}

impl Policy {
    /// Creates a policy with these options.
    #[must_use]
    pub fn new(options: &Options) -> Policy {
        Policy {
            phases: 0,
            called: 0,
            whole: false,
            round: options.round.clone(),
            texts: options.texts.clone(),
            state: options.state.clone(),
            applied: Vec::new(),
            most_phases: options.limits.phases,
            sensitive: options.sensitive,
            privacy: Privacy::default(),
            limits: options.limits.clone(),
        }
    }

    /// Counts a phase that begins at `place`. Returns false past the limit: its title is then text of the
    /// last phase.
    pub fn phase(&mut self, place: Place, report: &mut dyn FnMut(Report)) -> bool {
        self.phases += 1;
        if self.phases == self.most_phases + 1 {
            let message = format!("more than {}", counted(self.most_phases, "phase"));
            let found = Report::new(&json_rules::LIMIT_EXCEEDED, place, place.offset, message);
            report(found.repaired("read as text of the last phase"));
        }
        self.phases <= self.most_phases
    }

    /// Takes over the calls and state of `before`, an earlier reply of the same message.
    pub fn follow(&mut self, before: &Policy) {
        self.called = before.called;
        self.state.clone_from(&before.state);
    }

    /// Marks the end of the reply: calls may act from now on, unless it is truncated.
    pub fn ends(&mut self, cut: bool) {
        self.whole = !cut;
    }

    /// Current state, if one is attached.
    #[must_use]
    pub fn state(&self) -> Option<&Value> {
        self.state.as_ref().map(|attached| &attached.state)
    }

    /// Updates applied since the last call.
    pub fn take_applied(&mut self) -> Vec<Applied> {
        std::mem::take(&mut self.applied)
    }

    /// Turns an action into extension events, in order. A plan that is not `shown` is sent without its calls,
    /// which may be many and are sent separately.
    pub fn act(&mut self, action: Action, shown: bool, tell: &mut dyn FnMut(Extension)) {
        match action {
            Action::Plan(Plan { mut plan, is_fallback }) => {
                let calls = if self.whole { calls(&mut plan, shown) } else { Vec::new() };
                tell(PlanOutcome { plan, executable: !calls.is_empty(), is_fallback }.into());
                calls.into_iter().for_each(|call| tell(self.call(call)));
            }
            Action::Call(call) if self.whole => tell(self.call(call)),
            Action::Call(call) => tell(self.notice("tool_call_cut", Some(call.name))),
            Action::Update(update) => self.update(update, tell),
            Action::Show(extension) => tell(extension),
            Action::Notice(code, about) => tell(self.notice(code, about)),
            Action::Answer(answer) => {
                if let Some(Round { round, max_rounds, criteria }) = &self.round {
                    tell(decide(*round, *max_rounds, criteria, &answer, self.texts.language).into());
                }
            }
        }
    }

    fn call(&mut self, Call { name, args }: Call) -> Extension {
        self.called += 1;
        ToolCall { call_id: format!("call_{}", self.called), name, args }.into()
    }

    fn notice(&self, code: &'static str, reference: Option<String>) -> Extension {
        Notice { code: code.into(), message: self.texts.notice(code).to_owned(), reference }.into()
    }

    /// Applies operations to the state, if one is attached; refused ones are reported in one notice (F-113).
    fn update(&mut self, update: Update, tell: &mut dyn FnMut(Extension)) {
        let Update { analysis, operations, atomic } = update;
        let refused = match &mut self.state {
            None => {
                tell(state::to_event(&analysis, &operations, None).into());
                state::refused(&operations, None)
            }
            Some(attached) => {
                let applied = attached.apply(&analysis, operations, atomic);
                tell(state::to_event(&analysis, &applied.operations, Some(&applied.results)).into());
                let refused = state::refused(&applied.operations, Some(&applied.results));
                self.applied.push(applied);
                refused
            }
        };
        if refused.is_some() {
            tell(self.notice("state_update_partial_failure", refused));
        }
    }

    /// Cleans queries as the model wrote them; `None` if there are none to use.
    pub fn queries(
        &mut self,
        written: Written<'_>,
        place: Place,
        end: usize,
        report: &mut dyn FnMut(Report),
    ) -> Option<Vec<String>> {
        let source = match written {
            Written::Text(_) => Source::Block,
            Written::Value(_) => Source::Event,
        };
        let cleaner = queries::Cleaner { sensitive: self.sensitive, privacy: &self.privacy, source };
        let (queries, reports) = match written {
            Written::Value(value) => cleaner.clean(value, place, end),
            Written::Text(text) => match serde_json::from_str(text) {
                Ok(value) => cleaner.clean_text(&value, text, place, end),
                Err(_) => {
                    let (value, all) = mend(text, &self.limits);
                    let repair = match value {
                        Some(_) if all => "JSON repaired",
                        Some(_) => "JSON repaired, the rest not used",
                        None => "no queries are sent",
                    };
                    let found = Report::new(rules::SERP_QUERIES_JSON, place, end, "the queries are not JSON");
                    report(found.repaired(repair));
                    cleaner.clean_text(&value?, text, place, end)
                }
            },
        };
        reports.into_iter().for_each(report);
        queries
    }
}

/// Extracts the calls of a plan; they stay in it if `keep` is set.
fn calls(plan: &mut Value, keep: bool) -> Vec<Call> {
    let Some(Value::Array(written)) = plan.get_mut("tool_calls") else { return Vec::new() };
    let call = |call: &mut Value| {
        let mut field = |name| match keep {
            true => call.get(name).cloned(),
            false => call.get_mut(name).map(Value::take),
        };
        let Some(Value::String(name)) = field("name") else { return None };
        Some(Call { name, args: field("args")? })
    };
    let calls = written.iter_mut().filter_map(call).collect();
    if !keep {
        written.clear();
    }
    calls
}

/// Repairs queries in broken JSON and returns whether the text holds nothing else. A truncated last query is
/// dropped.
fn mend(text: &str, limits: &Limits) -> (Option<Value>, bool) {
    let found = json::find(text, limits);
    let Span { start, end } = found.span;
    let mut all =
        end - start == text.trim().len() && !found.reports.iter().any(|report| loses(report.rule.code));
    let mut value = found.value;
    if let (Some(Value::Array(items)), true) = (&mut value, found.closed_by_us)
        && !text.trim_end().ends_with(['"', '\'', '”', ',', '，'])
    {
        all &= items.pop().is_none();
    }
    (value, all)
}

/// Returns whether a JSON repair drops meaningful text.
fn loses(code: &str) -> bool {
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
