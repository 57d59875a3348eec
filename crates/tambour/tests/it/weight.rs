//! Estimated weight of a JSON text, compared with the memory of its tree.

use serde_json::Value;
use tambour::lex::weight::weigh;

#[test]
fn a_tree_takes_what_its_text_weighs() {
    let texts = [
        format!("[{}]", vec![r#"{"a":0}"#; 20_000].join(",")),
        format!("[{}]", vec!["[]"; 20_000].join(",")),
        format!("[{}]", vec!["[1]"; 20_000].join(",")),
        format!("[{}]", vec!["{}"; 33_000].join(",")),
        format!("[{}]", vec![r#"["SET","a",1]"#; 20_000].join(",")),
        format!("[{}]", vec![r#""""#; 20_000].join(",")),
        format!("[{}]", vec![r#""ab""#; 20_000].join(",")),
        format!("{{{}}}", (0..20_000).map(|at| format!("\"k{at}\":1")).collect::<Vec<_>>().join(",")),
        format!("[{}]", vec![r#"{"a":1,"b":2,"c":3,"d":4,"e":{"f":"g"}}"#; 5_000].join(",")),
        format!("\"{}\"", "x".repeat(100_000)),
        format!("\"{}\"", "\\n".repeat(100_000)),
        format!("{}1{}", "[".repeat(100), "]".repeat(100)),
    ];
    for text in &texts {
        let alive = allocation_counter::measure(|| drop(serde_json::from_str::<Value>(text))).bytes_max;
        let (weight, alive) = (weigh(text.as_bytes()), usize::try_from(alive).unwrap());
        let excerpt = &text[..text.len().min(40)];
        // The growing list exists twice for a moment.
        assert!(weight.bytes + weight.bytes / 2 + 200 >= alive, "{} for {alive}: {excerpt}", weight.bytes);
        assert!(weight.bytes / 3 <= alive + 200, "{} for {alive}: {excerpt}", weight.bytes);
    }
}
