//! Reader of `status_bar`: free tags, whose names the model chooses, as a tree of items (F-130), its JSON
//! form (F-141), and HTML (F-140).

use serde_json::{Value, json};

use super::block::{BlockContext, BlockOutcome, FilamentBlock};
use super::body::{is_json, read_json};
use super::rules;
use super::tags::ElementForm;
use crate::dialect::{IntentSink, ReplyAction};
use crate::event::{StatusBar, StatusItem, UiComponent};
use crate::lex::comment::comment_len;
use crate::lex::space::{is_space, trim};

/// Maximum length of an item's name in bytes.
const MAX_NAME_BYTES: usize = 256;

/// Maximum length in bytes of a tag with its attributes.
const MAX_TAG_BYTES: usize = 4 * MAX_NAME_BYTES;

/// Maximum number of levels of items in free tags.
const MAX_TAG_DEPTH: usize = 64;

/// Maximum number of levels of items in JSON; a deeper value is one item with its JSON as text.
const MAX_JSON_DEPTH: usize = 32;

/// Reads a block in any of its forms.
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
        let (items, has_unused) = items_from_tags(&block.body, cx.options.limits.depth.min(MAX_TAG_DEPTH));
        if has_unused {
            let report =
                block.report(rules::ATTRIBUTE_UNUSED, "attributes and comments of items mean nothing");
            out.report(report.with_repair("not used"));
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

/// Returns the text of HTML without its tags. Every tag breaks the line, except those of inline elements and
/// table cells; blank lines are dropped.
pub(super) fn text_lines(markup: &str) -> String {
    let mut text = String::new();
    let mut rest = markup;
    while let Some(start) = rest.find('<') {
        text.push_str(&rest[..start]);
        let is_tag_start =
            rest[start + 1..].starts_with(|c: char| c.is_alphabetic() || matches!(c, '/' | '!'));
        // A tag ends at the next `>`, unless another `<` comes first.
        let end = rest[start + 1..]
            .find(['<', '>'])
            .map(|index| start + 1 + index)
            .filter(|end| rest.as_bytes()[*end] == b'>');
        match end.filter(|_| is_tag_start) {
            Some(end) => {
                let name = rest[start + 1..end].trim_start_matches('/');
                let name: String = name.chars().take_while(|c| c.is_ascii_alphanumeric()).collect();
                let inline_names =
                    ["b", "strong", "i", "em", "u", "s", "span", "a", "td", "th", "font", "small"];
                let is_cell_end = ["td", "th"].contains(&name.as_str()) && rest[start..].starts_with("</");
                if !inline_names.contains(&name.to_ascii_lowercase().as_str()) {
                    text.push('\n');
                } else if is_cell_end {
                    text.push(' ');
                }
                rest = &rest[end + 1..];
            }
            None => {
                text.push('<');
                rest = &rest[start + 1..];
            }
        }
    }
    text.push_str(rest);
    let lines: Vec<&str> = text.lines().map(trim).filter(|line| !line.is_empty()).collect();
    lines.join("\n")
}

/// Returns the trimmed lines of the text between the tags of markup, each with its offset; blank lines are
/// dropped.
pub(super) fn text_pieces(markup: &str) -> Vec<(usize, &str)> {
    let mut pieces = Vec::new();
    let mut push_lines = |start: usize, end: usize| {
        let mut line_start = start;
        for line in markup[start..end].split_inclusive('\n') {
            let text = trim(line);
            if !text.is_empty() {
                let blank_len = line.len() - line.trim_start_matches(is_space).len();
                pieces.push((line_start + blank_len, text));
            }
            line_start += line.len();
        }
    };
    let (mut text_start, mut search_start) = (0, 0);
    while let Some(tag_start) = markup[search_start..].find('<').map(|offset| search_start + offset) {
        let is_tag_start =
            markup[tag_start + 1..].starts_with(|c: char| c.is_alphabetic() || matches!(c, '/' | '!'));
        // A tag ends at the next `>`, unless another `<` comes first.
        let end = markup[tag_start + 1..].find(['<', '>']).map(|offset| tag_start + 1 + offset);
        match end.filter(|end| is_tag_start && markup.as_bytes()[*end] == b'>') {
            Some(end) => {
                push_lines(text_start, tag_start);
                (text_start, search_start) = (end + 1, end + 1);
            }
            None => search_start = tag_start + 1,
        }
    }
    push_lines(text_start, markup.len());
    pieces
}

/// Creates an item without inner items.
fn status_item(name: &str, text: &str) -> StatusItem {
    StatusItem { name: name.to_owned(), text: text.to_owned(), items: Vec::new() }
}

/// Converts a JSON value, nested `depth` levels deep, to items: keys and their values, in order.
fn items_from_value(value: &Value, depth: usize) -> Vec<StatusItem> {
    let make_item = |name: &str, value: &Value| match value {
        Value::Object(_) | Value::Array(_) if depth < MAX_JSON_DEPTH => {
            StatusItem { items: items_from_value(value, depth + 1), ..status_item(name, "") }
        }
        Value::String(text) => status_item(name, text),
        Value::Null => status_item(name, ""),
        other => status_item(name, &other.to_string()),
    };
    match value {
        Value::Object(fields) => fields.iter().map(|(name, value)| make_item(name, value)).collect(),
        Value::Array(list) => list
            .iter()
            // A list may hold items as objects with `name` and `text` or `value`.
            .map(|value| match value.get("name").and_then(Value::as_str) {
                Some(name) => {
                    make_item(name, value.get("text").or(value.get("value")).unwrap_or(&Value::Null))
                }
                None => make_item("", value),
            })
            .collect(),
        other => vec![make_item("", other)],
    }
}

/// An item whose closing tag has not come yet.
struct OpenItem {
    item: StatusItem,
}

/// Reads items from free tags, at most `max_depth` levels deep. A closing tag closes the innermost item of
/// its name and all items that are open in it. A closing tag without an open item is text, and so is
/// everything that is not a tag. Also returns whether attributes or comments were ignored.
fn items_from_tags(body: &str, max_depth: usize) -> (Vec<StatusItem>, bool) {
    let mut has_unused = false;
    // The first item is the root, which has no tag.
    let mut open_items = vec![OpenItem { item: StatusItem::default() }];
    let mut rest = body;
    while !rest.is_empty() {
        let tag_start = rest.find('<').unwrap_or(rest.len());
        let (text, markup) = rest.split_at(tag_start);
        append_text(&mut open_items, text);
        let Some((tag, text_after)) = parse_tag(markup) else {
            let len = markup.chars().next().map_or(0, char::len_utf8);
            append_text(&mut open_items, &markup[..len]);
            rest = &markup[len..];
            continue;
        };
        rest = text_after;
        let raw_tag = &markup[..markup.len() - text_after.len()];
        has_unused |= matches!(tag, StatusTag::Comment) || raw_tag.contains('=');
        match tag {
            StatusTag::Open(name) if open_items.len() <= max_depth => {
                open_items.push(OpenItem { item: status_item(name, "") })
            }
            StatusTag::Open(_) => append_text(&mut open_items, raw_tag),
            StatusTag::SelfClosing(name) => append_item(&mut open_items, status_item(name, "")),
            StatusTag::Comment => {}
            StatusTag::Close(name) => {
                match open_items.iter().skip(1).rposition(|open| open.item.name == name) {
                    Some(depth) => {
                        while open_items.len() > depth + 1 {
                            close_item(&mut open_items);
                        }
                    }
                    None => append_text(&mut open_items, raw_tag),
                }
            }
        }
    }
    while open_items.len() > 1 {
        close_item(&mut open_items);
    }
    let root = open_items.pop().map(|root| root.item).unwrap_or_default();
    let text = trim(&root.text);
    let mut items = root.items;
    if !text.is_empty() {
        items.push(status_item("", text));
    }
    (items, has_unused)
}

/// A free tag, with its name, or a comment.
enum StatusTag<'a> {
    Open(&'a str),
    Close(&'a str),
    SelfClosing(&'a str),
    Comment,
}

/// Parses the tag or comment at the beginning of a text, and returns the text after it. Names may be in any
/// writing system and contain blanks. Attributes are ignored.
fn parse_tag(text: &str) -> Option<(StatusTag<'_>, &str)> {
    let inner = text.strip_prefix('<')?;
    if let Some(comment) = inner.strip_prefix("!--") {
        return Some((StatusTag::Comment, &comment[comment_len(comment)?..]));
    }
    let window = &inner[..inner.floor_char_boundary(MAX_TAG_BYTES)];
    let end = window.find(['<', '>']).filter(|end| window.as_bytes()[*end] == b'>')?;
    let (content, text_after) = (&inner[..end], &inner[end + 1..]);
    let is_closing = content.starts_with('/');
    let content = content.strip_prefix('/').unwrap_or(content);
    let is_self_closing = !is_closing && content.ends_with('/');
    let content = trim(content.trim_end_matches('/'));
    // Without `=` there are no attributes, and blanks belong to the name.
    let name = match content.find('=') {
        Some(_) => content.split(is_space).next().unwrap_or(content),
        None => content,
    };
    let is_valid_name =
        name.starts_with(|c: char| c.is_alphanumeric() || c == '_') && name.len() <= MAX_NAME_BYTES;
    let tag = match (is_closing, is_self_closing) {
        (true, _) => StatusTag::Close(name),
        (_, true) => StatusTag::SelfClosing(name),
        _ => StatusTag::Open(name),
    };
    is_valid_name.then_some((tag, text_after))
}

/// Appends text to the innermost open item, except white space before the first other text of the item.
fn append_text(open_items: &mut [OpenItem], text: &str) {
    if let Some(OpenItem { item }) = open_items.last_mut()
        && !(text.is_empty() || item.text.is_empty() && trim(text).is_empty())
    {
        item.text.push_str(text);
    }
}

/// Appends an item to the innermost open item.
fn append_item(open_items: &mut [OpenItem], item: StatusItem) {
    if let Some(parent) = open_items.last_mut() {
        parent.item.items.push(item);
    }
}

/// Closes the innermost open item.
fn close_item(open_items: &mut Vec<OpenItem>) {
    if let Some(OpenItem { mut item }) = open_items.pop() {
        item.text = trim(&item.text).to_owned();
        append_item(open_items, item);
    }
}
