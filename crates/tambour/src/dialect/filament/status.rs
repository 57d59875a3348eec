//! `status_bar`: free tags as a tree of items (F-130), its JSON form (F-141), and HTML (F-140).

use serde_json::{Value, json};

use super::block::{Block, Came, Context};
use super::body::{is_json, json as read_json};
use super::rules;
use super::tags::Form;
use crate::dialect::{Action, Output};
use crate::event::{StatusBar, StatusItem, UiComponent};
use crate::lex::comment::comment_len;
use crate::lex::space::{is_space, trim};

/// Longest name of an item, in bytes.
const NAME: usize = 256;

/// Reads a closed block.
pub(super) fn read(block: &Block, cx: &Context, out: &mut dyn Output) -> Came {
    match block.known.form {
        Form::Html => return html(block, cx, out),
        Form::OldStatus => block.form(rules::LEGACY_FORM, "`status_bar`", out),
        _ => {}
    }
    let body = trim(&block.body);
    let items = if body.starts_with(['{', '[']) && is_json(body, &cx.options.limits) {
        let Some(json) = read_json(&block.body, block.at, &cx.options.limits, out) else {
            return block.raw(out);
        };
        block.form(rules::NEWER_FORM, "tags, other fields not used", out);
        of_value(&json.value, 0)
    } else {
        let (items, unused) = of_tags(&block.body, cx.options.limits.depth.min(64));
        if unused {
            let found =
                block.report(rules::ATTRIBUTE_UNUSED, "attributes and comments of items mean nothing");
            out.report(found.repaired("not used"));
        }
        items
    };
    if !items.is_empty() {
        out.act(Action::Show(StatusBar { items }.into()));
    }
    Came::Done
}

/// Reads an HTML status bar: each line of its text is an item.
fn html(block: &Block, cx: &Context, out: &mut dyn Output) -> Came {
    block.form(rules::LEGACY_FORM, "`status_bar`", out);
    let text = lines(&block.body);
    let items: Vec<StatusItem> = text
        .lines()
        .map(trim)
        .filter(|line| !line.is_empty())
        .map(|line| match line.split_once([':', '：']) {
            Some((name, text)) if !trim(name).is_empty() => item(trim(name), trim(text)),
            _ => item("", line),
        })
        .collect();
    match &cx.own.status_view {
        _ if items.is_empty() => {}
        None => out.act(Action::Show(StatusBar { items }.into())),
        Some(view) => {
            let props = json!({ "items": items });
            let fallback_text = (!cx.own.draws(view)).then_some(text);
            let component = UiComponent { view: view.clone(), props, fallback_text };
            out.act(Action::Show(component.into()));
        }
    }
    Came::Done
}

