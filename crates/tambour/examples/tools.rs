//! Reads a plan, runs its calls and reads the reply that follows them: one stream, valid from end to end.
//!
//! ```console
//! $ cargo run -q -p tambour --example tools
//! ```

use serde_json::{Value, json};
use tambour::encode::jsonl;
use tambour::event::{Event, ToolResult, ToolStart};
use tambour::{InputEnd, Options, Pipeline};

/// Reply of the model before it received the result.
const PLAN: &str = r#"```json
{"thought": "I need the sum.", "response_mode": "TOOL_EXECUTION", "direct_response": null,
 "tool_calls": [{"name": "add", "args": {"numbers": [2, 2]}}]}
```"#;
/// Reply of the model after it received the result.
const ANSWER: &str = r#"```json
{"thought": "The tool says 4.", "response_mode": "GENERAL_CHAT", "direct_response": "It is 4.", "tool_calls": []}
```"#;

fn main() -> Result<(), tambour::Error> {
    let mut options = Options::default();
    let numbers = json!({"type": "array", "items": {"type": "number"}});
    let schema = json!({"type": "object", "properties": {"numbers": numbers}, "required": ["numbers"]});
    options.set("tools", json!({"add": schema}))?;
    options.tool_loop = true;

    let mut sink = |event: Event<'_>| {
        let mut line = Vec::new();
        jsonl::write_line(&event, &mut line);
        print!("{}", String::from_utf8_lossy(&line));
    };
    let mut pipeline = Pipeline::new("aiplan", &options)?.with_extensions(true);
    pipeline.push(PLAN.as_bytes(), &mut sink);
    pipeline.finish(&InputEnd::stop(), &mut sink);

    // Calls are pending only if the plan is complete and valid and their arguments satisfy the schema.
    for call in pipeline.pending_calls().to_vec() {
        pipeline.insert(ToolStart { call_id: call.call_id.clone(), name: call.name }, &mut sink);
        let sum: f64 = call.args["numbers"].as_array().into_iter().flatten().filter_map(Value::as_f64).sum();
        let result = ToolResult {
            call_id: call.call_id,
            ok: true,
            result: Some(sum.into()),
            error: None,
            elapsed_ms: 0,
        };
        pipeline.insert(result, &mut sink);
    }
    let mut next = pipeline.next_reply("aiplan", &options)?;
    next.push(ANSWER.as_bytes(), &mut sink);
    next.finish(&InputEnd::stop(), &mut sink);
    Ok(())
}
