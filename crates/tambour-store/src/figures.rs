//! Figures of replies over time: counts by status, repairs, tokens, cost and times to the first text. They
//! are kept after the replies are deleted.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::StoreError;

/// Figures to add, of one or more replies of one upstream within one hour.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    /// The hour in UTC, such as `2026-01-31T09`.
    pub hour: String,
    /// Owner of the replies.
    pub owner: String,
    /// Name of the upstream; empty if it is no longer known.
    pub upstream: String,
    /// Counts of replies and tokens.
    pub counts: ReplyCounts,
    /// Bucket, as in [`FirstTextTimes`], of the time from the request to the first text of one reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_text: Option<u8>,
    /// Repairs of completed replies by rule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repairs: Vec<RuleCount>,
}

/// Counts of replies and tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplyCounts {
    /// Replies that completed.
    pub completed: i64,
    /// Replies that ended with an error.
    pub failed: i64,
    /// Replies that were cancelled.
    pub cancelled: i64,
    /// Completed replies that were repaired and used.
    pub repaired: i64,
    /// Completed replies shown as a fallback text or kept as prose.
    pub replaced: i64,
    /// Tokens of prompts.
    pub input_tokens: i64,
    /// Tokens of replies.
    pub output_tokens: i64,
    /// Input and output tokens, among those above, without a configured price.
    pub unpriced_tokens: i64,
    /// Cost in millionths of the currency's unit.
    pub cost: i64,
}

impl ReplyCounts {
    /// Adds other counts; a sum that overflows stays at the maximum.
    pub fn add(&mut self, other: &ReplyCounts) {
        let ReplyCounts {
            completed,
            failed,
            cancelled,
            repaired,
            replaced,
            input_tokens,
            output_tokens,
            unpriced_tokens,
            cost,
        } = other;
        for (sum, count) in [
            (&mut self.completed, completed),
            (&mut self.failed, failed),
            (&mut self.cancelled, cancelled),
            (&mut self.repaired, repaired),
            (&mut self.replaced, replaced),
            (&mut self.input_tokens, input_tokens),
            (&mut self.output_tokens, output_tokens),
            (&mut self.unpriced_tokens, unpriced_tokens),
            (&mut self.cost, cost),
        ] {
            *sum = sum.saturating_add(*count);
        }
    }
}

/// Number of repairs by one rule with one code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleCount {
    /// Id of the rule.
    pub rule: String,
    /// Code of the rule.
    pub code: String,
    /// Number of repairs.
    pub count: i64,
}

/// Length of the steps of time that figures are grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureStep {
    /// An hour.
    Hour,
    /// A day.
    Day,
}

impl FigureStep {
    /// Returns the number of characters at the start of [`Figures::hour`] that name the step.
    #[must_use]
    pub fn hour_prefix_len(self) -> u32 {
        match self {
            FigureStep::Hour => 13,
            FigureStep::Day => 10,
        }
    }
}

/// Figures of one upstream in one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepFigures {
    /// The step, such as `2026-01-31T09` or `2026-01-31`.
    pub time: String,
    /// Name of the upstream.
    pub upstream: String,
    /// Counts of replies and tokens.
    pub counts: ReplyCounts,
    /// Times to the first text.
    pub first_text_times: FirstTextTimes,
}

/// Repairs by one rule in one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepRepairs {
    /// The step, such as `2026-01-31T09` or `2026-01-31`.
    pub time: String,
    /// The rule, and the number of its repairs in the step.
    pub rule: RuleCount,
}

/// Distribution of times to the first text: counts of replies by bucket. Bucket `n` holds times around
/// 2^(n/4) milliseconds, so that every fourth bucket doubles the time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FirstTextTimes(Vec<i64>);

/// Number of buckets; the last one holds everything from sixteen minutes on.
const BUCKET_COUNT: usize = 81;

impl FirstTextTimes {
    /// Returns the bucket of a time in milliseconds.
    #[must_use]
    pub fn bucket(ms: u64) -> u8 {
        #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let bucket = ((ms.max(1) as f64).log2() * 4.0).round() as usize;
        u8::try_from(bucket.min(BUCKET_COUNT - 1)).unwrap_or(u8::MAX)
    }

    /// Adds `count` times in one bucket.
    pub fn add(&mut self, bucket: u8, count: i64) {
        let bucket = usize::from(bucket).min(BUCKET_COUNT - 1);
        if self.0.len() <= bucket {
            self.0.resize(bucket + 1, 0);
        }
        self.0[bucket] = self.0[bucket].saturating_add(count);
    }

    /// Adds all times of another distribution.
    pub fn merge(&mut self, other: &FirstTextTimes) {
        for (bucket, count) in (0..).zip(&other.0) {
            self.add(bucket, *count);
        }
    }

    /// Returns the quantile `fraction` (0 to 1) in milliseconds, accurate to a tenth of it; `None` if empty.
    #[must_use]
    pub fn quantile(&self, fraction: f64) -> Option<u64> {
        let total: i64 = self.0.iter().sum();
        #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
        let rank = ((total as f64 * fraction).ceil() as i64).max(1);
        let mut count_so_far = 0;
        let bucket = self.0.iter().position(|count| {
            count_so_far += count;
            count_so_far >= rank
        })?;
        #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let ms = (bucket as f64 / 4.0).exp2().round() as u64;
        Some(ms)
    }
}

/// Adds counts of times to the first text, each with its step, upstream and bucket, to the rows with the same
/// step and upstream. Both lists are sorted by step and upstream.
pub(crate) fn merge_first_texts(rows: &mut [StepFigures], counts: Vec<(String, String, i64, i64)>) {
    let mut rows_left = rows.iter_mut().peekable();
    for (time, upstream, bucket, count) in counts {
        let is_before = |row: &&mut StepFigures| (&row.time, &row.upstream) < (&time, &upstream);
        while rows_left.next_if(is_before).is_some() {}
        if let Some(row) = rows_left.peek_mut().filter(|row| row.time == time && row.upstream == upstream) {
            row.first_text_times.add(u8::try_from(bucket).unwrap_or(u8::MAX), count);
        }
    }
}

/// Storage of figures.
#[async_trait]
pub trait ReplyFigures: Send + Sync {
    /// Adds figures to those stored for their hours. All or nothing.
    ///
    /// # Errors
    /// The database failed.
    async fn add_figures(&self, figures: &[Figures]) -> Result<(), StoreError>;

    /// Returns figures of one owner or of all, from the first of `days` to the second (inclusive; UTC, such
    /// as `2026-01-31`), by step and upstream, earliest first.
    ///
    /// # Errors
    /// The database failed.
    async fn figures(
        &self,
        owner: Option<&str>,
        days: (&str, &str),
        step: FigureStep,
    ) -> Result<Vec<StepFigures>, StoreError>;

    /// Returns repairs of one owner or of all, from the first of `days` to the second (inclusive), by step
    /// and rule, earliest first. Only the `max_rules` rules with the most repairs in that time are included.
    ///
    /// # Errors
    /// The database failed.
    async fn repairs(
        &self,
        owner: Option<&str>,
        days: (&str, &str),
        step: FigureStep,
        max_rules: u32,
    ) -> Result<Vec<StepRepairs>, StoreError>;
}
