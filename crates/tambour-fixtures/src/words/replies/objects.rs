//! Replies that are JSON objects, with marker words in their values.

use super::super::json::LooseJsonWriter;
use super::super::texts::WordSource;
use super::{fence_reply, random_draft, random_surrounding_text};

/// Makes a sequence of event objects: in lines, in a list, or as server-sent events.
pub(super) fn jsonseq_reply(words: &mut WordSource) -> String {
    // Name and data of each event.
    let mut events: Vec<(&str, Vec<(&str, String)>)> = Vec::new();
    let mut json = LooseJsonWriter::new_one_line(words);
    let to_json = |json: &mut LooseJsonWriter<'_>, text: String| json.write_string(&text);
    if json.words().draw_one_in(2) {
        let line = json.words().text_line();
        events.push(("serp_summary", vec![("text", to_json(&mut json, line))]));
    }
    events.push(("thinking_start", vec![]));
    for id in 1..=1 + json.words().below(3) {
        let title = json.words().text_line();
        events.push(("phase_start", vec![("id", id.to_string()), ("title", to_json(&mut json, title))]));
        for _ in 0..json.words().below(3) {
            let prose = json.words().prose();
            events.push(("phase_delta", vec![("id", id.to_string()), ("text", to_json(&mut json, prose))]));
        }
    }
    events.push(("thinking_end", vec![]));
    for _ in 0..=json.words().below(3) {
        let markdown = json.words().markdown();
        events.push(("final_delta", vec![("text", to_json(&mut json, markdown))]));
    }
    if json.words().draw_one_in(2) {
        let queries: Vec<String> = (0..json.words().below(4)).map(|_| json.words().query()).collect();
        let queries: Vec<String> = queries.iter().map(|query| json.write_string(query)).collect();
        let queries = json.write_list(&queries);
        events.push(("serp_queries", vec![("queries", queries)]));
    }
    events.push(("final_end", vec![]));
    // Fields of a flat event are next to its name instead of within `data`.
    let (is_flat, is_sse, is_list) =
        (json.words().draw_one_in(6), json.words().draw_one_in(12), json.words().draw_one_in(16));
    // Models write other keys for `event` and `text` now and then.
    let event_key = if json.words().draw_one_in(16) { "type" } else { "event" };
    let text_key = json.words().draw_one_in(12).then(|| json.words().pick(&["content", "delta"]));
    let mut output_lines = Vec::new();
    for (name, mut fields) in events {
        if let Some(text_key) = text_key {
            fields.iter_mut().filter(|(key, _)| *key == "text").for_each(|(key, _)| *key = text_key);
        }
        if json.words().draw_one_in(20) {
            let value = json.write_random(1);
            fields.push(("note", value));
        }
        let line = if is_sse {
            format!("event: {name}\ndata: {}\n", json.write_object(&fields))
        } else if is_flat && !fields.is_empty() {
            fields.insert(0, (event_key, format!("\"{name}\"")));
            json.write_object(&fields)
        } else {
            let data = json.write_object(&fields);
            let mut fields = vec![(event_key, format!("\"{name}\"")), ("data", data)];
            if json.words().draw_one_in(20) {
                let value = json.write_random(1);
                let at = json.words().below(3);
                fields.insert(at, ("extra", value));
            }
            json.write_object(&fields)
        };
        output_lines.push(line);
        if json.words().draw_one_in(30) {
            let value = json.write_random(0);
            output_lines.push(json.write_object(&[("event", "\"progress\"".to_owned()), ("data", value)]));
        }
    }
    let reply =
        if is_list { format!("[{}]", output_lines.join(",\n")) } else { output_lines.join("\n") + "\n" };
    let reply = fence_reply(words, reply, "json", 10);
    let (draft, before, after) =
        (random_draft(words), random_surrounding_text(words), random_surrounding_text(words));
    draft + &before + &reply + &after
}

/// Makes a plan, with calls in half of all cases, and with variations that models write.
pub(super) fn aiplan_reply(words: &mut WordSource) -> String {
    const TOOLS: &[&str] =
        &["createComprehensiveSRS", "editSRSDocument", "classifyProjectComplexity", "lintSRSDocument"];
    let has_calls = words.draw_one_in(2);
    let mut json = LooseJsonWriter::new(words);
    let thought = json.words().prose();
    let mut fields = vec![("thought", json.write_string(&thought))];
    if has_calls {
        fields.push(("response_mode", "\"TOOL_EXECUTION\"".to_owned()));
        fields.push(("direct_response", "null".to_owned()));
        let mut calls = Vec::new();
        for _ in 0..=json.words().below(2) {
            let name = if json.words().draw_one_in(12) {
                json.words().word()
            } else {
                json.words().pick(TOOLS).to_owned()
            };
            let input = json.words().prose();
            let mut args = vec![("userInput", json.write_string(&input))];
            if json.words().draw_one_in(2) {
                let domain = json.words().text_line();
                let feature = json.words().text_line();
                let session_data = [
                    ("domain", json.write_string(&domain)),
                    ("features", format!("[{}]", json.write_string(&feature))),
                    ("deep", json.write_random(1)),
                ];
                args.push(("sessionData", json.write_object(&session_data)));
            }
            let mut args = json.write_object(&args);
            if json.words().draw_one_in(12) {
                args = json.write_string(&args);
            }
            let name = json.write_string(&name);
            let alias = json.words().pick(&["parameters", "arguments"]);
            let args_key = if json.words().draw_one_in(12) { alias } else { "args" };
            let mut call = vec![("name", name), (args_key, args)];
            if json.words().draw_one_in(12) {
                call.push(("why", json.write_random(1)));
            }
            let mut call = json.write_object(&call);
            if json.words().draw_one_in(16) {
                call = json.write_object(&[("type", "\"function\"".to_owned()), ("function", call)]);
            }
            calls.push(call);
        }
        fields.push(("tool_calls", json.write_list(&calls)));
    } else {
        let mode = json.words().pick(&["\"KNOWLEDGE_QA\"", "\"GENERAL_CHAT\""]);
        fields.push(("response_mode", mode.to_owned()));
        let answer = json.words().markdown();
        fields.push(("direct_response", json.write_string(&answer)));
        fields.push(("tool_calls", "[]".to_owned()));
    }
    if json.words().draw_one_in(8) {
        let value = json.write_random(1);
        fields.push(("execution_plan", value));
    }
    shuffle_fields(json.words(), &mut fields);
    let mut reply = json.write_object(&fields);
    match json.words().below(24) {
        0 => reply = json.write_list(&[reply]),
        1 => reply = json.write_object(&[("plan", reply)]),
        _ => {}
    }
    if words.draw_one_in(12) {
        reply = insert_comment(words, &reply);
    }
    let times = if words.draw_one_in(4) { 4 } else { 1 };
    let reply = fence_reply(words, reply, "json", times);
    let (draft, before, after) =
        (random_draft(words), random_surrounding_text(words), random_surrounding_text(words));
    draft + &before + &reply + "\n" + &after
}

