//! Guarantees of findings: place, number, and text of repairs.

use tambour::dialect::DIALECTS;
use tambour::event::EventCollector;
use tambour::finding::{FindingReport, RuleLevel};
use tambour::span::Place;
use tambour::verdict::Contract;
use tambour::{Event, Finding, InputEnd, Options, Pipeline, Profile, Severity};
use tambour_fixtures::reading::{TRANSCRIPT, is_judged_only};
use tambour_fixtures::run::{options_for, reading_case};
use tambour_fixtures::{ChunkCuts, Fixture, fixtures_folder, load_fixtures, queue};

/// Runs `check` on each fixture of a dialect in both profiles, with its findings.
fn check_fixtures(check: impl Fn(&Fixture, &Options, Vec<Finding>) -> Result<(), String> + Sync) {
    let mut fixtures = load_fixtures(&fixtures_folder()).expect("the fixtures are readable");
    fixtures.retain(|fixture| DIALECTS.iter().any(|entry| entry.name == fixture.dialect));
    queue::check_all(&fixtures, |fixture| {
        [Profile::Lenient, Profile::Strict].into_iter().try_for_each(|profile| {
            let options = options_for(fixture, profile);
            let findings = reading_case(fixture, &options).read(ChunkCuts::Single)?.findings;
            check(fixture, &options, findings)
                .map_err(|error| format!("{}, {profile:?}: {error}", fixture.name))
        })
    });
}

fn ensure(condition: bool, message: impl FnOnce() -> String) -> Result<(), String> {
    if condition { Ok(()) } else { Err(message()) }
}

#[test]
fn lines_and_columns_are_those_of_the_span() {
    check_fixtures(|fixture, _, findings| {
        // Bytes that are not UTF-8 have no characters to count.
        let Ok(reply) = std::str::from_utf8(&fixture.input) else { return Ok(()) };
        findings.iter().try_for_each(|finding| {
            let (start, end) = (finding.span.start, finding.span.end);
            let is_inside = start <= end && end <= reply.len();
            let is_whole = is_inside && reply.is_char_boundary(start) && reply.is_char_boundary(end);
            ensure(is_whole, || format!("outside the reply: {finding:?}"))?;
            let before = &reply[..start];
            let line = 1 + before.matches('\n').count();
            let column = 1 + before[before.rfind('\n').map_or(0, |at| at + 1)..].chars().count();
            let found = (finding.line as usize, finding.column as usize);
            ensure((line, column) == found, || format!("{line}:{column} is the place of {finding:?}"))
        })
    });
}

#[test]
fn warnings_and_repairs_are_counted() {
    check_fixtures(|fixture, options, findings| {
        let reading = reading_case(fixture, options).read(ChunkCuts::Single)?;
        let Some(Event::Completed(completed)) = reading.events.last() else { return Ok(()) };
        let count = |fits: fn(&&Finding) -> bool| findings.iter().filter(fits).count();
        let found = (completed.metadata.warnings as usize, completed.metadata.repairs as usize);
        let listed = (count(|f| f.severity >= Severity::Warning), count(|f| f.repair.is_some()));
        let is_complete = findings.iter().all(|finding| finding.code != "findings_limit");
        ensure(!is_complete || found == listed, || format!("{found:?} counted, {listed:?} listed"))
    });
}

#[test]
fn the_first_error_is_listed_behind_any_number_of_lesser_findings() {
    check_fixtures(|fixture, options, findings| {
        let mut options = options.clone();
        options.limits.findings = 1;
        let few = reading_case(fixture, &options).read(ChunkCuts::Single)?.findings;
        let (listed, limit_findings): (Vec<&Finding>, Vec<&Finding>) =
            few.iter().partition(|finding| finding.code != "findings_limit");
        let error = findings.iter().find(|finding| finding.severity == Severity::Error);
        let mut expected: Vec<&Finding> = findings.iter().take(1).collect();
        expected.extend(error.filter(|error| *error != expected[0]));
        let has_more = findings.len() > expected.len();
        ensure(listed == expected && limit_findings.len() == usize::from(has_more), || {
            format!("{few:#?}\nof {findings:#?}")
        })
    });
}

