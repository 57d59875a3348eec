//! The checker against the grammar as a matcher on letters, in all forms of a stream, and on any bytes (J-015, J-060, J-065).

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};
use tambour::contract::{StreamCheckOptions, StreamChecker, TranscriptForm, check_transcript, check_values};
use tambour::finding::{Finding, Severity};

use super::{row_codes, stream};

/// Reduces findings to row, code, severity and message, without their places.
fn without_places(found: Vec<Finding>) -> Vec<(String, String, Severity, String)> {
    found.into_iter().map(|f| (f.rule.into(), f.code.into(), f.severity, f.message)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_three_forms_of_a_stream_have_the_same_findings(letters in "[sTPdEFQXhce]{0,12}") {
        let events = stream(&letters);
        let enveloped: Vec<Value> = events.iter().map(|event| {
            let mut event = event.clone();
            event["data"]["message_id"] = json!("m");
            event["data"]["request_id"] = json!("r");
            event
        }).collect();
        let options = |form| {
            let mut options = StreamCheckOptions::default();
            (options.form, options.envelope, options.terminal) = (form, Some(false), Some(false));
            options
        };
        let list = without_places(check_values(&enveloped, options(None)));
        let lines: String = enveloped.iter().map(|event| format!("{event}\n")).collect();
        prop_assert_eq!(&without_places(check_transcript(lines.as_bytes(), options(None))), &list); // J-065
        let wire: String = enveloped.iter()
            .map(|event| format!("event: {}\ndata: {}\n\n", event["event"].as_str().unwrap(), event["data"]))
            .collect();
        prop_assert_eq!(&without_places(check_transcript(wire.as_bytes(), options(None))), &list); // J-065
        let array = Value::Array(enveloped).to_string();
        prop_assert_eq!(&without_places(check_transcript(array.as_bytes(), options(Some(TranscriptForm::Array)))), &list); // J-065
    }
}

// Oracle: the grammar of the specification as a matcher on letters, and a check of the ids.

/// Returns whether `word` matches `s? T (P d*)+ E F+ Q? X`.
fn matches_grammar(word: &[u8]) -> bool {
    fn count_repeats(word: &[u8], letter: u8) -> (usize, &[u8]) {
        let count = word.iter().take_while(|&&other| other == letter).count();
        (count, &word[count..])
    }
    let (summaries, rest) = count_repeats(word, b's');
    let Some(mut rest) = rest.strip_prefix(b"T").filter(|_| summaries <= 1) else { return false };
    let mut phases = 0;
    while let Some(after) = rest.strip_prefix(b"P") {
        rest = count_repeats(after, b'd').1;
        phases += 1;
    }
    let Some(rest) = rest.strip_prefix(b"E").filter(|_| phases > 0) else { return false };
    let (finals, rest) = count_repeats(rest, b'F');
    let (queries, rest) = count_repeats(rest, b'Q');
    finals > 0 && queries <= 1 && rest == b"X"
}

/// Returns whether ids are 1, 2, 3, ... and each delta has the id of its phase.
fn has_consecutive_ids(events: &[(u8, u64)]) -> bool {
    let mut current = 0;
    events.iter().all(|&(letter, id)| match letter {
        b'P' => {
            current += 1;
            id == current
        }
        b'd' => id == current,
        _ => true,
    })
}

fn events_from_letters(events: &[(u8, u64)]) -> Vec<Value> {
    events
        .iter()
        .map(|&(letter, id)| {
            let mut event = stream(&char::from(letter).to_string()).remove(0);
            if matches!(letter, b'P' | b'd') {
                event["data"]["id"] = json!(id);
            }
            event
        })
        .collect()
}

fn valid_stream() -> impl Strategy<Value = Vec<(u8, u64)>> {
    (any::<bool>(), prop::collection::vec(0..3usize, 1..4), 1..4usize, any::<bool>()).prop_map(
        |(summary, phases, finals, queries)| {
            let mut events = Vec::new();
            events.extend(summary.then_some((b's', 0)));
            events.push((b'T', 0));
            for (index, deltas) in phases.iter().enumerate() {
                let id = index as u64 + 1;
                events.push((b'P', id));
                events.extend(std::iter::repeat_n((b'd', id), *deltas));
            }
            events.push((b'E', 0));
            events.extend(std::iter::repeat_n((b'F', 0), finals));
            events.extend(queries.then_some((b'Q', 0)));
            events.push((b'X', 0));
            events
        },
    )
}

#[derive(Clone, Debug)]
enum Mutation {
    Nothing,
    Delete(Index),
    Duplicate(Index),
    Swap(Index),
    Move(Index, Index),
    Insert(Index, u8),
    Renumber(Index, u64),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let letter = prop::sample::select(b"sTPdEFQX".to_vec());
    prop_oneof![
        Just(Mutation::Nothing),
        any::<Index>().prop_map(Mutation::Delete),
        any::<Index>().prop_map(Mutation::Duplicate),
        any::<Index>().prop_map(Mutation::Swap),
        any::<(Index, Index)>().prop_map(|(from, to)| Mutation::Move(from, to)),
        (any::<Index>(), letter).prop_map(|(at, letter)| Mutation::Insert(at, letter)),
        (any::<Index>(), 0..5u64).prop_map(|(at, id)| Mutation::Renumber(at, id)),
    ]
}

fn mutate(events: &mut Vec<(u8, u64)>, mutation: &Mutation) {
    let length = events.len();
    match mutation {
        Mutation::Nothing => {}
        Mutation::Delete(at) => drop(events.remove(at.index(length))),
        Mutation::Duplicate(at) => events.insert(at.index(length), events[at.index(length)]),
        Mutation::Swap(at) => events.swap(at.index(length - 1), at.index(length - 1) + 1),
        Mutation::Move(from, to) => {
            let event = events.remove(from.index(length));
            events.insert(to.index(length), event);
        }
        Mutation::Insert(at, letter) => events.insert(at.index(length + 1), (*letter, 1)),
        Mutation::Renumber(at, id) => events[at.index(length)].1 = *id,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_mutation_is_flagged_exactly_when_it_breaks_the_grammar(mut events in valid_stream(), change in mutation()) {
        mutate(&mut events, &change);
        let letters: Vec<u8> = events.iter().map(|&(letter, _)| letter).collect();
        let is_valid = matches_grammar(&letters) && has_consecutive_ids(&events);
        let found = check_values(&events_from_letters(&events), StreamCheckOptions::default());
        let is_flagged = found.iter().any(|finding| finding.severity == Severity::Error);
        prop_assert_eq!(is_flagged, !is_valid, "{:?}: {:?}", change, row_codes(&found)); // J-015, J-060
    }
}

#[test]
fn all_short_words_are_judged_as_the_grammar_judges_them() {
    let mut stack = vec![String::new()];
    while let Some(letters) = stack.pop() {
        let found = check_values(&stream(&letters), StreamCheckOptions::default());
        let is_flagged = found.iter().any(|finding| finding.severity == Severity::Error);
        assert_eq!(is_flagged, !matches_grammar(letters.as_bytes()), "{letters}: {:?}", row_codes(&found)); // J-015, J-060
        if letters.len() < 5 {
            stack.extend("sTPdEFQX".chars().map(|letter| format!("{letters}{letter}")));
        }
    }
}

/// Generates bytes that resemble a transcript often enough to reach all parts of the checker.
fn any_transcript_bytes() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        Just(b"event: ".to_vec()),
        Just(b"data: ".to_vec()),
        Just(b"id: 1".to_vec()),
        Just(b"\n".to_vec()),
        Just(b"\n\n".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"\r".to_vec()),
        Just(b": x".to_vec()),
        Just(b"\xEF\xBB\xBF".to_vec()),
        Just("\u{5b57}".as_bytes().to_vec()),
        Just(b"phase_start".to_vec()),
        Just(b"{\"event\":\"phase_delta\",\"data\":{\"id\":1,\"text\":\"\"}}".to_vec()),
        Just(b"{\"id\":1,\"title\":\"t\"}".to_vec()),
        Just(b"[".to_vec()),
        Just(b"{\"event\":\"thinking_start\"}\n".to_vec()),
        prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec(word, 0..24).prop_map(|words| words.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_in_any_pieces_give_the_same_findings(
        bytes in any_transcript_bytes(),
        cuts in prop::collection::vec(any::<Index>(), 0..6),
        form in prop::sample::select(vec![None, Some(TranscriptForm::Sse), Some(TranscriptForm::JsonLines), Some(TranscriptForm::Array)]),
        limit in prop::sample::select(vec![1usize, 20, 1 << 20]),
    ) {
        let options = || {
            let mut options = StreamCheckOptions::default();
            options.form = form;
            options.options.limits.input = limit;
            options
        };
        let whole = check_transcript(&bytes, options());
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        let mut pieces = StreamChecker::new(options());
        places.windows(2).for_each(|cut| pieces.push(&bytes[cut[0]..cut[1]]));
        prop_assert_eq!(&pieces.finish(), &whole); // J-065
        let mut single = StreamChecker::new(options());
        bytes.iter().for_each(|byte| single.push(&[*byte]));
        prop_assert_eq!(&single.finish(), &whole); // J-065
        for finding in &whole {
            prop_assert!(finding.span.start <= finding.span.end && finding.span.end <= bytes.len()); // X-006
        }
    }
}
