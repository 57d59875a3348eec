//! Speed of prompts: 100 blocks with 1,000 uses of macros (F-040), a template of 100 KiB with 200
//! variables, and a card of 5 MB.

use std::hint::black_box;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tambour::limits::ImportLimits;
use tambour_prompt::card::import_file;
use tambour_prompt::jinja::{Assembly, Engine, PromptContext, UndefinedMode};
use tambour_prompt::macros::migrate;
use tambour_prompt::template::{LayeredTemplate, Map};

fn main() {
    println!("{:<52} {:>9}", "ms, best of several", "");
    let blocks: Vec<String> = (0..100).map(make_block).collect();
    let engine = Engine::new(UndefinedMode::Lenient);
    let context = make_context();
    let assemble = || {
        let mut assembly = Assembly::new(&engine, context.clone(), 1);
        for block in &blocks {
            black_box(assembly.render_macros("block", block).expect("it renders"));
        }
    };
    print_line("100 blocks, 1,000 macros, compiled before", best_time(assemble));
    let assemble_uncached = || {
        let engine = Engine::new(UndefinedMode::Lenient);
        let mut assembly = Assembly::new(&engine, context.clone(), 1);
        for block in &blocks {
            black_box(assembly.render_macros("block", block).expect("it renders"));
        }
    };
    print_line("100 blocks, 1,000 macros, for the first time", best_time(assemble_uncached));
    print_line(
        "migration of 100 blocks",
        best_time(|| blocks.iter().map(|block| migrate(block).text.len()).sum::<usize>()),
    );

    // S-103: at most 10 ms.
    let values: Map = (0..200).map(|at| (format!("变量{at}"), Value::from(format!("value {at}")))).collect();
    let mut source = String::new();
    let mut at = 0;
    while source.len() < 100 << 10 {
        source += &format!("Some text of a prompt, and {{变量{}}} in it, {{%time%}}.\n", at % 200);
        at += 1;
    }
    let system: Map = [("time".to_owned(), json!("10:00"))].into_iter().collect();
    print_line("100 KiB, 200 variables: read", best_time(|| LayeredTemplate::parse(source.as_str())));
    let template = LayeredTemplate::parse(source.as_str());
    print_line("100 KiB, 200 variables: filled", best_time(|| template.render(&values, &system)));

    let limits = ImportLimits::default();
    let card = make_card(5 << 20);
    let read = |file: &str, bytes: &[u8]| import_file(file, bytes, &limits).expect("it is a card");
    print_line("import of a card of 5 MB, JSON", best_time(|| read("card.json", &card)));
    let text = std::str::from_utf8(&card).expect("JSON is text");
    let png = tambour_fixtures::imports::png_file(&[("chara", text)]);
    print_line("import of the same, PNG", best_time(|| read("card.png", &png)));
}

/// Makes a card with a book that fills it to `size` bytes.
fn make_card(size: usize) -> Vec<u8> {
    let said =
        "She keeps the lamp of the eastern gate. {{char}} greets {{user}}, \"quietly\"; 她守着东门的灯。\n";
    let entry = |at: usize| {
        json!({"keys": [format!("key {at}"), "lamp"], "content": said.repeat(20), "enabled": true, "insertion_order": at,
            "extensions": {"sticky": 1}})
    };
    let entry_len = entry(0).to_string().len();
    let entries: Vec<Value> = (0..size / entry_len).map(entry).collect();
    let data = json!({"name": "Sera", "description": said, "first_mes": "Hm?", "character_book": {"entries": entries}});
    json!({"spec": "chara_card_v2", "spec_version": "2.0", "data": data}).to_string().into_bytes()
}

fn make_context() -> PromptContext {
    let context = json!({
        "user": "Tom", "char": {"name": "Sera", "description": "{{char}} knows {{user}}.", "personality": "calm"},
        "state": {"hp": 7, "mood": "merry"}, "now": "2026-03-14T15:09:26+08:00", "seed": 1, "chat_id": "c",
        "history": [{"role": "user", "content": "first"}, {"role": "assistant", "content": "second"}]
    });
    PromptContext::from_json(&context).expect("it is a context")
}

/// Makes a block with ten macros.
fn make_block(at: usize) -> String {
    format!(
        "Block {at}: {{{{char}}}} and {{{{user}}}} meet at {{{{time}}}}. {{{{setvar::n{at}::{at}}}}}{{{{getvar::n{at}}}}} {{{{roll:2d6}}}} \
         {{{{random::a::b::c}}}} {{{{lastMessage}}}} {{{{getvar::hp}}}} {{{{description}}}}\n"
    )
}

const RUNS: usize = 20;

/// Returns the shortest time of [`RUNS`] runs, since other load on the machine only adds time.
fn best_time<T>(mut run: impl FnMut() -> T) -> Duration {
    let once = |run: &mut dyn FnMut() -> T| {
        let start = Instant::now();
        let result = run();
        let time = start.elapsed();
        drop(black_box(result));
        time
    };
    (0..RUNS).map(|_| once(&mut run)).min().unwrap_or_default()
}

fn print_line(name: &str, time: Duration) {
    println!("{name:<52} {:>9.3}", time.as_secs_f64() * 1e3);
}
