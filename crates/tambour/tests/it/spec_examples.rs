//! Examples in the specifications: valid replies pass their strict check, and the reply of each part gives the event that
//! the part describes.

use serde_json::Value;
use tambour::contract::{FencedExample, find_examples};
use tambour::event::EventCollector;
use tambour::verdict::Contract;
use tambour::{InputEnd, Options, Pipeline, Profile};

const TEXTS: &str = include_str!("../../../../docs/spec/texts.md");

/// Returns the first block under a heading.
fn first_block(heading: &str) -> FencedExample<'static> {
    let at = TEXTS.find(&format!("### {heading}")).unwrap_or_else(|| panic!("no heading {heading}"));
    let line = TEXTS[..at].lines().count() as u32;
    find_examples(TEXTS).into_iter().find(|example| example.line > line).expect("a block")
}

fn strict_options() -> Options {
    let mut options = Options::default();
    options.profile = Profile::Strict;
    options
}

#[test]
fn the_outline_of_thinkingml_passes() {
    // T-001 to T-049: the outline is an example that passes
    let at = TEXTS.find("<thinking>").expect("the outline");
    let line = TEXTS[..at].lines().count() as u32;
    let outline = find_examples(TEXTS).into_iter().find(|example| example.line + 1 >= line).expect("a block");
    let verdict =
        Contract::from_name("thinkingml").expect("a dialect").check_example(&outline, &strict_options());
    assert!(verdict.findings.is_empty(), "{:?}", verdict.findings);
}

#[test]
fn plans_pass() {
    // P-001 to P-016, P-018
    let plans = ["Example TOOL_EXECUTION", "Example KNOWLEDGE_QA", "Example GENERAL_CHAT", "Fallback object"];
    for heading in plans {
        let contract = Contract::from_name("aiplan").expect("a dialect");
        let verdict = contract.check_example(&first_block(heading), &strict_options());
        assert!(verdict.findings.is_empty(), "{heading}: {:?}", verdict.findings);
    }
}

#[test]
fn elements_of_filament_are_read() {
    // F-100 to F-150: each element, next to a content, has no fault and gives its event
    let parts = [
        ("`thought` (section 3.1.1)", "phase_delta"),
        ("`content` (section 3.1.2)", "final_delta"),
        ("`variable_update` (section 3.2.1)", "state_update"),
        ("`status_bar` (section 3.3.1)", "status_bar"),
        ("`details` (section 3.3.2)", "details"),
        ("`choice` (section 3.3.3)", "choice"),
        ("`ui_component` (section 3.3.4)", "ui_component"),
        ("`media` (section 3.3.5)", "media"),
        ("`tool_call` (section 3.2.2)", "tool_call"),
    ];
    for (heading, event) in parts {
        let part = first_block(heading).text;
        let content = if event == "final_delta" { "" } else { "<content>\nIt is dark.\n</content>\n" };
        let reply = if event == "phase_delta" { part + content } else { content.to_owned() + &part };
        let mut options = strict_options();
        let tools: Value = serde_json::json!({"weather_forecast": {"type": "object"}});
        options.set("tools", tools).expect("an option");
        let mut sink = EventCollector::default();
        let mut pipeline = Pipeline::new("filament", &options).expect("a dialect").with_extensions(true);
        pipeline.push_str(&reply, &mut sink);
        pipeline.finish(&InputEnd::stop(), &mut sink);
        let names: Vec<&str> = sink.events.iter().map(|found| found.name()).collect();
        assert!(names.contains(&event), "{heading}: {names:?}");
        let faults = sink.findings.iter().filter(|finding| finding.severity > tambour::Severity::Info);
        assert_eq!(faults.map(|finding| finding.code.to_string()).collect::<Vec<_>>(), [""; 0], "{heading}");
    }
}
