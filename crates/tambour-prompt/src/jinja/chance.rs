//! Reproducible randomness: dice, choices made anew each time, and choices that stay the same.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use sha2::{Digest, Sha256};

/// Maximum number of dice in one roll.
const MAX_DICE: u32 = 1_000;

/// Maximum number of sides of a die.
const MAX_SIDES: u32 = 1_000_000;

/// Returns a random number generator seeded from `parts`: equal parts give equal numbers on every machine.
pub(super) fn seeded_rng(parts: &[&[u8]]) -> ChaCha8Rng {
    let mut hasher = Sha256::new();
    for part in parts {
        // Length prefixes keep `ab`, `c` distinct from `a`, `bc`.
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    ChaCha8Rng::from_seed(hasher.finalize().into())
}

/// Returns a number below `limit`, which must not be 0.
pub(super) fn random_below(rng: &mut ChaCha8Rng, limit: usize) -> usize {
    rng.random_range(0..limit)
}

/// Rolls dice by a formula, `[count]d<sides>[+n|-n]` or only the sides of one die, and returns the sum.
///
/// # Errors
/// The formula is not valid or asks for too much. The text says why.
pub(super) fn roll_dice(rng: &mut ChaCha8Rng, formula: &str) -> Result<i64, String> {
    let formula = formula.trim();
    let formula_error =
        || format!("`{}` is not a dice formula such as 2d6+1", tambour::finding::clip(formula, 40));
    let (count, after_count) = match formula.split_once(['d', 'D']) {
        Some(("", after_count)) => (1, after_count),
        Some((count, after_count)) => (parse_natural(count).ok_or_else(formula_error)?, after_count),
        None => (1, formula),
    };
    let (sides, bonus) = match after_count.find(['+', '-']) {
        Some(at) if formula.contains(['d', 'D']) => (&after_count[..at], &after_count[at..]),
        _ => (after_count, ""),
    };
    let sides = parse_natural(sides).ok_or_else(formula_error)?;
    let digits = bonus.get(1..).unwrap_or_default();
    if !bonus.is_empty()
        && (digits.is_empty() || digits.len() > 9 || !digits.bytes().all(|b| b.is_ascii_digit()))
    {
        return Err(formula_error());
    }
    let bonus: i64 = if bonus.is_empty() { 0 } else { bonus.parse().map_err(|_| formula_error())? };
    if count > MAX_DICE || sides > MAX_SIDES {
        return Err(format!("at most {MAX_DICE} dice of {MAX_SIDES} sides are thrown"));
    }
    let sum: i64 = (0..count).map(|_| i64::from(rng.random_range(1..=sides))).sum();
    Ok(sum + bonus)
}

/// Parses a positive number written in digits without a leading zero; one that is too large becomes
/// `u32::MAX`.
fn parse_natural(digits: &str) -> Option<u32> {
    let is_digit = |byte: u8| byte.is_ascii_digit();
    let is_natural = !digits.is_empty() && !digits.starts_with('0') && digits.bytes().all(is_digit);
    is_natural.then(|| digits.parse().unwrap_or(u32::MAX))
}
