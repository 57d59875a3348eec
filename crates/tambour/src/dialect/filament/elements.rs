//! `details`, `ui_component`, `media` and custom tags of the caller (F-131, F-133, F-134, F-200).

use serde_json::{Map, Value};

use super::block::{BlockContext, BlockOutcome, FilamentBlock, emit_notice};
use super::body::{find_attribute, read_elements, read_json};
use super::rules;
use super::update::SurroundingTextFilter;
use crate::dialect::{IntentSink, ReplyAction};
use crate::event::{Details, Media, OwnElement, UiComponent};
use crate::finding::{FindingReport, clip};
use crate::lex::space::trim;
use crate::structure::{ElementBody, ExpectedElement};

/// Returns the text of an object under a key.
fn text_member(value: &Value, key: &str) -> Option<String> {
    value.get(key).and_then(Value::as_str).map(|text| trim(text).to_owned())
}

/// Reads `details`.
pub(super) fn read_details(
    block: &FilamentBlock,
    cx: &BlockContext,
    out: &mut dyn IntentSink,
) -> BlockOutcome {
    if trim(&block.body).starts_with('{')
        && let Ok(value) = serde_json::from_str::<Value>(trim(&block.body))
        && let Some(raw_text) = text_member(&value, "text").or_else(|| text_member(&value, "content"))
    {
        block.report_form(rules::NEWER_FORM, "tags, other fields not used", out);
        let summary = text_member(&value, "summary").unwrap_or_default();
        let summary = cx.sanitize_folded(&summary, block.body_start, out);
        let text = cx.sanitize_folded(&raw_text, block.body_start, out);
        out.emit_action(ReplyAction::Extension(Details { summary, text }.into()));
        return BlockOutcome::Read;
    }
    // The heading comes first; a later one belongs to a nested element.
    let blank_len = block.body.len() - block.body.trim_start().len();
    let head = block.body[blank_len..].get(..8).is_some_and(|head| head.eq_ignore_ascii_case("<summary"));
    let end = block.body.to_ascii_lowercase().find("</summary").filter(|_| head);
    let (summary, rest, at) = match end {
        None => (String::new(), &*block.body, block.body_start),
        Some(end) => {
            let end = block.body[end..].find('>').map_or(block.body.len(), |close| end + close + 1);
            let (first, rest) = block.body.split_at(end);
            let found = read_elements(first, block.body_start, &["summary"], &[], &cx.options.limits, out);
            match (&found.elements[..], &found.surrounding_text[..]) {
                ([field], []) => (
                    cx.sanitize_folded(trim(field.text), field.start, out),
                    rest,
                    block.body_start.end_of(first),
                ),
                // This is not a heading.
                _ => (String::new(), &*block.body, block.body_start),
            }
        }
    };
    let text = trim(&cx.sanitize_folded(rest, at, out)).to_owned();
    out.emit_action(ReplyAction::Extension(Details { summary, text }.into()));
    BlockOutcome::Read
}

