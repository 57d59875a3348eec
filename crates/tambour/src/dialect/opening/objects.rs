//! Objects at the beginning of a reply, and the dialect that their keys tell.

use std::sync::LazyLock;

use super::Opening;
use crate::dialect::{DIALECTS, Entry};
use crate::finding::Report;
use crate::limits::Limits;
use crate::repair::json::{self, JsonEvent, JsonSink, Origin};

/// The keys of all dialects.
static KEYS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| DIALECTS.iter().flat_map(|entry| entry.opening.keys).copied().collect());

/// Keys of a dialect that an object has when it is complete.
const LEAST: usize = 2;

/// The dialect whose object begins in the text and stands alone in its lines or fence.
pub(super) fn dialect_of(text: &str, full: bool) -> Option<&'static str> {
    let begins = text.starts_with(['{', '｛', '`', '~', '<']);
    let dialect = |found: &Found| {
        let first = found.keys.first().map(String::as_str).unwrap_or_default();
        let tells = |entry: &&Entry| {
            let Opening { keys, common, .. } = entry.opening;
            let known = keys.iter().filter(|key| found.keys.iter().any(|found| found == *key)).count();
            let common = common.contains(&first) && !begins;
            known >= LEAST || known > 0 && full && !found.complete && !common
        };
        DIALECTS.iter().find(tells).map(|entry| entry.name)
    };
    objects(text, full).iter().filter(|found| found.alone).find_map(dialect)
}

/// A JSON object, as far as it has arrived.
struct Found {
    keys: Vec<String>,
    /// Whether nothing but white space stands before it on its line, or it stands in a fence.
    alone: bool,
    complete: bool,
}

fn objects(text: &str, full: bool) -> Vec<Found> {
    let (found, thinking) = read_objects(text, full, false);
    // Reasoning that is never closed, or only a mention of its mark: the object may stand in it.
    if thinking && full && !found.iter().any(|found| found.alone) {
        return read_objects(text, full, true).0;
    }
    found
}

/// The objects of a text, and whether it ends in reasoning; `unmarked` when marks of that are text.
fn read_objects(text: &str, full: bool, unmarked: bool) -> (Vec<Found>, bool) {
    struct Objects<'a> {
        text: &'a str,
        found: Vec<Found>,
        thinking: bool,
    }
    impl JsonSink for Objects<'_> {
        fn event(&mut self, event: JsonEvent<'_>) {
            match event {
                JsonEvent::ThoughtStart(_) => self.thinking = true,
                JsonEvent::ThoughtEnd(..) => self.thinking = false,
                JsonEvent::ValueStart(start) => {
                    let before = &self.text[..start.place.offset];
                    let line = before.rfind('\n').map_or(before, |at| &before[at + 1..]).trim_end();
                    // A mark of reasoning or a fence ends what stood before it.
                    let alone = line.trim().is_empty() || line.ends_with(['>', ']', '▷', '`', '~']);
                    let alone = alone || start.origin != Origin::Bare;
                    self.found.push(Found { keys: Vec::new(), alone, complete: false });
                }
                JsonEvent::Key { text, depth: 1, .. } => {
                    if let Some(found) = self.found.last_mut() {
                        found.keys.push(text.to_owned());
                    }
                }
                JsonEvent::ValueEnd(end) => {
                    if let Some(found) = self.found.last_mut() {
                        found.complete = !end.closed_by_us;
                    }
                }
                _ => {}
            }
        }
        fn report(&mut self, _: Report) {}
    }
    let mut objects = Objects { text, found: Vec::new(), thinking: false };
    let mut reader = json::Reader::chat(&Limits::default()).seeking(&KEYS);
    if unmarked {
        reader = reader.without_thoughts();
    }
    reader.push(text, &mut objects);
    if full {
        reader.finish(&mut objects);
    }
    (objects.found, objects.thinking)
}
