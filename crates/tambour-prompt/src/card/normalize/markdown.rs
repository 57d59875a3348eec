//! Reads Markdown as data: headings become keys, lists become lists, `key: value` and `**key**: value` become
//! fields, and the rest is text.

use std::collections::HashMap;

use serde_json::{Map, Number, Value};

use super::is_key;

/// Deepest nesting of lists.
const MAX_LIST_DEPTH: usize = 16;

/// Returns true if a text has headings, bold keys or nested lists, which YAML would misread.
pub(super) fn is_markdown(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).peekable();
    while let Some(line) = lines.next() {
        match parse_heading(line) {
            // In YAML, a line with one `#` is a comment; before a list it counts as a heading.
            Some((1, _))
                if !lines
                    .peek()
                    .is_some_and(|next| parse_item(next).is_some() || parse_heading(next).is_some()) => {}
            Some(_) => return true,
            None => {}
        }
        // YAML reads a list below an item as a continuation of its text.
        let nests = |item: ListItem<'_>| {
            let next = lines.peek().and_then(|next| self::parse_item(next));
            !item.text.ends_with(':') && next.is_some_and(|next| next.indent > item.indent)
        };
        if parse_bold_field(line).is_some() || parse_item(line).is_some_and(nests) {
            return true;
        }
    }
    false
}

/// Returns the data of a text, or `None` if it has no structure. Also returns the numbers of list items that
/// are dropped because they equal the position in the list.
pub(super) fn parse_markdown(text: &str) -> Option<(Value, Vec<usize>)> {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let fields = lines.iter().filter(|line| parse_field(line).is_some()).count();
    let has_structure = lines.iter().any(|line| {
        parse_heading(line).is_some() || parse_item(line).is_some() || parse_bold_field(line).is_some()
    });
    if !has_structure && fields < 2 {
        return None;
    }
    let mut numbers = Vec::new();
    // Open sections, outermost first.
    let mut open = vec![MarkdownSection::new(0, "")];
    let mut fence: Option<&str> = None;
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        let node = open.last_mut().expect("the outermost is never closed");
        if let Some(mark) = fence {
            node.push_line(line);
            fence = fence.filter(|_| !line.trim_start().starts_with(mark));
        } else if let Some(mark) = ["```", "~~~"].into_iter().find(|mark| line.trim_start().starts_with(mark))
        {
            fence = Some(mark);
            node.push_line(line);
        } else if let Some((level, title)) = parse_heading(line) {
            while open.last().is_some_and(|section| section.level >= level) {
                close_section(&mut open);
            }
            open.push(MarkdownSection::new(level, title));
        } else if parse_item(line).is_some() {
            let mut items = Vec::new();
            at = read_list(&lines, at, &mut items, &mut numbers, 0);
            node.push("items", items.into());
            continue;
        } else if let Some((key, value)) = parse_bold_field(line).or_else(|| parse_field(line)) {
            // A list directly below is the value.
            if value.is_empty() && lines.get(at + 1).is_some_and(|next| parse_item(next).is_some()) {
                let mut items = Vec::new();
                at = read_list(&lines, at + 1, &mut items, &mut numbers, 0);
                node.push_field(key, items.into());
                continue;
            }
            node.push_field(key, parse_scalar(value));
        } else if !is_rule(line) {
            node.push_line(line);
        }
        at += 1;
    }
    while open.len() > 1 {
        close_section(&mut open);
    }
    open.pop().map(|section| (section.into_value(), numbers))
}

/// A heading with the content below it.
struct MarkdownSection {
    level: usize,
    title: String,
    map: Map<String, Value>,
    /// Number of requests for each key.
    key_counts: HashMap<String, usize>,
    /// Pending lines of prose.
    pending: Vec<String>,
}

impl MarkdownSection {
    fn new(level: usize, title: &str) -> MarkdownSection {
        MarkdownSection {
            level,
            title: title.to_owned(),
            map: Map::new(),
            key_counts: HashMap::new(),
            pending: Vec::new(),
        }
    }

    fn push_line(&mut self, line: &str) {
        if !(line.is_empty() && self.pending.is_empty()) {
            self.pending.push(line.to_owned());
        }
    }

