//! Counters, as Prometheus text.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of the server.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Messages begun.
    pub messages: AtomicU64,
    /// Messages that ended with `error`.
    pub failed: AtomicU64,
    /// Requests refused for lack of a key.
    pub unauthorized: AtomicU64,
    /// Requests refused since too many streams ran.
    pub limited: AtomicU64,
    /// Event streams opened.
    pub streams: AtomicU64,
    /// Calls of tools that began to run.
    pub tool_calls: AtomicU64,
    /// Calls of tools that gave no result.
    pub tool_failures: AtomicU64,
    /// Messages that ended since they went round in circles or called tools too often.
    pub tool_loops: AtomicU64,
    /// Messages that wait for a person or a client.
    pub tool_waits: AtomicU64,
}

impl Metrics {
    /// All of them as text.
    #[must_use]
    pub(crate) fn render(&self, running: usize, open: usize) -> String {
        let mut out = String::new();
        let counters = [
            ("tambour_messages_total", "Messages begun.", &self.messages),
            ("tambour_messages_failed_total", "Messages that ended with an error.", &self.failed),
            ("tambour_unauthorized_total", "Requests refused for lack of a key.", &self.unauthorized),
            (
                "tambour_limited_total",
                "Requests refused since too many messages were running.",
                &self.limited,
            ),
            ("tambour_streams_total", "Event streams opened.", &self.streams),
            ("tambour_tool_calls_total", "Calls of tools that began to run.", &self.tool_calls),
            ("tambour_tool_failures_total", "Calls of tools that gave no result.", &self.tool_failures),
            (
                "tambour_tool_loops_total",
                "Messages that ended since their tool calls went on without end.",
                &self.tool_loops,
            ),
        ];
        for (name, help, counter) in counters {
            let value = counter.load(Ordering::Relaxed);
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} counter\n{name} {value}");
        }
        let gauges = [
            ("tambour_running", "Messages running.", running),
            ("tambour_streams_open", "Event streams open.", open),
            (
                "tambour_tool_waits",
                "Messages that wait for a confirmation or a client's result.",
                usize::try_from(self.tool_waits.load(Ordering::Relaxed)).unwrap_or(usize::MAX),
            ),
        ];
        for (name, help, value) in gauges {
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}");
        }
        out
    }

    /// Counts one.
    pub(crate) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
