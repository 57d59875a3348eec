//! Examples of the rules: each can be read, breaks or keeps its rule, and is complete.

use std::collections::BTreeSet;

use tambour::Finding;
use tambour_fixtures::example::example_findings;
use tambour_prompt::catalogue::{self, CatalogueEntry};

fn finding_labels(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(|finding| format!("{} {}", finding.code, finding.rule)).collect()
}

/// Describes a fault in the examples of a rule.
fn complaint(entry: CatalogueEntry) -> Option<String> {
    let rule = entry.rule;
    let broken = match example_findings(entry, rule.broken) {
        Ok(broken) => broken,
        Err(error) => return Some(error),
    };
    if !broken.iter().any(|finding| finding.code == rule.code && finding.rule == rule.rows[0]) {
        return Some(format!(
            "`broken` gives {:?}, not the code on {}",
            finding_labels(&broken),
            rule.rows[0]
        ));
    }
    match example_findings(entry, rule.correct) {
        Ok(correct) if correct.is_empty() => None,
        Ok(correct) => Some(format!("`correct` gives {:?}", finding_labels(&correct))),
        Err(error) => Some(error),
    }
}

#[test]
fn broken_examples_break_their_rule_and_correct_ones_none() {
    let complaints: Vec<String> = catalogue::all()
        .filter_map(|entry| Some(format!("{} `{}`: {}", entry.owner, entry.rule.code, complaint(entry)?)))
        .collect();
    assert!(complaints.is_empty(), "{} rules:\n{}", complaints.len(), complaints.join("\n"));
}

#[test]
fn examples_are_complete() {
    for CatalogueEntry { owner, rule, .. } in catalogue::all() {
        for example in [rule.broken, rule.correct] {
            let has_ellipsis = example.contains("...") || example.contains('…');
            // The only fault that consists in leaving something out.
            let is_intended = rule.code == "json_ellipsis" && example == rule.broken;
            assert!(
                !has_ellipsis || is_intended,
                "{owner} `{}`: something is left out: {example}",
                rule.code
            );
        }
        assert_ne!(rule.broken, rule.correct, "{owner} `{}`", rule.code);
    }
}

#[test]
fn a_code_stands_once_in_a_table() {
    let mut codes = BTreeSet::new();
    for CatalogueEntry { owner, rule, .. } in catalogue::all() {
        assert!(codes.insert((owner, rule.code)), "{owner} `{}` is there twice", rule.code);
    }
}
