//! Unusable replies: asked for again if allowed, else replaced by the fallback; never shown raw.

use serde_json::{Value, json};

use crate::client::{event_names, joined_text, stream_message_id};
use crate::mock::{GOOD_REPLY, MockServer, Step, delta_step, finish_steps, reply_script};
use crate::server::TestServer;

const ERROR_MARKER: &str = "<<ParsingError>>";

/// Dialects with a structure, and the reason for a reply that is prose without it.
pub(crate) const PROSE_REASONS: [(&str, &str); 4] = [
    ("thinkingml", "structure_missing"),
    ("jsonseq", "events_missing"),
    ("aiplan", "plan_missing"),
    ("ai_say", "unstructured"),
];

fn request_body(fields: &Value) -> Value {
    let mut request = json!({"text": "x", "dialect": "thinkingml", "output_protocol": "jsonseq_v1"});
    request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    request
}

fn end_metadata(events: &[crate::client::Event]) -> Value {
    events.last().unwrap().data["metadata"].clone()
}

#[tokio::test]
async fn without_leave_the_fallback_is_shown() {
    for marker in [ERROR_MARKER, " \n<<ParsingError>>\n"] {
        let mock = MockServer::start(vec![reply_script(marker, 3)]).await;
        let server = TestServer::start_default(&mock).await;
        let events = server.open_stream(&request_body(&json!({}))).await.read_checked().await;
        assert_eq!(end_metadata(&events)["fallback_reason"], "parsing_error"); // J-055
        assert_eq!(end_metadata(&events)["reasks"], 0);
        assert!(
            !joined_text(&events, "final_delta").is_empty()
                && !joined_text(&events, "final_delta").contains("Parsing")
        ); // R-07
        assert_eq!(mock.calls().started, 1);
    }
}

#[tokio::test]
async fn with_leave_the_model_is_asked_again() {
    for protocol in ["jsonseq_v1", "legacy"] {
        let mock = MockServer::start(vec![reply_script(ERROR_MARKER, 3), reply_script(GOOD_REPLY, 9)]).await;
        let server = TestServer::start_default(&mock).await;
        let body = request_body(&json!({"max_reasks": 1, "output_protocol": protocol}));
        let events = server.open_stream(&body).await.read_checked().await;
        assert_eq!(end_metadata(&events)["reasks"], 1, "{protocol}"); // J-055, X-009
        assert_eq!(end_metadata(&events).get("fallback_reason"), None);
        let reask_events = events.iter().filter(|event| event.data["state"] == "reasking");
        assert_eq!(reask_events.map(|event| event.data["reask"].clone()).collect::<Vec<_>>(), [1]);
        // Token counts of both calls.
        assert_eq!(events.last().unwrap().data["usage"]["completion_tokens"], 10);
        let shown_text: String = events.iter().map(|event| event.frame.as_str()).collect();
        assert!(!shown_text.contains("ParsingError"), "{shown_text}"); // R-07
        let messages = mock.requests()[1].body["messages"].clone();
        assert_eq!(messages.as_array().unwrap().len(), 3);
        assert_eq!(messages[1], json!({"role": "assistant", "content": ERROR_MARKER}));
        assert!(messages[2]["content"].as_str().unwrap().contains("parsing_error"), "{}", messages[2]);
        let record = server.wait_ended(&stream_message_id(&events)).await;
        assert_eq!(record["reply"], GOOD_REPLY);
        let attempts = record["attempts"].as_array().unwrap();
        assert_eq!((attempts.len(), &attempts[0]["raw"]), (1, &json!(ERROR_MARKER))); // P-034
        assert_eq!(attempts[0]["findings"][0]["code"], "parsing_error_marker"); // P-034
    }
}

#[tokio::test]
async fn it_is_asked_as_often_as_allowed() {
    let mock = MockServer::start(vec![reply_script(ERROR_MARKER, 3)]).await;
    let server = TestServer::start_default(&mock).await;
    let events = server.open_stream(&request_body(&json!({"max_reasks": 2}))).await.read_checked().await;
    assert_eq!(mock.calls().started, 3);
    assert_eq!(end_metadata(&events)["reasks"], 2);
    assert_eq!(end_metadata(&events)["fallback_reason"], "parsing_error"); // J-055
}

