//! The result does not depend on how a reply was cut (J-038).

use proptest::prelude::*;
use tambour::Options;
use tambour::dialect::DIALECTS;
use tambour_fixtures::random::Random;
use tambour_fixtures::{Case, Cuts, Reading};

use super::properties::{any_input, config};

/// Reads as every dialect and hands over each reading of the whole.
fn each_dialect(input: &[u8], check: impl Fn(&Case<'_>, &Reading) -> Result<(), String>) {
    let (options, end) = (Options::default(), tambour::End::stop());
    for entry in DIALECTS {
        let case = Case { dialect: entry.name, options: &options, reasoning: None, input, end: &end };
        let whole = case.read(Cuts::Whole).expect("it is in the table");
        if let Err(error) = check(&case, &whole) {
            panic!("{error}");
        }
    }
}

proptest! {
    #![proptest_config(config())]

    /// J-038
    #[test]
    fn any_cutting_gives_the_same(input in any_input(), seed in any::<u64>()) {
        each_dialect(&input, |case, whole| {
            case.same(whole, Cuts::Every(1))?;
            case.same(whole, Cuts::At(&Random::new(seed).cuts(input.len())))
        });
    }

    /// J-038: cut in two at each place.
    #[test]
    fn each_cut_gives_the_same(soup in 1_usize..12, seed in any::<u64>()) {
        let input = Random::new(seed).soup(soup).into_bytes();
        each_dialect(&input, |case, whole| {
            (1..input.len()).try_for_each(|at| case.same(whole, Cuts::At(&[at])))
        });
    }
}

#[test]
fn a_difference_is_found() {
    // The comparison itself: readings of different inputs differ.
    let (options, end) = (Options::default(), tambour::End::stop());
    let case = |input| Case { dialect: "plain", options: &options, reasoning: None, input, end: &end };
    let other = case(b"Hello").read(Cuts::Whole).expect("plain is a dialect");
    let error = case(b"Hallo").same(&other, Cuts::Every(1)).expect_err("the texts differ");
    assert!(error.contains("item 3"), "{error}");
}
