//! Unusable replies: asked for again if allowed, else replaced by the fallback; never shown raw.

use serde_json::{Value, json};

use crate::client::{message, names, text};
use crate::mock::{GOOD, Mock, Step, delta, finish, reply};
use crate::server::Tambour;

const MARKER: &str = "<<ParsingError>>";

/// Dialects with a structure, and the reason for a reply that is prose without it.
pub(crate) const PROSE: [(&str, &str); 4] = [
    ("thinkingml", "structure_missing"),
    ("jsonseq", "events_missing"),
    ("aiplan", "plan_missing"),
    ("ai_say", "unstructured"),
];

fn ask(more: &Value) -> Value {
    let mut ask = json!({"text": "x", "dialect": "thinkingml", "output_protocol": "jsonseq_v1"});
    ask.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    ask
}

fn metadata(events: &[crate::client::Event]) -> Value {
    events.last().unwrap().data["metadata"].clone()
}

#[tokio::test]
async fn without_leave_the_fallback_is_shown() {
    for marker in [MARKER, " \n<<ParsingError>>\n"] {
        let mock = Mock::start(vec![reply(marker, 3)]).await;
        let server = Tambour::with(&mock).await;
        let events = server.stream(&ask(&json!({}))).await.whole().await;
        assert_eq!(metadata(&events)["fallback_reason"], "parsing_error"); // J-055
        assert_eq!(metadata(&events)["reasks"], 0);
        assert!(
            !text(&events, "final_delta").is_empty() && !text(&events, "final_delta").contains("Parsing")
        ); // R-07
        assert_eq!(mock.calls().begun, 1);
    }
}

#[tokio::test]
async fn with_leave_the_model_is_asked_again() {
    for protocol in ["jsonseq_v1", "legacy"] {
        let mock = Mock::start(vec![reply(MARKER, 3), reply(GOOD, 9)]).await;
        let server = Tambour::with(&mock).await;
        let body = ask(&json!({"max_reasks": 1, "output_protocol": protocol}));
        let events = server.stream(&body).await.whole().await;
        assert_eq!(metadata(&events)["reasks"], 1, "{protocol}"); // J-055, X-009
        assert_eq!(metadata(&events).get("fallback_reason"), None);
        let asked_again = events.iter().filter(|event| event.data["state"] == "reasking");
        assert_eq!(asked_again.map(|event| event.data["reask"].clone()).collect::<Vec<_>>(), [1]);
        // Token counts of both calls.
        assert_eq!(events.last().unwrap().data["usage"]["completion_tokens"], 10);
        let shown: String = events.iter().map(|event| event.frame.as_str()).collect();
        assert!(!shown.contains("ParsingError"), "{shown}"); // R-07
        let messages = mock.asked()[1].body["messages"].clone();
        assert_eq!(messages.as_array().unwrap().len(), 3);
        assert_eq!(messages[1], json!({"role": "assistant", "content": MARKER}));
        assert!(messages[2]["content"].as_str().unwrap().contains("parsing_error"), "{}", messages[2]);
        let record = server.ended(&message(&events)).await;
        assert_eq!(record["reply"], GOOD);
        let attempts = record["attempts"].as_array().unwrap();
        assert_eq!((attempts.len(), &attempts[0]["raw"]), (1, &json!(MARKER))); // P-034
        assert_eq!(attempts[0]["findings"][0]["code"], "parsing_error_marker"); // P-034
    }
}

#[tokio::test]
async fn it_is_asked_as_often_as_allowed() {
    let mock = Mock::start(vec![reply(MARKER, 3)]).await;
    let server = Tambour::with(&mock).await;
    let events = server.stream(&ask(&json!({"max_reasks": 2}))).await.whole().await;
    assert_eq!(mock.calls().begun, 3);
    assert_eq!(metadata(&events)["reasks"], 2);
    assert_eq!(metadata(&events)["fallback_reason"], "parsing_error"); // J-055
}

