//! Application of a constraint to a request: the strongest form that the server obeys, else a weaker one.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use serde_json::Map;
use tambour::event::Failure;

use super::probe::{FieldState, MAX_MODEL_NAME, ProbedModel, ServerProbe};
use super::table::ConstraintField;
use super::tools::with_strict_tools;
use super::{Constraint, ConstraintForm, ConstraintReport, ConstraintServer, UNCONSTRAINED_CODE};
use crate::metrics::UpstreamMetrics;
use crate::new_failure;
use crate::service::{HttpService, OpenFailure};
use crate::stream::HttpReply;
use crate::{CallTarget, ModelRequest};

/// Words by which an error tells that a form was refused, in lower case.
const REFUSAL_WORDS: [&str; 6] =
    ["grammar", "schema", "structured", "structural", "guided", "response_format"];

/// Returns `true` if a service refused a request because of the field.
pub(super) fn names_constraint(
    OpenFailure { failure, status }: &OpenFailure,
    field: &ConstraintField,
) -> bool {
    let text = failure.message.to_lowercase();
    // Gateways and models that are still loading answer with other ones. A failure in a stream has none.
    matches!(status.map(|status| status.as_u16()), None | Some(400 | 422 | 500))
        && matches!(&*failure.code, "upstream_refused" | "upstream_error")
        && (REFUSAL_WORDS.iter().any(|word| text.contains(word))
            || field.names().iter().any(|name| text.contains(&name.to_lowercase())))
}

/// Failure of a request that must be constrained and cannot be.
pub(crate) fn unconstrained_failure(reason: &str, is_retryable: bool) -> Failure {
    let message = format!("the reply must be constrained (`constrain` is `required`), but {reason}");
    new_failure(UNCONSTRAINED_CODE, message, is_retryable)
}

impl HttpService {
    /// Requests a reply, constrained as the request wants and the server can.
    ///
    /// # Errors
    /// The request fails, or must be constrained and cannot be.
    pub(crate) async fn open_constrained(
        &self,
        request: &ModelRequest,
        headers: HeaderMap,
        (upstream, metrics): (&Arc<str>, &UpstreamMetrics),
        mut on_failure: impl FnMut(&Failure, Option<Duration>),
    ) -> Result<(HttpReply, ConstraintReport), Failure> {
        let Some(constraint) = &request.constraint else {
            let reply = self.open(request, headers, &Map::new(), |_| false, on_failure).await?;
            return Ok((reply, ConstraintReport::default()));
        };
        let mut attempt = ConstrainedCall {
            request,
            constraint,
            report: ConstraintReport::default(),
            probed: None,
            refused_tools: None,
        };
        let obstacle = match attempt.open(self, &headers, (upstream, metrics), &mut on_failure).await {
            Ok(Ok(reply)) => return Ok((reply, attempt.finish())),
            Ok(Err(failure)) => return Err(failure),
            Err(obstacle) => obstacle,
        };
        metrics.count_constraint(upstream, "none");
        if constraint.is_required {
            let failure = unconstrained_failure(obstacle.text, obstacle.is_retryable);
            on_failure(&failure, None);
            return Err(failure);
        }
        tracing::debug!(
            message_id = &*request.message_id,
            upstream = &**upstream,
            reason = obstacle.text,
            "a reply is not constrained"
        );
        let reply = self.open(request, headers, &Map::new(), |_| false, on_failure).await?;
        Ok((reply, attempt.finish()))
    }
}

/// Request with a constraint.
struct ConstrainedCall<'a> {
    request: &'a ModelRequest,
    constraint: &'a Constraint,
    report: ConstraintReport,
    /// Model of the server, once it has been looked up.
    probed: Option<Arc<ProbedModel>>,
    /// Model that refused strict tools, and their hash.
    refused_tools: Option<(Arc<ProbedModel>, u64)>,
}

