//! Speed of the state: a block of 1,000 operations on a tree of 10,000 leaves, and a rollback over 1,000
//! messages.

use std::hint::black_box;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tambour::state::{AppliedBlock, ApplyOptions, Operation, apply, fold, rollback};

const OPERATIONS: usize = 1000;

fn main() {
    let nested: Value = Value::Object(
        (0..100)
            .map(|group| {
                let fields = (0..100).map(|field| (format!("f{field}"), Value::from(field))).collect();
                (format!("g{group}"), Value::Object(fields))
            })
            .collect(),
    );
    let flat: Value =
        Value::Object((0..10_000).map(|field| (format!("f{field}"), Value::from(field))).collect());
    let list = json!({"list": (0..9_000).collect::<Vec<u32>>()});
    println!("{:<52} {:>9}", "ms, best of several", "");
    for (name, state, make) in [
        ("mixed, nested", &nested, mixed_operation as fn(usize) -> Value),
        ("SET of new fields, flat", &flat, |at| json!(["SET", format!("new{at}"), at])),
        ("DELETE, flat, from the front", &flat, |at| json!(["DELETE", format!("f{at}")])),
        ("DELETE, list, from the front", &list, |_| json!(["DELETE", "list[0]"])),
        ("PUSH", &list, |at| json!(["PUSH", "list", at])),
        ("decimal MUL", &nested, |at| json!(["MUL", format!("g{}.f1", at % 100), 1.5])),
    ] {
        let block: Value = (0..OPERATIONS).map(make).collect();
        let operations = Operation::parse_list(&block).expect("a list");
        for is_atomic in [false, true] {
            let options = ApplyOptions { is_atomic, ..ApplyOptions::default() };
            let mut states = vec![state.clone(); RUNS];
            let time = best_time(|| {
                let mut state = states.pop().expect("a state for each run");
                black_box(apply(&mut state, &operations, &options));
                state
            });
            print_line(&format!("{name}{}", if is_atomic { ", atomic" } else { "" }), time);
        }
    }
    let mut state = nested.clone();
    let history: Vec<AppliedBlock> = (0..1000)
        .map(|message| {
            let block: Value = (0..5).map(|at| mixed_operation(message * 5 + at)).collect();
            let operations = Operation::parse_list(&block).expect("a list");
            AppliedBlock::record(
                &mut state,
                format!("m{message}"),
                None,
                operations,
                &ApplyOptions::default(),
            )
        })
        .collect();
    let mut states = vec![state; RUNS];
    let rollback_time = best_time(|| {
        let mut state = states.pop().expect("a state for each run");
        rollback(&mut state, &history).expect("the blocks fit");
        state
    });
    print_line("rollback over 1,000 messages of 5", rollback_time);
    print_line(
        "fold of 1,000 messages of 5",
        best_time(|| fold(nested.clone(), &history).expect("the blocks fit")),
    );
}

/// Makes the operation with the index `at`. All operations can be applied.
fn mixed_operation(at: usize) -> Value {
    let (group, field) = (at % 100, at / 100);
    match at % 6 {
        0 => json!(["SET", format!("g{group}.f{}", field % 10), "text"]),
        1 => json!(["ADD", format!("g{group}.f{}", 10 + field % 20), 0.1]),
        2 => json!(["SUB", format!("g{group}.f{}", 30 + field % 20), 1]),
        3 => json!(["PUSH", format!("g{group}.list"), at]),
        4 => json!(["DELETE", format!("g{group}.f{}", 50 + field)]),
        _ => json!(["SET", format!("g{group}.new.x{at}"), at]),
    }
}

const RUNS: usize = 20;

/// Returns the shortest time of several runs: other work on the machine can only lengthen a run. Results are
/// dropped outside the measured time.
fn best_time<T>(mut run: impl FnMut() -> T) -> Duration {
    let measure = |run: &mut dyn FnMut() -> T| {
        let start = Instant::now();
        let result = run();
        let time = start.elapsed();
        drop(result);
        time
    };
    (0..RUNS).map(|_| measure(&mut run)).min().unwrap_or_default()
}

fn print_line(name: &str, time: Duration) {
    println!("{name:<52} {:>9.3}", time.as_secs_f64() * 1e3);
}