#[tokio::test]
async fn what_was_delivered_is_not_asked_again() {
    let empty = "<thinking><phase id=\"1\"><title>T</title>seen</phase></thinking><final></final>";
    // Without hold the phase is delivered, and the attempt stands.
    let mock = Mock::start(vec![reply(empty, 8), reply(GOOD, 9)]).await;
    let server = Tambour::with(&mock).await;
    let events = server.stream(&ask(&json!({"max_reasks": 1}))).await.whole().await;
    assert_eq!(mock.calls().begun, 1); // R-66
    assert!(text(&events, "phase_delta").contains("seen"));
    assert!(metadata(&events)["fallback_reason"].is_string()); // R-08
    // A held reply can be discarded.
    for hold in ["until_final", "all"] {
        let mock = Mock::start(vec![reply(empty, 8), reply(GOOD, 9)]).await;
        let server = Tambour::with(&mock).await;
        let body = ask(&json!({"max_reasks": 1, "contract": {"options": {"hold": hold}}}));
        let events = server.stream(&body).await.whole().await;
        assert_eq!(mock.calls().begun, 2, "{hold}"); // R-66
        assert!(!text(&events, "phase_delta").contains("seen"));
        assert_eq!(text(&events, "final_delta"), "The answer is 4.");
        assert_eq!(metadata(&events)["reasks"], 1);
    }
}

