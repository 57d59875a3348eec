//! Metrics of calls to upstreams.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Metrics of calls to upstreams. Clones share them.
#[derive(Clone)]
pub struct UpstreamMetrics {
    /// Failed attempts.
    failures: Family<FailureLabels, Counter>,
    /// Probed fields of constraints.
    probes: Family<ProbeLabels, Counter>,
    /// Requests that wanted a constraint.
    constraints: Family<ConstraintLabels, Counter>,
    /// Forms that a server refused.
    refusals: Family<ConstraintLabels, Counter>,
    /// Times from the start of a call to its first text.
    first_text: CallHistograms,
    /// Times from the start of a call to its end.
    duration: CallHistograms,
}

/// Histogram of seconds for each upstream and outcome.
type CallHistograms = Family<CallLabels, Histogram, fn() -> Histogram>;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FailureLabels {
    upstream: Arc<str>,
    code: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ProbeLabels {
    upstream: Arc<str>,
    server: &'static str,
    form: &'static str,
    /// `obeyed`, `ignored`, `refused` or `unknown`.
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ConstraintLabels {
    upstream: Arc<str>,
    /// Form that was sent, or `none`.
    form: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    upstream: Arc<str>,
    /// `completed`, `failed` or `dropped`.
    outcome: &'static str,
}

/// Bucket bounds of calls to models, in seconds.
const CALL_BOUNDS: [f64; 13] = [0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0];

fn new_histogram() -> Histogram {
    Histogram::new(CALL_BOUNDS)
}

impl Default for UpstreamMetrics {
    fn default() -> UpstreamMetrics {
        UpstreamMetrics {
            failures: Family::default(),
            probes: Family::default(),
            constraints: Family::default(),
            refusals: Family::default(),
            first_text: Family::new_with_constructor(new_histogram),
            duration: Family::new_with_constructor(new_histogram),
        }
    }
}

impl UpstreamMetrics {
    /// Registers the metrics, so that the text of the registry includes them.
    pub fn register(&self, registry: &mut Registry) {
        let failures = "Upstream attempts that failed, before or after the first text";
        registry.register("upstream_failures", failures, self.failures.clone());
        let probes = "Probes of forms in which a server takes constraints";
        registry.register("upstream_constraint_probes", probes, self.probes.clone());
        let constraints = "Requests with a contract to constrain their replies, by the form that was sent";
        registry.register("upstream_constraints", constraints, self.constraints.clone());
        let refusals = "Forms of contracts that a server refused, so that a weaker one or none was sent";
        registry.register("upstream_constraint_refusals", refusals, self.refusals.clone());
        let first_text = "Time from the call of an upstream to its first text, earlier attempts included";
        registry.register("upstream_first_text_seconds", first_text, self.first_text.clone());
        let duration = "Time from the call of an upstream to its end";
        registry.register("upstream_seconds", duration, self.duration.clone());
    }

    /// Counts a failed attempt.
    pub(crate) fn count_failure(&self, upstream: &Arc<str>, code: &str) {
        self.failures
            .get_or_create(&FailureLabels { upstream: upstream.clone(), code: code.to_owned() })
            .inc();
    }

    /// Counts a probe of a form.
    pub(crate) fn count_probe(
        &self,
        upstream: &Arc<str>,
        server: &'static str,
        form: &'static str,
        result: &'static str,
    ) {
        self.probes.get_or_create(&ProbeLabels { upstream: upstream.clone(), server, form, result }).inc();
    }

    /// Counts a request that wanted a constraint.
    pub(crate) fn count_constraint(&self, upstream: &Arc<str>, form: &'static str) {
        self.constraints.get_or_create(&ConstraintLabels { upstream: upstream.clone(), form }).inc();
    }

    /// Counts a form that a server refused.
    pub(crate) fn count_refusal(&self, upstream: &Arc<str>, form: &'static str) {
        self.refusals.get_or_create(&ConstraintLabels { upstream: upstream.clone(), form }).inc();
    }

    /// Records the end of a call: its duration and the time to its first text, if any.
    pub(crate) fn observe_call(
        &self,
        upstream: &Arc<str>,
        outcome: &'static str,
        first_text: Option<Duration>,
        duration: Duration,
    ) {
        let labels = CallLabels { upstream: upstream.clone(), outcome };
        if let Some(first_text) = first_text {
            self.first_text.get_or_create(&labels).observe(first_text.as_secs_f64());
        }
        self.duration.get_or_create(&labels).observe(duration.as_secs_f64());
    }
}
