//! Search queries: cleaning, reports, and validity of the result (T-044 to T-052, J-004, J-005).

use std::ops::Range;

use proptest::prelude::*;
use serde_json::{Value, json};
use tambour::contract::check_queries as check;
use tambour::finding::{Finding, FindingReport, Profile, RuleLevel, Severity};
use tambour::options::SensitivePolicy;
use tambour::policy::queries::{MAX_QUERIES, MAX_QUERY_CHARS, QueryCleaner, QuerySource};
use tambour::privacy::{Detector, DetectorSet, FoldedText};
use tambour::span::Place;

fn clean_with(value: &Value, sensitive: SensitivePolicy) -> (Option<Vec<String>>, Vec<FindingReport>) {
    let privacy = DetectorSet::default();
    QueryCleaner { sensitive, privacy: &privacy, source: QuerySource::Block }.clean(value, Place::START, 0)
}

/// Cleans by default; returns the kept queries, and `row code` of each report.
fn clean(value: &Value) -> (Vec<String>, Vec<String>) {
    let (queries, reports) = clean_with(value, SensitivePolicy::Drop);
    let codes = reports.iter().map(|report| format!("{} {}", report.row, report.rule.code)).collect();
    (queries.unwrap_or_default(), codes)
}

fn findings(queries: &[&str]) -> Vec<Finding> {
    let mut reports = Vec::new();
    check(queries, &DetectorSet::default(), Place::START, 0, &mut reports);
    reports.into_iter().map(|report| report.judge(Profile::Strict)).collect()
}

fn codes(queries: &[&str]) -> Vec<String> {
    findings(queries).iter().map(|finding| format!("{} {}", finding.rule, finding.code)).collect()
}

#[test]
fn good_queries_are_left_as_they_are() {
    for list in
        [json!(["a"]), json!(["三分化训练怎么安排", "how to squat", " b "]), json!(["a --> b", "x < y"])]
    {
        let (queries, codes) = clean(&list);
        assert_eq!((json!(queries), codes), (list, vec![])); // T-044, T-052
    }
}

#[test]
fn what_is_no_list_of_strings_is_dropped() {
    let privacy = DetectorSet::default();
    let policy =
        QueryCleaner { sensitive: SensitivePolicy::Drop, privacy: &privacy, source: QuerySource::Block };
    let (queries, reports) = policy.clean_json("[\"a\",", Place::START, 5);
    assert_eq!((queries, reports[0].rule.code, reports[0].row), (None, "serp_queries_json", "T-044")); // T-044
    let (queries, reports) = policy.clean_json("{\"q\":1}", Place::START, 7);
    assert_eq!((queries, reports[0].rule.code), (None, "serp_queries_not_array")); // T-044
    assert!(reports[0].repair.is_some());
    assert_eq!(policy.clean_json("[\"a\"]", Place::START, 5).0, Some(vec!["a".to_owned()]));

    let (queries, codes) = clean(&json!(["a", 3, null, ["b"], "c"]));
    assert_eq!(queries, ["a", "c"]); // T-044
    assert_eq!(codes, ["T-044 serp_query_not_string"; 3]);
}

#[test]
fn at_most_five_queries_are_kept() {
    let (queries, codes) = clean(&json!(["a", "b", "c", "d", "e", "f"]));
    assert_eq!(queries, ["a", "b", "c", "d", "e"]); // T-045
    assert_eq!(codes, ["T-045 serp_queries_too_many"]);
    // Bad queries do not use up the places of good ones.
    let (queries, codes) = clean(&json!(["", "a", "a", "b", "c", "d", "e"]));
    assert_eq!(queries, ["a", "b", "c", "d", "e"]);
    assert!(codes.contains(&"T-045 serp_queries_too_many".to_owned()));
}

#[test]
fn queries_are_unique() {
    let (queries, codes) = clean(&json!(["a", "a", "b", "a "]));
    assert_eq!(queries, ["a", "b"]); // T-046
    assert_eq!(codes, ["T-046 serp_queries_duplicate"; 2]);
    let (queries, reports) = clean_with(&json!(["Squat", "squat"]), SensitivePolicy::Drop);
    assert_eq!(queries.unwrap(), ["Squat", "squat"]); // T-046: a difference of case only warns.
    assert_eq!(reports[0].rule.code, "serp_queries_case");
    assert_eq!(reports[0].clone().judge(Profile::Strict).severity, Severity::Warning);
}