    fn flush(&mut self) {
        while self.pending.last().is_some_and(String::is_empty) {
            self.pending.pop();
        }
        if !self.pending.is_empty() {
            let text = std::mem::take(&mut self.pending).join("\n");
            self.insert("text", text.into());
        }
    }

    fn push(&mut self, key: &str, value: Value) {
        self.flush();
        self.insert(key, value);
    }

    /// Inserts `value` under `key`, or under the first free one of `key 2`, `key 3`, …
    fn insert(&mut self, key: &str, value: Value) {
        let count = self.key_counts.entry(key.to_owned()).or_default();
        loop {
            *count += 1;
            let key = if *count == 1 { key.to_owned() } else { format!("{key} {count}") };
            if !self.map.contains_key(&key) {
                self.map.insert(key, value);
                return;
            }
        }
    }

    fn push_field(&mut self, key: &str, value: Value) {
        if self.map.contains_key(key) && !value.is_array() {
            // The key exists already, so the line stays text.
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            self.push_line(&format!("{key}: {value}"));
        } else {
            self.push(key, value);
        }
    }

    /// Returns the value of the section: its map, or a single list or text by itself.
    fn into_value(mut self) -> Value {
        self.flush();
        if self.map.is_empty() {
            return Value::String(String::new());
        }
        let is_only_member = self.map.len() == 1;
        match ["items", "text"].iter().find_map(|key| self.map.get(*key)).filter(|_| is_only_member) {
            Some(value) => value.clone(),
            None => self.map.into(),
        }
    }
}

fn close_section(open: &mut Vec<MarkdownSection>) {
    let Some(section) = open.pop() else { return };
    let title = section.title.clone();
    if let Some(outer) = open.last_mut() {
        outer.push(&title, section.into_value());
    }
}

/// Reads the list that begins at line `from` into `items`; returns the index of the line after it.
fn read_list(
    lines: &[&str],
    from: usize,
    items: &mut Vec<Value>,
    numbers: &mut Vec<usize>,
    level: usize,
) -> usize {
    let first = parse_item(lines[from]).map_or(0, |item| item.indent);
    let mut at = from;
    while let Some(found) = lines.get(at).and_then(|line| parse_item(line)) {
        if found.indent < first {
            break;
        }
        if found.indent > first + 1 && level < MAX_LIST_DEPTH && !items.is_empty() {
            let mut inner = Vec::new();
            at = read_list(lines, at, &mut inner, numbers, level + 1);
            let outer = items.pop().unwrap_or_default();
            items.push(nest_list(outer, inner));
            continue;
        }
        let mut text = found.text(items.len() + 1);
        if found.number.is_some() && text.len() == found.text.len() {
            numbers.push(items.len() + 1);
        }
        at += 1;
        // More indented lines continue the item.
        while let Some(line) = lines.get(at) {
            let indent = line.len() - line.trim_start().len();
            if line.is_empty() || parse_item(line).is_some() || indent <= first {
                break;
            }
            text = format!("{text}\n{}", line.trim());
            at += 1;
        }
        items.push(match parse_bold_field(&text).or_else(|| parse_field(&text)) {
            Some((key, value)) if !text.contains('\n') => {
                Value::Object([(key.to_owned(), parse_scalar(value))].into_iter().collect())
            }
            _ => parse_scalar(&text),
        });
    }
    at
}

/// Combines an item with the list below it.
fn nest_list(outer: Value, inner: Vec<Value>) -> Value {
    let mut map = Map::new();
    match outer {
        Value::Object(fields) => {
            map = fields;
            let empty_key =
                map.iter().next().filter(|(_, value)| value.as_str() == Some("")).map(|(key, _)| key.clone());
            // The item has just one field, so another key is free.
            let key = empty_key
                .unwrap_or_else(|| if map.contains_key("items") { "list" } else { "items" }.to_owned());
            map.insert(key, inner.into());
        }
        Value::String(text) => {
            // A key must be on one line.
            let name = text.trim_end_matches([':', '：']).split_whitespace().collect::<Vec<_>>().join(" ");
            map.insert(name, inner.into());
        }
        other => {
            map.insert(other.to_string(), inner.into());
        }
    }
    map.into()
}

