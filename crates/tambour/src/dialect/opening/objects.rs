//! JSON objects at the beginning of a reply, and the dialect that their keys identify. An object is
//! alone, or an item of a list, which may be under the only key of an object that is the whole reply:
//! services wrap a list like that if the reply must be an object.

use std::sync::LazyLock;

use super::{NeededKey, Opening, PrefixExtent, ValueShape, WrappedList, is_document};
use crate::dialect::{DIALECTS, DialectEntry};
use crate::finding::FindingReport;
use crate::lex::fence::{self, Fence};
use crate::limits::Limits;
use crate::repair::json::{self, JsonEvent, JsonSink, ValueOrigin};

/// Keys by which dialects are recognized.
static DIALECT_KEYS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let needed = DIALECTS.iter().flat_map(|entry| entry.opening.keys);
    needed.flat_map(|key| key.names).copied().collect()
});

/// Minimum number of a dialect's keys by which an object that extends beyond the window is recognized.
const MIN_KEYS: usize = 2;

/// Bracket depth of the keys of an object in a list under a key.
const ITEM_KEY_DEPTH: usize = 3;

/// Longest text that may be a name, in bytes.
const MAX_NAME_BYTES: usize = 64;

/// Evidence from the objects at the beginning of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectEvidence {
    /// No object can be of a dialect.
    Absent,
    /// An object has begun; its later keys or the text after it may decide.
    Possible,
    /// An object is of the dialect of this name.
    Dialect(&'static str),
}

/// Finds the dialect of an object that begins in the text, alone on its lines or in its fence.
pub(super) fn object_evidence(text: &str, extent: PrefixExtent) -> ObjectEvidence {
    let mut evidence = ObjectEvidence::Absent;
    for found in find_objects(text, extent) {
        match DIALECTS.iter().map(|entry| found.evidence_for(entry, text, extent)).max_by_key(evidence_rank) {
            Some(dialect @ ObjectEvidence::Dialect(_)) => return dialect,
            Some(ObjectEvidence::Possible) => evidence = ObjectEvidence::Possible,
            _ => {}
        }
    }
    evidence
}

/// Returns the strength of evidence, as a number for comparisons.
fn evidence_rank(evidence: &ObjectEvidence) -> u8 {
    match evidence {
        ObjectEvidence::Absent => 0,
        ObjectEvidence::Possible => 1,
        ObjectEvidence::Dialect(_) => 2,
    }
}

/// A JSON object, possibly incomplete.
#[derive(Debug, Default)]
pub(super) struct FoundObject {
    /// Keys of the object itself, in order.
    pub(super) keys: Vec<ObjectKey>,
    /// Set if nothing but reasoning and a fence line precedes the object in the reply.
    pub(super) is_first: bool,
    /// The list under the first key of the object.
    items: Option<WrappedItems>,
    /// Set if only white space precedes the object on its line, or a JSON fence surrounds it, and it is not
    /// in a document.
    is_alone: bool,
    /// Set if a fence surrounds the object.
    is_fenced: bool,
    /// Set if the object is an item of a list.
    is_listed: bool,
    /// Offset after the object, once it is complete; for an item of a list, the end of the examined text,
    /// because the text after the item decides nothing.
    pub(super) end: Option<usize>,
}

/// A key of a JSON object.
#[derive(Debug)]
pub(super) struct ObjectKey {
    pub(super) name: String,
    /// Shape of the value, once it has begun.
    pub(super) value: Option<ValueShape>,
    /// The value, once complete, if it is a string; only its beginning if it is too long for a name.
    pub(super) text: Option<String>,
}

