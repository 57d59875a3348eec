//! Readers of `details`, `ui_component`, `media` and custom tags of the caller (F-131, F-133, F-134, F-200).

use serde_json::{Map, Value};

use super::block::{BlockContext, BlockOutcome, FilamentBlock, emit_notice};
use super::body::{find_attribute, read_elements, read_json};
use super::rules;
use super::update::SurroundingTextFilter;
use crate::dialect::{IntentSink, MAX_EXCERPT_CHARS, ReplyAction};
use crate::event::{Details, Media, OwnElement, UiComponent};
use crate::finding::{FindingReport, clip};
use crate::lex::space::trim;
use crate::structure::{ElementBody, ExpectedElement};

/// Maximum length of a view name in bytes.
const MAX_VIEW_BYTES: usize = 128;

/// Maximum length of a media source in bytes.
const MAX_SOURCE_BYTES: usize = 2048;

/// Returns the trimmed text that an object has under a key.
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
    // The summary comes first; a later one belongs to a nested element.
    let blank_len = block.body.len() - block.body.trim_start().len();
    let body_start = block.body[blank_len..].get(.."<summary".len());
    let has_summary = body_start.is_some_and(|tag| tag.eq_ignore_ascii_case("<summary"));
    let closing_tag = block.body.to_ascii_lowercase().find("</summary").filter(|_| has_summary);
    let (summary, rest, at) = match closing_tag {
        None => (String::new(), &*block.body, block.body_start),
        Some(start) => {
            let end = block.body[start..].find('>').map_or(block.body.len(), |bracket| start + bracket + 1);
            let (summary_markup, rest) = block.body.split_at(end);
            let found =
                read_elements(summary_markup, block.body_start, &["summary"], &[], &cx.options.limits, out);
            match (&found.elements[..], &found.surrounding_text[..]) {
                ([summary], []) => (
                    cx.sanitize_folded(trim(summary.text), summary.start, out),
                    rest,
                    block.body_start.end_of(summary_markup),
                ),
                // More than a summary: all of it is text.
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
    let mut filter = SurroundingTextFilter { out };
    let json = match trim(&block.body).is_empty() {
        true => None,
        false => read_json(&block.body, block.body_start, &cx.options.limits, &mut filter),
    };
    let (value, text_after) = match &json {
        Some(json) => {
            let text_after = trim(&block.body[json.span.end..]).trim_start_matches('`');
            (json.value.clone(), Some(trim(text_after).to_owned()).filter(|text| !text.is_empty()))
        }
        None => (Value::Object(Map::new()), None),
    };
    // In a broken body, text before the JSON may matter more than the JSON.
    let text_before = json.as_ref().map(|json| trim(&block.body[..json.span.start]));
    let has_text_before = text_before.is_some_and(|text| !text.is_empty() && !text.starts_with("```"));
    // Offset of the text after the JSON, if that text is the whole fallback.
    let fallback_start = json
        .as_ref()
        .filter(|_| text_after.is_some() && fallback_attribute.is_none())
        .map(|json| json.span.end);
    let fallback = match (fallback_attribute, text_after) {
        (Some(fallback_attribute), Some(text_after)) => Some(format!("{fallback_attribute}\n{text_after}")),
        (fallback_attribute, text_after) => fallback_attribute.or(text_after),
    };
    let fault = if !is_view_name(view) {
        Some(format!("`{}` is not a view: expected `namespace.component`", clip(view, MAX_EXCERPT_CHARS)))
    } else if !value.is_object() || json.is_none() && !trim(&block.body).is_empty() {
        Some("the body is not a JSON object".to_owned())
    } else if json.as_ref().is_some_and(|json| !json.is_complete) {
        Some("the body is not complete".to_owned())
    } else if has_text_before {
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
        emit_notice("ui_component_invalid", Some(clip(view, MAX_EXCERPT_CHARS).into_owned()), out);
        if has_text_before {
            return block.raw_outcome(out);
        }
        return match (fallback_start, fallback) {
            (Some(start), _) => BlockOutcome::RestFrom(start),
            (None, Some(text)) => BlockOutcome::Raw(text),
            (None, None) => block.raw_outcome(out),
        };
    }
    // A view that the client cannot draw needs a fallback: at least its JSON.
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
    let is_word = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_alphabetic())
            && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    };
    name.len() <= MAX_VIEW_BYTES && name.contains('.') && name.split('.').all(is_word)
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
    if let Err(fault) = check_source(&src) {
        let message = format!("the source `{}` {fault}", clip(&without_controls(&src), MAX_EXCERPT_CHARS));
        out.report(
            block.report(rules::MEDIA_REFUSED, message).with_repair("not used, its description is shown"),
        );
        let reference = clip(&without_controls(&src), MAX_EXCERPT_CHARS).into_owned();
        emit_notice("media_refused", Some(reference), out);
        return BlockOutcome::Raw(alt);
    }
    let lowercase = kind.to_ascii_lowercase();
    let listed_kind = ["image", "audio", "video"].into_iter().find(|media_kind| *media_kind == lowercase);
    let Some(media_kind) = listed_kind.or_else(|| media_type_of_extension(&src)) else {
        let message = format!(
            "`{}` is not a media type: expected `image`, `audio` or `video`",
            clip(&without_controls(&kind), MAX_EXCERPT_CHARS)
        );
        out.report(
            block.report(rules::MEDIA_TYPE, message).with_repair("not used, its description is shown"),
        );
        let reference = clip(&without_controls(&src), MAX_EXCERPT_CHARS).into_owned();
        emit_notice("media_refused", Some(reference), out);
        return BlockOutcome::Raw(alt);
    };
    if media_kind != kind {
        let message = format!(
            "`{}` is not a media type: expected `image`, `audio` or `video`",
            clip(&without_controls(&kind), MAX_EXCERPT_CHARS)
        );
        let repair = match listed_kind {
            Some(_) => format!("read as `{media_kind}`"),
            None => format!("read as `{media_kind}`, its own value is not used"),
        };
        out.report(block.report(rules::MEDIA_TYPE, message).with_repair(repair));
    }
    out.emit_action(ReplyAction::Extension(Media { kind: media_kind.to_owned(), src, alt }.into()));
    BlockOutcome::Read
}