/// Parses a heading; returns its level and text.
fn parse_heading(line: &str) -> Option<(usize, &str)> {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    let title = line.get(level..)?.strip_prefix([' ', '\t'])?.trim().trim_end_matches('#').trim_end();
    let title = title.strip_prefix("**").and_then(|title| title.strip_suffix("**")).unwrap_or(title);
    let title = title.trim_end_matches([':', '：']);
    ((1..=6).contains(&level) && !title.is_empty()).then_some((level, title))
}

/// A list item.
struct ListItem<'a> {
    indent: usize,
    /// Number of the item, if it has one.
    number: Option<&'a str>,
    text: &'a str,
}

impl ListItem<'_> {
    /// Returns the text, preceded by the number if that differs from the position in the list.
    fn text(&self, place: usize) -> String {
        match self.number {
            Some(number) if number != place.to_string() => format!("{number}. {}", self.text),
            _ => self.text.to_owned(),
        }
    }
}

fn parse_item(line: &str) -> Option<ListItem<'_>> {
    let inner = line.trim_start();
    let indent = line.len() - inner.len();
    if is_rule(line) {
        return None;
    }
    if let Some(text) = inner.strip_prefix(['-', '*', '+', '•']) {
        let text = if inner.starts_with('•') {
            text.trim_start()
        } else {
            text.strip_prefix([' ', '\t'])?.trim_start()
        };
        return (!text.is_empty()).then_some(ListItem { indent, number: None, text });
    }
    let digits = inner.bytes().take_while(u8::is_ascii_digit).count();
    let text = inner.get(digits..)?.strip_prefix(['.', ')'])?.strip_prefix(' ')?.trim_start();
    let number = &inner[..digits];
    ((1..=4).contains(&digits) && !text.is_empty()).then_some(ListItem { indent, number: Some(number), text })
}

/// Parses `**key**: value` or `**key:** value`.
fn parse_bold_field(line: &str) -> Option<(&str, &str)> {
    let (key, rest) = line.trim_start().strip_prefix("**")?.split_once("**")?;
    let (key, value) = match key.trim_end().strip_suffix([':', '：']) {
        Some(key) => (key, rest),
        None => (key, rest.trim_start().strip_prefix([':', '：'])?),
    };
    (is_key(key.trim()) && !key.trim().is_empty()).then_some((key.trim(), value.trim()))
}

/// Parses `key: value`.
fn parse_field(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once([':', '：'])?;
    let is_full_width = line[key.len()..].starts_with('：');
    let is_separate = is_full_width || value.is_empty() || value.starts_with([' ', '\t']);
    let key = key.trim();
    let is_plain_key =
        !key.is_empty() && is_key(key) && !key.starts_with(['>', '|', '<', '`', '*', '_', '(', '[']);
    (is_separate && is_plain_key && !line.starts_with([' ', '\t'])).then_some((key, value.trim()))
}

/// Returns true if a line is a horizontal rule.
fn is_rule(line: &str) -> bool {
    let line = line.trim();
    line.len() >= 3 && ['-', '*', '_', '='].iter().any(|mark| line.chars().all(|c| c == *mark || c == ' '))
}

/// Converts a text to a number if that prints the same, else keeps it as text.
fn parse_scalar(text: &str) -> Value {
    // Unquotes a YAML string, recognized by its doubled quotes; quotation marks of speech are kept.
    let single_quoted = text.strip_prefix('\'').and_then(|inner| inner.strip_suffix('\''));
    if let Some(inner) =
        single_quoted.filter(|inner| inner.contains("''") && !inner.replace("''", "").contains('\''))
    {
        return inner.replace("''", "'").into();
    }
    let number: Option<Number> = text.parse::<i64>().ok().map(Number::from);
    let number = number.or_else(|| text.parse::<f64>().ok().and_then(Number::from_f64));
    match number {
        Some(number) if number.to_string() == text => number.into(),
        _ => text.into(),
    }
}
