//! Verdicts on whole texts, examples in documents, and the catalogue of rules.

use tambour::contract::find_examples;
use tambour::dialect::DIALECTS;
use tambour::verdict::Contract;
use tambour::{Options, Profile, Severity};
use tambour_prompt::catalogue;

fn strict_options() -> Options {
    let mut options = Options::default();
    options.profile = Profile::Strict;
    options
}

fn contract_named(name: &str) -> Contract {
    Contract::from_name(name).expect("a contract of that name")
}

const REPLY: &str = "<thinking>\n<phase id=\"1\">\n<title>Goal</title>\nx\n</phase>\n</thinking>\n<final>\nHi.\n\
                     <!-- <serp_queries>\n[\"q\"]\n</serp_queries> -->\n</final>\n";

#[test]
fn every_dialect_is_a_contract() {
    for entry in DIALECTS {
        assert_eq!(contract_named(entry.name).name(), entry.name);
    }
    assert_eq!(contract_named("events").name(), "events");
    let unknown = Contract::from_name("thinkinml").err().expect("there is none of that name").to_string();
    assert!(unknown.contains("thinkingml") && unknown.contains("events"), "{unknown}");
}

#[test]
fn findings_come_in_the_order_of_the_text() {
    let text = "<phase>\n<thinking>a<title></title></thinking>b<final>c</final>d";
    let verdict = contract_named("thinkingml").check(text.as_bytes(), &strict_options());
    assert!(verdict.findings.len() > 3);
    assert!(verdict.findings.is_sorted_by_key(|finding| finding.span.start));
    assert_eq!(verdict.first_error().map(|first| first.span.start), Some(verdict.findings[0].span.start));
}

#[test]
fn the_first_error_decides() {
    // A warning precedes the error: with `first_only` the error is still the one reported.
    let text = REPLY.replace("Hi.", "Hi. <!-- note -->").replace("</final>\n", "</final> bye");
    let all = contract_named("thinkingml").check(text.as_bytes(), &strict_options());
    assert_eq!(all.findings[0].severity, Severity::Warning, "{:?}", all.findings);
    let mut options = strict_options();
    options.first_only = true;
    let first = contract_named("thinkingml").check(text.as_bytes(), &options);
    assert_eq!(first.findings.len(), 1);
    assert_eq!(first.findings[0].code, "text_outside_structure");
    assert!(!first.passed());
}

#[test]
fn an_error_counts_however_many_findings_come_before_it() {
    let notes = "<!-- n -->".repeat(50);
    let text = REPLY.replace("Hi.", &format!("Hi. {notes}")).replace("</final>\n", "</final> bye");
    let mut options = strict_options();
    options.limits.findings = 10;
    let verdict = contract_named("thinkingml").check(text.as_bytes(), &options);
    assert!(!verdict.passed());
    assert!(verdict.findings.iter().any(|finding| finding.code == "findings_limit"));
    assert!(verdict.findings.len() <= 12, "{}", verdict.findings.len());
}

#[test]
fn a_reply_over_the_limit_fails() {
    let mut options = strict_options();
    options.limits.input = REPLY.len();
    assert!(contract_named("thinkingml").check(REPLY.as_bytes(), &options).passed());
    options.limits.input -= 1;
    let verdict = contract_named("thinkingml").check(REPLY.as_bytes(), &options); // X-007
    assert!(
        verdict.findings.iter().any(|finding| finding.code == "input_too_large"),
        "{:?}",
        verdict.findings
    );
}

#[test]
fn auto_says_what_it_found() {
    assert_eq!(contract_named("auto").check(REPLY.as_bytes(), &strict_options()).contract, "thinkingml");
    assert_eq!(contract_named("auto").check(b"Hello", &strict_options()).contract, "plain");
}

