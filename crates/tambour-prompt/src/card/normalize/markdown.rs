//! Reads Markdown as data: headings become keys, lists become lists, `key: value` and `**key**: value` become
//! fields, and the rest is text.

use std::collections::HashMap;

use serde_json::{Map, Number, Value};

use super::is_key;

/// Maximum nesting depth of lists.
const MAX_LIST_DEPTH: usize = 16;

/// Returns true if a text has headings, bold keys or nested lists, which YAML would misread.
pub(super) fn is_markdown(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).peekable();
    while let Some(line) = lines.next() {
        match parse_heading(line) {
            // In YAML, a line with one `#` is a comment. It counts as a heading only before a list or another
            // heading.
            Some((1, _))
                if !lines
                    .peek()
                    .is_some_and(|next| parse_item(next).is_some() || parse_heading(next).is_some()) => {}
            Some(_) => return true,
            None => {}
        }
        // YAML reads a list below an item as a continuation of its text, unless the item ends with a colon.
        let has_nested_list = |item: ListItem<'_>| {
            let next = lines.peek().and_then(|next| self::parse_item(next));
            !item.text.ends_with(':') && next.is_some_and(|next| next.indent > item.indent)
        };
        if parse_bold_field(line).is_some() || parse_item(line).is_some_and(has_nested_list) {
            return true;
        }
    }
    false
}

/// Returns the data of a text, or `None` if it has no structure. Also returns the numbers of list items that
/// are dropped because they equal the position in the list.
pub(super) fn parse_markdown(text: &str) -> Option<(Value, Vec<usize>)> {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let field_count = lines.iter().filter(|line| parse_field(line).is_some()).count();
    let has_structure = lines.iter().any(|line| {
        parse_heading(line).is_some() || parse_item(line).is_some() || parse_bold_field(line).is_some()
    });
    if !has_structure && field_count < 2 {
        // A single `key: value` is likely to be prose.
        return None;
    }
    let mut dropped_item_numbers = Vec::new();
    // Sections not yet closed, outermost first.
    let mut sections = vec![MarkdownSection::new(0, "")];
    // Delimiter of the code fence around the current line, if there is one.
    let mut fence: Option<&str> = None;
    let mut line_index = 0;
    while line_index < lines.len() {
        let line = lines[line_index];
        let section = sections.last_mut().expect("the outermost is never closed");
        if let Some(delimiter) = fence {
            section.push_line(line);
            fence = fence.filter(|_| !line.trim_start().starts_with(delimiter));
        } else if let Some(delimiter) =
            ["```", "~~~"].into_iter().find(|delimiter| line.trim_start().starts_with(delimiter))
        {
            fence = Some(delimiter);
            section.push_line(line);
        } else if let Some((level, title)) = parse_heading(line) {
            while sections.last().is_some_and(|section| section.level >= level) {
                close_section(&mut sections);
            }
            sections.push(MarkdownSection::new(level, title));
        } else if parse_item(line).is_some() {
            let mut items = Vec::new();
            line_index = read_list(&lines, line_index, &mut items, &mut dropped_item_numbers, 0);
            section.push("items", items.into());
            continue;
        } else if let Some((key, value)) = parse_bold_field(line).or_else(|| parse_field(line)) {
            // A list directly below is the value.
            if value.is_empty() && lines.get(line_index + 1).is_some_and(|next| parse_item(next).is_some()) {
                let mut items = Vec::new();
                line_index = read_list(&lines, line_index + 1, &mut items, &mut dropped_item_numbers, 0);
                section.push_field(key, items.into());
                continue;
            }
            section.push_field(key, parse_scalar(value));
        } else if !is_rule(line) {
            section.push_line(line);
        }
        line_index += 1;
    }
    while sections.len() > 1 {
        close_section(&mut sections);
    }
    sections.pop().map(|section| (section.into_value(), dropped_item_numbers))
}

/// A heading with the content below it.
struct MarkdownSection {
    /// Number of `#` of the heading; 0 for the text before the first heading.
    level: usize,
    title: String,
    /// Content so far: fields, lists under `items`, prose under `text`, and subsections under their titles.
    map: Map<String, Value>,
    /// Highest number tried so far for each key, such as the 2 of `key 2`.
    key_counts: HashMap<String, usize>,
    /// Lines of prose that are not in `map` yet.
    pending_lines: Vec<String>,
}

impl MarkdownSection {
    fn new(level: usize, title: &str) -> MarkdownSection {
        MarkdownSection {
            level,
            title: title.to_owned(),
            map: Map::new(),
            key_counts: HashMap::new(),
            pending_lines: Vec::new(),
        }
    }

    /// Adds a line of prose; drops empty lines before the first one.
    fn push_line(&mut self, line: &str) {
        if !(line.is_empty() && self.pending_lines.is_empty()) {
            self.pending_lines.push(line.to_owned());
        }
    }

