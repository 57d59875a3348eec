//! Limits of keys (requests a minute, tokens a day, aliases), and the usage that is checked against them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tambour::texts::format_count;

use jiff::{Timestamp, ToSpan, Unit, tz::TimeZone};
use serde::{Deserialize, Serialize};

use crate::base::problem::Problem;
use crate::base::token_counts::TokenCounts;
use crate::run::keys::Caller;

/// Limits of a key. Absent fields do not limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct KeyLimits {
    /// Messages and turns of dialogues a minute; as many may arrive in one burst.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) requests_per_minute: Option<u32>,
    /// Tokens of prompts and replies a day (UTC), as counted by upstreams. Running messages finish after the
    /// limit is reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tokens_per_day: Option<u64>,
    /// Aliases that the key may use. With this limit, the key may use no other model, and only the routes of
    /// other protocols (`/v1/…`), whose requests name an alias.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) aliases: Option<Vec<String>>,
}

/// Usage of the keys by id, as needed for their limits.
#[derive(Default)]
pub(crate) struct Quotas(Mutex<HashMap<String, KeyUsage>>);

/// Usage of one key.
#[derive(Default)]
struct KeyUsage {
    /// Time up to which the requests so far use up the allowed rate. Each request moves this time on by a
    /// minute divided by the limit, to at most a minute from now.
    rate_until: Option<Instant>,
    /// Date (UTC) of `tokens`.
    day: String,
    /// Tokens used on `day`.
    tokens: u64,
}

/// Period of the rate limit; the requests allowed in one period may come at once.
pub(crate) const MINUTE: Duration = Duration::from_secs(60);

/// Rate of requests that a key may send, at least one a minute.
#[derive(Clone, Copy)]
pub(crate) struct RequestRate(u32);

impl RequestRate {
    /// Creates the rate of `max` requests a minute; `None` if `max` is 0.
    pub(crate) fn new(max: u32) -> Option<RequestRate> {
        (max > 0).then_some(RequestRate(max))
    }

    /// Returns the share of a minute that a request uses up.
    pub(crate) fn interval(self) -> Duration {
        MINUTE / self.0
    }
}

/// Returns the problem of a key that has sent its `max` requests a minute and may send another after `wait`.
pub(crate) fn rate_problem(max: u32, wait: Duration) -> Problem {
    let detail = format!("this key may send at most {} a minute", format_count(max, "request"));
    let seconds = if max == 0 { MINUTE.as_secs() } else { wait.as_secs() + 1 };
    Problem::too_many("rate_limited", detail).retry_after(seconds)
}

