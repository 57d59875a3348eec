//! What comes out, as ammonia reads it, which parses as browsers do.

use std::collections::{HashMap, HashSet};

use ammonia::Builder;
use tambour::html::{Mode, sanitized};
use tambour_fixtures::random::Random;
use tambour_fixtures::targets::html_soup;

use crate::fuzz::iterations;

/// The elements of F-104.
const ELEMENTS: [&str; 11] = ["span", "br", "b", "strong", "i", "em", "u", "s", "ruby", "rt", "rp"];

fn oracle() -> Builder<'static> {
    let mut builder = Builder::empty();
    builder.tags(HashSet::from(ELEMENTS)).tag_attributes(HashMap::from([("span", HashSet::from(["style"]))]));
    builder
}

/// The tags in a text in order, in lower case.
fn tags(html: &str) -> Vec<String> {
    let mut tags = Vec::new();
    for (at, _) in html.match_indices('<') {
        let rest = &html[at + 1..];
        if rest.starts_with(|c: char| c.is_ascii_alphabetic() || "/!?".contains(c)) {
            let end = rest.find('>').expect("a tag has its end");
            tags.push(rest[..end].trim_end_matches(['/', ' ']).to_ascii_lowercase());
        }
    }
    tags
}

/// Complains unless a browser sees in `output` just the tags that stand in it.
fn agrees(input: &str, output: &str, oracle: &Builder<'_>) {
    let cleaned = oracle.clean(output).to_string();
    // Both ways, so that ammonia has neither taken anything out nor found anything more.
    assert_eq!(tags(&cleaned), tags(output), "{input:?} gives {output:?}, which is {cleaned:?}");
    assert!(!cleaned.contains("url(") || !cleaned.contains("style=") || !output.contains("style=\"url"));
    assert_eq!(sanitized(output, Mode::Escape).0, output, "not idempotent: {input:?}");
}

#[test]
fn a_browser_sees_only_what_is_on_the_list() {
    // F-104, F-106
    let oracle = oracle();
    for seed in 0..iterations() {
        let input = html_soup(&mut Random::new(seed), false);
        for mode in [Mode::Escape, Mode::Strip] {
            agrees(&input, &sanitized(&input, mode).0, &oracle);
        }
    }
}

#[test]
fn payloads_of_other_projects_are_harmless() {
    // F-104. The file is not ours to copy: it is read where it is at hand.
    let Some(path) = std::env::var_os("XSS_PAYLOADS") else { return };
    let (oracle, lines) = (oracle(), std::fs::read_to_string(path).expect("the payloads are readable"));
    let mut count = 0;
    for line in lines.lines() {
        let row: serde_json::Value = serde_json::from_str(line).expect("a row is JSON");
        let input = row["html"].as_str().expect("a payload is text");
        for mode in [Mode::Escape, Mode::Strip] {
            let (output, _) = sanitized(input, mode);
            if !output.contains(['`', '~']) {
                agrees(input, &output, &oracle);
                count += 1;
            }
            assert_eq!(sanitized(&output, mode).0, output, "not idempotent: {input:?}");
        }
    }
    assert!(count > 0, "no payloads");
}
