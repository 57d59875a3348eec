//! Restarts long-running tasks of the server after a panic, with a log line and a counter.

use std::sync::Arc;
use std::time::Duration;

use crate::app::App;

/// First pause before a restart.
const PAUSE: Duration = Duration::from_millis(100);
/// Longest pause.
const LONGEST: Duration = Duration::from_secs(30);
/// Running time after which the pause starts from the first one again.
const WELL: Duration = Duration::from_secs(60);

/// Back-off before a restart: doubled each time up to the longest, reset after a long run.
pub(crate) struct Pauses {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Pauses {
    pub(crate) fn new(first: Duration, longest: Duration) -> Pauses {
        Pauses { first, longest, next: first }
    }

    /// Returns the pause after a run of this length.
    pub(crate) fn behind(&mut self, ran: Duration) -> Duration {
        if ran > WELL {
            self.next = self.first;
        }
        let pause = self.next;
        self.next = (pause * 2).min(self.longest);
        pause
    }
}

/// Runs a task until it returns, which it does when the server stops. It is restarted after a panic.
pub(crate) async fn keep<F: Future<Output = ()> + Send + 'static>(
    app: Arc<App>,
    name: &'static str,
    task: impl Fn(Arc<App>) -> F,
) {
    let mut pauses = Pauses::new(PAUSE, LONGEST);
    loop {
        let begun = tokio::time::Instant::now();
        let Err(error) = tokio::spawn(task(app.clone())).await else { return };
        if !error.is_panic() {
            // Cancelled: the runtime is shutting down.
            return;
        }
        app.metrics.panicked(name);
        let pause = pauses.behind(begun.elapsed());
        let again_ms = millis(pause);
        tracing::error!(task = name, again_ms, "a task of the server panicked; it is begun again");
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = app.closing.cancelled() => return,
        }
    }
}

/// Returns a pause in milliseconds as `u64`, since wider numbers are logged as text.
pub(crate) fn millis(pause: Duration) -> u64 {
    u64::try_from(pause.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_the_longest_and_begin_again_behind_one_that_ran_well() {
        let ms = Duration::from_millis;
        let mut pauses = Pauses::new(ms(100), ms(500));
        let short: Vec<Duration> = (0..5).map(|_| pauses.behind(ms(1))).collect();
        assert_eq!(short, [ms(100), ms(200), ms(400), ms(500), ms(500)]);
        assert_eq!((pauses.behind(WELL + ms(1)), pauses.behind(ms(1))), (ms(100), ms(200)));
    }
}
