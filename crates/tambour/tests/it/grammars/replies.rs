//! Replies of fixtures, examples and corpora.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use tambour::dialect::{DIALECTS, DialectEntry};
use tambour::event::EventCollector;
use tambour::grammar::GrammarFormat;
use tambour::options::{Language, Texts};
use tambour::verdict::Contract;
use tambour::{InputEnd, Options, Pipeline, Profile};
use tambour_fixtures::corpus::load_authored;
use tambour_fixtures::run::options_for;
use tambour_fixtures::{fixtures_folder, load_fixtures};

use super::engine::{Judgement, LarkEngine};
use super::gbnf::GbnfEngine;

/// A reply without findings in the strict profile.
pub(super) struct ValidReply {
    pub(super) name: String,
    pub(super) dialect: &'static DialectEntry,
    pub(super) options: Options,
    pub(super) text: String,
}

/// Returns the codes of the findings of a strict check.
pub(super) fn strict_codes(dialect: &str, text: &str, options: &Options) -> BTreeSet<String> {
    let mut options = options.clone();
    options.profile = Profile::Strict;
    let verdict = Contract::from_name(dialect).expect("it exists").check(text.as_bytes(), &options);
    verdict.findings.iter().map(|finding| finding.code.to_string()).collect()
}

/// All valid replies of dialects with a grammar.
pub(super) fn valid_replies() -> Vec<ValidReply> {
    let mut found: Vec<ValidReply> = Vec::new();
    let mut add = |name: String, dialect: &'static DialectEntry, options: Options, text: String| {
        if strict_codes(dialect.name, &text, &options).is_empty() {
            found.push(ValidReply { name, dialect, options, text });
        }
    };
    let constrained = || DIALECTS.iter().filter(|entry| entry.grammar.is_some());
    for entry in constrained() {
        for language in [Language::Zh, Language::En] {
            let mut options = Options::default();
            options.texts = Texts::from_language(language);
            if let Some(prompt) = entry.prompt {
                add(
                    format!("example of {} in {language:?}", entry.name),
                    entry,
                    options.clone(),
                    prompt(&options).example.into(),
                );
            }
        }
        for rule in entry.rules {
            add(format!("{} {}", entry.name, rule.code), entry, Options::default(), rule.correct.to_owned());
        }
        for reply in load_authored(entry.name).unwrap_or_default() {
            let mut options = Options::default();
            if entry.name == "filament" {
                options.set("tools", json!({"roll_dice": {"type": "object"}})).expect("tools");
            }
            add(reply.id.clone(), entry, options, reply.joined_text());
        }
    }
    for fixture in load_fixtures(&fixtures_folder()).expect("the fixtures are readable") {
        let Some(entry) = constrained().find(|entry| entry.name == fixture.dialect) else { continue };
        let Ok(text) = String::from_utf8(fixture.input.clone()) else { continue };
        if fixture.reasoning.is_none() && fixture.end == InputEnd::stop() {
            add(fixture.name.clone(), entry, options_for(&fixture, Profile::Strict), text);
        }
    }
    found
}

/// Returns the reply as the dialect writes it.
pub(super) fn rewrite(reply: &ValidReply) -> Option<String> {
    let mut pipeline = Pipeline::new(reply.dialect.name, &reply.options).expect("it exists");
    let mut collector = EventCollector::default();
    pipeline.push_str(&reply.text, &mut collector);
    pipeline.finish(&InputEnd::stop(), &mut collector);
    pipeline.rewrite(&collector.events)
}

/// Valid replies in forms that no writer changes and the grammars leave out, by restriction.
const LEFT_OUT: &[(&str, &[&str])] = &[
    ("the content has no HTML", &["ae08eb9dd56e", "ac23d1bbf3e6", "a0bc0e4e607d", "(names-in-chinese)"]),
    (
        "no `<` before a letter in a text, in code neither",
        &[
            "ind-thinkingml-010",
            "(fault-thinkingml-024)",
            "(block-in-a-span)",
            "(nested-other-name)",
            "(comment-bang-in-a-thought)",
            "(fil-code)",
            "(fil-code-thought)",
            "(fil-code-comment)",
            "(ind-fil-002)",
            "(ind-fil-029)",
        ],
    ),
    ("the content begins with text, and its code is closed", &["(ind-fil-030)", "(ind-fil-031)"]),
    ("queries have no brackets of tags", &["ind-thinkingml-011", "(rev-thinkingml-012)"]),
];

