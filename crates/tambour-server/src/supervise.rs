//! Tasks that run as long as the server: one that panics is begun again, told and counted.

use std::sync::Arc;
use std::time::Duration;

use crate::app::App;

/// Pause before a task that panicked is begun again; doubled each time it panics soon after.
const PAUSE: Duration = Duration::from_millis(100);
/// Longest pause.
const LONGEST: Duration = Duration::from_secs(30);
/// Time of running after which a panic counts as the first one.
const WELL: Duration = Duration::from_secs(60);

/// Runs a task until it ends by itself, which it does when the server stops. After a panic it is begun again.
pub(crate) async fn keep<F: Future<Output = ()> + Send + 'static>(
    app: Arc<App>,
    name: &'static str,
    task: impl Fn(Arc<App>) -> F,
) {
    let mut pause = PAUSE;
    loop {
        let begun = tokio::time::Instant::now();
        let Err(error) = tokio::spawn(task(app.clone())).await else { return };
        if !error.is_panic() {
            // The runtime ends.
            return;
        }
        app.metrics.panicked(name);
        if begun.elapsed() > WELL {
            pause = PAUSE;
        }
        let again_ms = pause.as_millis();
        tracing::error!(task = name, again_ms, "a task of the server panicked; it is begun again");
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = app.closing.cancelled() => return,
        }
        pause = (pause * 2).min(LONGEST);
    }
}
