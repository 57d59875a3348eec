//! Replies that are JSON objects.

use super::super::json::Writer;
use super::super::texts::Words;
use super::{draft, fenced, outside};

pub(super) fn jsonseq(words: &mut Words) -> String {
    let mut lines: Vec<(&str, Vec<(&str, String)>)> = Vec::new();
    let mut json = Writer::new(words, true);
    let text = |json: &mut Writer<'_>, text: String| json.string(&text);
    if json.words().once_in(2) {
        let line = json.words().line();
        lines.push(("serp_summary", vec![("text", text(&mut json, line))]));
    }
    lines.push(("thinking_start", vec![]));
    for id in 1..=1 + json.words().below(3) {
        let title = json.words().line();
        lines.push(("phase_start", vec![("id", id.to_string()), ("title", text(&mut json, title))]));
        for _ in 0..json.words().below(3) {
            let prose = json.words().prose();
            lines.push(("phase_delta", vec![("id", id.to_string()), ("text", text(&mut json, prose))]));
        }
    }
    lines.push(("thinking_end", vec![]));
    for _ in 0..=json.words().below(3) {
        let markdown = json.words().markdown();
        lines.push(("final_delta", vec![("text", text(&mut json, markdown))]));
    }
    if json.words().once_in(2) {
        let queries: Vec<String> = (0..json.words().below(4)).map(|_| json.words().query()).collect();
        let queries: Vec<String> = queries.iter().map(|query| json.string(query)).collect();
        let queries = json.list(&queries);
        lines.push(("serp_queries", vec![("queries", queries)]));
    }
    lines.push(("final_end", vec![]));
    let (flat, sse, array) = (json.words().once_in(6), json.words().once_in(12), json.words().once_in(16));
    // Aliases of `event` and `text`.
    let event = if json.words().once_in(16) { "type" } else { "event" };
    let other = json.words().once_in(12).then(|| json.words().pick(&["content", "delta"]));
    let mut written = Vec::new();
    for (name, mut fields) in lines {
        if let Some(other) = other {
            fields.iter_mut().filter(|(name, _)| *name == "text").for_each(|(name, _)| *name = other);
        }
        if json.words().once_in(20) {
            let value = json.any(1);
            fields.push(("note", value));
        }
        let line = if sse {
            format!("event: {name}\ndata: {}\n", json.object(&fields))
        } else if flat && !fields.is_empty() {
            fields.insert(0, (event, format!("\"{name}\"")));
            json.object(&fields)
        } else {
            let data = json.object(&fields);
            let mut fields = vec![(event, format!("\"{name}\"")), ("data", data)];
            if json.words().once_in(20) {
                let value = json.any(1);
                let at = json.words().below(3);
                fields.insert(at, ("extra", value));
            }
            json.object(&fields)
        };
        written.push(line);
        if json.words().once_in(30) {
            let value = json.any(0);
            written.push(json.object(&[("event", "\"progress\"".to_owned()), ("data", value)]));
        }
    }
    let reply = if array { format!("[{}]", written.join(",\n")) } else { written.join("\n") + "\n" };
    let reply = fenced(words, reply, "json", 10);
    let (draft, before, after) = (draft(words), outside(words), outside(words));
    draft + &before + &reply + &after
}

pub(super) fn aiplan(words: &mut Words) -> String {
    const TOOLS: &[&str] =
        &["createComprehensiveSRS", "editSRSDocument", "classifyProjectComplexity", "lintSRSDocument"];
    let acts = words.once_in(2);
    let mut json = Writer::new(words, false);
    let thought = json.words().prose();
    let mut fields = vec![("thought", json.string(&thought))];
    if acts {
        fields.push(("response_mode", "\"TOOL_EXECUTION\"".to_owned()));
        fields.push(("direct_response", "null".to_owned()));
        let mut calls = Vec::new();
        for _ in 0..=json.words().below(2) {
            let name = if json.words().once_in(12) {
                json.words().word()
            } else {
                json.words().pick(TOOLS).to_owned()
            };
            let input = json.words().prose();
            let mut args = vec![("userInput", json.string(&input))];
            if json.words().once_in(2) {
                let domain = json.words().line();
                let feature = json.words().line();
                let data = [
                    ("domain", json.string(&domain)),
                    ("features", format!("[{}]", json.string(&feature))),
                    ("deep", json.any(1)),
                ];
                args.push(("sessionData", json.object(&data)));
            }
            let mut args = json.object(&args);
            if json.words().once_in(12) {
                args = json.string(&args);
            }
            let name = json.string(&name);
            let other = json.words().pick(&["parameters", "arguments"]);
            let key = if json.words().once_in(12) { other } else { "args" };
            let mut call = vec![("name", name), (key, args)];
            if json.words().once_in(12) {
                call.push(("why", json.any(1)));
            }
            let mut call = json.object(&call);
            if json.words().once_in(16) {
                call = json.object(&[("type", "\"function\"".to_owned()), ("function", call)]);
            }
            calls.push(call);
        }
        fields.push(("tool_calls", json.list(&calls)));
    } else {
        let mode = json.words().pick(&["\"KNOWLEDGE_QA\"", "\"GENERAL_CHAT\""]);
        fields.push(("response_mode", mode.to_owned()));
        let answer = json.words().markdown();
        fields.push(("direct_response", json.string(&answer)));
        fields.push(("tool_calls", "[]".to_owned()));
    }
    if json.words().once_in(8) {
        let value = json.any(1);
        fields.push(("execution_plan", value));
    }
    shuffled(json.words(), &mut fields);
    let mut reply = json.object(&fields);
    match json.words().below(24) {
        0 => reply = json.list(&[reply]),
        1 => reply = json.object(&[("plan", reply)]),
        _ => {}
    }
    if words.once_in(12) {
        reply = commented(words, &reply);
    }
    let times = if words.once_in(4) { 4 } else { 1 };
    let reply = fenced(words, reply, "json", times);
    let (draft, before, after) = (draft(words), outside(words), outside(words));
    draft + &before + &reply + "\n" + &after
}