#[test]
fn long_queries_are_cut_between_characters() {
    let length = |text: &str| text.chars().count();
    for text in ["a".repeat(81), "字".repeat(81), "🏋".repeat(81)] {
        let (queries, codes) = clean(&json!([text]));
        assert_eq!(length(&queries[0]), 80); // T-047
        assert_eq!(codes, ["T-047 serp_query_too_long"]);
    }
    for text in ["a".repeat(80), "字".repeat(80), "🏋".repeat(80)] {
        assert_eq!(clean(&json!([text])), (vec![text], vec![])); // T-047
    }
    // A family of seven scalar values is not split: 79 + 7 is cut to 79.
    let family = format!("{}👨‍👩‍👧‍👦", "a".repeat(79));
    assert_eq!(clean(&json!([family])).0, ["a".repeat(79)]); // T-047
    let accent = format!("{}e\u{301}", "a".repeat(79));
    assert_eq!(clean(&json!([accent])).0, ["a".repeat(79)]); // T-047
    // A single grapheme above the limit leaves nothing.
    let long_grapheme = format!("e{}", "\u{301}".repeat(100));
    assert_eq!(clean(&json!([long_grapheme, "b"])).0, ["b"]);
    // White space at the ends goes first.
    let padded = format!("  {}  ", "a".repeat(79));
    assert_eq!(clean(&json!([padded])).0, ["a".repeat(79)]);
}

#[test]
fn sensitive_queries_are_dropped_or_generalised() {
    for (query, general) in [
        ("mail a@b.com", "mail [email]"),
        ("13800138000", "[phone]"),
        ("192.168.1.5", "[ip]"),
        ("北京市朝阳区建国路88号", "[address]"),
        ("221 Baker Street", "[address]"),
    ] {
        let (queries, codes) = clean(&json!([query, "b"]));
        assert_eq!(queries, ["b"]); // T-048, J-064
        assert_eq!(codes, ["T-048 serp_query_sensitive"]);
        let (queries, reports) = clean_with(&json!([query]), SensitivePolicy::Generalise);
        assert_eq!(queries.unwrap(), [general]); // R-11, J-064
        let kind = general.split(['[', ']']).nth(1).unwrap();
        assert!(reports[0].message.contains(kind), "{}", reports[0].message); // T-048: with the kind.
        assert_eq!(reports[0].clone().judge(Profile::Lenient).severity, Severity::Warning);
    }
}

#[test]
fn what_cleaning_makes_is_cleaned_too() {
    let generalise = |value| clean_with(&value, SensitivePolicy::Generalise);
    // Two addresses become the same text.
    assert_eq!(generalise(json!(["a@b.com", "c@d.com"])).0.unwrap(), ["[email]"]);
    // Cut at 80 characters, the long number would end as a phone number.
    let hidden = format!("{} 138001380001", "a".repeat(68));
    assert_eq!(clean(&json!([hidden])).0, Vec::<String>::new());
    // Two long queries with the same beginning.
    let (queries, codes) = clean(&json!(["a".repeat(90), "a".repeat(95)]));
    assert_eq!(queries, ["a".repeat(80)]);
    assert!(codes.contains(&"T-046 serp_queries_duplicate".to_owned()));
    // A generalised query may be too long.
    let long = format!("a@b.c{}", "o m".repeat(26));
    assert!(
        generalise(json!([long])).0.unwrap().iter().all(|query| query.chars().count() <= MAX_QUERY_CHARS)
    );
}

#[test]
fn many_and_no_queries_are_information() {
    for (list, code) in [
        (json!(["a", "b", "c", "d"]), "T-049 serp_queries_many"), // T-049
        (json!(["a", "b", "c", "d", "e"]), "T-049 serp_queries_many"),
        (json!([]), "T-050 serp_queries_empty"), // T-050
    ] {
        assert_eq!(clean(&list).1, [code]);
    }
    assert!(findings(&["a", "b", "c", "d"]).iter().all(|finding| finding.severity == Severity::Info)); // J-005
    assert_eq!(codes(&["a", "b", "c", "d"]), ["J-005 serp_queries_many"]); // J-005
}

#[test]
fn blank_queries_are_dropped() {
    let (queries, codes) = clean(&json!(["", "a", " \u{3000}\n"]));
    assert_eq!(queries, ["a"]); // T-051
    assert_eq!(codes, ["T-051 serp_query_empty"; 2]);
}