#[tokio::test]
async fn what_was_delivered_is_not_asked_again() {
    let empty = "<thinking><phase id=\"1\"><title>T</title>seen</phase></thinking><final></final>";
    // Without hold the phase is delivered, and the attempt stands.
    let mock = MockServer::start(vec![reply_script(empty, 8), reply_script(GOOD_REPLY, 9)]).await;
    let server = TestServer::start_default(&mock).await;
    let events = server.open_stream(&request_body(&json!({"max_reasks": 1}))).await.read_checked().await;
    assert_eq!(mock.calls().started, 1); // R-66
    assert!(joined_text(&events, "phase_delta").contains("seen"));
    assert!(end_metadata(&events)["fallback_reason"].is_string()); // R-08
    // A held reply can be discarded.
    for hold in ["until_final", "all"] {
        let mock = MockServer::start(vec![reply_script(empty, 8), reply_script(GOOD_REPLY, 9)]).await;
        let server = TestServer::start_default(&mock).await;
        let body = request_body(&json!({"max_reasks": 1, "contract": {"options": {"hold": hold}}}));
        let events = server.open_stream(&body).await.read_checked().await;
        assert_eq!(mock.calls().started, 2, "{hold}"); // R-66
        assert!(!joined_text(&events, "phase_delta").contains("seen"));
        assert_eq!(joined_text(&events, "final_delta"), "The answer is 4.");
        assert_eq!(end_metadata(&events)["reasks"], 1);
    }
}

