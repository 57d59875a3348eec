//! Shares with their confidence intervals, and quantiles.

use serde::{Deserialize, Serialize};

/// Quantile of the normal distribution for two-sided intervals of 95 %.
const Z: f64 = 1.959_963_984_540_054;

/// Share of replies: a count of a total, with its interval of Wilson at 95 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Share {
    pub(super) count: u64,
    pub(super) share: f64,
    /// Ends of the interval.
    pub(super) low: f64,
    pub(super) high: f64,
}

/// Difference of two shares, with its interval of Newcombe (hybrid score, method 10 of 1998) at 95 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Drop {
    /// Earlier share minus the later one.
    pub(super) drop: f64,
    /// Ends of the interval.
    pub(super) low: f64,
    pub(super) high: f64,
}

/// Median and ninth decile of a measure, by nearest rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Quantiles {
    /// Number of replies that have the measure.
    pub(super) count: u64,
    pub(super) median: u64,
    pub(super) p90: u64,
}

impl Share {
    /// Returns the share of `count` in `total`; 0 with the widest interval if the total is 0.
    pub(super) fn new(count: u64, total: u64) -> Share {
        let (share, low, high) = wilson(count, total);
        Share { count, share: round(share), low: round(low), high: round(high) }
    }
}

impl Drop {
    /// Compares a count of a total with an earlier one; both totals are above 0.
    pub(super) fn new((old_count, old_total): (u64, u64), (new_count, new_total): (u64, u64)) -> Drop {
        let (old, old_low, old_high) = wilson(old_count, old_total);
        let (new, new_low, new_high) = wilson(new_count, new_total);
        let drop = old - new;
        Drop {
            drop: round(drop),
            low: round(drop - (old - old_low).hypot(new_high - new)),
            high: round(drop + (old_high - old).hypot(new - new_low)),
        }
    }
}

impl Quantiles {
    /// Returns the quantiles of values in any order; `None` if there are none.
    pub(super) fn new(mut values: Vec<u64>) -> Option<Quantiles> {
        values.sort_unstable();
        let rank = |percent: usize| {
            let index = (values.len() * percent).div_ceil(100).max(1) - 1;
            values.get(index).copied()
        };
        Some(Quantiles { count: values.len() as u64, median: rank(50)?, p90: rank(90)? })
    }
}

/// Share with its interval of Wilson (1927).
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
fn wilson(count: u64, total: u64) -> (f64, f64, f64) {
    if total == 0 {
        return (0.0, 0.0, 1.0);
    }
    let (count, total) = (count as f64, total as f64);
    let share = count / total;
    let scale = 1.0 + Z * Z / total;
    let centre = (share + Z * Z / (2.0 * total)) / scale;
    let radius = Z / scale * (share * (1.0 - share) / total + Z * Z / (4.0 * total * total)).sqrt();
    (share, (centre - radius).max(0.0), (centre + radius).min(1.0))
}

/// Rounds to six digits after the point, so that figures are the same on every machine.
fn round(value: f64) -> f64 {
    // Adding 0 turns -0 into 0.
    (value * 1e6).round() / 1e6 + 0.0
}