impl Quotas {
    /// Starts with the tokens that each key, by id, has used on `day`.
    pub(crate) fn new(day: &str, usage: impl Iterator<Item = (String, u64)>) -> Quotas {
        let usage_entry =
            |(key, tokens)| (key, KeyUsage { day: day.to_owned(), tokens, ..KeyUsage::default() });
        Quotas(Mutex::new(usage.map(usage_entry).collect()))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, KeyUsage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request of a key. `now` and `time` are the same moment, on the monotonic and the wall clock.
    ///
    /// # Errors
    /// The tokens of the day are used up, or too many requests came within a minute.
    pub(crate) fn admit(&self, caller: &Caller, now: Instant, time: Timestamp) -> Result<(), Problem> {
        self.check_tokens(caller, time)?;
        let Some(max) = caller.limits.requests_per_minute else { return Ok(()) };
        let Some(rate) = RequestRate::new(max) else { return Err(rate_problem(max, MINUTE)) };
        let mut usages = self.lock();
        let key_usage = usages.entry(caller.key.clone()).or_default();
        let rate_until = key_usage.rate_until.map_or(now, |rate_until| rate_until.max(now)) + rate.interval();
        if rate_until > now + MINUTE {
            return Err(rate_problem(max, (rate_until - now).saturating_sub(MINUTE)));
        }
        key_usage.rate_until = Some(rate_until);
        Ok(())
    }

    /// Checks that the tokens of the day are not used up.
    ///
    /// # Errors
    /// The tokens of the day are used up.
    pub(crate) fn check_tokens(&self, caller: &Caller, time: Timestamp) -> Result<(), Problem> {
        let Some(max) = caller.limits.tokens_per_day else { return Ok(()) };
        let is_used_up = self
            .lock()
            .get(&caller.key)
            .is_some_and(|key_usage| key_usage.day == day(time) && key_usage.tokens >= max);
        if !is_used_up {
            return Ok(());
        }
        let detail = format!("this key may use {} a day, and has used them up", format_count(max, "token"));
        Err(Problem::too_many("tokens_used_up", detail).retry_after(seconds_until_midnight(time)))
    }

    /// Raises the tokens that keys, by id, have used on `day` to those that all servers have stored.
    pub(crate) fn raise(&self, day: &str, usage: impl Iterator<Item = (String, u64)>) {
        let mut usages = self.lock();
        for (key, tokens) in usage {
            let key_usage = usages.entry(key).or_default();
            if key_usage.day != day {
                (key_usage.day, key_usage.tokens) = (day.to_owned(), 0);
            }
            key_usage.tokens = key_usage.tokens.max(tokens);
        }
    }

    /// Takes back the count of a request that was then refused for another reason.
    pub(crate) fn refund(&self, key: &str, limits: &KeyLimits) {
        let Some(rate) = limits.requests_per_minute.and_then(RequestRate::new) else { return };
        if let Some(key_usage) = self.lock().get_mut(key) {
            key_usage.rate_until =
                key_usage.rate_until.and_then(|rate_until| rate_until.checked_sub(rate.interval()));
        }
    }

    /// Adds tokens that model calls of a key have used.
    pub(crate) fn spend(&self, key: &str, tokens: TokenCounts, time: Timestamp) {
        let mut usages = self.lock();
        let key_usage = usages.entry(key.to_owned()).or_default();
        let day = day(time);
        if key_usage.day != day {
            (key_usage.day, key_usage.tokens) = (day, 0);
        }
        key_usage.tokens = key_usage.tokens.saturating_add(tokens.input).saturating_add(tokens.output);
    }

    /// Forgets a removed key.
    pub(crate) fn forget(&self, key: &str) {
        self.lock().remove(key);
    }
}

impl KeyLimits {
    /// Checks that the key may ask this alias. `None` means a request that names no alias.
    pub(crate) fn check_alias(&self, alias: Option<&str>) -> Result<(), Problem> {
        let Some(aliases) = &self.aliases else { return Ok(()) };
        if alias.is_some_and(|alias| aliases.iter().any(|allowed| allowed == alias)) {
            return Ok(());
        }
        let detail = format!(
            "through the routes of other protocols (`/v1/chat/completions` and so on) this key may use only these aliases: {}",
            if aliases.is_empty() { "none".to_owned() } else { aliases.join(", ") }
        );
        Err(Problem::new(axum::http::StatusCode::FORBIDDEN, "model_forbidden", detail))
    }
}

/// Extra fields for the model service that a key limited to aliases may send. They affect how a model writes,
/// never which model is asked. Services and proxies accept many fields that choose a model (`models`,
/// `route`, `provider`, `fallbacks`, `extra_body`, `api_base`) and add new ones, so allowed fields are listed
/// here, not forbidden ones.
const ALLOWED_FIELDS: [&str; 37] = [
    "audio",
    "chat_template_kwargs",
    "frequency_penalty",
    "function_call",
    "functions",
    "generationConfig",
    "include_reasoning",
    "keep_alive",
    "length_penalty",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "min_p",
    "min_tokens",
    "modalities",
    "n",
    "options",
    "output_config",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "reasoning",
    "reasoning_effort",
    "repetition_penalty",
    "repeat_penalty",
    "safetySettings",
    "stop_sequences",
    "stream_options",
    "think",
    "thinking",
    "top_a",
    "top_k",
    "top_logprobs",
    "typical_p",
    "user",
    "verbosity",
    "web_search_options",
];

impl KeyLimits {
    /// Checks the names of fields that a key limited to aliases sends: `overrides` are settings of the alias,
    /// `extra_fields` are passed on to the service.
    pub(crate) fn check_fields<'a>(
        &self,
        mut overrides: impl Iterator<Item = &'a String>,
        mut extra_fields: impl Iterator<Item = &'a String>,
    ) -> Result<(), Problem> {
        if self.aliases.is_none() {
            return Ok(());
        }
        let refusal = |field: String, detail: String| {
            let problem = Problem::new(axum::http::StatusCode::FORBIDDEN, "field_forbidden", detail);
            Err(problem.with("field", field))
        };
        if let Some(name) = overrides.next() {
            let field = format!("tambour.{name}");
            let detail =
                format!("this key is limited to aliases, and the alias sets `{name}`: leave out `{field}`");
            return refusal(field, detail);
        }
        if let Some(name) = extra_fields.find(|name| !ALLOWED_FIELDS.contains(&name.as_str())) {
            let detail = format!(
                "this key is limited to aliases, and may not send `{name}` to their services, since it could \
                 choose another model; it may send {}",
                ALLOWED_FIELDS.join(", ")
            );
            return refusal(name.clone(), detail);
        }
        Ok(())
    }
}

