//! Pauses before the restarts of a server task or an MCP server.

use std::time::Duration;

/// Running time after which the next pause is the shortest again.
const HEALTHY_TIME: Duration = Duration::from_secs(60);

/// Exponential back-off: each pause is twice the one before, up to the longest; reset after a long run.
pub(crate) struct RestartBackoff {
    first_pause: Duration,
    longest_pause: Duration,
    next_pause: Duration,
}

impl RestartBackoff {
    pub(crate) fn new(first_pause: Duration, longest_pause: Duration) -> RestartBackoff {
        RestartBackoff { first_pause, longest_pause, next_pause: first_pause }
    }

    /// Returns the pause before the next restart, after a run of this length.
    pub(crate) fn next_pause(&mut self, run_time: Duration) -> Duration {
        if run_time > HEALTHY_TIME {
            self.next_pause = self.first_pause;
        }
        let pause = self.next_pause;
        self.next_pause = (pause * 2).min(self.longest_pause);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_the_longest_and_begin_again_after_a_long_run() {
        let ms = Duration::from_millis;
        let mut pauses = RestartBackoff::new(ms(100), ms(500));
        let after_short_runs: Vec<Duration> = (0..5).map(|_| pauses.next_pause(ms(1))).collect();
        assert_eq!(after_short_runs, [ms(100), ms(200), ms(400), ms(500), ms(500)]);
        assert_eq!((pauses.next_pause(HEALTHY_TIME + ms(1)), pauses.next_pause(ms(1))), (ms(100), ms(200)));
    }
}
