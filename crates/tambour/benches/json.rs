//! Speed of the JSON reader: nanoseconds per chunk at three sizes, and megabytes per second for whole texts.
//! `--count TEXT SIZE CHUNK` reads once, for instruction counters.

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::{Duration, Instant};

use tambour::finding::FindingReport;
use tambour::limits::Limits;
use tambour::repair::json::{JsonEvent, JsonReader, JsonSink, ValueCollector, find, parse_strict};

/// Sink that adds up the lengths of texts, and 1 for each other event, so that no work is optimised away.
#[derive(Default)]
struct EventCounter(usize);

impl JsonSink for EventCounter {
    fn event(&mut self, event: JsonEvent<'_>) {
        self.0 += match black_box(event) {
            JsonEvent::StringDelta(text) | JsonEvent::Text(text) => text.len(),
            _ => 1,
        };
    }

    fn report(&mut self, report: FindingReport) {
        self.0 += report.message.len();
    }
}

/// Function that makes a text of about this many bytes.
type TextMaker = fn(usize) -> String;

const TEXTS: [(&str, TextMaker); 5] = [
    ("valid", valid_text),
    ("broken, fenced", broken_text),
    ("broken reply, fenced", reply_text),
    ("one string", string_text),
    ("prose string", prose_text),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["--count", name, size, chunk] => read_once(name, size, chunk),
        _ => print_table(),
    }
}

/// Reads one text once, for instruction counters.
fn read_once(name: &str, size: &str, chunk: &str) {
    let (size, chunk) = (size.parse().expect("a size"), chunk.parse().expect("a size"));
    let (_, make) = TEXTS.into_iter().find(|(known, _)| *known == name).expect("a text of the table");
    let (mut reader, mut sink) = (JsonReader::new_chat(&Limits::default()), EventCounter::default());
    split_chunks(&make(size), chunk).iter().for_each(|chunk| reader.push(chunk, &mut sink));
    reader.finish(&mut sink);
    black_box(sink.0);
}

fn print_table() {
    let sizes = [4 << 10, 64 << 10, 1 << 20];
    println!("{:<28} {:>9} {:>9} {:>9} {:>9}", "ns a chunk, events", "4 KB", "64 KB", "1 MB", "1 MB/64 B");
    for (name, make) in TEXTS {
        print!("{name:<28}");
        for (size, chunk) in [(sizes[0], 4), (sizes[1], 4), (sizes[2], 4), (sizes[2], 64)] {
            let text = make(size);
            let chunks = split_chunks(&text, chunk);
            let time = best_time(|| {
                let (mut reader, mut sink) =
                    (JsonReader::new_chat(&Limits::default()), EventCounter::default());
                chunks.iter().for_each(|chunk| reader.push(chunk, &mut sink));
                reader.finish(&mut sink);
                black_box(sink.0);
            });
            print!(" {:>9.1}", time.as_nanos() as f64 / chunks.len() as f64);
        }
        println!();
    }
    println!(
        "\n{:<28} {:>9} {:>9} {:>9} {:>9} {:>10}",
        "MB/s, whole, 1 MB", "events", "values", "find", "strict", "serde_json"
    );
    let mut large_limits = Limits::default();
    large_limits.items = usize::MAX;
    for (name, make) in TEXTS {
        let text = make(1 << 20);
        let rate = |time: Duration| text.len() as f64 / 1e6 / time.as_secs_f64();
        let events = best_time(|| {
            let (mut reader, mut sink) = (JsonReader::new_chat(&Limits::default()), EventCounter::default());
            reader.push(&text, &mut sink);
            reader.finish(&mut sink);
            black_box(sink.0);
        });
        let values = best_time(|| {
            let (mut reader, mut sink) =
                (JsonReader::new_chat(&Limits::default()), ValueCollector::default());
            reader.push(&text, &mut sink);
            reader.finish(&mut sink);
            black_box(sink.values.len());
        });
        let found = best_time(|| {
            black_box(find(&text, &large_limits));
        });
        let strict = best_time(|| {
            let _ = black_box(parse_strict(&text, &large_limits));
        });
        let serde_json = best_time(|| {
            let _ = black_box(serde_json::from_str::<serde_json::Value>(&text));
        });
        let serde_json = if parse_strict(&text, &large_limits).is_ok() { rate(serde_json) } else { f64::NAN };
        let strict = if parse_strict(&text, &large_limits).is_ok() { rate(strict) } else { f64::NAN };
        println!(
            "{name:<28} {:>9.0} {:>9.0} {:>9.0} {strict:>9.0} {serde_json:>10.0}",
            rate(events),
            rate(values),
            rate(found)
        );
    }
}

/// Returns the shortest time of several runs: other work on the machine can only lengthen a run.
fn best_time(mut run: impl FnMut()) -> Duration {
    let (mut shortest, begin) = (Duration::MAX, Instant::now());
    while begin.elapsed() < Duration::from_millis(300) {
        let start = Instant::now();
        run();
        shortest = shortest.min(start.elapsed());
    }
    shortest
}

fn split_chunks(text: &str, size: usize) -> Vec<&str> {
    let (mut chunks, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let mut cut = size.min(rest.len());
        while !rest.is_char_boundary(cut) {
            cut += 1;
        }
        chunks.push(&rest[..cut]);
        rest = &rest[cut..];
    }
    chunks
}

fn valid_text(size: usize) -> String {
    let mut text = String::from("{\"items\": [");
    let mut i = 0;
    while text.len() < size {
        if i > 0 {
            text.push_str(", ");
        }
        let _ = write!(
            text,
            "{{\"id\": {i}, \"name\": \"item number {i}\", \"price\": {}.5, \"tags\": [\"red\", \"green\"], \
             \"note\": \"A sentence, or two, of text.\\nWith a line break.\", \"ok\": true}}",
            i * 3
        );
        i += 1;
    }
    text.push_str("]}");
    text
}

fn broken_text(size: usize) -> String {
    let mut text = String::from("Here is what you asked for:\n\n```json\n{'items': [\n");
    let mut i = 0;
    while text.len() < size {
        let _ = write!(
            text,
            "  {{id: {i}, 'name': 'item number {i}', \"price\": .5, \"tags\": [\"red\" \"green\",], // tags\n   \
             \"note\": \"He said \"yes\", or so.\nWith a line break.\", \"ok\": True,}},\n",
        );
        i += 1;
    }
    text.push_str("]}\n```\nAnything else?");
    text
}

/// Makes text as models write it: sentences in the values, and occasional faults.
fn reply_text(size: usize) -> String {
    let mut text = String::from(
        "<think>I need {sections}.</think>\nHere is the report [1]:\n\n```json\n{'sections': [\n",
    );
    let mut i = 0;
    while text.len() < size {
        let _ = write!(
            text,
            "  {{\n    \"title\": \"Part {i}\",\n    \"body\": \"This part says what was found when the case was looked at \
             again, and why it matters (see part {i}). The authors call it \"settled\", which is bold.\n\n\
             Nothing else was asked for, so the part ends here, after some more words of plain prose that \
             fill the paragraph as they do in replies.\",\n    \"done\": True,\n  }},\n",
        );
        i += 1;
    }
    text.push_str("]}\n```\nAnything else?");
    text
}

fn string_text(size: usize) -> String {
    format!("{{\"text\": \"{}\"}}", "abcdefghijklmnopqrstuvwxyz012345".repeat(size / 32))
}

fn prose_text(size: usize) -> String {
    let line = "Well, this is prose, as models write it (more or less).\\n它也可以是中文，对吧？";
    format!("{{\"text\": \"{}\"}}", line.repeat(size / line.len()))
}
