//! Probes: which forms a server obeys for a model, found out with a canary and remembered for a while.
//!
//! The canary is a constraint that only allows a word which nothing asks for. A reply with that word was
//! constrained; any other text means that the server has ignored the field.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use tambour::InputEnd;
use tambour::event::FinishReason;

use super::apply::names_constraint;
use super::table::ConstraintField;
use super::{ConstraintForm, ConstraintForms, ConstraintServer};
use crate::metrics::UpstreamMetrics;
use crate::service::{HttpService, OpenFailure};
use crate::{Message, ModelRequest, ReplyItem};

/// Only text that the canary allows.
const CANARY_WORD: &str = "Zyqumbra-47";
/// Beginning of the word by which a reply that was cut is recognised.
const CANARY_START: &str = "Zyqum";
/// Question of a probe, which the canary does not answer.
const CANARY_QUESTION: &str = "How much is 2 + 2? Answer with the number alone.";
/// Bytes of a probe's reply after which it is read no further.
const CANARY_BYTES: usize = 512;
/// Longest time for all probes of a model.
const PROBE_TIME: Duration = Duration::from_secs(10);
/// Longest time for the probes of the weaker forms, once a form is obeyed.
const FURTHER_PROBE_TIME: Duration = Duration::from_secs(3);
/// Time for which the result of complete probes is used.
const RESULT_TIME: Duration = Duration::from_secs(6 * 3600);
/// Time for which the result of probes is used that found a form, but did not end.
const PARTIAL_RESULT_TIME: Duration = Duration::from_secs(600);
/// Time for which the result of probes that failed or did not end is used.
const FAILURE_TIME: Duration = Duration::from_secs(60);
/// Maximum number of models whose results are kept; clients choose the names.
const MAX_MODELS: usize = 256;
/// Maximum length in bytes of the name of a model that is probed.
pub(super) const MAX_MODEL_NAME: usize = 256;
/// Maximum number of models that are probed for one owner in a minute, those of the configuration aside.
const MAX_OWNER_MODELS: u32 = 16;
/// Maximum number of owners whose models are counted.
const MAX_OWNERS: usize = 4096;
/// Time after which the models of an owner are counted anew.
const OWNER_TIME: Duration = Duration::from_secs(60);
/// Longest wait for the probes of another caller after which a result counts as one of the whole time.
const SHORT_WAIT: Duration = Duration::from_secs(1);
/// Maximum number of refused contracts that are remembered for one model.
const MAX_REFUSALS: usize = 64;

/// Results of the probes of all upstreams, by service and model. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct ConstraintProbes(Arc<Mutex<ProbeTable>>);

#[derive(Debug, Default)]
struct ProbeTable {
    /// Models; the name is empty for the server's own default.
    models: BTreeMap<(ServiceIdentity, String), Arc<ProbedModel>>,
    /// Numbers of models that were probed for each owner, with the times from which they count.
    owners: BTreeMap<Arc<str>, (Instant, u32)>,
}

/// Service as far as the result of a probe depends on it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ServiceIdentity {
    /// Name of the kind.
    pub(crate) kind: &'static str,
    /// Server of the configuration.
    pub(crate) server: Option<&'static str>,
    /// Base URL.
    pub(crate) base: String,
    /// Hash of the key: a wrong one gives other results.
    key: u64,
}

impl ServiceIdentity {
    pub(crate) fn new(
        kind: &'static str,
        server: Option<&'static str>,
        base: &str,
        key: Option<&str>,
    ) -> ServiceIdentity {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        ServiceIdentity { kind, server, base: base.to_owned(), key: hasher.finish() }
    }
}

/// Model of a server, with the results of its probes.
#[derive(Debug, Default)]
pub(super) struct ProbedModel {
    /// Locked while the model is probed, so that it is probed once for all who wait.
    probing: tokio::sync::Mutex<()>,
    results: Mutex<ProbeResults>,
}

#[derive(Debug, Default)]
struct ProbeResults {
    ability: Option<Arc<ServerAbility>>,
    /// Contracts that the server refused: form, and hash of the contract.
    refusals: VecDeque<(ConstraintForm, u64)>,
}

/// Forms that a server obeys.
#[derive(Debug)]
pub(super) struct ServerAbility {
    /// Server, if it obeys a form.
    pub(super) server: Option<&'static ConstraintServer>,
    /// State of each of its fields, in the order of the table.
    pub(super) states: Vec<FieldState>,
    /// True if all probes ended.
    pub(super) is_complete: bool,
    time: Instant,
}

