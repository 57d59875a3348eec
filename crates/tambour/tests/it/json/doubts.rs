//! Doubts that a repair leaves, and the value each concerns.

use tambour::finding::Doubt;
use tambour::limits::Limits;
use tambour::repair::json::{PathStep, find, parse_strict_with_doubts};

/// Finds the value of a text; returns reason and path of each doubt.
#[track_caller]
fn doubts(text: &str) -> Vec<String> {
    let found = find(text, &Limits::default());
    let list = found.doubts.iter().map(|entry| {
        let steps = entry.path.iter().map(|step| match step {
            PathStep::Key(key) => format!("/{key}"),
            PathStep::Index(index) => format!("/{index}"),
        });
        format!("{:?} {}", entry.doubt, steps.collect::<String>())
    });
    list.collect()
}

#[test]
fn repairs_that_keep_the_meaning_leave_none() {
    // R-81, P-026
    for text in [
        "{'a': 'it\\'s', b: True, \"c\": [1, 2,], // note\n \"d\": None}",
        "{\"a\": \"x\ny\"}",
        "｛\"a\"：1，\"b\"：2｝",
        "[[\"SET\", \"a\", 1] [\"SET\", \"b\", 2]]",
        "{\"a\": [1] \"b\": 2}",
        "```json\n[[\"SET\", \"a\", 1]]\n```",
        "{\"a\": 9007199254740993, \"b\": 0.1, \"c\": 1e300}",
    ] {
        assert_eq!(doubts(text), [""; 0], "{text}");
    }
}

#[test]
fn every_other_repair_is_a_guess_about_its_value() {
    // R-81
    for (text, expected) in [
        ("{\"a\": go on, \"b\": 1}", "Guess /a"),
        ("{\"b\": 1, \"a\": NaN}", "Guess /a"),
        ("{\"b\": 1, \"a\": -Infinity}", "Guess /a"),
        ("{\"b\": 1, \"a\": undefined}", "Guess /a"),
        ("[[\"SET\", \"a\", 100 - 30], [\"SET\", \"b\", 1]]", "Guess /0/2"),
        ("[[\"SET\", \"a\", 1], [\"SET\", \"b\", \"x\" + \"y\"]]", "Guess /1/2"),
        ("[[\"SET\", \"a\", 1], [\"SET\", \"b\" 2]]", "Guess /1"),
        ("[[\"SET\", \"a\", [1, ...]], [\"SET\", \"b\", 2]]", "Guess /0/2"),
        ("{\"a\": \"say \"yes\" now\"}", "Guess /a"),
        ("{\"a\": +1}", "Guess /a"),
        ("{\"a\": \"x\" \"b\": 1}", "Guess "),
        ("{\"a\": \"\\d\"}", "Guess /a"),
        ("{\"a\":}", "Guess /a"),
        ("{\"ops\": [1}, \"b\": 2}", "Guess /ops"),
    ] {
        assert!(doubts(text).contains(&expected.to_owned()), "{text}: {:?}", doubts(text));
    }
}

#[test]
fn numbers_beyond_exact_range_are_told_by_their_path() {
    // R-81
    let text = "[[\"SET\", \"a\", 12345678901234567890123], [\"SET\", \"b\", 1e400], [\"SET\", \"c\", 1]]";
    assert_eq!(doubts(text), ["InexactNumber /0/2", "InexactNumber /1/2"]);
    let found = parse_strict_with_doubts("{\"a\": 3.14159265358979323846}", &Limits::default()).unwrap();
    assert_eq!(found.doubts.iter().next().unwrap().doubt, Doubt::InexactNumber);
    assert!(parse_strict_with_doubts("{\"a\": 1e400}", &Limits::default()).is_err());
}

#[test]
fn keys_that_stand_twice_are_told_by_their_path() {
    // R-82
    assert_eq!(doubts("[{\"a\": 1}, {\"a\": 1, \"a\": 2}]"), ["DuplicateKey /1/a"]);
    let found = parse_strict_with_doubts("{\"x\": {\"a\": 1, \"a\": 2}}", &Limits::default()).unwrap();
    assert!(found.doubts.find_within(&[PathStep::Key("x".into())]).is_some());
    assert!(found.doubts.find_within(&[PathStep::Key("y".into())]).is_none());
    assert_eq!(found.reports[0].rule.code, "duplicate_key");
}

#[test]
fn several_values_are_items() {
    assert_eq!(doubts("{\"a\": 1}\n{\"a\": b c}"), ["Guess /1/a"]);
}

#[test]
fn more_doubts_than_are_kept_are_about_everything() {
    // X-007
    let items: Vec<String> = (0..1000).map(|at| format!("[\"SET\", \"a\", x{at}]")).collect();
    let text = format!("[{}, [\"SET\", \"b\", 1]]", items.join(", "));
    let found = find(&text, &Limits::default());
    assert!(found.doubts.find_within(&[PathStep::Index(1000)]).is_some());
    assert!(found.doubts.iter().count() <= 64);
}