#[test]
fn transcripts_are_checked_as_events() {
    let verdict =
        contract_named("events").check(b"{\"event\":\"thinking_start\",\"data\":{}}\n", &strict_options());
    assert!(verdict.findings.iter().any(|finding| finding.code == "final_end_missing")); // J-014
    assert!(verdict.findings.is_sorted_by_key(|finding| finding.span.start));
}

#[test]
fn examples_have_the_places_of_their_document() {
    let broken = REPLY.replace("<phase id=\"1\">", "<phase id='1'>");
    let quotation: String = broken.lines().map(|line| format!("> {line}\n")).collect();
    let list_item: String = broken.lines().map(|line| format!("   {line}\n")).collect();
    let document = format!(
        "# 规则\n\n```xml\n{REPLY}```\n\n> ```xml\n{quotation}> ```\n\n1. Eins\n\n   ~~~~ xml title=\"x\"\n{list_item}   ~~~~\n"
    );
    let examples = find_examples(&document);
    assert_eq!(examples.len(), 3);
    let lines: Vec<&str> = document.lines().collect();
    for (example, is_broken) in examples.iter().zip([false, true, true]) {
        assert_eq!(example.language, "xml");
        assert!(lines[example.line as usize - 1].contains("xml"));
        assert!(contract_named("thinkingml").matches_example(example));
        let verdict = contract_named("thinkingml").check_example(example, &strict_options());
        assert_eq!(!verdict.passed(), is_broken);
        for finding in &verdict.findings {
            // P-037: file and line
            assert_eq!(&document[finding.span.start..finding.span.end], "<phase id='1'>");
            assert!(lines[finding.line as usize - 1].contains("<phase id='1'>"));
            let before = lines[finding.line as usize - 1].chars().take(finding.column as usize - 1);
            assert!(before.clone().all(|c| "> ".contains(c)), "{}", before.collect::<String>());
        }
    }
}

#[test]
fn blocks_in_other_languages_are_no_examples() {
    let document = format!(
        "```rust\nfn main() {{}}\n```\n\n```\n{REPLY}```\n\n```text\nhello\n```\n\n    {REPLY}\n```json\n{{\"a\":1}}\n```\n"
    );
    let examples = find_examples(&document);
    let languages: Vec<&str> = examples.iter().map(|example| example.language.as_str()).collect();
    assert_eq!(languages, ["rust", "", "text", "json"]);
    let matches_of = |name: &str| -> Vec<bool> {
        examples.iter().map(|example| contract_named(name).matches_example(example)).collect()
    };
    assert_eq!(matches_of("thinkingml"), [false, true, false, false]);
    assert_eq!(matches_of("jsonseq"), [false, false, false, true]); // P-037: every fenced JSON example
    assert_eq!(matches_of("auto"), [false, true, false, false]);
    assert_eq!(matches_of("events"), [false; 4]);
}

#[test]
fn an_example_can_keep_its_fence() {
    let document = "a\n\n````json\n{}\n````\n";
    let example = find_examples(document).remove(0).with_fence();
    assert_eq!(example.text, "````json\n{}\n````\n");
}

#[test]
fn the_catalogue_holds_every_rule_once() {
    let mut codes = std::collections::HashSet::new();
    for rule_entry in catalogue::all() {
        assert!(
            codes.insert((rule_entry.owner, rule_entry.rule.code)),
            "{} {}",
            rule_entry.owner,
            rule_entry.rule.code
        );
        assert!(!rule_entry.rule.rows.is_empty() && !rule_entry.rule.title.is_empty());
        assert!(catalogue::find(rule_entry.rule.code).any(|found| found == rule_entry));
        for row in rule_entry.rule.rows {
            assert!(catalogue::find(&row.to_lowercase()).any(|found| found == rule_entry));
            assert!(catalogue::rule(row, rule_entry.rule.code).is_some());
        }
    }
    for entry in DIALECTS {
        assert_eq!(
            catalogue::all().filter(|rule_entry| rule_entry.owner == entry.name).count(),
            entry.rules.len()
        );
    }
    assert_eq!(catalogue::find("T-999").count(), 0);
}