/// Makes an answer of a dialogue round, with variations that models write.
pub(super) fn ai_say_reply(words: &mut WordSource) -> String {
    let mut json = LooseJsonWriter::new(words);
    let reasoning = json.words().prose();
    let mut assessment = vec![
        ("understanding_level", json.words().pick(&["85", "40", "\"90\"", "0"]).to_owned()),
        ("has_questions", json.words().pick(&["true", "false"]).to_owned()),
        ("expressed_understanding", json.words().pick(&["true", "false"]).to_owned()),
        ("reasoning", json.write_string(&reasoning)),
    ];
    if json.words().draw_one_in(12) {
        assessment.push(("mood", json.write_random(1)));
    }
    let assessment = json.write_object(&assessment);
    let message = json.words().markdown();
    let message = json.write_string(&message);
    let response = match json.words().below(8) {
        0 => message,
        1 => json.write_object(&[("counsellor", message)]),
        2 => {
            let other = json.write_random(1);
            json.write_object(&[("咨询师", message), ("备注", other)])
        }
        _ => json.write_object(&[("咨询师", message)]),
    };
    let reason = json.words().text_line();
    let alias = json.words().pick(&["message", "reply"]);
    let response_key = if json.words().draw_one_in(16) { alias } else { "response" };
    let mut fields = vec![
        ("assessment", assessment),
        (response_key, response),
        ("should_exit", json.words().pick(&["true", "false"]).to_owned()),
        ("exit_reason", json.write_string(&reason)),
    ];
    if json.words().draw_one_in(8) {
        let value = json.write_random(1);
        fields.push(("note", value));
    }
    shuffle_fields(json.words(), &mut fields);
    let mut reply = json.write_object(&fields);
    match json.words().below(24) {
        0 => reply = json.write_list(&[reply]),
        1 => reply = json.write_object(&[("output", reply)]),
        2 => reply = json.write_string(&reply),
        _ => {}
    }
    if words.draw_one_in(12) {
        reply = insert_comment(words, &reply);
    }
    let reply = fence_reply(words, reply, "json", 8);
    let (draft, before, after) =
        (random_draft(words), random_surrounding_text(words), random_surrounding_text(words));
    draft + &before + &reply + "\n" + &after
}

/// Makes one object, as models write it when asked for JSON.
pub(super) fn json_value_reply(words: &mut WordSource) -> String {
    let mut writer = LooseJsonWriter::new(words);
    let name = writer.words().word();
    let fields = [
        ("text", writer.write_random(0)),
        (name.as_str(), writer.write_random(0)),
        ("last", writer.write_random(1)),
    ];
    let mut reply = writer.write_object(&fields);
    if words.draw_one_in(12) {
        reply = insert_comment(words, &reply);
    }
    let reply = fence_reply(words, reply, "json", 3);
    let (draft, before, after) =
        (random_draft(words), random_surrounding_text(words), random_surrounding_text(words));
    draft + &before + &reply + "\n" + &after
}

/// Changes the order of fields one time in three.
fn shuffle_fields(words: &mut WordSource, fields: &mut [(&str, String)]) {
    if words.draw_one_in(3) {
        for _ in 0..fields.len() {
            let (a, b) = (words.below(fields.len()), words.below(fields.len()));
            fields.swap(a, b);
        }
    }
}

/// Inserts a comment after a comma that precedes a quote; returns the JSON unchanged if it has no such comma.
fn insert_comment(words: &mut WordSource, reply: &str) -> String {
    let commas: Vec<usize> = reply.match_indices(",\"").map(|(at, _)| at + 1).collect();
    if commas.is_empty() {
        return reply.to_owned();
    }
    let at = commas[words.below(commas.len())];
    let comment = if words.draw_one_in(2) {
        format!(" // {}\n", words.text_line())
    } else {
        format!(" /* {} */ ", words.text_line())
    };
    format!("{}{comment}{}", &reply[..at], &reply[at..])
}
