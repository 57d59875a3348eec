//! Metrics and logs of the server.

use std::sync::{Arc, Mutex};

use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

use crate::mock::{MockServer, Step, delta_step, reply_script};
use crate::server::TestServer;

/// Log lines of this thread.
#[derive(Clone, Default)]
struct LogLines(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for LogLines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogLines {
    type Writer = LogLines;

    fn make_writer(&'a self) -> LogLines {
        self.clone()
    }
}

impl LogLines {
    /// Number of the lines that contain all of these parts.
    fn count_containing(&self, parts: &[&str]) -> usize {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().filter(|line| parts.iter().all(|part| line.contains(part))).count()
    }
}

#[tokio::test]
async fn failing_upstreams_are_counted_and_logged() {
    let lines = LogLines::default();
    // With a single subscriber alone, a callsite first reached by another thread would ask that thread's subscriber, which is none,
    // and stay silent from then on.
    let _second = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::default());
    // The server runs on this thread.
    let logs = tracing_subscriber::fmt().with_writer(lines.clone()).with_ansi(false).finish();
    let _logging = tracing::subscriber::set_default(logs);
    let busy = || vec![Step::Head(503, vec![]), Step::End];
    let cut_reply = vec![delta_step("Fo"), Step::Cut];
    let mock = MockServer::start(vec![
        busy(),
        busy(),
        reply_script("Four.", 2),
        cut_reply,
        vec![delta_step("Fo"), Step::WaitDisconnect],
    ])
    .await;
    let server = TestServer::start_default(&mock).await;
    let request = json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"});
    server.open_stream(&request).await.read_checked().await;
    server.open_stream(&request).await.read_checked().await;
    let mut stopped_stream = server.open_stream(&request).await;
    let events = stopped_stream.read_until("final_delta").await;
    let path = format!("/api/v1/messages/{}/cancel", crate::client::stream_message_id(&events));
    server.call("post", &path, None).await;
    stopped_stream.read_rest().await;
    for (name, value) in [
        ("tambour_upstream_failures_total{upstream=\"openai\",code=\"upstream_error\"}", 2),
        ("tambour_upstream_failures_total{upstream=\"openai\",code=\"upstream_closed\"}", 1),
        ("tambour_upstream_seconds_count{upstream=\"openai\",outcome=\"completed\"}", 1),
        ("tambour_upstream_seconds_count{upstream=\"openai\",outcome=\"failed\"}", 1),
        ("tambour_upstream_seconds_count{upstream=\"openai\",outcome=\"dropped\"}", 1),
        ("tambour_upstream_first_text_seconds_count{upstream=\"openai\",outcome=\"completed\"}", 1),
        ("tambour_upstream_first_text_seconds_count{upstream=\"openai\",outcome=\"failed\"}", 1),
        ("tambour_messages_total", 3),
        ("tambour_messages_failed_total", 1),
        ("tambour_running", 0),
    ] {
        server.wait_for_metric(name, value).await;
    }
    for attempt in ["attempt=1", "attempt=2"] {
        assert_eq!(
            lines.count_containing(&["WARN", "upstream=\"openai\"", "code=upstream_error", attempt]),
            1,
            "{attempt}"
        );
    }
    assert_eq!(
        lines.count_containing(&["WARN", "upstream=\"openai\"", "code=upstream_closed", "attempt=1"]),
        1
    );
}

#[tokio::test]
async fn what_is_counted_has_the_form_of_the_standard() {
    let mock = MockServer::start(vec![reply_script("Four.", 2)]).await;
    let server = TestServer::start_default(&mock).await;
    server.open_stream(&json!({"text": "x", "dialect": "plain"})).await.read_checked().await;
    let answer = server.get("/metrics").await;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!(answer.headers["content-type"], kind);
    assert!(answer.text.ends_with("# EOF\n"), "{}", answer.text);
    let mut metric_name = "";
    for line in answer.text.lines().filter(|line| *line != "# EOF") {
        match line.strip_prefix("# TYPE ") {
            Some(type_line) => metric_name = type_line.split(' ').next().unwrap(),
            None if line.starts_with("# ") => {}
            None => {
                let (sample, value) = line.rsplit_once(' ').unwrap();
                assert!(sample.starts_with(metric_name) && metric_name.starts_with("tambour_"), "{line}");
                assert!(value.parse::<f64>().is_ok(), "{line}");
            }
        }
    }
    assert_eq!(server.metric("tambour_commit_seconds_count{of=\"message\"}").await, 1);
}
