//! Speed of the forms of a contract: 50 tools of five parameters, in each notation.

use std::hint::black_box;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use tambour::Options;
use tambour::dialect::find_dialect;
use tambour::verdict::{Contract, ContractForm};

const TOOLS: usize = 50;
const RUNS: usize = 20;

fn main() {
    let parameters = json!({
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "limit": {"type": "integer", "minimum": 1, "maximum": 100},
            "kind": {"enum": ["a", "b", "c"]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "where": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "lat": {"type": "number"}},
                "required": ["city"],
            },
        },
        "required": ["query", "kind"],
    });
    let tools: Map<String, Value> = (0..TOOLS).map(|at| (format!("tool_{at}"), parameters.clone())).collect();
    println!("{:<52} {:>9} {:>9}", "ms, best of several", "", "bytes");
    for (dialect, settings) in [
        ("toolcall", json!({})),
        ("toolcall", json!({"toolcall.format": "qwen3_coder"})),
        ("aiplan", json!({})),
        ("aiplan", json!({"grammar.text": 400})),
    ] {
        let mut options = Options::default();
        options.set("tools", Value::Object(tools.clone())).expect("an option");
        for (name, value) in settings.as_object().into_iter().flatten() {
            options.set(name, value.clone()).expect("an option");
        }
        let entry = find_dialect(dialect).expect("a dialect");
        let mut total = Duration::ZERO;
        for form in [ContractForm::Gbnf, ContractForm::Lark, ContractForm::StructuralTag] {
            let write = || Contract::Dialect(entry).write(form, &options).expect("a form");
            let time = best_time(write);
            total += time;
            print_line(&format!("{dialect} {settings} {}", form.name()), time, write().len());
        }
        print_line(&format!("{dialect} {settings}, all forms"), total, 0);
    }
}

/// Returns the shortest time of several runs: other work on the machine can only lengthen a run.
fn best_time<T>(run: impl Fn() -> T) -> Duration {
    let measure = || {
        let start = Instant::now();
        black_box(run());
        start.elapsed()
    };
    (0..RUNS).map(|_| measure()).min().unwrap_or_default()
}

fn print_line(name: &str, time: Duration, bytes: usize) {
    println!("{name:<52} {:>9.3} {bytes:>9}", time.as_secs_f64() * 1e3);
}