#[test]
fn only_the_first_finding_is_listed_when_that_is_asked_for() {
    check_fixtures(|fixture, options, findings| {
        let mut options = options.clone();
        options.first_only = true;
        let first = reading_case(fixture, &options).read(ChunkCuts::Single)?.findings;
        ensure(first == findings[..findings.len().min(1)], || format!("{first:#?}\nof {findings:#?}"))
    });
}

#[test]
fn a_verdict_lists_findings_in_order_and_the_first_that_decides() {
    let mut fixtures = load_fixtures(&fixtures_folder()).expect("the fixtures are readable");
    // Scripts have no contract.
    fixtures.retain(|fixture| fixture.dialect == TRANSCRIPT || !is_judged_only(&fixture.dialect));
    queue::check_all(&fixtures, |fixture| {
        let contract = Contract::from_name(&fixture.dialect).map_err(|error| error.to_string())?;
        let mut options = options_for(fixture, Profile::Strict);
        let all = contract.check(&fixture.input, &options).findings;
        let is_ordered = all.is_sorted_by_key(|finding| finding.span.start);
        ensure(is_ordered, || format!("{}: in no order: {all:#?}", fixture.name))?;
        let decisive = all.iter().find(|finding| finding.severity == Severity::Error).or(all.first());
        options.first_only = true;
        let first = contract.check(&fixture.input, &options).findings;
        ensure(first.iter().eq(decisive), || format!("{}: {first:#?}\nof {all:#?}", fixture.name))
    });
    assert!(fixtures.iter().any(|fixture| fixture.dialect == TRANSCRIPT));
}

#[test]
fn a_finding_never_ends_before_it_begins() {
    let rule = tambour_prompt::catalogue::find("not_utf8").next().expect("the code is public").rule;
    let place = Place { offset: 7, line: 2, column: 3 };
    let finding = FindingReport::new(rule, place, 5, "x").with_repair("y").judge(Profile::Lenient);
    assert_eq!((finding.span.start, finding.span.end, finding.line, finding.column), (7, 7, 2, 3));
    assert_eq!((finding.message.as_str(), finding.repair.as_deref()), ("x", Some("y")));
    assert_eq!(FindingReport::new(rule, place, 9, "x").judge(Profile::Lenient).span.end, 9);
}

#[test]
fn severity_follows_level_profile_and_repair() {
    let rule_of_level = |level: RuleLevel| {
        let mut rules = tambour_prompt::catalogue::all().map(|entry| entry.rule);
        rules.find(|rule| rule.level == level).expect("each level has a rule")
    };
    let severity = |level: RuleLevel, profile: Profile, has_repair: bool| {
        let report = FindingReport::new(rule_of_level(level), Place::START, 0, "x");
        let report = if has_repair { report.with_repair("y") } else { report };
        report.judge(profile).severity
    };
    for (profile, has_repair, must_severity) in [
        (Profile::Strict, true, Severity::Error),
        (Profile::Strict, false, Severity::Error),
        (Profile::Lenient, true, Severity::Warning),
        (Profile::Lenient, false, Severity::Error),
    ] {
        assert_eq!(severity(RuleLevel::Must, profile, has_repair), must_severity);
        assert_eq!(severity(RuleLevel::Should, profile, has_repair), Severity::Warning);
        assert_eq!(severity(RuleLevel::Info, profile, has_repair), Severity::Info);
    }
}

