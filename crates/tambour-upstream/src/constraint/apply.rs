//! Application of a constraint to a request: the strongest form that the server obeys, else a weaker one.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use serde_json::Map;
use tambour::event::Failure;

use super::probe::ServerProbe;
use super::table::ConstraintField;
use super::{Constraint, ConstraintReport, ConstraintServer, UNCONSTRAINED_CODE};
use crate::metrics::UpstreamMetrics;
use crate::new_failure;
use crate::service::HttpService;
use crate::stream::HttpReply;
use crate::{CallTarget, ModelRequest};

/// Words by which an error tells that a form was refused, in lower case.
const REFUSAL_WORDS: [&str; 6] =
    ["grammar", "schema", "structured", "structural", "guided", "response_format"];

/// Returns `true` if a service refused a request because of the field.
pub(super) fn names_constraint(failure: &Failure, field: &ConstraintField) -> bool {
    let text = failure.message.to_lowercase();
    matches!(&*failure.code, "upstream_refused" | "upstream_error")
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
        let mut report = ConstraintReport::default();
        let Some(constraint) = &request.constraint else {
            let reply = self.open(request, headers, &Map::new(), |_| false, on_failure).await?;
            return Ok((reply, report));
        };
        let reason = match self
            .constrain(request, constraint, &headers, (upstream, metrics), &mut on_failure, &mut report)
            .await
        {
            Ok(Ok(reply)) => {
                metrics.count_constraint(upstream, report.form.map_or("none", |form| form.name()));
                self.note_refusals(request, &report);
                return Ok((reply, report));
            }
            Ok(Err(failure)) => return Err(failure),
            Err(reason) => reason,
        };
        metrics.count_constraint(upstream, "none");
        if constraint.is_required {
            let failure = unconstrained_failure(reason.text, reason.is_retryable);
            on_failure(&failure, None);
            return Err(failure);
        }
        tracing::debug!(
            message_id = &*request.message_id,
            upstream = &**upstream,
            reason = reason.text,
            "a reply is not constrained"
        );
        let reply = self.open(request, headers, &Map::new(), |_| false, on_failure).await?;
        self.note_refusals(request, &report);
        Ok((reply, report))
    }

    /// Remembers refusals once the same request has succeeded without those forms: anything else can be the reason
    /// of an error. A field that a client adds can be it, too.
    fn note_refusals(&self, request: &ModelRequest, report: &ConstraintReport) {
        let Some(constraint) = request.constraint.as_ref().filter(|_| request.extra_fields.is_empty()) else {
            return;
        };
        let CallTarget { base, model, .. } = self.call_target(request);
        let probed = self.probes().model(base.unwrap_or_default(), model);
        for form in &report.refused {
            probed.note_refusal(*form, constraint.forms.hash);
        }
    }

    /// Requests a constrained reply. `Err` is the reason why the reply cannot be constrained; `Ok` is the
    /// outcome of a constrained request.
    async fn constrain(
        &self,
        request: &ModelRequest,
        constraint: &Constraint,
        headers: &HeaderMap,
        (upstream, metrics): (&Arc<str>, &UpstreamMetrics),
        on_failure: &mut impl FnMut(&Failure, Option<Duration>),
        report: &mut ConstraintReport,
    ) -> Result<Result<HttpReply, Failure>, Obstacle> {
        let candidates = self.constraint_servers();
        if let Some(reason) = request_obstacle(request, &candidates) {
            return Err(Obstacle::lasting(reason));
        }
        let CallTarget { base, model, .. } = self.call_target(request);
        let probed = self.probes().model(base.unwrap_or_default(), model);
        let probe = ServerProbe { service: self, upstream, metrics, model, candidates: &candidates };
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
            let is_obeyed = ability.states.get(index) == Some(&super::FieldState::Obeyed);
            let Some(members) = field.members(&constraint.forms).filter(|_| is_obeyed) else { continue };
            let hash = constraint.forms.hash;
            if !probed.has_refused(field.form, hash) {
                let refuses = |failure: &Failure| names_constraint(failure, field);
                let open_result =
                    self.open(request, headers.clone(), &members, refuses, &mut *on_failure).await;
                match open_result {
                    Err(failure) if refuses(&failure) => {}
                    Ok(reply) => {
                        report.form = Some(field.form);
                        return Ok(Ok(reply));
                    }
                    Err(failure) => return Ok(Err(failure)),
                }
            }
            report.refused.push(field.form);
            reason = Obstacle::lasting("the server refuses this contract");
        }
        Err(reason)
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
fn request_obstacle(request: &ModelRequest, candidates: &[&ConstraintServer]) -> Option<&'static str> {
    if request.response_format.is_some() {
        return Some("the request sets `response_format` itself");
    }
    if candidates.iter().any(|server| server.own_field(&request.extra_fields).is_some()) {
        return Some("a field of the request sets a form itself");
    }
    // Servers refuse both together, or constrain the calls on their own.
    (!request.tools.is_empty()).then_some("the request offers tools by the service's own interface")
}
