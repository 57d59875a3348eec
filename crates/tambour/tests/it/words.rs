//! Property test with marker words in damaged replies: no word is lost without a finding, and none is delivered twice.
//!
//! `WORDS_ITERATIONS` sets the number of replies of each dialect, `WORDS_FROM` the first seed, `WORDS_DIALECT` the only dialect;
//! `WORDS_TABLE=1` prints where their words went. The same seed gives the same reply on every machine.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::each_dialect::each_dialect;
use tambour::dialect::DIALECTS;
use tambour::event::Extension;
use tambour::{Event, Finding, Pipeline};
use tambour_fixtures::words::{
    ReplyPool, TrialReading, WordAccount, WordComplaint, WordFault, WordKind, WordTrial, find_words,
    make_long_trial, make_trial, measure_lag, minimise_trial, word_kinds,
};

/// Damaged replies of each dialect without `WORDS_ITERATIONS`. Before a release, and after changes
/// to a dialect, seeds 0 to 100,000 are read.
const ITERATIONS: u64 = 2000;

fn iterations() -> u64 {
    let text = std::env::var("WORDS_ITERATIONS").ok();
    text.map_or(ITERATIONS, |text| text.parse().expect("WORDS_ITERATIONS is a number"))
}

/// Seeds of the replies, from `WORDS_FROM` or 0.
fn seeds() -> std::ops::Range<u64> {
    let first_seed = std::env::var("WORDS_FROM")
        .ok()
        .map_or(0, |first_seed| first_seed.parse().expect("WORDS_FROM is a number"));
    first_seed..first_seed + iterations()
}

/// Describes a failing reply, with its smallest form.
fn failure_report(trial: &WordTrial, complaint: &WordComplaint) -> String {
    let (small, small_complaint) = minimise_trial(trial, complaint);
    let findings: Vec<Finding> = small.read().findings;
    format!("{trial}\n{complaint}\nsmallest: {small}\n{small_complaint}\n{findings:?}")
}

#[test]
fn every_word_is_accounted_for() {
    // Invariant 5; J-038 for events and findings of the same replies; X-001
    let replies = ReplyPool::load().expect("the fixtures are readable");
    let results = each_dialect("WORDS_DIALECT", |name| {
        let (mut total, mut failure_count, mut first) = (WordAccount::default(), 0, None);
        // Failing seeds by class of complaint.
        let mut classes: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for seed in seeds() {
            let trial = make_trial(name, seed, &replies);
            match trial.check_words() {
                Ok(found) => total.add(&found),
                Err(complaints) => {
                    failure_count += 1;
                    classes.entry(complaints[0].class()).or_default().push(seed);
                    first.get_or_insert_with(|| failure_report(&trial, &complaints[0]));
                }
            }
        }
        (total, failure_count, first, classes)
    });
    let mut reports = String::new();
    for (name, (total, failure_count, first, classes)) in &results {
        if std::env::var_os("WORDS_TABLE").is_some() {
            print_table(name, total);
            for (class, seeds) in classes {
                println!("{:8} {class}, such as", seeds.len());
                for seed in &seeds[..seeds.len().min(3)] {
                    let trial = make_trial(name, *seed, &replies);
                    let complaints = trial.check_words().expect_err("it was wrong before");
                    println!("{}\n", failure_report(&trial, &complaints[0]));
                }
            }
        }
        if let Some(first) = first {
            let _ =
                writeln!(reports, "{name}: {failure_count} of {} replies, such as\n{first}\n", iterations());
        }
    }
    assert!(reports.is_empty(), "{reports}");
    for (name, (total, ..)) in &results {
        assert_shares(name, total);
    }
}

fn print_table(dialect: &str, total: &WordAccount) {
    println!("{dialect}: {} words", total.word_count);
    let share = |count: &usize| 100.0 * *count as f64 / total.word_count as f64;
    total.delivered.iter().for_each(|(kind, count)| println!("{:8.2} % {kind:?}", share(count)));
    total.covered_by_code.iter().for_each(|(code, count)| println!("{:8.2} % only in {code}", share(count)));
}