/// Returns the date of a time in UTC, as `2026-01-01`.
pub(crate) fn day(time: Timestamp) -> String {
    time.to_zoned(TimeZone::UTC).date().to_string()
}

/// Returns the seconds until the next day (UTC).
fn seconds_until_midnight(time: Timestamp) -> u64 {
    let now = time.to_zoned(TimeZone::UTC);
    let midnight = now.start_of_day().and_then(|start| start.checked_add(1.day()));
    let span = midnight.and_then(|midnight| now.until((Unit::Second, &midnight)));
    let seconds = span.map_or(3600, |span| span.get_seconds());
    u64::try_from(seconds).unwrap_or(3600).max(1)
}

/// Returns limits that limit nothing.
pub(crate) fn unlimited() -> Arc<KeyLimits> {
    Arc::default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio_util::sync::CancellationToken;

    use crate::base::memory::MemoryHold;
    use crate::telemetry::ParentSpan;

    fn caller(limits: KeyLimits) -> Caller {
        Caller {
            owner: "o".into(),
            key: "k".into(),
            is_admin: false,
            limits: Arc::new(limits),
            removal: CancellationToken::new(),
            connection: None,
            span: ParentSpan::default(),
            memory: MemoryHold::default(),
        }
    }

    fn time(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    #[test]
    fn requests_of_a_minute_may_come_at_once_and_then_at_the_allowed_rate() {
        let (quotas, start) = (Quotas::default(), Instant::now());
        let caller = caller(KeyLimits { requests_per_minute: Some(3), ..KeyLimits::default() });
        let admit_at = |seconds: u64| {
            quotas.admit(&caller, start + Duration::from_secs(seconds), time("2026-01-01T00:00:00Z"))
        };
        for _ in 0..3 {
            assert!(admit_at(0).is_ok());
        }
        assert_eq!(admit_at(0).expect_err("too many").code(), "rate_limited");
        assert!(admit_at(19).is_err());
        assert!(admit_at(20).is_ok() && admit_at(20).is_err());
        // After a pause the full burst is available again.
        assert!(
            admit_at(200).is_ok() && admit_at(200).is_ok() && admit_at(200).is_ok() && admit_at(200).is_err()
        );
    }

    #[test]
    fn tokens_are_limited_each_day() {
        let quotas = Quotas::new("2026-01-01", [("k".to_owned(), 90)].into_iter());
        let caller = caller(KeyLimits { tokens_per_day: Some(100), ..KeyLimits::default() });
        let (evening, next_day) = (time("2026-01-01T23:59:00Z"), time("2026-01-02T00:00:01Z"));
        let now = Instant::now();
        assert!(quotas.admit(&caller, now, evening).is_ok());
        quotas.spend("k", TokenCounts { input: 9, output: 2 }, evening);
        assert_eq!(quotas.admit(&caller, now, evening).expect_err("used up").code(), "tokens_used_up");
        assert!(quotas.admit(&caller, now, next_day).is_ok());
        quotas.spend("k", TokenCounts { input: 1, output: 0 }, next_day);
        assert!(quotas.admit(&caller, now, next_day).is_ok());
        assert_eq!(seconds_until_midnight(evening), 60);
    }
}