/// Result of the probe of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldState {
    /// The reply was constrained.
    Obeyed,
    /// The reply was not constrained.
    Ignored,
    /// The server refused the request because of the field.
    Refused,
    /// The probe failed or did not end in time, or was not made.
    Unknown,
}

impl FieldState {
    /// Public name, such as `obeyed`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            FieldState::Obeyed => "obeyed",
            FieldState::Ignored => "ignored",
            FieldState::Refused => "refused",
            FieldState::Unknown => "unknown",
        }
    }
}

/// Probed model of a server, for display.
#[derive(Clone, Debug)]
pub struct ProbedServer {
    /// Model; empty for the server's own default.
    pub model: String,
    /// Name of the server; `None` if it obeys no form.
    pub server: Option<&'static str>,
    /// Fields of the server, strongest form first.
    pub fields: Vec<ProbedField>,
    /// True if all probes ended.
    pub is_complete: bool,
    /// Time since the probes.
    pub age: Duration,
}

/// Probed field of a server.
#[derive(Clone, Copy, Debug)]
pub struct ProbedField {
    /// Form that the field takes.
    pub form: ConstraintForm,
    /// Result of the probe.
    pub state: FieldState,
}

impl ConstraintProbes {
    /// Returns the model of a service, added if it is new. A model without a result counts for the owner, if there
    /// is one.
    ///
    /// # Errors
    /// The owner has named too many models, or too many are in use: the text says which.
    pub(super) fn model(
        &self,
        service: ServiceIdentity,
        model: &str,
        owner: Option<&Arc<str>>,
    ) -> Result<Arc<ProbedModel>, &'static str> {
        let key = (service, model.to_owned());
        let mut table = self.lock();
        if let Some(model) = table.models.get(&key) {
            // Probes that are running are those of another caller, who was counted.
            return Ok(model.clone());
        }
        if !owner.is_none_or(|owner| table.admits(owner)) {
            return Err("too many models were named in this minute");
        }
        if table.models.len() >= MAX_MODELS {
            // One in use has callers who wait for its result; one that obeys no form is missed least.
            let worth = |model: &ProbedModel| {
                let results = model.lock();
                let ability = results.ability.as_ref();
                (ability.is_some_and(|one| one.has_obeyed()), ability.map(|one| one.time))
            };
            let unused = table.models.iter().filter(|(_, model)| Arc::strong_count(model) == 1);
            let oldest = unused.min_by_key(|(_, model)| worth(model)).map(|(key, _)| key.clone());
            let Some(oldest) = oldest else { return Err("too many models are probed at a time") };
            table.models.remove(&oldest);
        }
        Ok(table.models.entry(key).or_default().clone())
    }

    /// Returns the probed models of a service.
    pub(crate) fn probed_servers(&self, service: &ServiceIdentity) -> Vec<ProbedServer> {
        let table = self.lock();
        let of_service = table.models.iter().filter(|((model_service, _), _)| model_service == service);
        let probed = of_service.filter_map(|((_, name), model)| {
            let ability = model.lock().ability.clone()?;
            let fields = ability.server.map_or(&[][..], |server| server.fields).iter().zip(&ability.states);
            Some(ProbedServer {
                model: name.clone(),
                server: ability.server.map(|server| server.name),
                fields: fields
                    .map(|(field, state)| ProbedField { form: field.form, state: *state })
                    .collect(),
                is_complete: ability.is_complete,
                age: ability.time.elapsed(),
            })
        });
        probed.collect()
    }

    fn lock(&self) -> MutexGuard<'_, ProbeTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProbeTable {
    /// Counts a model for its owner; `false` if there were too many.
    fn admits(&mut self, owner: &Arc<str>) -> bool {
        if !self.owners.contains_key(owner) && self.owners.len() >= MAX_OWNERS {
            self.owners.retain(|_, (start, _)| start.elapsed() < OWNER_TIME);
            if self.owners.len() >= MAX_OWNERS {
                return false;
            }
        }
        let (start, count) = self.owners.entry(owner.clone()).or_insert((Instant::now(), 0));
        if start.elapsed() >= OWNER_TIME {
            (*start, *count) = (Instant::now(), 0);
        }
        *count += 1;
        *count <= MAX_OWNER_MODELS
    }
}

impl ServerAbility {
    /// Returns `true` if the server obeys a form.
    fn has_obeyed(&self) -> bool {
        self.states.contains(&FieldState::Obeyed)
    }