#[tokio::test]
async fn holding_back_changes_the_time_and_nothing_else() {
    let mock = Mock::start(vec![reply(GOOD, 9)]).await;
    let server = Tambour::with(&mock).await;
    let mut seen = Vec::new();
    for hold in ["none", "until_final", "all"] {
        let body = ask(&json!({"contract": {"options": {"hold": hold}}}));
        let events = server.stream(&body).await.whole().await;
        seen.push(names(&events).iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    }
    assert!(seen.windows(2).all(|two| two[0] == two[1]), "{seen:?}");
}

#[tokio::test]
async fn only_a_finished_reply_is_asked_again() {
    let mut cut = vec![delta(MARKER)];
    cut.extend(finish("length"));
    let broken = vec![delta(MARKER), Step::Cut];
    for script in [cut, broken] {
        let mock = Mock::start(vec![script]).await;
        let server = Tambour::with(&mock).await;
        let events = server.stream(&ask(&json!({"max_reasks": 3}))).await.whole().await;
        assert_eq!(mock.calls().begun, 1);
        let shown: String = events.iter().map(|event| event.frame.as_str()).collect();
        assert!(!shown.contains("ParsingError"), "{shown}"); // R-07
    }
}

#[tokio::test]
async fn a_second_call_that_fails_is_an_error() {
    let mock = Mock::start(vec![reply(MARKER, 3), vec![Step::Head(400, vec![]), Step::End]]).await;
    let server = Tambour::with(&mock).await;
    let events = server.stream(&ask(&json!({"max_reasks": 1}))).await.whole().await;
    assert_eq!(names(&events), ["error"]); // J-035
    assert_eq!(events.last().unwrap().data["code"], "upstream_refused");
}

#[tokio::test]
async fn texts_are_those_of_the_settings() {
    let mock = Mock::start(vec![reply(MARKER, 3)]).await;
    let server = Tambour::with(&mock).await;
    let events = server.stream(&ask(&json!({}))).await.whole().await;
    assert_eq!(text(&events, "final_delta"), "抱歉，我的响应格式有问题，请重新尝试您的请求。"); // R-07
    server
        .put("/api/v1/settings", &json!({"text_language": "en", "texts": {"phase_title": "Thought"}}))
        .await;
    let events = server.stream(&ask(&json!({}))).await.whole().await;
    assert!(text(&events, "final_delta").starts_with("Sorry"));
    server.put("/api/v1/settings", &json!({"texts.fallback": "Nothing came."})).await;
    let events = server.stream(&ask(&json!({}))).await.whole().await;
    assert_eq!(text(&events, "final_delta"), "Nothing came.");
    let title = events.iter().find(|event| event.name == "phase_start").unwrap().data["title"].clone();
    assert_eq!(title, "Thought");
}

#[tokio::test]
async fn prose_in_the_place_of_a_structure_is_asked_for_again() {
    let plan = crate::tool_kit::answer("The answer is 4.");
    let round = r#"{"assessment":{"understanding_level":60,"has_questions":true,"expressed_understanding":false,"reasoning":"r"},"response":{"咨询师":"The answer is 4."},"should_exit":false,"exit_reason":"e"}"#;
    let lines = [
        json!({"event": "thinking_start", "data": {}}),
        json!({"event": "phase_start", "data": {"id": 1, "title": "T"}}),
        json!({"event": "thinking_end", "data": {}}),
        json!({"event": "final_delta", "data": {"text": "The answer is 4."}}),
        json!({"event": "final_end", "data": {}}),
    ]
    .map(|line| line.to_string())
    .join("\n");
    for (dialect, good, why) in PROSE.map(|(dialect, why)| match dialect {
        "aiplan" => (dialect, plan.as_str(), why),
        "jsonseq" => (dialect, lines.as_str(), why),
        "ai_say" => (dialect, round, why),
        _ => (dialect, GOOD, why),
    }) {
        for hold in ["none", "until_final", "all"] {
            let mock = Mock::start(vec![reply("It is 4, I think.", 3), reply(good, 9)]).await;
            let server = Tambour::with(&mock).await;
            let held = json!({"options": {"hold": hold}});
            let body = ask(&json!({"dialect": dialect, "max_reasks": 1, "contract": held}));
            let events = server.stream(&body).await.whole().await;
            assert_eq!(metadata(&events)["reasks"], 1, "{dialect}, {hold}"); // R-70, X-009
            assert_eq!(text(&events, "final_delta"), "The answer is 4.", "{dialect}, {hold}");
            assert_eq!(metadata(&events).get("unused_reason"), None);
            let record = server.ended(&message(&events)).await;
            assert_eq!(record["attempts"][0]["raw"], "It is 4, I think."); // P-034
        }
        // After the last attempt it becomes the answer, marked as not being of the dialect.
        let mock = Mock::start(vec![reply("It is 4, I think.", 3)]).await;
        let server = Tambour::with(&mock).await;
        let events = server.stream(&ask(&json!({"dialect": dialect, "max_reasks": 1}))).await.whole().await;
        assert_eq!((mock.calls().begun, metadata(&events)["reasks"].as_u64()), (2, Some(1)), "{dialect}");
        assert_eq!(text(&events, "final_delta"), "It is 4, I think.", "{dialect}"); // R-70
        assert_eq!(metadata(&events)["unused_reason"], why, "{dialect}"); // R-70
        assert_eq!(metadata(&events).get("fallback_reason"), None, "{dialect}");
    }
}

#[tokio::test]
async fn models_are_asked_again_in_the_language_of_the_texts() {
    let english = |text: &str| text.is_ascii() && text.contains("Please give the whole reply again");
    let chinese = |text: &str| text.contains("请严格按照要求的格式") && text.contains("第 1 行：");
    // The setting, and the option of the request that overrides it.
    for (setting, option, fits) in [
        (None, None, &chinese as &dyn Fn(&str) -> bool),
        (None, Some("en"), &english),
        (Some("en"), None, &english),
        (Some("en"), Some("zh"), &chinese),
    ] {
        let mock = Mock::start(vec![reply(MARKER, 3), reply(GOOD, 9)]).await;
        let server = Tambour::with(&mock).await;
        if let Some(language) = setting {
            server.put("/api/v1/settings", &json!({"text_language": language})).await;
        }
        let mut body = ask(&json!({"max_reasks": 1}));
        if let Some(language) = option {
            body["contract"] = json!({"options": {"text_language": language}});
        }
        server.stream(&body).await.whole().await;
        let told = mock.asked()[1].body["messages"][2]["content"].as_str().unwrap().to_owned();
        assert!(told.contains("parsing_error_marker") && fits(&told), "{setting:?} {option:?}: {told}");
    }
}

#[tokio::test]
async fn own_texts_of_the_settings_are_in_its_language() {
    let mock = Mock::start(vec![reply(MARKER, 3)]).await;
    let server = Tambour::with(&mock).await;
    server.put("/api/v1/settings", &json!({"text_language": "en", "texts.fallback": "Nothing came."})).await;
    for (language, shown) in
        [("en", "Nothing came."), ("zh", "抱歉，我的响应格式有问题，请重新尝试您的请求。")]
    {
        let body = ask(&json!({"contract": {"options": {"text_language": language}}}));
        let events = server.stream(&body).await.whole().await;
        assert_eq!(text(&events, "final_delta"), shown, "{language}"); // R-07
    }
}

#[tokio::test]
async fn an_unreadable_answer_of_a_round_is_asked_for_again_once() {
    let answer = r#"{"assessment":{"understanding_level":60,"has_questions":true,"expressed_understanding":false,"reasoning":"r"},"response":{"咨询师":"我们再看一遍。"},"should_exit":false,"exit_reason":"继续"}"#;
    let body = json!({"text": "x", "dialect": "ai_say", "output_protocol": "jsonseq_v1"});
    let mock = Mock::start(vec![reply("sorry, no JSON", 3), reply(answer, 9)]).await;
    let server = Tambour::with(&mock).await;
    let events = server.stream(&body).await.whole().await;
    assert_eq!(metadata(&events)["reasks"], 1); // S-054
    assert_eq!(text(&events, "final_delta"), "我们再看一遍。");
    let asked = mock.asked();
    // S-050
    assert_eq!((&asked[0].body["temperature"], &asked[0].body["max_tokens"]), (&json!(0.7), &json!(1000)));
    let record = server.ended(&message(&events)).await;
    assert_eq!(record["attempts"][0]["raw"], "sorry, no JSON"); // S-054: kept for later

    // R-53: after the last attempt the text itself is the message; that of the first, where the second is no better.
    let mock = Mock::start(vec![reply("sorry", 3), reply("still no JSON", 3)]).await;
    let server = Tambour::with(&mock).await;
    let mut body = body;
    body["temperature"] = json!(0.2);
    body["max_tokens"] = json!(50);
    let events = server.stream(&body).await.whole().await;
    assert_eq!(
        (metadata(&events)["reasks"].clone(), text(&events, "final_delta")),
        (json!(1), "sorry".to_owned())
    );
    assert_eq!(
        (&mock.asked()[0].body["temperature"], &mock.asked()[0].body["max_tokens"]),
        (&json!(0.2), &json!(50))
    );
}

/// A reply in pieces of a few bytes, at once or with a pause in milliseconds between them.
fn paced(text: &str, pause: u64) -> Vec<Step> {
    let chars: Vec<char> = text.chars().collect();
    let pieces: Vec<String> =
        chars.chunks(chars.len().div_ceil(12)).map(|piece| piece.iter().collect()).collect();
    let step = |piece: &String| match (delta(piece), pause) {
        (step, 0) => step,
        (step, pause) => Step::Tick(pause, Box::new(step)),
    };
    pieces.iter().map(step).chain(finish("stop")).collect()
}

#[tokio::test]
async fn whether_a_reply_is_asked_for_again_does_not_depend_on_its_pace() {
    let thought = "<thinking><phase id=\"1\"><title>T</title>seen</phase></thinking><final></final>";
    let prose = "It is 4, I think, and I am quite sure of it.";
    let broken = "<thinking><phase id=\"1\"><title>T</title>seen</phase></thinking><final>It is 4";
    for text in [thought, prose, broken, MARKER, " \n"] {
        for hold in ["none", "until_final", "all"] {
            for protocol in ["jsonseq_v1", "legacy"] {
                let mut seen = Vec::new();
                for pause in [0, 3, 20] {
                    let mock = Mock::start(vec![paced(text, pause), reply(GOOD, 9)]).await;
                    let server = Tambour::with(&mock).await;
                    let contract = json!({"options": {"hold": hold}});
                    let more = json!({"max_reasks": 1, "contract": contract, "output_protocol": protocol});
                    let events = server.stream(&ask(&more)).await.whole().await;
                    let record = server.ended(&message(&events)).await;
                    seen.push((mock.calls().begun, record["answer"].clone(), metadata(&events)));
                }
                // R-66: the text released by `hold` decides, at any pace.
                let same = seen.windows(2).all(|two| two[0] == two[1]);
                assert!(same, "{text} {hold} {protocol}: {seen:?}");
            }
        }
    }
}

#[tokio::test]
async fn who_wants_no_stream_has_all_of_it_asked_for_again() {
    let empty = "<thinking><phase id=\"1\"><title>T</title>seen</phase></thinking><final></final>";
    for pause in [0, 20] {
        let mock = Mock::start(vec![paced(empty, pause), reply(GOOD, 9)]).await;
        let server = Tambour::with(&mock).await;
        let mut body = ask(&json!({"max_reasks": 1, "wait": true}));
        let record = server.post("/api/v1/messages", &body).await.json;
        assert_eq!((mock.calls().begun, &record["answer"]), (2, &json!("The answer is 4."))); // R-66
        // Unless the request sets what is held.
        body["contract"] = json!({"options": {"hold": "none"}});
        let mock = Mock::start(vec![paced(empty, pause), reply(GOOD, 9)]).await;
        let server = Tambour::with(&mock).await;
        server.post("/api/v1/messages", &body).await;
        assert_eq!(mock.calls().begun, 1);
    }
}

#[tokio::test]
async fn what_is_asked_for_again_takes_over_only_if_it_is_better() {
    let plan = crate::tool_kit::answer("The answer is 4.");
    let prose = "It is 4, I think.";
    let invalid = r#"{"thought":"t","response_mode":"NO_MODE","direct_response":null,"tool_calls":[]}"#;
    let apology = "抱歉，我的响应格式有问题，请重新尝试您的请求。";
    for hold in ["none", "all"] {
        for (replies, calls, answer, reason) in [
            // A usable reply is better than a broken one.
            (vec![prose, &plan], 2, "The answer is 4.", None),
            // Prose is better than the apology, in any order.
            (vec![prose, MARKER], 2, prose, Some("plan_missing")),
            (vec![prose, ""], 2, prose, Some("plan_missing")),
            (vec![prose, invalid], 2, prose, Some("plan_missing")),
            (vec![MARKER, prose], 2, prose, Some("plan_missing")),
            // A reply that is no better changes nothing.
            (vec![prose, "It may be 5."], 2, prose, Some("plan_missing")),
            (vec![MARKER, invalid], 2, apology, Some("plan_invalid")),
            // The best of all replies.
            (vec![MARKER, prose, MARKER], 3, prose, Some("plan_missing")),
            (vec![prose, MARKER, &plan], 3, "The answer is 4.", None),
        ] {
            let mock = Mock::start(replies.iter().map(|text| reply(text, 3)).collect()).await;
            let server = Tambour::with(&mock).await;
            let contract = json!({"options": {"hold": hold}});
            let more = json!({"dialect": "aiplan", "max_reasks": calls - 1, "contract": contract, "extensions": true});
            let events = server.stream(&ask(&more)).await.whole().await;
            let place = format!("{hold}: {replies:?}");
            assert_eq!(text(&events, "final_delta"), answer, "{place}"); // X-009, R-66
            let metadata = metadata(&events);
            let because = metadata["unused_reason"].as_str().or(metadata["fallback_reason"].as_str());
            assert_eq!(because, reason, "{place}");
            assert_eq!((mock.calls().begun, &metadata["reasks"]), (calls, &json!(calls - 1)), "{place}");
            assert_eq!(names(&events).iter().filter(|name| **name == "plan").count(), 1, "{place}");
            let record = server.ended(&message(&events)).await;
            assert_eq!(record["answer"], answer, "{place}");
            // The record has every reply (P-034): the answer, and the discarded ones.
            let kept: Vec<&str> =
                record["attempts"].as_array().unwrap().iter().filter_map(|one| one["raw"].as_str()).collect();
            assert!(replies.iter().all(|text| kept.contains(text) || record["reply"] == **text), "{record}");
            // The log is a valid stream, the same for a later reader.
            let again = server.follow(&message(&events), &[]).await.whole().await;
            assert_eq!(text(&again, "final_delta"), answer, "{place}");
        }
    }
}

#[tokio::test]
async fn a_failure_does_not_take_the_place_of_text() {
    let refusal = vec![Step::Head(400, vec![]), Step::End];
    let mock = Mock::start(vec![reply("It is 4.", 3), refusal]).await;
    let server = Tambour::with(&mock).await;
    let events = server.stream(&ask(&json!({"max_reasks": 1}))).await.whole().await;
    assert_eq!((text(&events, "final_delta"), mock.calls().begun), ("It is 4.".to_owned(), 2)); // X-009
    let record = server.ended(&message(&events)).await;
    assert_eq!(record["attempts"][1]["error"]["code"], "upstream_refused"); // P-034
}

#[tokio::test]
async fn a_repeated_example_is_no_answer() {
    for dialect in ["thinkingml", "jsonseq", "aiplan", "ai_say", "filament"] {
        let entry = tambour::dialect::find_dialect(dialect).unwrap();
        let example = (entry.prompt.unwrap())(&tambour::Options::default()).example.into_owned();
        for (second, reasks) in [(Some("It is 4, I think."), 1), (None, 0)] {
            let replies = [Some(example.as_str()), second].into_iter().flatten();
            let mock = Mock::start(replies.map(|text| reply(text, 9)).collect()).await;
            let server = Tambour::with(&mock).await;
            let more = json!({"dialect": dialect, "instructions": true, "max_reasks": reasks, "contract": {"options": {"hold": "all"}}});
            let events = server.stream(&ask(&more)).await.whole().await;
            let shown = text(&events, "final_delta");
            match second {
                Some(second) => assert_eq!(shown, second, "{dialect}"), // X-011, X-009
                None => {
                    assert_eq!(metadata(&events)["fallback_reason"], "example_echo", "{dialect}"); // X-011
                    assert!(shown.starts_with("抱歉"), "{dialect}: {shown}"); // R-07
                }
            }
            // The next prompt of the conversation does not have the example either.
            let id = server.ended(&message(&events)).await["conversation_id"].clone();
            let next = json!({"text": "y", "conversation_id": id, "dialect": "plain", "wait": true});
            server.post("/api/v1/messages", &next).await;
            let asked = mock.asked().last().unwrap().body["messages"].to_string();
            let letters: Vec<char> = example.chars().filter(|c| c.is_alphanumeric()).collect();
            let words: String = letters[letters.len() / 2..].iter().take(24).collect();
            let asked: String = asked.chars().filter(|c| c.is_alphanumeric()).collect();
            assert!(!asked.contains(&words), "{dialect}: {asked}"); // R-73
        }
    }
}

#[tokio::test]
async fn an_example_that_is_repeated_takes_over_from_nothing() {
    let entry = tambour::dialect::find_dialect("aiplan").unwrap();
    let example = (entry.prompt.unwrap())(&tambour::Options::default()).example.into_owned();
    let prose = "It is 4, I think.";
    for hold in ["none", "all"] {
        let mock = Mock::start(vec![reply(prose, 9), reply(&example, 9)]).await;
        let server = Tambour::with(&mock).await;
        let more = json!({"dialect": "aiplan", "instructions": true, "max_reasks": 1, "contract": {"options": {"hold": hold}}});
        let events = server.stream(&ask(&more)).await.whole().await;
        assert_eq!(text(&events, "final_delta"), prose, "{hold}"); // X-009, X-011
        assert_eq!((mock.calls().begun, &metadata(&events)["reasks"]), (2, &json!(1)), "{hold}");
    }
}