#[test]
fn repairs_are_named_at_their_places() {
    let reply = |body: &str| {
        format!(
            "<thinking>\n<phase id=\"1\">\n<title>T</title>\na\n</phase>\n</thinking>\n<final>\n{body}\n</final>"
        )
    };
    let queries = |block: &str| reply(&format!("OK.\n<!-- <serp_queries>\n{block}\n</serp_queries> -->"));
    let long = format!("[\"{}\"]", "a".repeat(81));
    let plan = |mode: &str| {
        format!(
            "{{\"thought\":\"t\",\"response_mode\":\"{mode}\",\"direct_response\":\"r\",\"tool_calls\":[]}}"
        )
    };
    for (dialect, reply, code, place, repair) in [
        ("thinkingml", queries("[\"a\", \"b\",]"), "serp_queries_json", "", "JSON repaired"),
        ("thinkingml", queries("squats, how to"), "serp_queries_json", "", "no queries are sent"),
        ("thinkingml", queries("[\"a\", \"b"), "serp_queries_json", "", "JSON repaired, the rest not used"),
        ("thinkingml", queries("See: [\"a\"]"), "serp_queries_json", "", "JSON repaired, the rest not used"),
        (
            "thinkingml",
            queries("[\"a\" // b\n]"),
            "serp_queries_json",
            "",
            "JSON repaired, the rest not used",
        ),
        ("thinkingml", queries("[\"a\", ...]"), "serp_queries_json", "", "JSON repaired, the rest not used"),
        (
            "thinkingml",
            queries("[\"a\", text(\"b\")]"),
            "serp_queries_json",
            "",
            "JSON repaired, the rest not used",
        ),
        (
            "thinkingml",
            queries("[\"a\", {q: 1, q: 2}]"),
            "serp_queries_json",
            "",
            "JSON repaired, the rest not used",
        ),
        (
            "thinkingml",
            queries("[\"a\", {q: 1, NOTE \"r\": 2}]"),
            "serp_queries_json",
            "",
            "JSON repaired, the rest not used",
        ),
        (
            "thinkingml",
            queries("[\"a\"] [\"b\"]"),
            "serp_queries_json",
            "",
            "JSON repaired, the rest not used",
        ),
        ("thinkingml", queries("[\"a\", \"a\"]"), "serp_queries_duplicate", "", "query dropped"),
        ("thinkingml", queries("[\"a\", 7]"), "serp_query_not_string", "", "query dropped"),
        ("thinkingml", queries("[\"a\", \" \"]"), "serp_query_empty", "", "query dropped"),
        ("thinkingml", queries("[\"mail a@b.com\"]"), "serp_query_sensitive", "", "query dropped"),
        ("thinkingml", queries(&long), "serp_query_too_long", "", "query cut"),
        (
            "thinkingml",
            queries("[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\"]"),
            "serp_queries_too_many",
            "",
            "the first 5 kept",
        ),
        ("thinkingml", queries("{}"), "serp_queries_not_array", "", "no queries are sent"),
        ("plain", "<think>a".to_owned(), "think_unclosed", "1:1", "closed at the end"),
        ("plain", "a\n<think>b</think>".to_owned(), "think_in_answer", "2:1", "taken out of the answer"),
        ("aiplan", plan("knowledge_qa"), "mode_invalid", "1:16", "read as KNOWLEDGE_QA"),
    ] {
        let mut sink = EventCollector::default();
        let mut pipeline = Pipeline::new(dialect, &Options::default()).expect("a dialect");
        pipeline.push(reply.as_bytes(), &mut sink);
        pipeline.finish(&InputEnd::stop(), &mut sink);
        let code_findings: Vec<&Finding> =
            sink.findings.iter().filter(|finding| finding.code == code).collect();
        let [found] = code_findings.as_slice() else { panic!("{reply}: {:#?}", sink.findings) };
        assert_eq!(found.repair.as_deref(), Some(repair), "{reply}");
        let at = format!("{}:{}", found.line, found.column);
        assert!(place.is_empty() || place == at, "{reply}: {found:#?}");
    }
}
