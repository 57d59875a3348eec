//! Tests of the test helpers: `tambour-fixtures` has no tests of its own, so that it is compiled once.

use tambour_fixtures::grammar::matches_grammar;
use tambour_fixtures::queue;

#[test]
fn the_grammar_tells_complete_streams_from_others() {
    for good in ["tpefE", "stpddpefffqE", "tppefE"] {
        assert!(matches_grammar(good, false), "{good}");
    }
    for bad in ["", "tpeE", "tefE", "tdefE", "fE", "tpfeE", "tpefEf", "tpefqqE", "tspefE", "tpefEE"] {
        assert!(!matches_grammar(bad, false), "{bad}");
    }
    assert!(matches_grammar("fqE", true));
}

#[test]
fn the_queue_does_everything_once_and_in_order() {
    let items: Vec<u32> = (0..100).collect();
    assert_eq!(
        queue::run_all(&items, |item| item * 2),
        items.iter().map(|item| item * 2).collect::<Vec<_>>()
    );
    assert!(queue::run_all(&[] as &[u32], |item| *item).is_empty());
    let mut order = Vec::new();
    queue::run_each(1, &items, |item| *item, |place, item| order.push((place, item)));
    assert_eq!(order, items.iter().map(|item| (*item as usize, *item)).collect::<Vec<_>>());
}

#[test]
#[should_panic(expected = "2 of 3:\none\n\nthree")]
fn the_queue_fails_with_all_complaints() {
    let items = [(1, "one"), (2, "two"), (3, "three")];
    queue::check_all(&items, |(number, name)| if number % 2 == 1 { Err((*name).to_owned()) } else { Ok(()) });
}
