//! Routing of the parts of a Filament reply, one row of the table each.

use serde_json::{Value, json};
use tambour::event::EventCollector;
use tambour::state::AttachedState;
use tambour::{Event, InputEnd, Options, Pipeline};

/// Events of the contract, which every reply has; their texts are compared separately.
const CONTRACT: [&str; 7] =
    ["thinking_start", "phase_start", "phase_delta", "thinking_end", "final_delta", "final_end", "completed"];

/// Expected events of a reply.
struct RoutingRow {
    part: &'static str,
    reply: &'static str,
    /// Thoughts and visible text.
    texts: [&'static str; 2],
    /// All events outside the contract, in order.
    events: Vec<(&'static str, Value)>,
}

/// Reads a reply in chunks of `chunk` bytes, with a state, a tool and one view that the client draws.
fn read(reply: &str, chunk: usize) -> (Pipeline, EventCollector) {
    let mut options = Options::default();
    options.set("tools", json!({"roll": {"type": "object", "required": ["sides"]}})).expect("an option");
    options.set("filament.views", json!(["map.small"])).expect("an option");
    options.state = Some(AttachedState { state: json!({"hp": 5}), ..AttachedState::default() });
    let mut sink = EventCollector::default();
    let mut pipeline = Pipeline::new("filament", &options).expect("a dialect").with_extensions(true);
    reply.as_bytes().chunks(chunk).for_each(|chunk| pipeline.push(chunk, &mut sink));
    pipeline.finish(&InputEnd::stop(), &mut sink);
    (pipeline, sink)
}

fn rows() -> Vec<RoutingRow> {
    let row = |part, reply, texts, events| RoutingRow { part, reply, texts, events };
    vec![
        row("thought", "<thought>\nplan\n</thought>\n<content>\nseen\n</content>", ["plan", "seen"], vec![]),
        row(
            "content",
            "<content>\nHe **nods**.<!-- he lies -->\n</content>",
            ["", "He **nods**."],
            vec![("aside", json!({"kind": "comment", "text": "he lies"}))],
        ),
        row(
            "variable_update",
            "<content>a</content>\n<variable_update>\n<analysis>a blow</analysis>\n[[\"SUB\", \"hp\", 2]]\n</variable_update>",
            ["", "a"],
            vec![(
                "state_update",
                json!({"analysis": "a blow", "operations": [{"op": "SUB", "path": "hp", "value": 2}],
                    "results": [{"index": 0, "ok": true, "before": 5, "after": 3}]}),
            )],
        ),
        row(
            "status_bar",
            "<content>a</content>\n<status_bar>\n<SFW>safe</SFW>\n<队伍><源>累</源></队伍>\n</status_bar>",
            ["", "a"],
            vec![(
                "status_bar",
                json!({"items": [{"name": "SFW", "text": "safe", "items": []},
                    {"name": "队伍", "text": "", "items": [{"name": "源", "text": "累", "items": []}]}]}),
            )],
        ),
        row(
            "details",
            "<content>a</content>\n<details>\n<summary>Recap</summary>\nthe wolf fled\n</details>",
            ["", "a"],
            vec![("details", json!({"summary": "Recap", "text": "the wolf fled"}))],
        ),
        row(
            "choice",
            "<content>a</content>\n<choice><prompt>Now?</prompt><options><option id=\"go\">Go</option><option id=\"rest\">Rest</option>\
             </options></choice>",
            ["", "a"],
            vec![(
                "choice",
                json!({"prompt": "Now?", "options": [{"id": "go", "text": "Go"}, {"id": "rest", "text": "Rest"}]}),
            )],
        ),
        row(
            "ui_component",
            "<content>a</content>\n<ui_component view=\"map.small\">\n{\"zoom\": 2}\n</ui_component>",
            ["", "a"],
            vec![("ui_component", json!({"view": "map.small", "props": {"zoom": 2}}))],
        ),
        row(
            "ui_component of a view that the client does not draw",
            "<content>a</content>\n<ui_component view=\"map.large\" fallback=\"a map\">\n{\"zoom\": 2}\n</ui_component>",
            ["", "a"],
            vec![(
                "ui_component",
                json!({"view": "map.large", "props": {"zoom": 2}, "fallback_text": "a map"}),
            )],
        ),
        row(
            "tool_call",
            "<content>a</content>\n<tool_call name=\"roll\">\n{\"sides\": 20}\n</tool_call>",
            ["", "a"],
            vec![("tool_call", json!({"name": "roll", "args": {"sides": 20}}))],
        ),
        row(
            "media",
            "<content>a</content>\n<media type=\"image\" src=\"assets/well.jpg\" alt=\"the well\" />",
            ["", "a"],
            vec![("media", json!({"type": "image", "src": "assets/well.jpg", "alt": "the well"}))],
        ),
    ]
}

#[test]
fn each_part_goes_where_the_table_says() {
    // F-150
    for RoutingRow { part, reply, texts, events } in rows() {
        for chunk in [1, 7, reply.len()] {
            let (pipeline, sink) = read(reply, chunk);
            let joined = sink.join_deltas();
            let text = |name: &str| -> String {
                let deltas = joined.iter().filter(|event| event.name() == name).map(Event::data);
                deltas.filter_map(|data| data["text"].as_str().map(str::to_owned)).collect()
            };
            assert_eq!([text("phase_delta"), text("final_delta")], texts, "{part}, by {chunk}"); // F-150
            let other_events: Vec<(&str, Value)> = joined
                .iter()
                .filter(|event| !CONTRACT.contains(&event.name()))
                .map(|event| {
                    let mut data = event.data();
                    // Generated for each call.
                    data.as_object_mut().expect("an object").remove("call_id");
                    (event.name(), data)
                })
                .collect();
            assert_eq!(other_events, events, "{part}, by {chunk}"); // F-150
            let hp = if part == "variable_update" { 3 } else { 5 };
            assert_eq!(pipeline.state(), Some(&json!({"hp": hp})), "{part}"); // F-150
            assert!(pipeline.outcome().metadata.notices.is_empty(), "{part}");
        }
    }
}
