//! Properties of every input: valid streams, bounded hold-back, no panic.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};
use tambour::dialect::DIALECTS;
use tambour::{InputEnd, Options};
use tambour_fixtures::random::{RandomSource, SOUP_PIECES};
use tambour_fixtures::{ChunkCuts, ReadingCase, fixture, fixtures_folder, grammar, load_fixtures};

/// Fixed seed: each run reads the same inputs; `PROPTEST_CASES` sets their number. A failure becomes a fixture, not a seed file.
pub(crate) fn config() -> Config {
    let defaults = Config::default();
    Config { rng_seed: RngSeed::Fixed(20_261_121), failure_persistence: None, ..defaults }
}

/// Generates text, tag soup, bytes, or a fixture with mutations.
pub(crate) fn any_input() -> impl Strategy<Value = Vec<u8>> {
    let fixtures = load_fixtures(&fixtures_folder()).expect("the fixtures are readable");
    let replies: Vec<Vec<u8>> = fixtures.into_iter().map(|fixture| fixture.input).collect();
    let soup = prop::collection::vec(prop::sample::select(SOUP_PIECES), 0..40);
    let text = prop::collection::vec(any::<char>(), 0..200);
    prop_oneof![
        1 => text.prop_map(|text| text.into_iter().collect::<String>().into_bytes()),
        3 => soup.prop_map(|pieces| pieces.concat().into_bytes()),
        1 => prop::collection::vec(any::<u8>(), 0..200),
        3 => any::<u64>().prop_map(move |seed| mutation(&replies, seed)),
    ]
}

fn mutation(replies: &[Vec<u8>], seed: u64) -> Vec<u8> {
    let mut random = RandomSource::new(seed);
    if replies.is_empty() {
        return random.tag_soup(20).into_bytes();
    }
    let reply = random.pick(replies).clone();
    random.mutate(&reply)
}

fn any_end() -> impl Strategy<Value = InputEnd> {
    const WORDS: &[&str] = &["stop", "length", "content_filter", "cancelled", "unknown", "failed"];
    prop::sample::select(WORDS).prop_map(|word| fixture::parse_end(word).expect("these words are known"))
}

proptest! {
    #![proptest_config(config())]

    ///
    #[test]
    fn every_stream_is_valid(input in any_input(), end in any_end(), skips_thinking in any::<bool>()) {
        let mut options = Options::default();
        if skips_thinking {
            options.set("plain.thinking", "skip").unwrap();
            options.allow_missing_thinking = true;
        }
        for entry in DIALECTS {
            let case = ReadingCase { dialect: entry.name, options: &options, reasoning: None, input: &input, end: &end };
            let reading = case.read(ChunkCuts::Single).expect("it is in the table");
            let validity = grammar::check_stream(&reading.events, &options);
            prop_assert!(validity.is_ok(), "{}: {validity:?}\n{:?}", entry.name, String::from_utf8_lossy(&input));
        }
    }

    /// small limits, which otherwise would hide bytes that must not be held.
    #[test]
    fn little_is_held_back(input in any_input()) {
        let mut options = Options::default();
        options.limits.hold = 16;
        for entry in DIALECTS {
            let case =
                ReadingCase { dialect: entry.name, options: &options, reasoning: None, input: &input, end: &InputEnd::stop() };
            let result = case.check_held();
            prop_assert!(result.is_ok(), "{result:?}\n{:?}", String::from_utf8_lossy(&input));
        }
    }

    /// reasoning in a field of its own never breaks the stream of a reply.
    #[test]
    fn reasoning_beside_the_reply_is_harmless(input in any_input(), text in ".{0,40}") {
        let (options, end) = (Options::default(), InputEnd::stop());
        for entry in DIALECTS {
            let case =
                ReadingCase { dialect: entry.name, options: &options, reasoning: Some(&text), input: &input, end: &end };
            let whole = case.read(ChunkCuts::Single).expect("it is in the table");
            let validity = grammar::check_stream(&whole.events, &options);
            prop_assert!(
                validity.is_ok(), "{}: {validity:?}\n{text:?} beside {:?}", entry.name, String::from_utf8_lossy(&input)
            );
        }
    }
}