    /// Result of probes that were not made.
    fn unknown() -> ServerAbility {
        ServerAbility { server: None, states: Vec::new(), is_complete: false, time: Instant::now() }
    }
}

impl ProbedModel {
    fn lock(&self) -> MutexGuard<'_, ProbeResults> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the result of the last probes, if it may still be used.
    fn current_ability(&self) -> Option<Arc<ServerAbility>> {
        let ability = self.lock().ability.clone()?;
        let lifetime = match (ability.is_complete, ability.has_obeyed()) {
            (true, _) => RESULT_TIME,
            (false, true) => PARTIAL_RESULT_TIME,
            (false, false) => FAILURE_TIME,
        };
        (ability.time.elapsed() < lifetime).then_some(ability)
    }

    /// Returns the forms that the server obeys; probes it if that is not known. A caller that is dropped leaves
    /// the probes to the next one. A caller waits ten seconds at most, probes of others included; without a result
    /// then, nothing is known.
    pub(super) async fn ability(&self, probe: &ServerProbe<'_>) -> Arc<ServerAbility> {
        if let Some(ability) = self.current_ability() {
            return ability;
        }
        let start_time = tokio::time::Instant::now();
        let deadline = start_time + PROBE_TIME;
        let Ok(_probing) = tokio::time::timeout_at(deadline, self.probing.lock()).await else {
            return self.current_ability().unwrap_or_else(|| Arc::new(ServerAbility::unknown()));
        };
        if let Some(ability) = self.current_ability() {
            return ability;
        }
        let is_whole_time = start_time.elapsed() < SHORT_WAIT;
        let ability = Arc::new(probe.run(deadline).await);
        // Forms for which the time was too short are not known of the server.
        if is_whole_time || ability.is_complete || ability.has_obeyed() {
            let mut results = self.lock();
            results.ability = Some(ability.clone());
            // The server may be another one now.
            results.refusals.clear();
        }
        ability
    }

    /// Returns `true` if the server has refused the contract in the form.
    pub(super) fn has_refused(&self, form: ConstraintForm, contract: u64) -> bool {
        self.lock().refusals.contains(&(form, contract))
    }

    /// Remembers that the server has refused the contract in the form.
    pub(super) fn note_refusal(&self, form: ConstraintForm, contract: u64) {
        let mut results = self.lock();
        if results.refusals.contains(&(form, contract)) {
            return;
        }
        if results.refusals.len() >= MAX_REFUSALS {
            results.refusals.pop_front();
        }
        results.refusals.push_back((form, contract));
    }
}

/// Probe of a model.
pub(super) struct ServerProbe<'a> {
    pub(super) service: &'a HttpService,
    /// Name of the upstream, for the metrics.
    pub(super) upstream: &'a Arc<str>,
    pub(super) metrics: &'a UpstreamMetrics,
    /// Model of the request; `None` for the upstream's default.
    pub(super) model: Option<&'a str>,
    /// Servers that it can be.
    pub(super) candidates: &'a [&'static ConstraintServer],
}

