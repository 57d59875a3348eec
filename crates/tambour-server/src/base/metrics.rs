//! Metrics of the server (counters, gauges, histograms), as OpenMetrics text for Prometheus.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tambour_upstream::UpstreamMetrics;

use crate::store::ClusterStatus;

/// Metrics of the server.
pub(crate) struct Metrics {
    /// Messages started.
    pub messages: Counter,
    /// Messages that ended with `error`.
    pub failed_messages: Counter,
    /// Requests refused for lack of a valid key.
    pub unauthorized: Counter,
    /// Requests refused because too many messages were running or too many streams open.
    pub limited_requests: Counter,
    /// Event streams opened.
    pub streams: Counter,
    /// Tool calls begun.
    pub tool_calls: Counter,
    /// Tool calls that began and failed.
    pub tool_failures: Counter,
    /// Messages ended because of repeated or too many tool calls.
    pub tool_loops: Counter,
    /// Messages that wait for a confirmation or a client's result.
    pub tool_waits: AtomicU64,
    /// Rounds of dialogues that took longer than 3 s.
    pub slow_rounds: Counter,
    /// Cache hits of dialogue templates.
    pub template_hits: Counter,
    /// Dialogue templates parsed.
    pub template_misses: Counter,
    /// Journal records that could not be read at the start.
    damaged_records: Counter,
    /// Messages lost or truncated with those records, as far as known.
    lost_messages: Counter,
    /// Messages and turns taken over from a server that is gone.
    pub takeovers: Counter,
    /// Requests handed to the server that runs their message.
    pub forwarded_requests: Counter,
    /// Calls to upstreams.
    pub upstreams: UpstreamMetrics,
    /// Time from a write to its commit, in seconds.
    commits: Family<CommitLabels, Histogram, fn() -> Histogram>,
    /// Panics of long-lived tasks, which are then restarted.
    panics: Family<TaskLabels, Counter>,
    // The gauges are set just before the metrics are rendered.
    running_messages: Gauge,
    open_streams: Gauge,
    /// Gauge of `tool_waits`.
    waiting_messages: Gauge,
    /// Gauges of a server that shares its database: age of its lease in milliseconds, runs that it holds, and
    /// runs that were fenced.
    lease_age: Gauge,
    held_runs: Gauge,
    fenced_runs: Gauge,
    registry: Registry,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CommitLabels {
    /// Kind of write, such as `message`.
    of: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TaskLabels {
    task: &'static str,
}

/// Bucket bounds of the time from a write to its commit, in seconds.
const COMMIT_BOUNDS: [f64; 11] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0];

impl Metrics {
    pub(crate) fn new() -> Metrics {
        let mut registry = Registry::with_prefix("tambour");
        let mut counter = |name: &str, help: &str| {
            let counter = Counter::default();
            registry.register(name, help, counter.clone());
            counter
        };
        let mut metrics = Metrics {
            messages: counter("messages", "Messages started"),
            failed_messages: counter("messages_failed", "Messages that ended with an error"),
            unauthorized: counter(
                "unauthorized",
                "Requests refused because their key was missing or not valid",
            ),
            limited_requests: counter("limited", "Requests refused because too many were running or open"),
            streams: counter("streams", "Event streams opened"),
            tool_calls: counter("tool_calls", "Tool calls that started to run"),
            tool_failures: counter("tool_failures", "Tool calls that gave no result"),
            tool_loops: counter("tool_loops", "Messages that ended because the model kept calling tools"),
            tool_waits: AtomicU64::default(),
            slow_rounds: counter("slow_rounds", "Rounds of dialogues that took longer than 3 s"),
            template_hits: counter("template_hits", "Dialogue templates taken from the cache"),
            template_misses: counter("template_misses", "Dialogue templates that were read"),
            damaged_records: counter(
                "journal_damaged_records",
                "Journal records that could not be read at startup",
            ),
            lost_messages: counter(
                "journal_lost_messages",
                "Messages lost or cut off with a part of the journal, at startup",
            ),
            takeovers: counter("takeovers", "Messages and turns taken over from a server that is gone"),
            forwarded_requests: counter("forwarded", "Requests handed to the server that runs their message"),
            upstreams: UpstreamMetrics::default(),
            commits: Family::new_with_constructor(|| Histogram::new(COMMIT_BOUNDS)),
            panics: Family::default(),
            running_messages: Gauge::default(),
            open_streams: Gauge::default(),
            waiting_messages: Gauge::default(),
            lease_age: Gauge::default(),
            held_runs: Gauge::default(),
            fenced_runs: Gauge::default(),
            registry: Registry::default(),
        };
        for (name, help, gauge) in [
            ("running", "Messages and dialogue turns that are running or queued", &metrics.running_messages),
            ("streams_open", "Event streams open", &metrics.open_streams),
            (
                "tool_waits",
                "Messages that wait for a confirmation or a client's result",
                &metrics.waiting_messages,
            ),
            (
                "lease_age_ms",
                "Milliseconds since this server last renewed its lease in a shared database",
                &metrics.lease_age,
            ),
            ("runs_held", "Runs whose lease this server holds in a shared database", &metrics.held_runs),
            (
                "runs_fenced",
                "Runs that were deleted, or that another server has taken over",
                &metrics.fenced_runs,
            ),
        ] {
            registry.register(name, help, gauge.clone());
        }
        metrics.upstreams.register(&mut registry);
        let panics_help = "Panics of tasks that run as long as the server and are restarted";
        registry.register("task_panics", panics_help, metrics.panics.clone());
        registry.register("commit_seconds", "Time from a write to its commit", metrics.commits.clone());
        metrics.registry = registry;
        metrics
    }

    /// Renders all metrics as text. The caller counts the running messages and open streams.
    #[must_use]
    pub(crate) fn render(&self, running_messages: usize, open_streams: usize) -> String {
        let wait_count = usize::try_from(self.tool_waits.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
        for (gauge, value) in [
            (&self.running_messages, running_messages),
            (&self.open_streams, open_streams),
            (&self.waiting_messages, wait_count),
        ] {
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        }
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = text::encode(&mut out, &self.registry);
        out
    }

    /// Notes the condition of a server that shares its database.
    pub(crate) fn note_cluster(&self, status: ClusterStatus) {
        for (gauge, value) in [
            (&self.lease_age, u64::try_from(status.lease_age.as_millis()).unwrap_or(u64::MAX)),
            (&self.held_runs, status.held_runs as u64),
            (&self.fenced_runs, status.fenced_runs),
        ] {
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        }
    }

    /// Adds the journal damage found at the start.
    pub(crate) fn count_damage(&self, records: u64, lost_messages: u64) {
        self.damaged_records.inc_by(records);
        self.lost_messages.inc_by(lost_messages);
    }

    /// Increments a counter.
    pub(crate) fn increment(counter: &Counter) {
        counter.inc();
    }

    /// Adds to a counter.
    pub(crate) fn add(counter: &Counter, count: usize) {
        counter.inc_by(u64::try_from(count).unwrap_or(u64::MAX));
    }

    /// Counts a panic of a long-lived task.
    pub(crate) fn count_panic(&self, task: &'static str) {
        self.panics.get_or_create(&TaskLabels { task }).inc();
    }

    /// Records the time from a write of this kind to its commit.
    pub(crate) fn observe_commit(&self, kind: &'static str, duration: Duration) {
        self.commits.get_or_create(&CommitLabels { of: kind }).observe(duration.as_secs_f64());
    }
}
