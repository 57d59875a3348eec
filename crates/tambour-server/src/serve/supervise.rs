//! Restarts long-running tasks of the server after a panic, with a log line and a counter.

use std::sync::Arc;
use std::time::Duration;

use crate::base::durations::millis;
use crate::base::restart_backoff::RestartBackoff;
use crate::http::app::App;

/// First pause before a restart.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Longest pause before a restart.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Runs a task until it returns, which it does when the server stops. Restarts it after a panic. `name` is
/// its label in the log and the metrics.
pub(crate) async fn run_supervised<F: Future<Output = ()> + Send + 'static>(
    app: Arc<App>,
    name: &'static str,
    task: impl Fn(Arc<App>) -> F,
) {
    let mut backoff = RestartBackoff::new(FIRST_PAUSE, LONGEST_PAUSE);
    loop {
        let start_time = tokio::time::Instant::now();
        let Err(error) = tokio::spawn(task(app.clone())).await else { return };
        if !error.is_panic() {
            // Cancelled: the runtime is shutting down.
            return;
        }
        app.metrics.count_panic(name);
        let pause = backoff.next_pause(start_time.elapsed());
        let again_ms = millis(pause);
        tracing::error!(task = name, again_ms, "a task of the server panicked; restarting it");
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = app.shutdown.cancelled() => return,
        }
    }
}