impl FoundObject {
    /// Returns the evidence for one dialect.
    fn evidence_for(&self, entry: &DialectEntry, text: &str, extent: PrefixExtent) -> ObjectEvidence {
        let Opening { keys, may_be_listed, .. } = entry.opening;
        if keys.is_empty() || !self.is_alone || self.is_listed && !may_be_listed {
            return ObjectEvidence::Absent;
        }
        if let Some(evidence) = wrapped_evidence(self, entry, text, extent) {
            return evidence;
        }
        let find_key = |needed_key: &NeededKey| self.keys.iter().find(|key| needed_key.matches_name(key));
        let is_compatible =
            keys.iter().all(|needed_key| find_key(needed_key).is_none_or(|key| needed_key.accepts(key)));
        let has_all = keys
            .iter()
            .all(|needed_key| find_key(needed_key).is_some_and(|key| needed_key.is_satisfied_by(key)));
        let known_count = keys.iter().filter(|needed_key| find_key(needed_key).is_some()).count();
        let has_foreign_keys = self.keys.len() > known_count;
        if !is_compatible {
            return ObjectEvidence::Absent;
        }
        let Some(end) = self.end else {
            // Keys in the usual order decide at once.
            let ordered_count = self
                .keys
                .iter()
                .zip(keys)
                .take_while(|(key, needed_key)| needed_key.matches_name(key))
                .count();
            let is_in_order = ordered_count >= MIN_KEYS && ordered_count == self.keys.len();
            let evidence = match extent {
                PrefixExtent::Part if has_all || !has_foreign_keys => ObjectEvidence::Possible,
                PrefixExtent::Window | PrefixExtent::All if has_all || is_in_order => {
                    ObjectEvidence::Dialect(entry.name)
                }
                PrefixExtent::All if known_count >= MIN_KEYS && !has_foreign_keys => {
                    ObjectEvidence::Dialect(entry.name)
                }
                // Objects of no dialect may have these keys too: the next keys decide.
                PrefixExtent::Window
                    if !has_foreign_keys && (known_count >= MIN_KEYS || find_key(&keys[0]).is_some()) =>
                {
                    ObjectEvidence::Possible
                }
                _ => ObjectEvidence::Absent,
            };
            // The text after the fence decides whether the object is an example.
            let must_wait = self.is_fenced && !self.is_first && extent != PrefixExtent::All;
            return if must_wait && evidence != ObjectEvidence::Absent {
                ObjectEvidence::Possible
            } else {
                evidence
            };
        };
        let after = text[end..].trim_start_matches([' ', '\t', '\r']);
        match after.chars().next() {
            _ if !has_all => ObjectEvidence::Absent,
            // The object may be an example in the text around its fence: the text after the fence decides.
            _ if self.is_fenced && !self.is_first && extent != PrefixExtent::All => ObjectEvidence::Possible,
            _ if self.is_fenced && !self.is_first && !is_fence_last(&text[end..]) => ObjectEvidence::Absent,
            // A comma may join the object to a sentence or to another object.
            Some(',') if extent == PrefixExtent::Part && after[1..].trim().is_empty() => {
                ObjectEvidence::Possible
            }
            Some(',') if after[1..].trim_start_matches([' ', '\t']).starts_with(char::is_alphanumeric) => {
                ObjectEvidence::Absent
            }
            None if extent == PrefixExtent::Part && !self.is_listed => ObjectEvidence::Possible,
            // A sentence continues after the object.
            Some(c) if c.is_alphanumeric() || SENTENCE_CHARS.contains(&c) => ObjectEvidence::Absent,
            _ => ObjectEvidence::Dialect(entry.name),
        }
    }
}

/// Returns whether nothing follows a fence that is open at the beginning of the text: it is not closed, or
/// only blank lines follow.
fn is_fence_last(text: &str) -> bool {
    let mut lines = text.split('\n');
    let is_closed =
        lines.by_ref().any(|line| Fence::parse(line.trim()).is_some_and(|(_, rest)| rest.trim().is_empty()));
    !is_closed || lines.all(|line| line.trim().is_empty())
}

/// Characters that continue or end a sentence after an object.
const SENTENCE_CHARS: &[char] =
    &['.', ';', ':', ')', '?', '!', '(', '。', '，', '；', '：', '）', '？', '！', '、'];

