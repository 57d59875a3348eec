//! `status_bar`: free tags as a tree of items (F-130), its JSON form (F-141), and HTML (F-140).

use serde_json::{Value, json};

use super::block::{BlockContext, BlockOutcome, FilamentBlock};
use super::body::{is_json, read_json};
use super::rules;
use super::tags::ElementForm;
use crate::dialect::{IntentSink, ReplyAction};
use crate::event::{StatusBar, StatusItem, UiComponent};
use crate::lex::comment::comment_len;
use crate::lex::space::{is_space, trim};

/// Longest name of an item, in bytes.
const MAX_NAME_BYTES: usize = 256;

/// Reads a closed block.
pub(super) fn read_status(
    block: &FilamentBlock,
    cx: &BlockContext,
    out: &mut dyn IntentSink,
) -> BlockOutcome {
    match block.element.form {
        ElementForm::Html => return read_html_status(block, cx, out),
        ElementForm::OldStatus => block.report_form(rules::LEGACY_FORM, "`status_bar`", out),
        _ => {}
    }
    let body = trim(&block.body);
    let items = if body.starts_with(['{', '[']) && is_json(body, &cx.options.limits) {
        let Some(json) = read_json(&block.body, block.body_start, &cx.options.limits, out) else {
            return block.raw_outcome(out);
        };
        block.report_form(rules::NEWER_FORM, "tags, other fields not used", out);
        items_from_value(&json.value, 0)
    } else {
        let (items, has_unused) = items_from_tags(&block.body, cx.options.limits.depth.min(64));
        if has_unused {
            let found =
                block.report(rules::ATTRIBUTE_UNUSED, "attributes and comments of items mean nothing");
            out.report(found.with_repair("not used"));
        }
        items
    };
    if !items.is_empty() {
        out.emit_action(ReplyAction::Extension(StatusBar { items }.into()));
    }
    BlockOutcome::Read
}

/// Reads an HTML status bar: each line of its text is an item.
fn read_html_status(block: &FilamentBlock, cx: &BlockContext, out: &mut dyn IntentSink) -> BlockOutcome {
    block.report_form(rules::LEGACY_FORM, "`status_bar`", out);
    let text = text_lines(&block.body);
    let items: Vec<StatusItem> = text
        .lines()
        .map(trim)
        .filter(|line| !line.is_empty())
        .map(|line| match line.split_once([':', '：']) {
            Some((name, text)) if !trim(name).is_empty() => status_item(trim(name), trim(text)),
            _ => status_item("", line),
        })
        .collect();
    match &cx.dialect_options.status_view {
        _ if items.is_empty() => {}
        None => out.emit_action(ReplyAction::Extension(StatusBar { items }.into())),
        Some(view) => {
            let props = json!({ "items": items });
            let fallback_text = (!cx.dialect_options.can_draw(view)).then_some(text);
            let component = UiComponent { view: view.clone(), props, fallback_text };
            out.emit_action(ReplyAction::Extension(component.into()));
        }
    }
    BlockOutcome::Read
}

/// Returns the text of markup without tags; block elements are on lines of their own.
pub(super) fn text_lines(markup: &str) -> String {
    let mut text = String::new();
    let mut rest = markup;
    while let Some(at) = rest.find('<') {
        text.push_str(&rest[..at]);
        let is_tag_start = rest[at + 1..].starts_with(|c: char| c.is_alphabetic() || matches!(c, '/' | '!'));
        let end = rest[at + 1..]
            .find(['<', '>'])
            .map(|end| at + 1 + end)
            .filter(|end| rest.as_bytes()[*end] == b'>');
        match end.filter(|_| is_tag_start) {
            Some(end) => {
                let name = rest[at + 1..end].trim_start_matches('/');
                let name: String = name.chars().take_while(|c| c.is_ascii_alphanumeric()).collect();
                let inline = ["b", "strong", "i", "em", "u", "s", "span", "a", "td", "th", "font", "small"];
                let is_cell_end = ["td", "th"].contains(&name.as_str()) && rest[at..].starts_with("</");
                if !inline.contains(&name.to_ascii_lowercase().as_str()) {
                    text.push('\n');
                } else if is_cell_end {
                    text.push(' ');
                }
                rest = &rest[end + 1..];
            }
            None => {
                text.push('<');
                rest = &rest[at + 1..];
            }
        }
    }
    text.push_str(rest);
    let lines: Vec<&str> = text.lines().map(trim).filter(|line| !line.is_empty()).collect();
    lines.join("\n")
}

/// Returns the text between the tags of markup, line by line, each with its offset.
pub(super) fn text_pieces(markup: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut push_lines = |from: usize, to: usize| {
        let mut at = from;
        for line in markup[from..to].split_inclusive('\n') {
            let text = trim(line);
            if !text.is_empty() {
                found.push((at + line.len() - line.trim_start_matches(is_space).len(), text));
            }
            at += line.len();
        }
    };
    let (mut from, mut at) = (0, 0);
    while let Some(open) = markup[at..].find('<').map(|open| at + open) {
        let is_tag_start =
            markup[open + 1..].starts_with(|c: char| c.is_alphabetic() || matches!(c, '/' | '!'));
        let end = markup[open + 1..].find(['<', '>']).map(|end| open + 1 + end);
        match end.filter(|end| is_tag_start && markup.as_bytes()[*end] == b'>') {
            Some(end) => {
                push_lines(from, open);
                (from, at) = (end + 1, end + 1);
            }
            None => at = open + 1,
        }
    }
    push_lines(from, markup.len());
    found
}

