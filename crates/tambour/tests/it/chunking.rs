//! Results are independent of the cuts of a reply (J-038).

use proptest::prelude::*;
use tambour::Options;
use tambour::dialect::DIALECTS;
use tambour_fixtures::random::RandomSource;
use tambour_fixtures::{ChunkCuts, FixtureReading, ReadingCase, fixture};

use super::properties::{any_input, config};

/// Reads the input as every dialect and checks each reading of the whole.
fn each_dialect(
    input: &[u8],
    check: impl Fn(&ReadingCase<'_>, &FixtureReading) -> Result<(), String>,
) -> Result<(), TestCaseError> {
    let (options, end) = (Options::default(), tambour::InputEnd::stop());
    for entry in DIALECTS {
        let case = ReadingCase { dialect: entry.name, options: &options, reasoning: None, input, end: &end };
        let whole = case.read(ChunkCuts::Single).expect("it is in the table");
        check(&case, &whole).map_err(TestCaseError::fail)?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(config())]

    /// J-038
    #[test]
    fn any_cutting_gives_the_same(input in any_input(), seed in any::<u64>()) {
        each_dialect(&input, |case, whole| {
            case.check_same(whole, ChunkCuts::Every(1))?;
            case.check_same(whole, ChunkCuts::Offsets(&RandomSource::new(seed).random_cuts(input.len())))
        })?;
    }

    /// J-038: cut in two at each place.
    #[test]
    fn each_cut_gives_the_same(soup in 1_usize..12, seed in any::<u64>()) {
        let input = RandomSource::new(seed).tag_soup(soup).into_bytes();
        each_dialect(&input, |case, whole| {
            (1..input.len()).try_for_each(|at| case.check_same(whole, ChunkCuts::Offsets(&[at])))
        })?;
    }
}

/// Replies with text that goes on past a limit, and with a reported fault at the limit itself.
fn replies_past_limits() -> Vec<(&'static str, String)> {
    let long = |n: usize| "a".repeat(n);
    let mut replies = Vec::new();
    for n in [60, 63, 64, 65, 90] {
        for fault in ["\u{1}", "\t", "\n", "\\q", "\\u00zz", "\r\n\u{2}"] {
            replies.push(("ai_say", format!("{{\"response\":{{\"other\":\"{}{fault}b\"}}}}", long(n))));
            replies
                .push(("aiplan", format!("{{\"direct_response\":\"{}{fault}b\",\"mode\":\"x\"}}", long(n))));
        }
    }
    for blanks in [900, 1005, 1006, 1007, 1008, 1009, 1100, 2100] {
        for suffix in ["", "?", "?x", ":  \u{3000}", "<", "<think>x</think>y", "x", ". <thi", " `", "``` ?"] {
            for blank in [" ", "\n"] {
                replies.push(("plain", format!("<<ParsingError>>{}{suffix}", blank.repeat(blanks))));
                replies.push((
                    "plain",
                    format!("<<ParsingError>>?{}{suffix}{}", blank.repeat(9), blank.repeat(blanks)),
                ));
                replies.push(("plain", format!("```{}<<ParsingError>>{suffix}", blank.repeat(blanks))));
            }
        }
    }
    for suffix in ["~~~", "~", "``", "x", " ~~~"] {
        replies.push(("plain", format!("<<ParsingError>></think>{suffix}")));
    }
    replies
}

#[test]
fn what_is_cut_at_a_limit_is_cut_the_same() {
    // J-038, X-007
    let mut options = Options::default();
    (options.limits.hold, options.limits.tag, options.limits.line) = (64, 48, 40);
    for (dialect, reply) in replies_past_limits() {
        for finish in ["stop", "length", "failed"] {
            let end = fixture::parse_end(finish).expect("these words are known");
            let case = ReadingCase {
                dialect,
                options: &options,
                reasoning: None,
                input: reply.as_bytes(),
                end: &end,
            };
            let whole = case.read(ChunkCuts::Single).expect("it is in the table");
            for n in [1, 2, 7, 16, 40, 64] {
                let result = case.check_same(&whole, ChunkCuts::Every(n));
                assert!(result.is_ok(), "{result:?}\n{reply:?}");
            }
        }
    }
}

#[test]
fn a_difference_is_found() {
    // Test of the comparison itself: readings of different inputs differ.
    let (options, end) = (Options::default(), tambour::InputEnd::stop());
    let case = |input| ReadingCase { dialect: "plain", options: &options, reasoning: None, input, end: &end };
    let other = case(b"Hello").read(ChunkCuts::Single).expect("plain is a dialect");
    let error = case(b"Hallo").check_same(&other, ChunkCuts::Every(1)).expect_err("the texts differ");
    assert!(error.contains("item 3"), "{error}");
}