/// Returns a text with blanks instead of control characters, for messages.
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

/// Checks that a source may be loaded: a relative path that stays in its folder, or an `https:` or `asset:`
/// address.
///
/// # Errors
/// Returns the end of a message that begins with the source, such as `is empty`.
fn check_source(src: &str) -> Result<(), &'static str> {
    if src.is_empty() {
        return Err("is empty");
    }
    if src.len() > MAX_SOURCE_BYTES {
        return Err("is too long");
    }
    // Browsers drop or decode these characters before they read the address.
    if src.chars().any(|c| c.is_control() || matches!(c, '\\' | '<' | '>' | '"')) || src.contains("&#") {
        return Err("contains characters that an address may not contain");
    }
    let decoded = decode_percent(src);
    if decoded.chars().any(|c| c.is_control() || c == '\\') {
        return Err("contains characters that an address may not contain");
    }
    let path = decoded.split(['?', '#']).next().unwrap_or_default();
    if path.split('/').any(|segment| matches!(trim(segment), ".." | ".")) {
        return Err("leads out of its folder");
    }
    // The scheme is before the first colon, unless a slash precedes that colon.
    let scheme = path.split(['/']).next().unwrap_or_default().split_once(':');
    match scheme {
        Some((scheme, _)) => {
            let scheme = trim(scheme).to_ascii_lowercase();
            let rest = &path[path.find(':').map_or(0, |colon| colon + 1)..];
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

/// Decodes `%` escapes, up to four times, in case they were encoded more than once.
fn decode_percent(text: &str) -> String {
    let mut text = text.to_owned();
    for _ in 0..4 {
        let mut bytes = Vec::with_capacity(text.len());
        let mut rest = text.as_bytes();
        while let [first, bytes_after @ ..] = rest {
            let digits = bytes_after.get(..2).filter(|_| *first == b'%');
            let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
            match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
                Some(byte) => {
                    bytes.push(byte);
                    rest = &bytes_after[2..];
                }
                None => {
                    bytes.push(*first);
                    rest = bytes_after;
                }
            }
        }
        let decoded = String::from_utf8_lossy(&bytes).into_owned();
        if decoded == text {
            break;
        }
        text = decoded;
    }
    text
}

/// Reads a custom tag, an element of the caller's own structure; its event is [`OwnElement`].
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
    let json =
        read_json(&block.body, block.body_start, &cx.options.limits, out).filter(|json| json.is_complete);
    match json {
        Some(json) => {
            let value = Some(json.value);
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
