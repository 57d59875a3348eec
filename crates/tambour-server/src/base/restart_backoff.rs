//! Back-off before a restart, of a task of the server or of an MCP server.

use std::time::Duration;

/// Running time after which the pause starts from the first one again.
const HEALTHY_TIME: Duration = Duration::from_secs(60);

/// Back-off before a restart: doubled each time up to the longest, reset after a long run.
pub(crate) struct RestartBackoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl RestartBackoff {
    pub(crate) fn new(first: Duration, longest: Duration) -> RestartBackoff {
        RestartBackoff { first, longest, next: first }
    }

    /// Returns the pause after a run of this length.
    pub(crate) fn next_pause(&mut self, run_time: Duration) -> Duration {
        if run_time > HEALTHY_TIME {
            self.next = self.first;
        }
        let pause = self.next;
        self.next = (pause * 2).min(self.longest);
        pause
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
        let mut pauses = RestartBackoff::new(ms(100), ms(500));
        let short: Vec<Duration> = (0..5).map(|_| pauses.next_pause(ms(1))).collect();
        assert_eq!(short, [ms(100), ms(200), ms(400), ms(500), ms(500)]);
        assert_eq!((pauses.next_pause(HEALTHY_TIME + ms(1)), pauses.next_pause(ms(1))), (ms(100), ms(200)));
    }
}