pub(super) fn ai_say(words: &mut Words) -> String {
    let mut json = Writer::new(words, false);
    let reasoning = json.words().prose();
    let mut assessment = vec![
        ("understanding_level", json.words().pick(&["85", "40", "\"90\"", "0"]).to_owned()),
        ("has_questions", json.words().pick(&["true", "false"]).to_owned()),
        ("expressed_understanding", json.words().pick(&["true", "false"]).to_owned()),
        ("reasoning", json.string(&reasoning)),
    ];
    if json.words().once_in(12) {
        assessment.push(("mood", json.any(1)));
    }
    let assessment = json.object(&assessment);
    let message = json.words().markdown();
    let message = json.string(&message);
    let response = match json.words().below(8) {
        0 => message,
        1 => json.object(&[("counsellor", message)]),
        2 => {
            let other = json.any(1);
            json.object(&[("咨询师", message), ("备注", other)])
        }
        _ => json.object(&[("咨询师", message)]),
    };
    let reason = json.words().line();
    let other = json.words().pick(&["message", "reply"]);
    let key = if json.words().once_in(16) { other } else { "response" };
    let mut fields = vec![
        ("assessment", assessment),
        (key, response),
        ("should_exit", json.words().pick(&["true", "false"]).to_owned()),
        ("exit_reason", json.string(&reason)),
    ];
    if json.words().once_in(8) {
        let value = json.any(1);
        fields.push(("note", value));
    }
    shuffled(json.words(), &mut fields);
    let mut reply = json.object(&fields);
    match json.words().below(24) {
        0 => reply = json.list(&[reply]),
        1 => reply = json.object(&[("output", reply)]),
        2 => reply = json.string(&reply),
        _ => {}
    }
    if words.once_in(12) {
        reply = commented(words, &reply);
    }
    let reply = fenced(words, reply, "json", 8);
    let (draft, before, after) = (draft(words), outside(words), outside(words));
    draft + &before + &reply + "\n" + &after
}

/// Makes one object, as models write it when asked for JSON.
pub(super) fn json_value(words: &mut Words) -> String {
    let mut writer = Writer::new(words, false);
    let name = writer.words().word();
    let fields = [("text", writer.any(0)), (name.as_str(), writer.any(0)), ("last", writer.any(1))];
    let mut reply = writer.object(&fields);
    if words.once_in(12) {
        reply = commented(words, &reply);
    }
    let reply = fenced(words, reply, "json", 3);
    let (draft, before, after) = (draft(words), outside(words), outside(words));
    draft + &before + &reply + "\n" + &after
}

/// Sometimes changes the order of fields.
fn shuffled(words: &mut Words, fields: &mut [(&str, String)]) {
    if words.once_in(3) {
        for _ in 0..fields.len() {
            let (a, b) = (words.below(fields.len()), words.below(fields.len()));
            fields.swap(a, b);
        }
    }
}

/// Inserts a comment after a comma of the JSON.
fn commented(words: &mut Words, reply: &str) -> String {
    let commas: Vec<usize> = reply.match_indices(",\"").map(|(at, _)| at + 1).collect();
    if commas.is_empty() {
        return reply.to_owned();
    }
    let at = commas[words.below(commas.len())];
    let comment = if words.once_in(2) {
        format!(" // {}\n", words.line())
    } else {
        format!(" /* {} */ ", words.line())
    };
    format!("{}{comment}{}", &reply[..at], &reply[at..])
}