impl NeededKey {
    /// Returns whether a key has one of the accepted names.
    pub(super) fn matches_name(&self, key: &ObjectKey) -> bool {
        self.names.contains(&key.name.as_str())
    }

    /// Returns whether a key satisfies the requirement as far as its value was read.
    fn accepts(&self, key: &ObjectKey) -> bool {
        key.value.is_none_or(|value| self.values.contains(&value))
            && match (self.text_test, &key.text) {
                (Some(accepts_text), Some(text)) => accepts_text(text),
                _ => true,
            }
    }

    /// Returns whether a key satisfies the requirement.
    fn is_satisfied_by(&self, key: &ObjectKey) -> bool {
        key.value.is_some() && self.accepts(key) && (self.text_test.is_none() || key.text.is_some())
    }
}

/// Returns the objects of a text that are outside of reasoning; if the text ends in reasoning and none of
/// them is alone on its lines, all objects.
fn find_objects(text: &str, extent: PrefixExtent) -> Vec<FoundObject> {
    let reader = json::JsonReader::new_chat(&Limits::default()).with_sought_keys(&DIALECT_KEYS);
    let (objects, ends_in_reasoning) = read_objects(text, extent, reader);
    // The object may be in reasoning that is never closed.
    if ends_in_reasoning && extent != PrefixExtent::Part && !objects.iter().any(|object| object.is_alone) {
        let reader = json::JsonReader::new_chat(&Limits::default()).with_sought_keys(&DIALECT_KEYS);
        return read_objects(text, extent, reader.without_thoughts()).0;
    }
    objects
}

/// Reads the objects of a text, and returns whether it ends in reasoning.
fn read_objects(text: &str, extent: PrefixExtent, mut reader: json::JsonReader) -> (Vec<FoundObject>, bool) {
    let mut objects = ObjectCollector {
        text,
        found: Vec::new(),
        is_thinking: false,
        thought_end: 0,
        depth: 0,
        key_depth: 1,
        name_text: None,
    };
    reader.push(text, &mut objects);
    if extent != PrefixExtent::Part {
        reader.finish(&mut objects);
    }
    (objects.found, objects.is_thinking)
}

/// Collects objects from the events of a JSON reader.
struct ObjectCollector<'a> {
    /// The text that the reader reads.
    text: &'a str,
    /// Objects so far, the current one last.
    found: Vec<FoundObject>,
    /// Set while the reader is in reasoning.
    is_thinking: bool,
    /// Offset after the last mark that ended reasoning.
    thought_end: usize,
    /// Number of open brackets.
    depth: usize,
    /// Depth of the object's own keys: 1, or 2 if it is an item of a list.
    key_depth: usize,
    /// Beginning of the current text value: its pieces until they reach [`MAX_NAME_BYTES`].
    name_text: Option<String>,
}