fn status_item(name: &str, text: &str) -> StatusItem {
    StatusItem { name: name.to_owned(), text: text.to_owned(), items: Vec::new() }
}

/// Converts a value to items: keys and their values, in order.
fn items_from_value(value: &Value, depth: usize) -> Vec<StatusItem> {
    let items_of = |name: &str, value: &Value| match value {
        Value::Object(_) | Value::Array(_) if depth < 32 => {
            StatusItem { items: items_from_value(value, depth + 1), ..status_item(name, "") }
        }
        Value::String(text) => status_item(name, text),
        Value::Null => status_item(name, ""),
        other => status_item(name, &other.to_string()),
    };
    match value {
        Value::Object(fields) => fields.iter().map(|(name, value)| items_of(name, value)).collect(),
        Value::Array(list) => list
            .iter()
            .map(|value| match value.get("name").and_then(Value::as_str) {
                Some(name) => {
                    items_of(name, value.get("text").or(value.get("value")).unwrap_or(&Value::Null))
                }
                None => items_of("", value),
            })
            .collect(),
        other => vec![items_of("", other)],
    }
}

/// An open item.
struct OpenItem {
    item: StatusItem,
}

/// Reads items from free tags. A closing tag closes the innermost item of its name and all items open in it.
/// An unmatched closing tag, and anything that is not a tag, is text. Also returns whether attributes or
/// comments were ignored.
fn items_from_tags(body: &str, depth: usize) -> (Vec<StatusItem>, bool) {
    let mut has_unused = false;
    let mut open = vec![OpenItem { item: StatusItem::default() }];
    let mut rest = body;
    while !rest.is_empty() {
        let at = rest.find('<').unwrap_or(rest.len());
        let (text, after) = rest.split_at(at);
        append_text(&mut open, text);
        let Some((tag, remainder)) = parse_tag(after) else {
            let len = after.chars().next().map_or(0, char::len_utf8);
            append_text(&mut open, &after[..len]);
            rest = &after[len..];
            continue;
        };
        rest = remainder;
        let head = &after[..after.len() - remainder.len()];
        has_unused |= matches!(tag, StatusTag::Comment) || head.contains('=');
        match tag {
            StatusTag::Open(name) if open.len() <= depth => {
                open.push(OpenItem { item: status_item(name, "") })
            }
            StatusTag::Open(_) => append_text(&mut open, &after[..after.len() - remainder.len()]),
            StatusTag::SelfClosing(name) => append_item(&mut open, status_item(name, "")),
            StatusTag::Comment => {}
            StatusTag::Close(name) => {
                match open.iter().skip(1).rposition(|element| element.item.name == name) {
                    Some(found) => {
                        while open.len() > found + 1 {
                            close_item(&mut open);
                        }
                    }
                    None => append_text(&mut open, &after[..after.len() - remainder.len()]),
                }
            }
        }
    }
    while open.len() > 1 {
        close_item(&mut open);
    }
    let root = open.pop().map(|root| root.item).unwrap_or_default();
    let text = trim(&root.text);
    let mut items = root.items;
    if !text.is_empty() {
        items.push(status_item("", text));
    }
    (items, has_unused)
}

enum StatusTag<'a> {
    Open(&'a str),
    Close(&'a str),
    SelfClosing(&'a str),
    Comment,
}

/// Parses the tag at the beginning of a text, in any script, and returns the text after it. Attributes are
/// ignored.
fn parse_tag(text: &str) -> Option<(StatusTag<'_>, &str)> {
    let inner = text.strip_prefix('<')?;
    if let Some(comment) = inner.strip_prefix("!--") {
        return Some((StatusTag::Comment, &comment[comment_len(comment)?..]));
    }
    // No tag is longer, with its attributes.
    let window = &inner[..inner.floor_char_boundary(4 * MAX_NAME_BYTES)];
    let end = window.find(['<', '>']).filter(|end| window.as_bytes()[*end] == b'>')?;
    let (head, after) = (&inner[..end], &inner[end + 1..]);
    let is_closing = head.starts_with('/');
    let head = head.strip_prefix('/').unwrap_or(head);
    let is_self_closing = !is_closing && head.ends_with('/');
    let head = trim(head.trim_end_matches('/'));
    let name = match head.find('=') {
        Some(_) => head.split(is_space).next().unwrap_or(head),
        None => head,
    };
    let is_valid_name =
        name.starts_with(|c: char| c.is_alphanumeric() || c == '_') && name.len() <= MAX_NAME_BYTES;
    let tag = match (is_closing, is_self_closing) {
        (true, _) => StatusTag::Close(name),
        (_, true) => StatusTag::SelfClosing(name),
        _ => StatusTag::Open(name),
    };
    is_valid_name.then_some((tag, after))
}

fn append_text(open: &mut [OpenItem], text: &str) {
    if let Some(OpenItem { item }) = open.last_mut()
        && !(text.is_empty() || item.text.is_empty() && trim(text).is_empty())
    {
        item.text.push_str(text);
    }
}

fn append_item(open: &mut [OpenItem], item: StatusItem) {
    if let Some(parent) = open.last_mut() {
        parent.item.items.push(item);
    }
}

fn close_item(open: &mut Vec<OpenItem>) {
    if let Some(OpenItem { mut item }) = open.pop() {
        item.text = trim(&item.text).to_owned();
        append_item(open, item);
    }
}