/// Fails if too few words are delivered, or too many are only in findings: the property would then prove nothing.
fn assert_shares(dialect: &str, total: &WordAccount) {
    let kinds = word_kinds(dialect).unwrap_or_else(|| panic!("{dialect} has no replies with words"));
    assert!(total.word_count as u64 > 3 * iterations(), "{dialect}: only {} words", total.word_count);
    for kind in kinds {
        let count = total.delivered.get(kind).copied().unwrap_or_default();
        // `auto` shares its replies among all dialects.
        let share = if dialect == "auto" { 400 } else { 250 };
        assert!(
            count * share > total.word_count,
            "{dialect}: {count} of {} words in {kind:?}",
            total.word_count
        );
    }
    let found = total.covered_count();
    assert!(
        found * 2 < total.word_count,
        "{dialect}: {found} of {} words only in findings",
        total.word_count
    );
}

/// A reply and its reading, without complaints.
struct SoundReading {
    trial: WordTrial,
    reading: TrialReading,
}

impl SoundReading {
    /// Faults that are noticed after a change to the reading.
    fn faults_after(&self, change: impl FnOnce(&mut TrialReading)) -> Vec<WordFault> {
        let mut reading = self.reading.clone();
        change(&mut reading);
        let complaints = self.trial.account_words(&reading).err().unwrap_or_default();
        complaints.into_iter().map(|complaint| complaint.fault).collect()
    }
}

fn sound_readings(replies: &ReplyPool, dialect: &str) -> Vec<SoundReading> {
    let sound = |seed| {
        let trial = WordTrial { next_reply: None, ..make_trial(dialect, seed, replies) };
        let reading = trial.read();
        // A word that occurs twice may be lost once, and a broken one may become whole.
        let words: Vec<_> = find_words(&trial.input).map(|(_, word)| word).collect();
        let marker_starts = trial.input.windows(3).filter(|window| window == b"wqx").count();
        let is_single = |word| words.iter().filter(|other| *other == word).count() == 1;
        let is_unique = marker_starts == words.len() && words.iter().all(is_single);
        let sound = SoundReading { trial, reading };
        (is_unique && sound.faults_after(|_| ()).is_empty()).then_some(sound)
    };
    (0..200).filter_map(sound).collect()
}

/// Returns whether an event delivers marker words.
fn delivers(event: &Event<'_>) -> bool {
    let is_contract_text = matches!(
        event,
        Event::SerpSummary { .. }
            | Event::PhaseStart { .. }
            | Event::PhaseDelta { .. }
            | Event::FinalDelta { .. }
            | Event::SerpQueries { .. }
            | Event::DraftDelta { .. }
            | Event::Aside { .. }
    );
    let is_call = matches!(event.extension(), Some(Extension::ToolCall(_)));
    (is_contract_text || is_call) && find_words(event.data().to_string().as_bytes()).next().is_some()
}

