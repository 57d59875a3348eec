//! The fuzz targets on seeded random inputs: the same bodies as in `fuzz/`, on the stable compiler.
//!
//! `FUZZ_ITERATIONS` sets the number of inputs of each test; only the time depends on it.

use tambour::dialect::DIALECTS;
use tambour_fixtures::imports;
use tambour_fixtures::prompts;
use tambour_fixtures::queue;
use tambour_fixtures::random::RandomSource;
use tambour_fixtures::targets;
use tambour_fixtures::words::ReplyPool;
use tambour_fixtures::{fixtures_folder, load_fixtures};

/// Number of inputs of one test without `FUZZ_ITERATIONS`.
const ITERATIONS: u64 = 1000;

pub(crate) fn iterations() -> u64 {
    let text = std::env::var("FUZZ_ITERATIONS").ok();
    text.map_or(ITERATIONS, |text| text.parse().expect("FUZZ_ITERATIONS is a number"))
}

/// Ranges of 500 seeds, each the work of one thread.
fn seed_ranges(count: u64) -> Vec<std::ops::Range<u64>> {
    (0..count).step_by(500).map(|first| first..count.min(first + 500)).collect()
}

#[test]
fn dialects() {
    // J-038
    let fixtures = load_fixtures(&fixtures_folder()).expect("the fixtures are readable");
    let replies: Vec<Vec<u8>> = fixtures.into_iter().map(|fixture| fixture.input).collect();
    for entry in DIALECTS {
        queue::run_all(&seed_ranges(iterations()), |seeds| {
            for seed in seeds.clone() {
                targets::check_dialect(
                    entry.name,
                    &targets::random_dialect_input(&mut RandomSource::new(seed), &replies),
                );
            }
        });
    }
}

#[test]
fn json() {
    queue::run_all(&seed_ranges(iterations() * 4), |seeds| {
        for seed in seeds.clone() {
            targets::check_json(&targets::random_json_input(&mut RandomSource::new(seed)));
        }
    });
}

#[test]
fn html() {
    // F-104, F-220, F-221, F-223
    queue::run_all(&seed_ranges(iterations() * 4), |seeds| {
        for seed in seeds.clone() {
            targets::check_html(&targets::random_html_input(&mut RandomSource::new(seed)));
        }
    });
}

#[test]
fn state() {
    // F-113, F-116: random operations can be taken back exactly, and leave no trace when they are refused together.
    queue::run_all(&seed_ranges(iterations() * 4), |seeds| {
        for seed in seeds.clone() {
            targets::check_state(&targets::random_state_input(&mut RandomSource::new(seed)));
        }
    });
}

#[test]
fn files_of_other_programs() {
    // F-013: an imported file is exported and imported again without change
    queue::run_all(&seed_ranges(iterations()), |seeds| {
        for seed in seeds.clone() {
            imports::check_file(&imports::file_input(&mut RandomSource::new(seed)));
        }
    });
}

#[test]
fn prompts() {
    // F-004, F-005
    queue::run_all(&seed_ranges(iterations()), |seeds| {
        for seed in seeds.clone() {
            imports::check_skein(&imports::skein_input(&mut RandomSource::new(seed)));
        }
    });
}

#[test]
fn words() {
    // Invariant 5; seeds apart from those of the property itself.
    let replies = ReplyPool::load().expect("the fixtures are readable");
    let jobs: Vec<_> = seed_ranges(iterations())
        .into_iter()
        .flat_map(|seeds| (0..DIALECTS.len()).map(move |at| (at, seeds.clone())))
        .collect();
    queue::run_all(&jobs, |(dialect, seeds)| {
        for seed in seeds.clone() {
            targets::check_words(&targets::random_words_input(*dialect, (1 << 32) + seed, &replies));
        }
    });
}

#[test]
fn macros() {
    // F-031
    queue::run_all(&seed_ranges(iterations()), |seeds| {
        for seed in seeds.clone() {
            prompts::check_macros(&prompts::macros_input(&mut RandomSource::new(seed)));
        }
    });
}

#[test]
fn templates() {
    // S-028, S-040
    queue::run_all(&seed_ranges(iterations()), |seeds| {
        for seed in seeds.clone() {
            prompts::check_template(&prompts::template_input(&mut RandomSource::new(seed)));
        }
    });
}
