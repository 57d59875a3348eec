//! Examples of the rules: each can be read, breaks or keeps its rule, and is complete.

use std::collections::BTreeSet;

use tambour::Finding;
use tambour_fixtures::example::example_findings;
use tambour_prompt::catalogue::{self, CatalogueEntry};

fn shown(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(|finding| format!("{} {}", finding.code, finding.rule)).collect()
}

/// Describes a fault in the examples of a rule.
fn complaint(listed: CatalogueEntry) -> Option<String> {
    let rule = listed.rule;
    let broken = match example_findings(listed, rule.broken) {
        Ok(broken) => broken,
        Err(error) => return Some(error),
    };
    if !broken.iter().any(|finding| finding.code == rule.code && finding.rule == rule.rows[0]) {
        return Some(format!("`broken` gives {:?}, not the code on {}", shown(&broken), rule.rows[0]));
    }
    match example_findings(listed, rule.correct) {
        Ok(correct) if correct.is_empty() => None,
        Ok(correct) => Some(format!("`correct` gives {:?}", shown(&correct))),
        Err(error) => Some(error),
    }
}

#[test]
fn broken_examples_break_their_rule_and_correct_ones_none() {
    let complaints: Vec<String> = catalogue::all()
        .filter_map(|listed| Some(format!("{} `{}`: {}", listed.owner, listed.rule.code, complaint(listed)?)))
        .collect();
    assert!(complaints.is_empty(), "{} rules:\n{}", complaints.len(), complaints.join("\n"));
}

#[test]
fn examples_are_complete() {
    for CatalogueEntry { owner, rule, .. } in catalogue::all() {
        for example in [rule.broken, rule.correct] {
            let left_out = example.contains("...") || example.contains('…');
            // In the example of this rule the omission is the fault.
            let meant = rule.code == "json_ellipsis" && example == rule.broken;
            assert!(!left_out || meant, "{owner} `{}`: something is left out: {example}", rule.code);
        }
        assert_ne!(rule.broken, rule.correct, "{owner} `{}`", rule.code);
    }
}

#[test]
fn a_code_stands_once_in_a_table() {
    let mut seen = BTreeSet::new();
    for CatalogueEntry { owner, rule, .. } in catalogue::all() {
        assert!(seen.insert((owner, rule.code)), "{owner} `{}` is there twice", rule.code);
    }
}