/// Returns the text of markup without tags; block elements are on lines of their own.
pub(super) fn lines(markup: &str) -> String {
    let mut text = String::new();
    let mut rest = markup;
    while let Some(at) = rest.find('<') {
        text.push_str(&rest[..at]);
        let begins = rest[at + 1..].starts_with(|c: char| c.is_alphabetic() || matches!(c, '/' | '!'));
        let end = rest[at + 1..]
            .find(['<', '>'])
            .map(|end| at + 1 + end)
            .filter(|end| rest.as_bytes()[*end] == b'>');
        match end.filter(|_| begins) {
            Some(end) => {
                let name = rest[at + 1..end].trim_start_matches('/');
                let name: String = name.chars().take_while(|c| c.is_ascii_alphanumeric()).collect();
                let inline = ["b", "strong", "i", "em", "u", "s", "span", "a", "td", "th", "font", "small"];
                let cell = ["td", "th"].contains(&name.as_str()) && rest[at..].starts_with("</");
                if !inline.contains(&name.to_ascii_lowercase().as_str()) {
                    text.push('\n');
                } else if cell {
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
pub(super) fn pieces(markup: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut put = |from: usize, to: usize| {
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
        let begins = markup[open + 1..].starts_with(|c: char| c.is_alphabetic() || matches!(c, '/' | '!'));
        let end = markup[open + 1..].find(['<', '>']).map(|end| open + 1 + end);
        match end.filter(|end| begins && markup.as_bytes()[*end] == b'>') {
            Some(end) => {
                put(from, open);
                (from, at) = (end + 1, end + 1);
            }
            None => at = open + 1,
        }
    }
    put(from, markup.len());
    found
}

fn item(name: &str, text: &str) -> StatusItem {
    StatusItem { name: name.to_owned(), text: text.to_owned(), items: Vec::new() }
}

/// Converts a value to items: keys and their values, in order.
fn of_value(value: &Value, depth: usize) -> Vec<StatusItem> {
    let of = |name: &str, value: &Value| match value {
        Value::Object(_) | Value::Array(_) if depth < 32 => {
            StatusItem { items: of_value(value, depth + 1), ..item(name, "") }
        }
        Value::String(text) => item(name, text),
        Value::Null => item(name, ""),
        other => item(name, &other.to_string()),
    };
    match value {
        Value::Object(fields) => fields.iter().map(|(name, value)| of(name, value)).collect(),
        Value::Array(list) => list
            .iter()
            .map(|value| match value.get("name").and_then(Value::as_str) {
                Some(name) => of(name, value.get("text").or(value.get("value")).unwrap_or(&Value::Null)),
                None => of("", value),
            })
            .collect(),
        other => vec![of("", other)],
    }
}

/// An open item.
struct Open {
    item: StatusItem,
}

/// Reads items from free tags. A closing tag closes the innermost item of its name and all items open in it.
/// An unmatched closing tag, and anything that is not a tag, is text. Also returns whether attributes or
/// comments were ignored.
fn of_tags(body: &str, depth: usize) -> (Vec<StatusItem>, bool) {
    let mut unused = false;
    let mut open = vec![Open { item: StatusItem::default() }];
    let mut rest = body;
    while !rest.is_empty() {
        let at = rest.find('<').unwrap_or(rest.len());
        let (text, after) = rest.split_at(at);
        put(&mut open, text);
        let Some((tag, more)) = tag(after) else {
            let len = after.chars().next().map_or(0, char::len_utf8);
            put(&mut open, &after[..len]);
            rest = &after[len..];
            continue;
        };
        rest = more;
        let head = &after[..after.len() - more.len()];
        unused |= matches!(tag, Tag::Comment) || head.contains('=');
        match tag {
            Tag::Open(name) if open.len() <= depth => open.push(Open { item: item(name, "") }),
            Tag::Open(_) => put(&mut open, &after[..after.len() - more.len()]),
            Tag::Empty(name) => add(&mut open, item(name, "")),
            Tag::Comment => {}
            Tag::Close(name) => match open.iter().skip(1).rposition(|one| one.item.name == name) {
                Some(found) => {
                    while open.len() > found + 1 {
                        close(&mut open);
                    }
                }
                None => put(&mut open, &after[..after.len() - more.len()]),
            },
        }
    }
    while open.len() > 1 {
        close(&mut open);
    }
    let root = open.pop().map(|root| root.item).unwrap_or_default();
    let text = trim(&root.text);
    let mut items = root.items;
    if !text.is_empty() {
        items.push(item("", text));
    }
    (items, unused)
}

enum Tag<'a> {
    Open(&'a str),
    Close(&'a str),
    Empty(&'a str),
    Comment,
}

/// Parses the tag at the beginning of a text, in any script, and returns the text after it. Attributes are
/// ignored.
fn tag(text: &str) -> Option<(Tag<'_>, &str)> {
    let inside = text.strip_prefix('<')?;
    if let Some(comment) = inside.strip_prefix("!--") {
        return Some((Tag::Comment, &comment[comment_len(comment)?..]));
    }
    // No tag is longer, with its attributes.
    let window = &inside[..inside.floor_char_boundary(4 * NAME)];
    let end = window.find(['<', '>']).filter(|end| window.as_bytes()[*end] == b'>')?;
    let (head, after) = (&inside[..end], &inside[end + 1..]);
    let closes = head.starts_with('/');
    let head = head.strip_prefix('/').unwrap_or(head);
    let empty = !closes && head.ends_with('/');
    let head = trim(head.trim_end_matches('/'));
    let name = match head.find('=') {
        Some(_) => head.split(is_space).next().unwrap_or(head),
        None => head,
    };
    let begins = name.starts_with(|c: char| c.is_alphanumeric() || c == '_') && name.len() <= NAME;
    let tag = match (closes, empty) {
        (true, _) => Tag::Close(name),
        (_, true) => Tag::Empty(name),
        _ => Tag::Open(name),
    };
    begins.then_some((tag, after))
}

fn put(open: &mut [Open], text: &str) {
    if let Some(Open { item }) = open.last_mut()
        && !(text.is_empty() || item.text.is_empty() && trim(text).is_empty())
    {
        item.text.push_str(text);
    }
}

fn add(open: &mut [Open], item: StatusItem) {
    if let Some(parent) = open.last_mut() {
        parent.item.items.push(item);
    }
}

fn close(open: &mut Vec<Open>) {
    if let Some(Open { mut item }) = open.pop() {
        item.text = trim(&item.text).to_owned();
        add(open, item);
    }
}