/// Reads `ui_component`.
pub(super) fn read_component(
    block: &FilamentBlock,
    cx: &BlockContext,
    out: &mut dyn IntentSink,
) -> BlockOutcome {
    let view = block.attribute("view").map(trim).unwrap_or_default();
    let fallback_attribute =
        block.attribute("fallback").map(trim).filter(|text| !text.is_empty()).map(str::to_owned);
    let mut inner = SurroundingTextFilter { out, has_surrounding_text: false };
    let found = match trim(&block.body).is_empty() {
        true => None,
        false => read_json(&block.body, block.body_start, &cx.options.limits, &mut inner),
    };
    let (value, text_after) = match &found {
        Some(json) => {
            let text_after = trim(&block.body[json.span.end..]).trim_start_matches('`');
            (json.value.clone(), Some(trim(text_after).to_owned()).filter(|text| !text.is_empty()))
        }
        None => (Value::Object(Map::new()), None),
    };
    // Text before the value may be the better part of a broken body.
    let before = found.as_ref().map(|json| trim(&block.body[..json.span.start]));
    let before = before.is_some_and(|text| !text.is_empty() && !text.starts_with("```"));
    let after = found
        .as_ref()
        .filter(|_| text_after.is_some() && fallback_attribute.is_none())
        .map(|json| json.span.end);
    let fallback = match (fallback_attribute, text_after) {
        (Some(fallback_attribute), Some(text_after)) => Some(format!("{fallback_attribute}\n{text_after}")),
        (fallback_attribute, text_after) => fallback_attribute.or(text_after),
    };
    let fault = if !is_view_name(view) {
        Some(format!("`{}` is not a view: expected `namespace.component`", clip(view, 60)))
    } else if !value.is_object() || found.is_none() && !trim(&block.body).is_empty() {
        Some("the body is not a JSON object".to_owned())
    } else if found.as_ref().is_some_and(|json| !json.is_complete) {
        Some("the body is not complete".to_owned())
    } else if before {
        Some("there is text before the JSON of the body".to_owned())
    } else {
        None
    };
    if let Some(message) = fault {
        out.report(
            block
                .report(rules::COMPONENT_INVALID, message)
                .with_repair("its text is shown, the rest not used"),
        );
        emit_notice("ui_component_invalid", Some(clip(view, 60).into_owned()), out);
        if before {
            return block.raw_outcome(out);
        }
        return match (after, fallback) {
            (Some(end), _) => BlockOutcome::RestFrom(end),
            (None, Some(text)) => BlockOutcome::Raw(text),
            (None, None) => block.raw_outcome(out),
        };
    }
    let fallback_text = match fallback {
        None if !cx.dialect_options.can_draw(view) => Some(trim(&block.body).to_owned()),
        fallback => fallback,
    };
    out.emit_action(ReplyAction::Extension(
        UiComponent { view: view.to_owned(), props: value, fallback_text }.into(),
    ));
    BlockOutcome::Read
}

/// Returns whether a name has the form `namespace.component`.
fn is_view_name(name: &str) -> bool {
    let part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic())
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    };
    name.len() <= 128 && name.contains('.') && name.split('.').all(part)
}

/// Reads `media`.
pub(super) fn read_media(block: &FilamentBlock, cx: &BlockContext, out: &mut dyn IntentSink) -> BlockOutcome {
    let mut attributes = block.attributes.clone();
    let body = trim(&block.body);
    if body.starts_with('{')
        && let Some(found) = read_json(&block.body, block.body_start, &cx.options.limits, out)
    {
        block.report_form(rules::NEWER_FORM, "attributes, other fields not used", out);
        for key in ["type", "src", "alt"] {
            if let (Some(value), None) = (text_member(&found.value, key), find_attribute(&attributes, key)) {
                attributes.push((key.to_owned(), value));
            }
        }
    }
    let [kind, src, alt] = ["type", "src", "alt"]
        .map(|key| trim(find_attribute(&attributes, key).unwrap_or_default()).to_owned());
    if let Err(why) = check_source(&src) {
        let message = format!("the source `{}` {why}", clip(&without_controls(&src), 60));
        out.report(
            block.report(rules::MEDIA_REFUSED, message).with_repair("not used, its description is shown"),
        );
        emit_notice("media_refused", Some(clip(&without_controls(&src), 60).into_owned()), out);
        return BlockOutcome::Raw(alt);
    }
    let lowercase = kind.to_ascii_lowercase();
    let listed_kind = ["image", "audio", "video"].into_iter().find(|listed_kind| *listed_kind == lowercase);
    let Some(media_kind) = listed_kind.or_else(|| media_type_of_extension(&src)) else {
        let message = format!(
            "`{}` is not a media type: expected `image`, `audio` or `video`",
            clip(&without_controls(&kind), 60)
        );
        out.report(
            block.report(rules::MEDIA_TYPE, message).with_repair("not used, its description is shown"),
        );
        emit_notice("media_refused", Some(clip(&without_controls(&src), 60).into_owned()), out);
        return BlockOutcome::Raw(alt);
    };
    if media_kind != kind {
        let message = format!(
            "`{}` is not a media type: expected `image`, `audio` or `video`",
            clip(&without_controls(&kind), 60)
        );
        let repair = match listed_kind {
            Some(_) => format!("read as `{media_kind}`"),
            None => format!("read as `{media_kind}`, what it said is not used"),
        };
        out.report(block.report(rules::MEDIA_TYPE, message).with_repair(repair));
    }
    out.emit_action(ReplyAction::Extension(Media { kind: media_kind.to_owned(), src, alt }.into()));
    BlockOutcome::Read
}