impl JsonSink for ObjectCollector<'_> {
    fn event(&mut self, event: JsonEvent<'_>) {
        match event {
            JsonEvent::ThoughtStart(_) => self.is_thinking = true,
            JsonEvent::ThoughtEnd(mark, _) => {
                self.is_thinking = false;
                self.thought_end = mark.place.offset + mark.text.len();
            }
            JsonEvent::ValueStart(start) => {
                let before = &self.text[..start.place.offset];
                let has_own_line = match start.origin {
                    ValueOrigin::Bare => {
                        let line = before.rfind('\n').map_or(0, |at| at + 1).max(self.thought_end);
                        before[line..].trim().is_empty()
                    }
                    _ => is_json_fence(before),
                };
                let is_alone = has_own_line && !is_document(&before[self.thought_end..]);
                let is_first = self.found.is_empty() && is_reply_start(&before[self.thought_end..]);
                (self.depth, self.key_depth) = (0, 1);
                let is_fenced = start.origin != ValueOrigin::Bare;
                self.found.push(FoundObject { is_alone, is_first, is_fenced, ..FoundObject::default() });
            }
            JsonEvent::ObjectStart => {
                self.record_value(ValueShape::Object);
                self.update_items(|items| {
                    items.keys.push(Vec::new());
                    items.is_item_open = true;
                });
                self.depth += 1;
            }
            JsonEvent::ArrayStart => {
                self.record_value(ValueShape::List);
                if self.depth == 0 {
                    self.key_depth = 2;
                    self.update_object(|found| found.is_listed = true);
                } else if self.depth == 1 && self.key_depth == 1 {
                    self.update_object(|found| {
                        if found.keys.len() == 1 {
                            found.items = Some(WrappedItems::begin());
                        }
                    });
                }
                self.depth += 1;
            }
            JsonEvent::ObjectEnd | JsonEvent::ArrayEnd => {
                self.depth = self.depth.saturating_sub(1);
                self.update_items(|items| items.is_item_open = false);
                if self.key_depth == 1 && self.depth == 1 {
                    self.update_object(|found| {
                        found.items.as_mut().into_iter().for_each(|items| items.is_open = false);
                    });
                }
                if self.key_depth == 2 && self.depth == 1 {
                    // Only the first object of a list counts.
                    let end = self.text.len();
                    self.update_object(|found| found.end = Some(end));
                }
            }
            JsonEvent::Key { text, depth, .. } if depth == self.key_depth => {
                let key = ObjectKey { name: text.to_owned(), value: None, text: None };
                self.update_object(|found| found.keys.push(key));
            }
            JsonEvent::Key { text, depth, .. } if depth == ITEM_KEY_DEPTH && self.key_depth == 1 => {
                let key = ObjectKey { name: text.to_owned(), value: None, text: None };
                if let Some(keys) = self.current_items().and_then(|items| items.keys.last_mut()) {
                    keys.push(key);
                }
            }
            JsonEvent::StringStart => {
                self.record_value(ValueShape::Text);
                self.name_text = self.current_key().is_some().then(String::new);
            }
            JsonEvent::StringDelta(text) => {
                if let Some(name) = self.name_text.as_mut().filter(|name| name.len() < MAX_NAME_BYTES) {
                    name.push_str(text);
                }
            }
            JsonEvent::StringEnd => {
                if let Some(name) = self.name_text.take()
                    && let Some(key) = self.current_key()
                {
                    key.text.get_or_insert(name);
                }
            }
            JsonEvent::Bool(_) => self.record_value(ValueShape::Bool),
            JsonEvent::Null => self.record_value(ValueShape::Null),
            JsonEvent::Number(_) | JsonEvent::Digits(_) => self.record_value(ValueShape::Number),
            JsonEvent::ValueEnd(end) if !end.is_auto_closed => {
                self.update_object(|found| found.end = Some(end.offset));
            }
            _ => {}
        }
    }

    fn report(&mut self, _: FindingReport) {}
}

impl ObjectCollector<'_> {
    /// Changes the current object, unless it has ended.
    fn update_object(&mut self, change: impl FnOnce(&mut FoundObject)) {
        if let Some(found) = self.found.last_mut().filter(|found| found.end.is_none()) {
            change(found);
        }
    }

    /// Records the shape of a value: for the key it belongs to, and for the list it is an item of.
    fn record_value(&mut self, shape: ValueShape) {
        if let Some(key) = self.current_key() {
            key.value.get_or_insert(shape);
        }
        if shape != ValueShape::Object {
            self.update_items(|items| items.has_other_values = true);
        }
    }

    /// Returns the key that a value at the current depth belongs to.
    fn current_key(&mut self) -> Option<&mut ObjectKey> {
        if self.depth == self.key_depth {
            return self.found.last_mut().and_then(|found| found.keys.last_mut());
        }
        let is_item_key = self.depth == ITEM_KEY_DEPTH && self.key_depth == 1;
        self.current_items().filter(|_| is_item_key)?.keys.last_mut()?.last_mut()
    }

    /// Returns the list under the first key of the object, while it is open.
    fn current_items(&mut self) -> Option<&mut WrappedItems> {
        self.found.last_mut().and_then(|found| found.items.as_mut()).filter(|items| items.is_open)
    }

    /// Changes the list under the first key of the object, if the current value is an item of it.
    fn update_items(&mut self, change: impl FnOnce(&mut WrappedItems)) {
        if self.depth + 1 == ITEM_KEY_DEPTH
            && self.key_depth == 1
            && let Some(items) = self.current_items()
        {
            change(items);
        }
    }
}