#[tokio::test]
async fn holding_back_changes_the_time_and_nothing_else() {
    let mock = MockServer::start(vec![reply_script(GOOD_REPLY, 9)]).await;
    let server = TestServer::start_default(&mock).await;
    let mut runs = Vec::new();
    for hold in ["none", "until_final", "all"] {
        let body = request_body(&json!({"contract": {"options": {"hold": hold}}}));
        let events = server.open_stream(&body).await.read_checked().await;
        runs.push(event_names(&events).iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    }
    assert!(runs.windows(2).all(|pair| pair[0] == pair[1]), "{runs:?}");
}

#[tokio::test]
async fn only_a_finished_reply_is_asked_again() {
    let mut cut = vec![delta_step(ERROR_MARKER)];
    cut.extend(finish_steps("length"));
    let broken = vec![delta_step(ERROR_MARKER), Step::Cut];
    for script in [cut, broken] {
        let mock = MockServer::start(vec![script]).await;
        let server = TestServer::start_default(&mock).await;
        let events = server.open_stream(&request_body(&json!({"max_reasks": 3}))).await.read_checked().await;
        assert_eq!(mock.calls().started, 1);
        let shown_text: String = events.iter().map(|event| event.frame.as_str()).collect();
        assert!(!shown_text.contains("ParsingError"), "{shown_text}"); // R-07
    }
}

#[tokio::test]
async fn a_second_call_that_fails_is_an_error() {
    let mock =
        MockServer::start(vec![reply_script(ERROR_MARKER, 3), vec![Step::Head(400, vec![]), Step::End]])
            .await;
    let server = TestServer::start_default(&mock).await;
    let events = server.open_stream(&request_body(&json!({"max_reasks": 1}))).await.read_checked().await;
    assert_eq!(event_names(&events), ["error"]); // J-035
    assert_eq!(events.last().unwrap().data["code"], "upstream_refused");
}

#[tokio::test]
async fn texts_are_those_of_the_settings() {
    let mock = MockServer::start(vec![reply_script(ERROR_MARKER, 3)]).await;
    let server = TestServer::start_default(&mock).await;
    let events = server.open_stream(&request_body(&json!({}))).await.read_checked().await;
    assert_eq!(joined_text(&events, "final_delta"), "抱歉，我的响应格式有问题，请重新尝试您的请求。"); // R-07
    server
        .put("/api/v1/settings", &json!({"text_language": "en", "texts": {"phase_title": "Thought"}}))
        .await;
    let events = server.open_stream(&request_body(&json!({}))).await.read_checked().await;
    assert!(joined_text(&events, "final_delta").starts_with("Sorry"));
    server.put("/api/v1/settings", &json!({"texts.fallback": "Nothing came."})).await;
    let events = server.open_stream(&request_body(&json!({}))).await.read_checked().await;
    assert_eq!(joined_text(&events, "final_delta"), "Nothing came.");
    let title = events.iter().find(|event| event.name == "phase_start").unwrap().data["title"].clone();
    assert_eq!(title, "Thought");
}

#[tokio::test]
async fn prose_in_the_place_of_a_structure_is_asked_for_again() {
    let plan = crate::tool_kit::answer_reply("The answer is 4.");
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
    for (dialect, good_reply, reason) in PROSE_REASONS.map(|(dialect, reason)| match dialect {
        "aiplan" => (dialect, plan.as_str(), reason),
        "jsonseq" => (dialect, lines.as_str(), reason),
        "ai_say" => (dialect, round, reason),
        _ => (dialect, GOOD_REPLY, reason),
    }) {
        for hold in ["none", "until_final", "all"] {
            let mock =
                MockServer::start(vec![reply_script("It is 4, I think.", 3), reply_script(good_reply, 9)])
                    .await;
            let server = TestServer::start_default(&mock).await;
            let contract = json!({"options": {"hold": hold}});
            let body = request_body(&json!({"dialect": dialect, "max_reasks": 1, "contract": contract}));
            let events = server.open_stream(&body).await.read_checked().await;
            assert_eq!(end_metadata(&events)["reasks"], 1, "{dialect}, {hold}"); // R-70, X-009
            assert_eq!(joined_text(&events, "final_delta"), "The answer is 4.", "{dialect}, {hold}");
            assert_eq!(end_metadata(&events).get("unused_reason"), None);
            let record = server.wait_ended(&stream_message_id(&events)).await;
            assert_eq!(record["attempts"][0]["raw"], "It is 4, I think."); // P-034
        }
        // After the last attempt it is the answer, and said not to be what was asked for.
        let mock = MockServer::start(vec![reply_script("It is 4, I think.", 3)]).await;
        let server = TestServer::start_default(&mock).await;
        let events = server
            .open_stream(&request_body(&json!({"dialect": dialect, "max_reasks": 1})))
            .await
            .read_checked()
            .await;
        assert_eq!(
            (mock.calls().started, end_metadata(&events)["reasks"].as_u64()),
            (2, Some(1)),
            "{dialect}"
        );
        assert_eq!(joined_text(&events, "final_delta"), "It is 4, I think.", "{dialect}"); // R-70
        assert_eq!(end_metadata(&events)["unused_reason"], reason, "{dialect}"); // R-70
        assert_eq!(end_metadata(&events).get("fallback_reason"), None, "{dialect}");
    }
}

#[tokio::test]
async fn models_are_asked_again_in_the_language_of_the_texts() {
    let english = |text: &str| text.is_ascii() && text.contains("Please give the whole reply again");
    let chinese = |text: &str| text.contains("请严格按照要求的格式") && text.contains("第 1 行：");
    // The setting, and the option of the request that overrides it.
    for (setting, option, is_language) in [
        (None, None, &chinese as &dyn Fn(&str) -> bool),
        (None, Some("en"), &english),
        (Some("en"), None, &english),
        (Some("en"), Some("zh"), &chinese),
    ] {
        let mock = MockServer::start(vec![reply_script(ERROR_MARKER, 3), reply_script(GOOD_REPLY, 9)]).await;
        let server = TestServer::start_default(&mock).await;
        if let Some(language) = setting {
            server.put("/api/v1/settings", &json!({"text_language": language})).await;
        }
        let mut body = request_body(&json!({"max_reasks": 1}));
        if let Some(language) = option {
            body["contract"] = json!({"options": {"text_language": language}});
        }
        server.open_stream(&body).await.read_checked().await;
        let prompt_text = mock.requests()[1].body["messages"][2]["content"].as_str().unwrap().to_owned();
        assert!(
            prompt_text.contains("parsing_error_marker") && is_language(&prompt_text),
            "{setting:?} {option:?}: {prompt_text}"
        );
    }
}

#[tokio::test]
async fn own_texts_of_the_settings_are_in_its_language() {
    let mock = MockServer::start(vec![reply_script(ERROR_MARKER, 3)]).await;
    let server = TestServer::start_default(&mock).await;
    server.put("/api/v1/settings", &json!({"text_language": "en", "texts.fallback": "Nothing came."})).await;
    for (language, expected_text) in
        [("en", "Nothing came."), ("zh", "抱歉，我的响应格式有问题，请重新尝试您的请求。")]
    {
        let body = request_body(&json!({"contract": {"options": {"text_language": language}}}));
        let events = server.open_stream(&body).await.read_checked().await;
        assert_eq!(joined_text(&events, "final_delta"), expected_text, "{language}"); // R-07
    }
}

#[tokio::test]
async fn an_unreadable_answer_of_a_round_is_asked_for_again_once() {
    let answer = r#"{"assessment":{"understanding_level":60,"has_questions":true,"expressed_understanding":false,"reasoning":"r"},"response":{"咨询师":"我们再看一遍。"},"should_exit":false,"exit_reason":"继续"}"#;
    let body = json!({"text": "x", "dialect": "ai_say", "output_protocol": "jsonseq_v1"});
    let mock = MockServer::start(vec![reply_script("sorry, no JSON", 3), reply_script(answer, 9)]).await;
    let server = TestServer::start_default(&mock).await;
    let events = server.open_stream(&body).await.read_checked().await;
    assert_eq!(end_metadata(&events)["reasks"], 1); // S-054
    assert_eq!(joined_text(&events, "final_delta"), "我们再看一遍。");
    let requests = mock.requests();
    // S-050
    assert_eq!(
        (&requests[0].body["temperature"], &requests[0].body["max_tokens"]),
        (&json!(0.7), &json!(1000))
    );
    let record = server.wait_ended(&stream_message_id(&events)).await;
    assert_eq!(record["attempts"][0]["raw"], "sorry, no JSON"); // S-054: kept for later

    // R-53: after the last attempt the text itself is the message; that of the first, where the second is no better.
    let mock = MockServer::start(vec![reply_script("sorry", 3), reply_script("still no JSON", 3)]).await;
    let server = TestServer::start_default(&mock).await;
    let mut body = body;
    body["temperature"] = json!(0.2);
    body["max_tokens"] = json!(50);
    let events = server.open_stream(&body).await.read_checked().await;
    assert_eq!(
        (end_metadata(&events)["reasks"].clone(), joined_text(&events, "final_delta")),
        (json!(1), "sorry".to_owned())
    );
    assert_eq!(
        (&mock.requests()[0].body["temperature"], &mock.requests()[0].body["max_tokens"]),
        (&json!(0.2), &json!(50))
    );
}

/// A reply in pieces of a few bytes, at once or with a pause in milliseconds between them.
fn paced_script(text: &str, pause: u64) -> Vec<Step> {
    let chars: Vec<char> = text.chars().collect();
    let pieces: Vec<String> =
        chars.chunks(chars.len().div_ceil(12)).map(|piece| piece.iter().collect()).collect();
    let step = |piece: &String| match (delta_step(piece), pause) {
        (step, 0) => step,
        (step, pause) => Step::After(pause, Box::new(step)),
    };
    pieces.iter().map(step).chain(finish_steps("stop")).collect()
}

#[tokio::test]
async fn whether_a_reply_is_asked_for_again_does_not_depend_on_its_pace() {
    let thought = "<thinking><phase id=\"1\"><title>T</title>seen</phase></thinking><final></final>";
    let prose = "It is 4, I think, and I am quite sure of it.";
    let broken = "<thinking><phase id=\"1\"><title>T</title>seen</phase></thinking><final>It is 4";
    for text in [thought, prose, broken, ERROR_MARKER, " \n"] {
        for hold in ["none", "until_final", "all"] {
            for protocol in ["jsonseq_v1", "legacy"] {
                let mut runs = Vec::new();
                for pause in [0, 3, 20] {
                    let mock =
                        MockServer::start(vec![paced_script(text, pause), reply_script(GOOD_REPLY, 9)]).await;
                    let server = TestServer::start_default(&mock).await;
                    let contract = json!({"options": {"hold": hold}});
                    let fields = json!({"max_reasks": 1, "contract": contract, "output_protocol": protocol});
                    let events = server.open_stream(&request_body(&fields)).await.read_checked().await;
                    let record = server.wait_ended(&stream_message_id(&events)).await;
                    runs.push((mock.calls().started, record["answer"].clone(), end_metadata(&events)));
                }
                // R-66: the text released by `hold` decides, at any pace.
                let are_same = runs.windows(2).all(|pair| pair[0] == pair[1]);
                assert!(are_same, "{text} {hold} {protocol}: {runs:?}");
            }
        }
    }
}

#[tokio::test]
async fn who_wants_no_stream_has_all_of_it_asked_for_again() {
    let empty = "<thinking><phase id=\"1\"><title>T</title>seen</phase></thinking><final></final>";
    for pause in [0, 20] {
        let mock = MockServer::start(vec![paced_script(empty, pause), reply_script(GOOD_REPLY, 9)]).await;
        let server = TestServer::start_default(&mock).await;
        let mut body = request_body(&json!({"max_reasks": 1, "wait": true}));
        let record = server.post("/api/v1/messages", &body).await.json;
        assert_eq!((mock.calls().started, &record["answer"]), (2, &json!("The answer is 4."))); // R-66
        // Unless the request sets what is held.
        body["contract"] = json!({"options": {"hold": "none"}});
        let mock = MockServer::start(vec![paced_script(empty, pause), reply_script(GOOD_REPLY, 9)]).await;
        let server = TestServer::start_default(&mock).await;
        server.post("/api/v1/messages", &body).await;
        assert_eq!(mock.calls().started, 1);
    }
}

#[tokio::test]
async fn what_is_asked_for_again_takes_over_only_if_it_is_better() {
    let plan = crate::tool_kit::answer_reply("The answer is 4.");
    let prose = "It is 4, I think.";
    let invalid = r#"{"thought":"t","response_mode":"NO_MODE","direct_response":null,"tool_calls":[]}"#;
    let apology = "抱歉，我的响应格式有问题，请重新尝试您的请求。";
    for hold in ["none", "all"] {
        for (replies, calls, answer, reason) in [
            // A usable reply is better than a broken one.
            (vec![prose, &plan], 2, "The answer is 4.", None),
            // Prose is better than the apology, in any order.
            (vec![prose, ERROR_MARKER], 2, prose, Some("plan_missing")),
            (vec![prose, ""], 2, prose, Some("plan_missing")),
            (vec![prose, invalid], 2, prose, Some("plan_missing")),
            (vec![ERROR_MARKER, prose], 2, prose, Some("plan_missing")),
            // A reply that is no better changes nothing.
            (vec![prose, "It may be 5."], 2, prose, Some("plan_missing")),
            (vec![ERROR_MARKER, invalid], 2, apology, Some("plan_invalid")),
            // The best of all replies.
            (vec![ERROR_MARKER, prose, ERROR_MARKER], 3, prose, Some("plan_missing")),
            (vec![prose, ERROR_MARKER, &plan], 3, "The answer is 4.", None),
        ] {
            let mock = MockServer::start(replies.iter().map(|text| reply_script(text, 3)).collect()).await;
            let server = TestServer::start_default(&mock).await;
            let contract = json!({"options": {"hold": hold}});
            let fields = json!({"dialect": "aiplan", "max_reasks": calls - 1, "contract": contract, "extensions": true});
            let events = server.open_stream(&request_body(&fields)).await.read_checked().await;
            let place = format!("{hold}: {replies:?}");
            assert_eq!(joined_text(&events, "final_delta"), answer, "{place}"); // X-009, R-66
            let metadata = end_metadata(&events);
            let reported_reason = metadata["unused_reason"].as_str().or(metadata["fallback_reason"].as_str());
            assert_eq!(reported_reason, reason, "{place}");
            assert_eq!((mock.calls().started, &metadata["reasks"]), (calls, &json!(calls - 1)), "{place}");
            assert_eq!(event_names(&events).iter().filter(|name| **name == "plan").count(), 1, "{place}");
            let record = server.wait_ended(&stream_message_id(&events)).await;
            assert_eq!(record["answer"], answer, "{place}");
            // All that came is in the record (P-034): the reply, and what was thrown away.
            let discarded_replies: Vec<&str> = record["attempts"]
                .as_array()
                .unwrap()
                .iter()
                .filter_map(|attempt| attempt["raw"].as_str())
                .collect();
            assert!(
                replies.iter().all(|text| discarded_replies.contains(text) || record["reply"] == **text),
                "{record}"
            );
            // The log is a stream without a fault, and the same for who reads it later.
            let later_events = server.follow(&stream_message_id(&events), &[]).await.read_checked().await;
            assert_eq!(joined_text(&later_events, "final_delta"), answer, "{place}");
        }
    }
}

#[tokio::test]
async fn a_failure_does_not_take_the_place_of_text() {
    let refusal = vec![Step::Head(400, vec![]), Step::End];
    let mock = MockServer::start(vec![reply_script("It is 4.", 3), refusal]).await;
    let server = TestServer::start_default(&mock).await;
    let events = server.open_stream(&request_body(&json!({"max_reasks": 1}))).await.read_checked().await;
    assert_eq!((joined_text(&events, "final_delta"), mock.calls().started), ("It is 4.".to_owned(), 2)); // X-009
    let record = server.wait_ended(&stream_message_id(&events)).await;
    assert_eq!(record["attempts"][1]["error"]["code"], "upstream_refused"); // P-034
}

#[tokio::test]
async fn a_repeated_example_is_no_answer() {
    for dialect in ["thinkingml", "jsonseq", "aiplan", "ai_say", "filament"] {
        let entry = tambour::dialect::find_dialect(dialect).unwrap();
        let example = (entry.prompt.unwrap())(&tambour::Options::default()).example.into_owned();
        for (second_reply, reasks) in [(Some("It is 4, I think."), 1), (None, 0)] {
            let replies = [Some(example.as_str()), second_reply].into_iter().flatten();
            let mock = MockServer::start(replies.map(|text| reply_script(text, 9)).collect()).await;
            let server = TestServer::start_default(&mock).await;
            let fields = json!({"dialect": dialect, "instructions": true, "max_reasks": reasks, "contract": {"options": {"hold": "all"}}});
            let events = server.open_stream(&request_body(&fields)).await.read_checked().await;
            let shown_text = joined_text(&events, "final_delta");
            match second_reply {
                Some(second_reply) => assert_eq!(shown_text, second_reply, "{dialect}"), // X-011, X-009
                None => {
                    assert_eq!(end_metadata(&events)["fallback_reason"], "example_echo", "{dialect}"); // X-011
                    assert!(shown_text.starts_with("抱歉"), "{dialect}: {shown_text}"); // R-07
                }
            }
            // The next prompt of the conversation does not have the example either.
            let id = server.wait_ended(&stream_message_id(&events)).await["conversation_id"].clone();
            let next = json!({"text": "y", "conversation_id": id, "dialect": "plain", "wait": true});
            server.post("/api/v1/messages", &next).await;
            let prompt = mock.requests().last().unwrap().body["messages"].to_string();
            let letters: Vec<char> = example.chars().filter(|c| c.is_alphanumeric()).collect();
            let example_part: String = letters[letters.len() / 2..].iter().take(24).collect();
            let prompt: String = prompt.chars().filter(|c| c.is_alphanumeric()).collect();
            assert!(!prompt.contains(&example_part), "{dialect}: {prompt}"); // R-73
        }
    }
}

#[tokio::test]
async fn an_example_that_is_repeated_takes_over_from_nothing() {
    let entry = tambour::dialect::find_dialect("aiplan").unwrap();
    let example = (entry.prompt.unwrap())(&tambour::Options::default()).example.into_owned();
    let prose = "It is 4, I think.";
    for hold in ["none", "all"] {
        let mock = MockServer::start(vec![reply_script(prose, 9), reply_script(&example, 9)]).await;
        let server = TestServer::start_default(&mock).await;
        let fields = json!({"dialect": "aiplan", "instructions": true, "max_reasks": 1, "contract": {"options": {"hold": hold}}});
        let events = server.open_stream(&request_body(&fields)).await.read_checked().await;
        assert_eq!(joined_text(&events, "final_delta"), prose, "{hold}"); // X-009, X-011
        assert_eq!((mock.calls().started, &end_metadata(&events)["reasks"]), (2, &json!(1)), "{hold}");
    }
}