#[test]
fn keys_that_are_not_used_are_told() {
    // Invariant 5, R-76, R-87: the text under an unused key is delivered, and a finding covers the key.
    let jsonseq = [
        r#"{"event":"final_delta","data":{"wqx0001z":"wqx0002z"}}"#,
        r#"{"event":"final_delta","data":{"/wqx0001ztext":"wqx0002z"}}"#,
        "{\"event\":\"final_delta\",\"data\":{\"text\"\n\n\nwqx0001z: \"wqx0002z\"}}",
        r#"{"event":"final_delta","data":{"wqx0001z":["wqx0002z",{"wqx0003z":"wqx0004z"}]}}"#,
        r#"{"event":"final_delta","data":{"text":{"wqx0001z":"wqx0002z"}}}"#,
        r#"{"event":"final_delta","data":{"text":[{"type":"text","text":"wqx0001z","annotations":["wqx0002z"]}]}}"#,
        r#"{"event":"final_delta","data":"{\"wqx0001z\":\"wqx0002z\"}"}"#,
        "event: final_delta\ndata: {\"wqx0001z\":\"wqx0002z\"}",
        r#"{"event":"final_delta","data":{"wqx0001z":"wqx0002z"},"content":"wqx0003z","delta":"wqx0004z"}"#,
        r#"{"event":"serp_summary","data":{"wqx0001z":"wqx0002z"}}"#,
        r#"{"event":"final_end","data":{"text":{"wqx0001z":"wqx0002z"}}}"#,
    ];
    let ai_say = [r#"{"response":{"wqx0001z":"wqx0002z"},"should_exit":true}"#];
    let replies = jsonseq.iter().map(|reply| ("jsonseq", reply)).chain(ai_say.iter().map(|r| ("ai_say", r)));
    for (dialect, reply) in replies {
        let trial = WordTrial::new(dialect, 0, 1, reply.as_bytes().to_vec());
        if let Err(complaints) = trial.check_words() {
            panic!("{}\n{trial}\n{:?}", complaints[0], trial.read());
        }
    }
}

#[test]
fn the_account_notices_planted_faults() {
    let replies = ReplyPool::load().expect("the fixtures are readable");
    let mut planted_counts: BTreeMap<&str, usize> = BTreeMap::new();
    for entry in DIALECTS {
        for sound in sound_readings(&replies, entry.name) {
            let events = &sound.reading.events;
            for at in (0..events.len()).filter(|&at| delivers(&events[at])) {
                // A sink that drops an event whose words are in no finding.
                let words = events[at].data().to_string();
                let is_covered = find_words(&sound.trial.input).any(|(place, word)| {
                    let covers = |finding: &Finding| finding.span.start <= place && place < finding.span.end;
                    find_words(words.as_bytes()).any(|(_, lost_word)| lost_word == word)
                        && sound.reading.findings.iter().any(covers)
                });
                if !is_covered {
                    let faults = sound.faults_after(|reading| drop(reading.events.remove(at)));
                    assert!(
                        faults.contains(&WordFault::Missing),
                        "{}\nwithout {:?}",
                        sound.trial,
                        events[at]
                    );
                    *planted_counts.entry("lost").or_default() += 1;
                }
                // A sink that sends the event twice.
                let faults =
                    sound.faults_after(|reading| reading.events.insert(at, reading.events[at].clone()));
                assert!(faults.contains(&WordFault::Duplicate), "{}\ntwice {:?}", sound.trial, events[at]);
                *planted_counts.entry("twice").or_default() += 1;
            }
            plant_span_faults(&sound, &mut planted_counts);
            plant_order_fault(&sound, &mut planted_counts);
        }
    }
    for fault in ["lost", "twice", "short", "order", "outside"] {
        let count = planted_counts.get(fault).copied().unwrap_or_default();
        assert!(count > 50, "{fault}: only {count} planted");
    }
}

/// Plants findings whose spans are empty, and one that ends after the reply.
fn plant_span_faults(sound: &SoundReading, planted_counts: &mut BTreeMap<&str, usize>) {
    let faults = sound.faults_after(|reading| reading.findings.clear());
    if faults.contains(&WordFault::Missing) {
        let shorten = |reading: &mut TrialReading| {
            reading.findings.iter_mut().for_each(|finding| finding.span.end = finding.span.start);
        };
        assert!(sound.faults_after(shorten).contains(&WordFault::Missing), "{}", sound.trial);
        *planted_counts.entry("short").or_default() += 1;
    }
    if !sound.reading.findings.is_empty() {
        let move_outside =
            |reading: &mut TrialReading| reading.findings[0].span.end = sound.trial.input.len() + 1;
        assert!(sound.faults_after(move_outside).contains(&WordFault::InvalidPlace), "{}", sound.trial);
        *planted_counts.entry("outside").or_default() += 1;
    }
}

/// Plants two swapped words of the answer.
fn plant_order_fault(sound: &SoundReading, planted_counts: &mut BTreeMap<&str, usize>) {
    let answer = |event: &Event<'_>| matches!(event, Event::FinalDelta { text } if find_words(text.as_bytes()).count() > 1);
    let has_other_findings = sound.reading.findings.iter().any(|finding| !finding.rule.starts_with('P'));
    let Some(at) = sound.reading.events.iter().position(answer).filter(|_| !has_other_findings) else {
        return;
    };
    let swap = |reading: &mut TrialReading| {
        if let Event::FinalDelta { text } = &mut reading.events[at] {
            let places: Vec<usize> = find_words(text.as_bytes()).map(|(at, _)| at).collect();
            let (first, last) = (places[0], places[places.len() - 1]);
            let words = [first, last].map(|at| text[at..at + 8].to_owned());
            text.to_mut().replace_range(first..first + 8, &words[1]);
            text.to_mut().replace_range(last..last + 8, &words[0]);
        }
    };
    assert!(sound.faults_after(swap).contains(&WordFault::Order), "{}", sound.trial);
    *planted_counts.entry("order").or_default() += 1;
}

#[test]
fn held_tells_what_has_arrived_and_not_gone_out() {
    // X-007: words every few bytes, with small limits; the newest words that are not sent yet are the held bytes.
    let replies = ReplyPool::load().expect("the fixtures are readable");
    let results = each_dialect("WORDS_DIALECT", |name| {
        let (mut words, mut first) = (0, None);
        for seed in 0..iterations() / 10 {
            let long = (seed % 2 == 0).then(|| make_long_trial(name, seed, &replies));
            let trial = long.unwrap_or_else(|| make_trial(name, seed, &replies));
            match measure_lag(&trial, Pipeline::held_bytes) {
                Ok(lag) => words += lag.word_count,
                Err(error) => drop(first.get_or_insert(format!("{error}\n{trial}"))),
            }
        }
        (words, first)
    });
    for (name, (words, first)) in results {
        assert!(first.is_none(), "{name}: {first:?}");
        // A JSON value is sent only when it is complete.
        assert!(words as u64 > iterations() || name == "json_value", "{name}: only {words} words were timed");
    }
}

#[test]
fn a_pipeline_that_hides_what_it_holds_is_noticed() {
    // X-007: text waits in each of these.
    let long: String =
        (1..60).map(|number| format!("{} ", tambour_fixtures::words::marker(number))).collect();
    let waiting = [
        ("thinkingml", "<thinking><phase id=\"1\"><title>t</title>a <final>LONG"),
        (
            "jsonseq",
            "{\"event\":\"thinking_start\",\"data\":{}}\n{\"event\":\"final_delta\",\"data\":{\"text\":\"LONG\"}}",
        ),
        (
            "aiplan",
            "{\"thought\":\"t\",\"direct_response\":\"LONG\",\"response_mode\":\"GENERAL_CHAT\",\"tool_calls\":[]}",
        ),
        ("ai_say", "{\"response\":{\"other\":\"LONG\"},\"should_exit\":true}"),
        ("plain", "a\n<think> LONG"),
        ("auto", "<LONG"),
    ];
    for (dialect, reply) in waiting {
        let input = reply.replace("LONG", &long).into_bytes();
        let trial = WordTrial::new(dialect, 0, 1, input);
        assert!(measure_lag(&trial, |_| 0).is_err(), "{dialect}: nothing waits in {reply}");
        measure_lag(&trial, Pipeline::held_bytes)
            .unwrap_or_else(|error| panic!("{dialect}, {reply}: {error}"));
    }
}

#[test]
fn every_kind_of_delivery_is_tried() {
    let all = [
        WordKind::Summary,
        WordKind::Title,
        WordKind::Phase,
        WordKind::Final,
        WordKind::Query,
        WordKind::Draft,
        WordKind::Aside,
        WordKind::Args,
        WordKind::Assessment,
    ];
    for kind in all {
        let is_tried =
            DIALECTS.iter().any(|entry| word_kinds(entry.name).is_some_and(|kinds| kinds.contains(&kind)));
        assert!(is_tried, "{kind:?}");
    }
}