#[test]
fn the_checker_judges_lists_as_they_are() {
    assert_eq!(codes(&["a", "b"]), [""; 0]);
    assert_eq!(codes(&["a", "b", "c", "d", "e", "f"]), ["J-004 serp_queries_too_many"]); // J-004
    assert_eq!(codes(&["a", " a"]), ["J-004 serp_queries_duplicate"]); // J-004
    assert_eq!(codes(&["A", "a"]), ["J-004 serp_queries_case"]);
    assert_eq!(codes(&[&"a".repeat(81)]), ["J-004 serp_query_too_long"]); // J-004
    assert_eq!(codes(&["a@b.com"]), ["J-004 serp_query_sensitive"]); // J-004
    assert_eq!(codes(&["", "a"]), ["T-051 serp_query_empty"]);
}

#[test]
fn the_checker_and_the_policy_agree_on_what_is_sensitive() {
    for query in
        ["a@b.com", "+44 20 7946 0958", "2001:db8::1", "4111 1111 1111 1111", "5x5 80kg", "16:8 fasting"]
    {
        let is_dropped = clean(&json!([query])).0.is_empty();
        let is_flagged = codes(&[query]) == ["J-004 serp_query_sensitive"];
        assert_eq!(is_dropped, is_flagged, "{query}");
        assert_eq!(is_dropped, DetectorSet::default().find_first(query).is_some(), "{query}");
    }
}

#[test]
fn rows_follow_the_source() {
    let privacy = DetectorSet::default();
    let policy =
        QueryCleaner { sensitive: SensitivePolicy::Drop, privacy: &privacy, source: QuerySource::Event };
    let rows = |value: Value| policy.clean(&value, Place::START, 0).1[0].row;
    assert_eq!(rows(json!(["a", "a"])), "J-004");
    assert_eq!(rows(json!(["a", 3])), "J-003");
    assert_eq!(rows(json!(["a", "b", "c", "d"])), "J-005");
}

fn any_query() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => "[aAbB ]{0,3}".prop_map(Value::from),
        2 => "[a-z0-9@. +\\-号路字]{0,90}".prop_map(Value::from),
        1 => "\\PC{70,100}".prop_map(Value::from),
        1 => prop::sample::select(vec!["a@b.com", "13800138000", "1.2.3.4", "建国路88号", "x 138 0013 8000 y"])
            .prop_map(Value::from),
        1 => "[0-9]{78,95}".prop_map(Value::from),
        1 => Just(json!(7)),
    ]
}

proptest! {
    #[test]
    fn cleaned_queries_pass_and_stay_as_they_are(list in prop::collection::vec(any_query(), 0..9), generalises: bool) {
        let mode = if generalises { SensitivePolicy::Generalise } else { SensitivePolicy::Drop };
        let (queries, reports) = clean_with(&Value::Array(list), mode);
        let queries = queries.unwrap();
        prop_assert!(queries.len() <= MAX_QUERIES);
        let is_mandatory = |report: &FindingReport| report.rule.level == RuleLevel::Must;
        // Every broken rule has a report with its repair.
        prop_assert!(reports.iter().filter(|report| is_mandatory(report)).all(|report| report.repair.is_some()));
        // The result passes the checker (J-004, X-001).
        let texts: Vec<&str> = queries.iter().map(String::as_str).collect();
        let errors = findings(&texts).into_iter().filter(|finding| finding.severity == Severity::Error);
        prop_assert_eq!(errors.collect::<Vec<_>>(), vec![]);
        // Cleaning is idempotent.
        let (second, reports) = clean_with(&json!(queries), mode);
        prop_assert_eq!(second.unwrap(), queries);
        prop_assert!(!reports.iter().any(is_mandatory));
    }
}

/// Detector of `secret`, which also finds its own replacement, `[secret]`.
struct SecretDetector;

impl Detector for SecretDetector {
    fn kind(&self) -> &'static str {
        "secret"
    }
    fn find(&self, text: &FoldedText<'_>, report: &mut dyn FnMut(Range<usize>)) {
        text.raw().match_indices("secret").for_each(|(at, word)| report(at..at + word.len()));
    }
}

#[test]
fn what_stays_sensitive_is_dropped() {
    let privacy = DetectorSet::default().with_detector(SecretDetector);
    let policy = QueryCleaner {
        sensitive: SensitivePolicy::Generalise,
        privacy: &privacy,
        source: QuerySource::Block,
    };
    let (queries, reports) = policy.clean(&json!(["a secret", "a@b.com"]), Place::START, 0);
    assert_eq!(queries.unwrap(), ["[email]"]); // T-048, R-11
    assert_eq!(reports[0].repair.as_deref(), Some("query dropped"));
}