    /// Moves the pending prose to `map`, under `text`.
    fn flush_prose(&mut self) {
        while self.pending_lines.last().is_some_and(String::is_empty) {
            self.pending_lines.pop();
        }
        if !self.pending_lines.is_empty() {
            let text = std::mem::take(&mut self.pending_lines).join("\n");
            self.insert("text", text.into());
        }
    }

    /// Adds a value after the pending prose.
    fn push(&mut self, key: &str, value: Value) {
        self.flush_prose();
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

    /// Adds a field, or a line of prose if the key is taken.
    fn push_field(&mut self, key: &str, value: Value) {
        if self.map.contains_key(key) && !value.is_array() {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            self.push_line(&format!("{key}: {value}"));
        } else {
            self.push(key, value);
        }
    }

    /// Returns the value of the section: its map, or only the list or the prose if it has nothing else.
    fn into_value(mut self) -> Value {
        self.flush_prose();
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

/// Adds the innermost section to the one around it.
fn close_section(sections: &mut Vec<MarkdownSection>) {
    let Some(section) = sections.pop() else { return };
    let title = section.title.clone();
    if let Some(outer) = sections.last_mut() {
        outer.push(&title, section.into_value());
    }
}

/// Reads the list that begins at line `from` into `items`, and adds the item numbers it omits to
/// `dropped_item_numbers`. `level` is the number of enclosing lists. Returns the index of the line after the
/// list.
fn read_list(
    lines: &[&str],
    from: usize,
    items: &mut Vec<Value>,
    dropped_item_numbers: &mut Vec<usize>,
    level: usize,
) -> usize {
    let base_indent = parse_item(lines[from]).map_or(0, |item| item.indent);
    let mut line_index = from;
    while let Some(item) = lines.get(line_index).and_then(|line| parse_item(line)) {
        if item.indent < base_indent {
            break;
        }
        // A list below the previous item. One byte of additional indent does not begin a list.
        if item.indent > base_indent + 1 && level < MAX_LIST_DEPTH && !items.is_empty() {
            let mut nested_items = Vec::new();
            line_index = read_list(lines, line_index, &mut nested_items, dropped_item_numbers, level + 1);
            let outer = items.pop().unwrap_or_default();
            items.push(nest_list(outer, nested_items));
            continue;
        }
        let mut text = item.text(items.len() + 1);
        if item.number.is_some() && text.len() == item.text.len() {
            // The number equals the position, so `text` lacks it.
            dropped_item_numbers.push(items.len() + 1);
        }
        line_index += 1;
        // More indented lines continue the item.
        while let Some(line) = lines.get(line_index) {
            let indent = line.len() - line.trim_start().len();
            if line.is_empty() || parse_item(line).is_some() || indent <= base_indent {
                break;
            }
            text = format!("{text}\n{}", line.trim());
            line_index += 1;
        }
        items.push(match parse_bold_field(&text).or_else(|| parse_field(&text)) {
            Some((key, value)) if !text.contains('\n') => {
                Value::Object([(key.to_owned(), parse_scalar(value))].into_iter().collect())
            }
            _ => parse_scalar(&text),
        });
    }
    line_index
}

/// Combines an item with the list below it: the item becomes the key of the list.
fn nest_list(outer: Value, nested_items: Vec<Value>) -> Value {
    let mut map = Map::new();
    match outer {
        Value::Object(fields) => {
            map = fields;
            let empty_key =
                map.iter().next().filter(|(_, value)| value.as_str() == Some("")).map(|(key, _)| key.clone());
            // The item has just one field, so another key is free.
            let key = empty_key
                .unwrap_or_else(|| if map.contains_key("items") { "list" } else { "items" }.to_owned());
            map.insert(key, nested_items.into());
        }
        Value::String(text) => {
            // A key must be on one line.
            let name = text.trim_end_matches([':', '：']).split_whitespace().collect::<Vec<_>>().join(" ");
            map.insert(name, nested_items.into());
        }
        other => {
            map.insert(other.to_string(), nested_items.into());
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
    /// Number of white-space bytes before the bullet or the number.
    indent: usize,
    /// Number of the item, if it has one.
    number: Option<&'a str>,
    text: &'a str,
}

impl ListItem<'_> {
    /// Returns the text, preceded by the number if that differs from the position in the list, counted from
    /// 1.
    fn text(&self, position: usize) -> String {
        match self.number {
            Some(number) if number != position.to_string() => format!("{number}. {}", self.text),
            _ => self.text.to_owned(),
        }
    }
}

/// Parses a list item: `-`, `*`, `+`, `•` or a number of at most four digits, followed by a text.
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
    let (key, after_bold) = line.trim_start().strip_prefix("**")?.split_once("**")?;
    let (key, value) = match key.trim_end().strip_suffix([':', '：']) {
        Some(key) => (key, after_bold),
        None => (key, after_bold.trim_start().strip_prefix([':', '：'])?),
    };
    (is_key(key.trim()) && !key.trim().is_empty()).then_some((key.trim(), value.trim()))
}

/// Parses `key: value` on an unindented line. Only after a full-width colon may the space be missing.
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

/// Converts a text to a number if the number prints as the same text; otherwise keeps it as text.
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
