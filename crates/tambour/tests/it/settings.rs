//! Options by their public names.

use std::collections::BTreeSet;

use serde_json::json;
use tambour::event::EventCollector;
use tambour::options::SettingValues;
use tambour::{Event, InputEnd, Options, Pipeline, settings};

#[test]
fn a_default_is_what_holds_when_nothing_is_set() {
    let default = format!("{:?}", Options::default());
    for (_, setting) in settings::all_settings().filter(|(_, setting)| !setting.default.is_empty()) {
        let mut options = Options::default();
        setting.set(&mut options, &json!(setting.default)).expect(setting.name);
        assert_eq!(format!("{options:?}"), default, "{}", setting.name);
    }
}

#[test]
fn every_name_is_there_once_and_takes_what_it_says() {
    let mut names = BTreeSet::new();
    for (owner, setting) in settings::all_settings() {
        let name = setting.name;
        assert!(names.insert(name), "{name} is there twice");
        assert!(owner.is_none_or(|owner| name.starts_with(&format!("{owner}."))), "{name} of {owner:?}");
        let schema = jsonschema::validator_for(&setting.schema()).expect("a schema");
        let (good, bad) = match setting.accepts {
            SettingValues::Choice(words, _) => {
                let other = words.iter().find(|word| **word != setting.default).expect("there are two");
                (json!(other), json!("nonsense"))
            }
            SettingValues::Flag(_) => (json!(true), json!(1)),
            SettingValues::Number(..) => (json!(7), json!(0)),
            SettingValues::Text(_) => (json!("text"), json!(" ")),
            SettingValues::Json(_) => continue,
        };
        let mut options = Options::default();
        options.set(name, good.clone()).expect(name);
        assert!(schema.is_valid(&good), "{name}");
        assert_ne!(format!("{options:?}"), format!("{:?}", Options::default()), "{name} changes nothing");
        let error = options.set(name, bad).expect_err(name).to_string();
        assert!(error.contains(&format!("`{name}`")), "{error}");
    }
    let error = Options::default().set("plain.reasonin", "auto").expect_err("there is none").to_string();
    assert!(error.contains("plain.reasoning"), "{error}");
}

#[test]
fn tools_and_rounds_are_options_like_others() {
    let mut options = Options::default();
    options.set("tools", json!({"roll": {"type": "object"}})).unwrap();
    options.set("round", json!({"round": 2, "exit_criteria": {"understanding_threshold": 90}})).unwrap();
    assert!(options.tools.as_ref().is_some_and(|tools| tools.get("roll").is_some()));
    let round = options.round.clone().expect("a round");
    assert_eq!((round.round, round.max_rounds, round.criteria.understanding_threshold()), (2, 5, 90.0));
    options.set("round", r#"{"round": 3, "max_rounds": 4}"#).unwrap();
    assert_eq!(options.round.map(|round| round.max_rounds), Some(4));
    let mut options = Options::default();
    for bad in [json!(1), json!({}), json!({"round": 0}), json!({"round": 1, "most": 2})] {
        assert!(options.set("round", bad.clone()).is_err(), "{bad}");
    }
    assert!(options.set("tools", json!({"roll": {"type": 7}})).is_err());
}

fn event_names(dialect: &str, options: &Options, text: &str) -> Vec<&'static str> {
    let mut sink = EventCollector::default();
    let mut pipeline = Pipeline::new(dialect, options).unwrap();
    pipeline.push_str(text, &mut sink);
    pipeline.finish(&InputEnd::stop(), &mut sink);
    sink.join_deltas().iter().map(Event::name).collect()
}

#[test]
fn nothing_of_one_dialect_changes_another() {
    // R-24 concerns plain text only.
    let mut options = Options::default();
    options.set("plain.thinking", "skip").unwrap();
    assert_eq!(event_names("plain", &options, "Hi."), ["final_delta", "final_end", "completed"]);
    let answer = r#"{"response":{"counsellor":"Hi."},"should_exit":false}"#;
    for (dialect, text) in [("ai_say", answer), ("ai_say", "Hi."), ("thinkingml", "<final>Hi.</final>")] {
        assert_eq!(
            event_names(dialect, &options, text),
            event_names(dialect, &Options::default(), text),
            "{dialect}"
        );
        assert_eq!(event_names(dialect, &options, text)[0], "thinking_start");
    }
    let mut options = Options::default();
    options.set("plain.reasoning", "open").unwrap();
    let thought = format!("{answer}</think>");
    assert_eq!(
        event_names("ai_say", &options, &thought),
        event_names("ai_say", &Options::default(), &thought)
    );
}
