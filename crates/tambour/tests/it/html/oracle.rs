//! Output of the sanitiser as read by ammonia, which parses like browsers.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use ammonia::Builder;
use tambour::html::{HtmlMode, sanitize};
use tambour_fixtures::random::RandomSource;
use tambour_fixtures::targets;

use crate::fuzz::iterations;

/// Elements of F-104.
const ELEMENTS: [&str; 11] = ["span", "br", "b", "strong", "i", "em", "u", "s", "ruby", "rt", "rp"];

fn oracle() -> Builder<'static> {
    let mut builder = Builder::empty();
    builder.tags(HashSet::from(ELEMENTS)).tag_attributes(HashMap::from([("span", HashSet::from(["style"]))]));
    builder
}

/// Lists the tags of a text in order, in lower case.
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

/// Properties of F-104.
const PROPERTIES: [&str; 5] = ["color", "background-color", "font-weight", "font-style", "text-decoration"];

/// Returns whether the quoted value of a style has only listed properties, and values of words, numbers and colours.
fn is_plain_style(style: &str) -> bool {
    let style = style.trim_matches(['"', '\'']);
    let mut declarations = style.split(';').filter(|declaration| !declaration.trim().is_empty());
    declarations.all(|declaration| {
        let Some((property, value)) = declaration.split_once(':') else { return false };
        let is_word = |c: char| c.is_ascii_alphanumeric() || " \t\n#%.,()/+-".contains(c);
        let mut functions: Vec<&str> = value.split('(').collect();
        functions.pop();
        PROPERTIES.contains(&property.trim())
            && value.chars().all(is_word)
            && functions.iter().all(|prefix| {
                let name = prefix.rsplit(|c: char| !c.is_ascii_alphabetic()).next();
                name.is_some_and(|name| ["rgb", "rgba", "hsl", "hsla"].contains(&name))
            })
    })
}

#[test]
fn the_oracle_sees_what_is_no_plain_style() {
    // F-104
    for style in ["color: red", "color:#fff;font-weight: 700;", "background-color:hsl(1 2% 3% / .5)"] {
        assert!(is_plain_style(style), "{style}");
    }
    for style in [
        "color:url(x)",
        "position:fixed",
        "color:red!important",
        "color:\\72 ed",
        "color",
        "color:(1)",
        "color:rgb(var(--x))",
    ] {
        assert!(!is_plain_style(style), "{style}");
    }
}

/// Fails unless a browser sees in `output` exactly its literal tags, with plain styles.
fn assert_agreement(input: &str, output: &str, oracle: &Builder<'_>) {
    let cleaned = oracle.clean(output).to_string();
    // Comparing both lists shows that ammonia neither removed nor found a tag.
    assert_eq!(tags(&cleaned), tags(output), "{input:?} gives {output:?}, which is {cleaned:?}");
    for tag in tags(output) {
        assert!(
            tag.split_once("style=").is_none_or(|(_, style)| is_plain_style(style)),
            "{input:?} gives {output:?}"
        );
    }
    assert_eq!(sanitize(output, HtmlMode::Escape).0, output, "not idempotent: {input:?}");
}

#[test]
fn a_browser_sees_only_what_is_on_the_list() {
    // F-104, F-106
    let oracle = oracle();
    for seed in 0..iterations() {
        let input = targets::random_html(&mut RandomSource::new(seed), false);
        for mode in [HtmlMode::Escape, HtmlMode::Strip] {
            assert_agreement(&input, &sanitize(&input, mode).0, &oracle);
        }
    }
}

/// File of payloads of other projects: `XSS_PAYLOADS`, or a folder next to the checkout.
fn payloads_path() -> Option<PathBuf> {
    let default_path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/peers/xss_payloads.jsonl");
    std::env::var_os("XSS_PAYLOADS")
        .map(PathBuf::from)
        .or_else(|| default_path.is_file().then_some(default_path))
}

#[test]
fn payloads_of_other_projects_are_harmless() {
    // F-104. The file has another licence and is read only if it is present.
    let Some(path) = payloads_path() else {
        eprintln!("no payloads at hand");
        return;
    };
    let (oracle, lines) = (oracle(), std::fs::read_to_string(path).expect("the payloads are readable"));
    let (mut count, mut hostile) = (0, 0);
    for line in lines.lines() {
        let row: serde_json::Value = serde_json::from_str(line).expect("a row is JSON");
        let input = row["html"].as_str().expect("a payload is text");
        // The oracle knows no Markdown; without code it sees the HTML that a reader of Markdown passes on.
        let bare = input.replace(['`', '~'], "'");
        for (seed, mode) in [(0, HtmlMode::Escape), (1, HtmlMode::Strip)] {
            assert_agreement(&bare, &sanitize(&bare, mode).0, &oracle);
            let (output, _) = sanitize(input, mode);
            assert_eq!(sanitize(&output, mode).0, output, "not idempotent: {input:?}");
            // Cut byte by byte and at random, and as readers of Markdown take it; even seeds escape.
            for cuts in 0..3 {
                targets::check_html(&[&[seed + 4 * cuts], input.as_bytes()].concat());
            }
        }
        hostile += usize::from(oracle.clean(&bare).to_string() != bare);
        count += 1;
    }
    eprintln!("{count} payloads, {hostile} of them hostile to the oracle");
    assert!(hostile * 2 > count, "these are no payloads");
}
