//! The fuzz targets on seeded random inputs: the same bodies as in `fuzz/`, on the stable compiler.
//!
//! `FUZZ_ITERATIONS` says how many inputs each test reads; the time follows from it, the result does not depend on it.

use tambour::dialect::DIALECTS;
use tambour_fixtures::random::Random;
use tambour_fixtures::targets;
use tambour_fixtures::{folder, load};

/// Inputs of one test when `FUZZ_ITERATIONS` does not say.
const ITERATIONS: u64 = 1000;

fn iterations() -> u64 {
    let given = std::env::var("FUZZ_ITERATIONS").ok();
    given.map_or(ITERATIONS, |given| given.parse().expect("FUZZ_ITERATIONS is a number"))
}

#[test]
fn dialects() {
    // J-038
    let fixtures = load(&folder()).expect("the fixtures are readable");
    let replies: Vec<Vec<u8>> = fixtures.into_iter().map(|fixture| fixture.input).collect();
    for entry in DIALECTS {
        for seed in 0..iterations() {
            targets::dialect(entry.name, &targets::dialect_input(&mut Random::new(seed), &replies));
        }
    }
}

#[test]
fn json() {
    for seed in 0..iterations() * 4 {
        targets::json(&targets::json_input(&mut Random::new(seed)));
    }
}