impl ServerProbe<'_> {
    /// Probes the candidates until one obeys a form, then its other fields.
    async fn run(&self, deadline: tokio::time::Instant) -> ServerAbility {
        // A server is given no more time for a probe than for the first byte of a reply.
        let mut deadline = deadline.min(tokio::time::Instant::now() + self.service.first_byte_timeout());
        let (mut is_complete, mut has_refused) = (true, false);
        let ability =
            |server, states, is_complete| ServerAbility { server, states, is_complete, time: Instant::now() };
        for server in self.candidates {
            let mut states = vec![FieldState::Unknown; server.fields.len()];
            for (index, field) in server.fields.iter().enumerate() {
                let probing = self.probe_field(server, field);
                // A server that does not answer in time is not asked again now.
                let Ok(state) = tokio::time::timeout_at(deadline, probing).await else {
                    let has_obeyed = states.contains(&FieldState::Obeyed);
                    return ability(has_obeyed.then_some(*server), states, false);
                };
                self.metrics.count_probe(self.upstream, server.name, field.form.name(), state.name());
                states[index] = state;
                is_complete &= state != FieldState::Unknown;
                has_refused |= state == FieldState::Refused;
                if state == FieldState::Obeyed {
                    deadline = deadline.min(tokio::time::Instant::now() + FURTHER_PROBE_TIME);
                }
                let is_alone = self.candidates.len() == 1 || states.contains(&FieldState::Obeyed);
                // A server that ignores a field does not know its other ones either.
                if state == FieldState::Unknown || (state == FieldState::Ignored && !is_alone) {
                    break;
                }
            }
            if states.contains(&FieldState::Obeyed) {
                return ability(Some(*server), states, is_complete);
            }
            if let [server] = self.candidates {
                if has_refused && !self.answers_plainly(server, deadline).await {
                    states.fill(FieldState::Unknown);
                    is_complete = false;
                }
                return ability(Some(*server), states, is_complete);
            }
        }
        if let (true, Some(server)) = (has_refused && is_complete, self.candidates.first()) {
            is_complete = self.answers_plainly(server, deadline).await;
        }
        ability(None, Vec::new(), is_complete)
    }

    /// Returns whether the question of a probe is answered without a form; otherwise something else than the forms
    /// was refused, such as the model.
    async fn answers_plainly(&self, server: &ConstraintServer, deadline: tokio::time::Instant) -> bool {
        let request = self.question(server);
        let members = Map::new();
        matches!(tokio::time::timeout_at(deadline, self.ask(&request, &members)).await, Ok(Ok(_)))
    }

    /// Request of a probe, without its form.
    fn question(&self, server: &ConstraintServer) -> ModelRequest {
        let mut request = ModelRequest {
            messages: vec![Message::new("user", CANARY_QUESTION)],
            model: self.model.map(str::to_owned),
            has_fallback: true,
            ..ModelRequest::default()
        };
        match server.probe_tokens {
            ("max_tokens", tokens) => request.max_tokens = Some(tokens),
            (name, tokens) => drop(request.extra_fields.insert(name.to_owned(), tokens.into())),
        }
        request
    }

    /// Probes a field.
    async fn probe_field(&self, server: &ConstraintServer, field: &ConstraintField) -> FieldState {
        let Some(members) = field.members(&canary()) else { return FieldState::Unknown };
        match self.ask(&self.question(server), &members).await {
            Ok((text, _)) if text.contains(CANARY_START) => FieldState::Obeyed,
            // Reasoning can use up the tokens of a probe.
            Ok((text, is_cut)) if is_cut && text.trim().is_empty() => FieldState::Unknown,
            Ok(_) => FieldState::Ignored,
            Err(failure) if names_constraint(&failure, field) => FieldState::Refused,
            Err(OpenFailure { failure, .. }) => {
                tracing::debug!(upstream = &**self.upstream, code = &*failure.code, "a probe failed");
                FieldState::Unknown
            }
        }
    }

    /// Asks the question of a probe. Returns the text of the reply, and whether it was cut.
    async fn ask(
        &self,
        request: &ModelRequest,
        members: &Map<String, Value>,
    ) -> Result<(String, bool), OpenFailure> {
        let headers = http::HeaderMap::new();
        let refuses_retries = |_: &OpenFailure| true;
        let mut reply = self.service.try_open(request, headers, members, refuses_retries, |_, _| {}).await?;
        let (mut text, mut items) = (String::new(), Vec::new());
        loop {
            reply.next(&mut items).await;
            for item in items.drain(..) {
                match item {
                    ReplyItem::Text(delta) => text.push_str(&delta),
                    ReplyItem::End(InputEnd::Failed(failure)) => return Err(failure.into()),
                    ReplyItem::End(end) => return Ok((text, end != InputEnd::Finished(FinishReason::Stop))),
                    ReplyItem::Reasoning(_) | ReplyItem::Call(_) | ReplyItem::Usage(_) => {}
                }
            }
            if text.len() > CANARY_BYTES {
                return Ok((text, true));
            }
        }
    }
}

/// Contract whose replies are the word of the canary.
fn canary() -> ConstraintForms {
    let schema = json!({
        "type": "object", "required": ["answer"], "additionalProperties": false,
        "properties": {"answer": {"type": "string", "enum": [CANARY_WORD]}},
    });
    ConstraintForms::new(vec![
        (ConstraintForm::Gbnf, format!("root ::= \"{CANARY_WORD}\"\n").into()),
        (ConstraintForm::Lark, format!("%llguidance {{}}\nstart: \"{CANARY_WORD}\"\n").into()),
        (
            ConstraintForm::StructuralTag,
            json!({"type": "structural_tag", "format": {"type": "const_string", "value": CANARY_WORD}}),
        ),
        (ConstraintForm::JsonSchema, schema),
    ])
}