/// Returns whether the fence open at the end of a text is for JSON; content in other languages is code
///
fn is_json_fence(before: &str) -> bool {
    let opening = before.rsplit('\n').find_map(|line| Fence::parse(line.trim_start()));
    opening.is_none_or(|(_, info)| {
        let language = info.split(|c: char| c.is_whitespace() || c == '{').next().unwrap_or_default();
        language.is_empty() || fence::is_json(language)
    })
}

/// The list under the first key of an object.
#[derive(Debug, Default)]
struct WrappedItems {
    /// Keys of each object in the list.
    keys: Vec<Vec<ObjectKey>>,
    /// Set while the list is open.
    is_open: bool,
    /// Set while the last object in it is open.
    is_item_open: bool,
    /// Set if the list holds anything but objects.
    has_other_values: bool,
}

impl WrappedItems {
    /// Creates an open, empty list.
    fn begin() -> WrappedItems {
        WrappedItems { is_open: true, ..WrappedItems::default() }
    }

    /// Returns the name of each complete object, the value of `needed_key`; `None` if one has no name.
    fn names(&self, needed_key: &NeededKey) -> Option<Vec<&str>> {
        let complete_count = self.keys.len() - usize::from(self.is_item_open);
        let find_key = |keys: &Vec<ObjectKey>| keys.iter().position(|key| needed_key.matches_name(key));
        self.keys[..complete_count].iter().map(|keys| keys[find_key(keys)?].text.as_deref()).collect()
    }
}

/// Returns the evidence of an object that wraps a list of a dialect's objects; `None` if the object is not a
/// wrapper for this dialect.
fn wrapped_evidence(
    found: &FoundObject,
    entry: &DialectEntry,
    text: &str,
    extent: PrefixExtent,
) -> Option<ObjectEvidence> {
    let WrappedList { names, item_test, reply_test } = entry.opening.wrapped_list?;
    let key = found.keys.first().filter(|key| names.contains(&key.name.as_str()))?;
    let Some(items) = &found.items else {
        // The list may begin next.
        let must_wait =
            found.is_first && key.value.is_none() && found.end.is_none() && extent != PrefixExtent::All;
        return must_wait.then_some(ObjectEvidence::Possible);
    };
    let item_names = items.names(entry.opening.keys.first()?);
    let is_list_object =
        found.is_first && found.keys.len() == 1 && key.text.is_none() && !items.has_other_values;
    let Some(item_names) =
        item_names.filter(|item_names| is_list_object && item_names.iter().all(|name| item_test(name)))
    else {
        return Some(ObjectEvidence::Absent);
    };
    Some(match found.end {
        // An incomplete wrapper is no evidence.
        None if extent == PrefixExtent::All => ObjectEvidence::Absent,
        None => ObjectEvidence::Possible,
        Some(end) if !reply_test(&item_names) || !is_reply_end(&text[end..]) => ObjectEvidence::Absent,
        Some(_) if extent == PrefixExtent::All => ObjectEvidence::Dialect(entry.name),
        // More text may follow.
        Some(_) => ObjectEvidence::Possible,
    })
}

/// Returns whether only white space and a fence line precede the object.
fn is_reply_start(before: &str) -> bool {
    let before = before.trim();
    before.is_empty() || Fence::parse(before).is_some()
}

/// Returns whether only white space and a closing fence follow the object.
fn is_reply_end(text_after: &str) -> bool {
    let text_after = text_after.trim();
    text_after.is_empty() || text_after.bytes().all(|byte| matches!(byte, b'`' | b'~'))
}
