//! Mistakes of the caller: kind, place and cause.

use std::error::Error as _;

use tambour::Options;
use tambour::error::{ErrorKind, Location};
use tambour::exit::ExitCriteria;

#[test]
fn a_malformed_text_is_told_with_its_place() {
    let error = ExitCriteria::from_json("{\n  \"understanding_threshold\": x\n}").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Malformed);
    let place = error.location().expect("a place");
    assert_eq!((place.line, place.column, &*place.excerpt), (2, 30, "  \"understanding_threshold\": x"));
    assert!(error.source().is_some_and(|cause| cause.to_string().contains("line 2")));
    assert!(error.to_string().starts_with("the text of the exit criteria is not JSON"), "{error}");
}

#[test]
fn other_mistakes_have_a_kind_and_no_place() {
    let unknown = Options::default().set("none", "x").unwrap_err();
    assert_eq!(
        (unknown.kind(), unknown.location(), unknown.source().is_none()),
        (ErrorKind::Unknown, None, true)
    );
    assert_eq!(Options::default().set("hold", "x").unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn a_place_counts_characters_and_shows_a_part_of_a_long_line() {
    let text = format!("好\n{}é!\r\nend", "ü".repeat(100));
    let offset = text.find('!').expect("it is there");
    let place = Location::from_offset(&text, offset);
    assert_eq!((place.line, place.column), (2, 102));
    assert_eq!(place.excerpt, format!("{}é!", "ü".repeat(39)));
    // Offsets past the end, and in the middle of a character.
    assert_eq!((Location::from_offset(&text, 10_000).line, Location::from_offset("é", 1).column), (3, 1));
    assert_eq!(Location::from_offset("", 0).excerpt, "");
}