impl ConstrainedCall<'_> {
    /// Returns the report of a request that has succeeded, and remembers refusals: before that, anything else can be
    /// the reason of an error. A field that a client adds can be it, too.
    fn finish(self) -> ConstraintReport {
        if let Some((probed, hash)) = self.refused_tools {
            probed.note_refusal(ConstraintForm::JsonSchema, hash);
        }
        if let Some(probed) = self.probed.filter(|_| self.request.extra_fields.is_empty()) {
            for form in &self.report.refused {
                probed.note_refusal(*form, self.constraint.forms.hash);
            }
        }
        self.report
    }

    /// Requests a constrained reply. `Err` is the reason why the reply cannot be constrained; `Ok` is the
    /// outcome of a constrained request.
    async fn open(
        &mut self,
        service: &HttpService,
        headers: &HeaderMap,
        (upstream, metrics): (&Arc<str>, &UpstreamMetrics),
        on_failure: &mut impl FnMut(&Failure, Option<Duration>),
    ) -> Result<Result<HttpReply, Failure>, Obstacle> {
        let ConstrainedCall { request, constraint, .. } = *self;
        let candidates = service.constraint_servers();
        if let Some(reason) = request_obstacle(request, constraint, &candidates) {
            return Err(Obstacle::lasting(reason));
        }
        if !request.tools.is_empty() {
            let reply = self.open_with_strict_tools(service, headers, &candidates, on_failure).await;
            // Servers refuse tools beside a form, or constrain the calls on their own.
            return reply.ok_or(Obstacle::lasting("the request offers tools by the service's own interface"));
        }
        if constraint.forms.is_empty() {
            return Err(Obstacle::lasting("the contract has no form under these options"));
        }
        let mut own_request = None;
        let request = match request.response_format {
            // The form of the server takes its place.
            Some(_) => &*own_request.insert(ModelRequest { response_format: None, ..request.clone() }),
            None => request,
        };
        let CallTarget { model, .. } = service.call_target(request);
        let probed = self.probed.insert(service.probed_model(request)?).clone();
        let probe = ServerProbe { service, upstream, metrics, model, candidates: &candidates };
        let ability = probed.ability(&probe).await;
        let Some(server) = ability.server else {
            return Err(match ability.is_complete {
                true => Obstacle::lasting("the server obeys none of the forms that can be sent to it"),
                false => Obstacle::passing("the server did not answer all probes; it is probed again later"),
            });
        };
        let mut reason = if ability.is_complete {
            Obstacle::lasting("the server obeys none of the forms of this contract")
        } else {
            Obstacle::passing("the server did not answer all probes; it is probed again later")
        };
        for (index, field) in server.fields.iter().enumerate() {
            let is_obeyed = ability.states.get(index) == Some(&FieldState::Obeyed);
            let Some(members) = field.members(&constraint.forms).filter(|_| is_obeyed) else { continue };
            if probed.has_refused(field.form, constraint.forms.hash) {
                reason = Obstacle::lasting("the server refuses this contract");
                continue;
            }
            let refuses = |failure: &OpenFailure| names_constraint(failure, field);
            // Not each service says what it does not like.
            let refuses_all = |failure: &OpenFailure| {
                !constraint.is_required && matches!(failure.status.map(|it| it.as_u16()), Some(400 | 422))
            };
            let is_final = |failure: &OpenFailure| refuses(failure) || refuses_all(failure);
            let open_result =
                service.try_open(request, headers.clone(), &members, is_final, &mut *on_failure).await;
            let failure = match open_result {
                Ok(mut reply) => {
                    // Some servers read a form only after the head of the response.
                    let refusal = reply.read_first().await.cloned().map(OpenFailure::from);
                    let refusal = refusal.filter(|failure| refuses(failure));
                    let Some(refusal) = refusal else {
                        metrics.count_constraint(upstream, field.form.name());
                        self.report.form = Some(field.form);
                        return Ok(Ok(reply));
                    };
                    on_failure(&refusal.failure, Some(Duration::ZERO));
                    refusal
                }
                Err(failure) => failure,
            };
            if !is_final(&failure) {
                metrics.count_constraint(upstream, field.form.name());
                return Ok(Err(failure.failure));
            }
            metrics.count_refusal(upstream, field.form.name());
            self.report.refused.push(field.form);
            if !refuses(&failure) {
                return Err(Obstacle::lasting("the server refuses the request with this contract"));
            }
            reason = Obstacle::lasting("the server refuses this contract");
        }
        Err(reason)
    }
}

impl ConstrainedCall<'_> {
    /// Requests a reply whose calls the service constrains to the schemas of the offered tools; `None` if it cannot,
    /// or the reply itself must be constrained. The text of such a reply is free.
    async fn open_with_strict_tools(
        &mut self,
        service: &HttpService,
        headers: &HeaderMap,
        candidates: &[&'static ConstraintServer],
        on_failure: &mut impl FnMut(&Failure, Option<Duration>),
    ) -> Option<Result<HttpReply, Failure>> {
        // Others ignore the field, and a server that is not known is not asked.
        let [server] = candidates else { return None };
        let schemas = server.strict_tools.filter(|_| !self.constraint.is_required)?;
        let (request, hash) = with_strict_tools(self.request, schemas)?;
        let probed = service.probed_model(self.request).ok()?;
        if probed.has_refused(ConstraintForm::JsonSchema, hash) {
            return None;
        }
        let is_refusal =
            |failure: &OpenFailure| matches!(failure.status.map(|it| it.as_u16()), Some(400 | 422));
        match service.try_open(&request, headers.clone(), &Map::new(), is_refusal, &mut *on_failure).await {
            Err(failure) if is_refusal(&failure) => {
                if self.request.extra_fields.is_empty() {
                    self.refused_tools = Some((probed, hash));
                }
                None
            }
            open_result => Some(open_result.map_err(|failure| failure.failure)),
        }
    }
}

impl HttpService {
    /// Returns the probed model of a request.
    ///
    /// # Errors
    /// It cannot be probed: the text says why.
    fn probed_model(&self, request: &ModelRequest) -> Result<Arc<ProbedModel>, Obstacle> {
        let CallTarget { model, .. } = self.call_target(request);
        if model.is_some_and(|model| model.len() > MAX_MODEL_NAME) {
            return Err(Obstacle::lasting("the name of the model is too long for a probe"));
        }
        // The upstream's own model is no choice of a client.
        let owner = (model != self.default_model()).then_some(&request.owner);
        let probed = self.probes().model(self.identity(), model.unwrap_or_default(), owner);
        probed.map_err(Obstacle::passing)
    }
}

/// Reason why a reply cannot be constrained.
struct Obstacle {
    text: &'static str,
    is_retryable: bool,
}

impl Obstacle {
    fn lasting(text: &'static str) -> Obstacle {
        Obstacle { text, is_retryable: false }
    }

    fn passing(text: &'static str) -> Obstacle {
        Obstacle { text, is_retryable: true }
    }
}

/// Reason why a request itself cannot be constrained.
fn request_obstacle(
    request: &ModelRequest,
    constraint: &Constraint,
    candidates: &[&ConstraintServer],
) -> Option<&'static str> {
    if request.response_format.is_some() && !constraint.replaces_format {
        return Some("the request sets `response_format` itself");
    }
    if candidates.iter().any(|server| server.own_field(&request.extra_fields).is_some()) {
        return Some("a field of the request sets a form itself");
    }
    None
}