#[test]
fn a_quote_in_an_analysis_is_read_as_the_grammar_says() {
    let mut options = Options::default();
    options.set("filament.protocols", json!(["variable_update_v2", "choice"])).expect("protocols");
    let entry = tambour::dialect::find_dialect("filament").expect("a dialect");
    let grammar = tambour::policy::grammar(entry, &options).expect("it has one").expect("it is small");
    let mut lark = LarkEngine::new(&grammar.write(GrammarFormat::Lark));
    let gbnf = GbnfEngine::new(&grammar.write(GrammarFormat::Gbnf));
    for (analysis, value) in
        [("He said \"go", "x"), ("5\" \\", "a: \\\"b"), ("\"a\" and \"b", ""), ("no quote", "]")]
    {
        let text = format!(
            "<content>The gate is open.</content><variable_update><analysis>{analysis}</analysis>[[\"SET\",\"d\",\"{value}\"]]\
             </variable_update><choice><prompt>x</prompt><options><option id=\"a\">y</option></options></choice>"
        );
        let found = [lark.judge(&text), gbnf.judge(&text)];
        assert_eq!(found, [Judgement::Complete; 2], "{text}");
        assert_eq!(strict_codes("filament", &text, &options), BTreeSet::new(), "{text}");
        let mut pipeline = Pipeline::new("filament", &options).expect("it exists").with_extensions(true);
        let mut collector = EventCollector::default();
        pipeline.push_str(&text, &mut collector);
        pipeline.finish(&InputEnd::stop(), &mut collector);
        let events = serde_json::to_value(&collector.events).expect("JSON");
        let data = |name: &str| {
            let event = events.as_array().into_iter().flatten().find(|event| event["event"] == name);
            event.map(|event| event["data"].clone()).unwrap_or_default()
        };
        assert_eq!(data("state_update")["analysis"], analysis, "{events}");
        assert_eq!(data("state_update")["operations"][0]["path"], "d", "{events}");
        assert_eq!(data("choice")["prompt"], "x", "{events}");
    }
}

#[test]
fn engines_accept_valid_replies() {
    let (mut count, mut raw_count, mut call_count) = (0, 0, 0);
    let mut left_out: BTreeSet<&str> = LEFT_OUT.iter().flat_map(|(_, names)| *names).copied().collect();
    let mut engines: BTreeMap<String, (LarkEngine, GbnfEngine)> = BTreeMap::new();
    let mut complaints: Vec<String> = Vec::new();
    for mut reply in valid_replies() {
        let is_calls = reply.dialect.name == "toolcall";
        // Fixtures of calls are in files named after their formats.
        let file = reply.name.split(['/', '.']).nth(1).unwrap_or_default().to_owned();
        if is_calls && reply.options.set("toolcall.format", json!(file)).is_err() {
            continue;
        }
        // A grammar of calls needs tools.
        let grammar = tambour::policy::grammar(reply.dialect, &reply.options).expect("the dialect has one");
        if is_calls && grammar.is_err() {
            continue;
        }
        let grammar = grammar.expect("it is small");
        // Most replies are under the same options.
        let lark = grammar.write(GrammarFormat::Lark);
        let (engine, gbnf) = engines.entry(lark).or_insert_with_key(|lark| {
            (LarkEngine::new(lark), GbnfEngine::new(&grammar.write(GrammarFormat::Gbnf)))
        });
        let by_gbnf = gbnf.judge(&reply.text);
        let judgement = engine.judge(&reply.text);
        // Both engines agree; one of them names bytes, the other characters.
        let start = |judgement| match judgement {
            Judgement::Refused(at) => Judgement::Refused(reply.text.floor_char_boundary(at)),
            judgement => judgement,
        };
        assert_eq!(start(judgement), by_gbnf, "{}: {}", reply.name, reply.text);
        let is_accepted = judgement == Judgement::Complete;
        if is_calls {
            // Nothing writes calls, and a format has more forms than its grammar.
            call_count += usize::from(is_accepted);
            continue;
        }
        count += 1;
        raw_count += usize::from(is_accepted);
        let is_listed = |name: &&str| reply.name.contains(*name);
        let listed = left_out.iter().copied().find(is_listed);
        if is_accepted || listed.is_some_and(|name| left_out.remove(name)) {
            continue;
        }
        // A form that the grammar leaves out: it accepts the reply as the dialect writes it.
        let text = rewrite(&reply).unwrap_or_default();
        let rewritten = engine.judge(&text);
        if rewritten != Judgement::Complete || reply.name.starts_with("example of") {
            complaints.push(format!(
                "{} {}: {judgement:?} in {:?}; {rewritten:?} in {text:?}",
                reply.dialect.name, reply.name, reply.text
            ));
        }
    }
    assert!(complaints.is_empty(), "{} of {count}:\n{}", complaints.len(), complaints.join("\n"));
    assert!(left_out.is_empty(), "accepted: {left_out:?}");
    assert!(count > 500 && raw_count * 4 > count * 3, "only {raw_count} of {count} as written");
    assert!(call_count >= 19, "only {call_count} with calls");
}