fn without_controls(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Returns the media type for the extension of a path.
fn media_type_of_extension(src: &str) -> Option<&'static str> {
    let path = src.split(['?', '#']).next().unwrap_or_default();
    let (_, extension) = path.rsplit_once('.')?;
    Some(match extension.to_ascii_lowercase().as_str() {
        "png" | "jpg" | "jpeg" | "gif" | "webp" | "avif" | "bmp" => "image",
        "mp3" | "ogg" | "wav" | "flac" | "m4a" | "opus" => "audio",
        "mp4" | "webm" | "mov" | "mkv" | "ogv" => "video",
        _ => return None,
    })
}

/// Checks that a source may be loaded: a relative path that stays in its folder, or `https:`, or `asset:`.
fn check_source(src: &str) -> Result<(), &'static str> {
    if src.is_empty() {
        return Err("is empty");
    }
    if src.len() > 2048 {
        return Err("is too long");
    }
    // Browsers drop or decode these before they look at the address.
    if src.chars().any(|c| c.is_control() || matches!(c, '\\' | '<' | '>' | '"')) || src.contains("&#") {
        return Err("contains characters that an address may not contain");
    }
    let decoded = decode_percent(src);
    if decoded.chars().any(|c| c.is_control() || c == '\\') {
        return Err("contains characters that an address may not contain");
    }
    let path = decoded.split(['?', '#']).next().unwrap_or_default();
    if path.split('/').any(|part| matches!(trim(part), ".." | ".")) {
        return Err("leads out of its folder");
    }
    let scheme = path.split(['/']).next().unwrap_or_default().split_once(':');
    match scheme {
        Some((scheme, _)) => {
            let scheme = trim(scheme).to_ascii_lowercase();
            let rest = &path[path.find(':').map_or(0, |at| at + 1)..];
            let host = rest.strip_prefix("//").unwrap_or_default();
            match scheme.as_str() {
                "https" if host.is_empty() || host.starts_with('/') => Err("has no host"),
                "https" => Ok(()),
                "asset" if !trim(rest).is_empty() => Ok(()),
                _ => Err("has a scheme that is not allowed"),
            }
        }
        None if path.starts_with('/') => Err("is not a relative path"),
        None => Ok(()),
    }
}

/// Decodes `%` escapes, up to four times over.
fn decode_percent(text: &str) -> String {
    let mut text = text.to_owned();
    for _ in 0..4 {
        let mut bytes = Vec::with_capacity(text.len());
        let mut rest = text.as_bytes();
        while let [first, after @ ..] = rest {
            let code = after.get(..2).filter(|_| *first == b'%');
            let code = code.and_then(|code| std::str::from_utf8(code).ok());
            match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
                Some(byte) => {
                    bytes.push(byte);
                    rest = &after[2..];
                }
                None => {
                    bytes.push(*first);
                    rest = after;
                }
            }
        }
        let next = String::from_utf8_lossy(&bytes).into_owned();
        if next == text {
            break;
        }
        text = next;
    }
    text
}

/// Reads a custom tag of the caller.
pub(super) fn read_custom(
    block: &FilamentBlock,
    element: &ExpectedElement,
    cx: &BlockContext,
    out: &mut dyn IntentSink,
) -> BlockOutcome {
    let attributes = block.attributes.iter().cloned().collect();
    let name = element.name.clone().into_owned();
    if element.body != ElementBody::Json {
        let text = trim(&block.body).to_owned();
        out.emit_action(ReplyAction::Extension(OwnElement { name, attributes, text, value: None }.into()));
        return BlockOutcome::Read;
    }
    let found =
        read_json(&block.body, block.body_start, &cx.options.limits, out).filter(|json| json.is_complete);
    match found {
        Some(found) => {
            let value = Some(found.value);
            out.emit_action(ReplyAction::Extension(
                OwnElement { name, attributes, text: String::new(), value }.into(),
            ));
            BlockOutcome::Read
        }
        None => {
            let message = format!("`<{}>` contains no JSON", block.name);
            out.report(FindingReport::new(rules::RAW_TEXT, block.tag_start, block.end(), message));
            BlockOutcome::Raw(block.body.clone())
        }
    }
}
