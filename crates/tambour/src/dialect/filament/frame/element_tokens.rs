//! Handling of tokens in a thought, the content or a block.

use super::super::block::{FilamentBlock, StringTracker};
use super::super::code_filter::TagContext;
use super::super::rules;
use super::super::tags::{ElementForm, ElementKind, KnownElement, TagMeaning};
use super::comment::HeldComment;
use super::draft::InnerEnd;
use super::{FilamentFrame, OpenElementState, report_at};
use crate::dialect::IntentSink;
use crate::finding::FindingReport;
use crate::lex::marks::{MarkEffect, MarkKind, ReasoningMark, parse_tag_mark};
use crate::lex::markup::{MarkupTag, MarkupToken, TagKind};
use crate::lex::space::is_space;
use crate::span::{LazyPlace, Place};
use crate::structure::NameSpelling;
use crate::texts::format_count;

/// Inline HTML elements, which are never reported as unknown tags.
const INLINE_HTML: &[&str] = &["span", "br", "b", "strong", "i", "em", "u", "s", "ruby", "rt", "rp"];

impl FilamentFrame {
    /// Handles a token in a thought or the content.
    pub(super) fn push_inside_token(
        &mut self,
        token: MarkupToken<'_>,
        at: LazyPlace<'_>,
        out: &mut dyn IntentSink,
    ) {
        if self.comment.is_some() {
            return self.push_comment_token(token, at.resolve(), out);
        }
        if self.fence_line.is_some() {
            return self.push_fence_token(token, at.resolve(), out);
        }
        if let MarkupToken::Tag(tag) = &token {
            self.track_quoting(tag);
        }
        match token {
            MarkupToken::Text(text) if self.is_untagged() => {
                let place = at.resolve();
                self.push_free_text(text, place, out);
            }
            MarkupToken::Text(text) => self.push_text(text, at, out),
            MarkupToken::Tag(tag) if self.is_countable(&tag) => {
                self.handle_inside_tag(&token, &tag, at.resolve(), out)
            }
            MarkupToken::CommentOpen if matches!(self.open_element, OpenElementState::Content(_)) => {
                match self.markdown.tag_context() {
                    TagContext::Text => self.handle_markup(token, at.resolve(), out),
                    TagContext::Undecided => self.markdown.hold_span(&token, at.resolve()),
                    TagContext::CodeSpan | TagContext::Fence => self.push_text(token.raw(), at, out),
                }
            }
            MarkupToken::Reasoning(raw, mark) if self.is_mark_countable(mark) => {
                match self.markdown.tag_context() {
                    TagContext::Text => self.handle_markup(token, at.resolve(), out),
                    TagContext::Undecided => self.markdown.hold_span(&token, at.resolve()),
                    TagContext::CodeSpan | TagContext::Fence => self.push_text(raw, at, out),
                }
            }
            MarkupToken::Tag(tag) if self.is_untagged() => {
                let place = at.resolve();
                self.report_unknown_tag(&tag, place, out);
                self.push_text(tag.raw, LazyPlace::from(place), out);
            }
            _ => {
                if let (
                    MarkupToken::CommentOpen | MarkupToken::CommentClose | MarkupToken::HtmlCommentClose(_),
                    OpenElementState::Thought(_),
                ) = (&token, &self.open_element)
                {
                    self.is_in_comment = matches!(token, MarkupToken::CommentOpen);
                }
                self.push_text(token.raw(), at, out);
            }
        }
    }

    /// Tracks HTML elements that quote.
    fn track_quoting(&mut self, tag: &MarkupTag<'_>) {
        if matches!(self.open_element, OpenElementState::Content(_))
            && self.markdown.tag_context() == TagContext::Text
        {
            self.quoting.observe_tag(tag);
        }
    }

    /// Returns whether a reasoning mark that is not a tag may count: in a thought, or an opening mark at the
    /// start of a line outside of tags.
    fn is_mark_countable(&self, mark: ReasoningMark) -> bool {
        match &self.open_element {
            OpenElementState::Thought(_) => true,
            OpenElementState::Content(part) => {
                part.tag.is_none() && mark.kind == MarkKind::Open && self.markdown.is_line_blank()
            }
            _ => false,
        }
    }

    /// Returns whether the open thought or content began without a tag.
    pub(super) fn is_untagged(&self) -> bool {
        matches!(
            &self.open_element,
            OpenElementState::Thought(part) | OpenElementState::Content(part) if part.tag.is_none()
        )
    }

    /// Returns whether the current place is outside of tags: nothing is open, or a thought or content without
    /// a tag.
    pub(super) fn is_outside(&self) -> bool {
        matches!(self.open_element, OpenElementState::Outside) || self.is_untagged()
    }

    /// Reports an opening tag that the structure does not know, in text outside of tags. Does not report
    /// inline HTML, or tags in code or a draft.
    fn report_unknown_tag(&mut self, tag: &MarkupTag<'_>, at: Place, out: &mut dyn IntentSink) {
        let is_inline_html = INLINE_HTML.iter().any(|name| name.eq_ignore_ascii_case(tag.name));
        if is_inline_html
            || tag.kind == TagKind::Close
            || self.draft.is_some()
            || self.markdown.tag_context() != TagContext::Text
        {
            return;
        }
        let message = format!("`{}` is not a tag of the structure", tag.name);
        let report = FindingReport::new(rules::TAG_UNEXPECTED, at, at.offset + tag.raw.len(), message);
        let row = if matches!(self.tags.meaning(tag), TagMeaning::Inactive) { "F-234" } else { "F-206" };
        out.report(report.with_row(row).with_repair("read as text"));
    }

    /// Returns whether a tag may count here, unless it is in code.
    fn is_countable(&self, tag: &MarkupTag<'_>) -> bool {
        match self.tags.meaning(tag) {
            TagMeaning::Known(_) => true,
            TagMeaning::Reasoning(_) => {
                matches!(self.open_element, OpenElementState::Thought(_))
                    || self.is_untagged() && tag.kind == TagKind::Open
            }
            TagMeaning::Envelope => self.is_untagged(),
            TagMeaning::Inactive | TagMeaning::Unknown => {
                self.is_untagged() && self.tags.html_status_bar(tag).is_some()
            }
        }
    }

    /// Handles a tag in a thought or the content, or holds it until it is known whether it is in code.
    fn handle_inside_tag(
        &mut self,
        token: &MarkupToken<'_>,
        tag: &MarkupTag<'_>,
        at: Place,
        out: &mut dyn IntentSink,
    ) {
        let begins_line = self.markdown.is_line_blank();
        match self.markdown.tag_context() {
            TagContext::Text => self.handle_markup(*token, at, out),
            TagContext::Undecided => self.markdown.hold_span(token, at),
            // A closing tag alone on its line ends even a fence (F-105).
            TagContext::Fence if begins_line && self.closes_open_element(tag) => {
                self.markdown.hold_line(token, at)
            }
            TagContext::CodeSpan | TagContext::Fence => self.push_text(tag.raw, LazyPlace::from(at), out),
        }
    }

    /// Returns whether a tag closes the open element.
    pub(super) fn closes_open_element(&self, tag: &MarkupTag<'_>) -> bool {
        let kind = match &self.open_element {
            OpenElementState::Thought(_) => ElementKind::Thought,
            OpenElementState::Content(_) => ElementKind::Content,
            OpenElementState::Block(block) => block.element.kind,
            OpenElementState::Outside => return false,
        };
        tag.kind == TagKind::Close && self.known_element(tag).is_some_and(|element| element.kind == kind)
    }

    /// Handles a tag, a reasoning mark or the beginning of a comment that is not in code.
    pub(super) fn handle_markup(&mut self, token: MarkupToken<'_>, at: Place, out: &mut dyn IntentSink) {
        if let MarkupToken::Reasoning(raw, mark) = token {
            return self.handle_mark(raw, mark, at, out);
        }
        let MarkupToken::Tag(tag) = token else {
            if self.ignores_comments && self.is_untagged() {
                return self.read_comment_open(at, out);
            }
            self.content.mark_gap();
            let is_outside = false;
            self.comment = Some(HeldComment::new(at, is_outside));
            return;
        };
        if self.comment.is_some() && self.end_at_lone_closing_tag(at, out) {
            return self.push_token(token, LazyPlace::from(at), out);
        }
        if let OpenElementState::Block(block) = &mut self.open_element {
            // The tag was held because of an open string. It counts, so it is outside of any string.
            block.string_tracker = StringTracker::default();
            return self.handle_block_tag(&token, &tag, at, out);
        }
        let meaning = self.tags.meaning(&tag);
        let element = self.known_element(&tag).or_else(|| self.tags.html_status_bar(&tag));
        let is_draft_text =
            !matches!(meaning, TagMeaning::Reasoning(_)) && self.handle_thought_tag(&tag, element, at);
        if is_draft_text || self.is_quoted(&tag, element) {
            return self.push_text(tag.raw, LazyPlace::from(at), out);
        }
        let element = match meaning {
            TagMeaning::Known(element) => element,
            TagMeaning::Reasoning(element) if matches!(self.open_element, OpenElementState::Thought(_)) => {
                let mark = parse_tag_mark(tag.name, tag.kind == TagKind::Close);
                let OpenElementState::Thought(part) = &mut self.open_element else { return };
                let is_end = mark.is_some_and(|mark| part.open_reasoning.apply(mark) != MarkEffect::Text);
                if !is_end {
                    match tag.kind {
                        TagKind::Close => _ = self.close_inner_thought(),
                        kind => self.open_inner_thought(kind == TagKind::Open),
                    }
                    return self.push_text(tag.raw, LazyPlace::from(at), out);
                }
                element
            }
            // An envelope, an HTML status bar, or reasoning after text outside of tags.
            _ => {
                self.close_unclosed(at.offset, out);
                return self.push_token(token, LazyPlace::from(at), out);
            }
        };
        if tag.kind == TagKind::Close {
            let inner_end = match meaning {
                TagMeaning::Known(_) => InnerEnd::Phase,
                _ => InnerEnd::Text,
            };
            let closes_thought =
                self.closes_open_element(&tag) && matches!(self.open_element, OpenElementState::Thought(_));
            if closes_thought && !self.try_end_thought(tag.raw, inner_end, at, out) {
                return;
            }
            return self.handle_closing_tag(&tag, element, at, out);
        }
        if self.has_draft() {
            self.replay_draft(out);
            return self.push_token(token, LazyPlace::from(at), out);
        }
        if element.kind == ElementKind::Details && matches!(self.open_element, OpenElementState::Content(_)) {
            // The content is not closed: it continues after the block.
            return self.begin_element(&tag, element, at, out);
        }
        self.close_unclosed(at.offset, out);
        self.push_token(token, LazyPlace::from(at), out);
    }

    /// Returns whether a tag of a block is in a quotation of the content: the block is an example.
    fn is_quoted(&self, tag: &MarkupTag<'_>, element: Option<KnownElement>) -> bool {
        let is_block_tag = element.is_some_and(|element| {
            !matches!(element.kind, ElementKind::Thought | ElementKind::Content)
                && (element.kind != ElementKind::Details || tag.kind == TagKind::Close)
        });
        is_block_tag
            && matches!(self.open_element, OpenElementState::Content(_))
            && (self.quoting.is_open() || self.markdown.is_quoted())
    }

    /// Handles a closing tag in a thought or the content.
    fn handle_closing_tag(
        &mut self,
        tag: &MarkupTag<'_>,
        closing_element: KnownElement,
        at: Place,
        out: &mut dyn IntentSink,
    ) {
        let (kind, part) = match &self.open_element {
            OpenElementState::Thought(part) => (ElementKind::Thought, part),
            OpenElementState::Content(part) => (ElementKind::Content, part),
            _ => return,
        };
        if closing_element.kind != kind {
            return self.handle_unopened(tag, at, out);
        }
        self.check_tag(tag, closing_element, at, out);
        self.report_unused_attributes(tag, closing_element, at, &[], out);
        let (index, is_head) = (part.index, part.is_head);
        match &part.tag {
            Some((name, ..))
                if !name.eq_ignore_ascii_case(tag.name) && closing_element.spelling != NameSpelling::Typo =>
            {
                let message = format!("`{}` closes `<{name}>`", tag.raw);
                report_at(rules::TAG_MISMATCHED, at, tag.raw.len(), message, "closed", out);
            }
            None if !is_head => self.handle_unopened(tag, at, out),
            _ => {}
        }
        if is_head && !self.seen_elements.contains(&index) {
            self.seen_elements.push(index);
        }
        let is_closed = true;
        self.close_part(is_closed, at.offset, out);
        self.last_closed = Some(index);
    }

    /// Handles a token in a block.
    pub(super) fn push_block_token(&mut self, token: MarkupToken<'_>, at: Place, out: &mut dyn IntentSink) {
        let OpenElementState::Block(block) = &mut self.open_element else { return };
        // A `media` element with its source in the tag has no body.
        let is_void = block.element.kind == ElementKind::Media && block.attribute("src").is_some();
        let (kind, block_index) = (block.element.kind, block.element.index);
        // Inner tags may have any name (F-130, F-235): a name that resembles the name of a reply tag is not a
        // typo.
        if let MarkupToken::Tag(tag) = token
            && matches!(kind, ElementKind::Status | ElementKind::Details)
            && self
                .known_element(&tag)
                .is_some_and(|element| element.spelling == NameSpelling::Typo && element.index != block_index)
        {
            return self.push_text(tag.raw, LazyPlace::from(at), out);
        }
        match token {
            MarkupToken::Text(text) if is_void => {
                let blank_len = text.len() - text.trim_start_matches(is_space).len();
                self.push_block_text(&text[..blank_len], LazyPlace::from(at), out);
                if blank_len < text.len() {
                    // The text comes after the `media` element, whose closing tag is missing.
                    let at = at.end_of(&text[..blank_len]);
                    self.close_unclosed(at.offset, out);
                    self.push_token(MarkupToken::Text(&text[blank_len..]), LazyPlace::from(at), out);
                }
            }
            MarkupToken::Tag(tag) if kind == ElementKind::Details && self.known_element(&tag).is_some() => {
                self.handle_inside_tag(&token, &tag, at, out);
            }
            MarkupToken::Tag(tag) if is_void => match self.closes_open_element(&tag) {
                true => self.handle_block_tag(&token, &tag, at, out),
                false => {
                    self.close_unclosed(at.offset, out);
                    self.push_token(token, LazyPlace::from(at), out);
                }
            },
            MarkupToken::Tag(tag) => self.handle_block_tag(&token, &tag, at, out),
            _ => self.push_text(token.raw(), LazyPlace::from(at), out),
        }
    }

    /// Handles a tag in a block.
    fn handle_block_tag(
        &mut self,
        token: &MarkupToken<'_>,
        tag: &MarkupTag<'_>,
        at: Place,
        out: &mut dyn IntentSink,
    ) {
        let OpenElementState::Block(block) = &mut self.open_element else { return };
        if block.element.form == ElementForm::Html {
            return self.handle_html_tag(tag, at, out);
        }
        let Some(element) =
            self.known_element(tag).filter(|_| !matches!(self.tags.meaning(tag), TagMeaning::Reasoning(_)))
        else {
            if let OpenElementState::Block(block) = &mut self.open_element
                && block.holds_json()
            {
                block.follow_inner_tag(tag);
            }
            return self.push_text(tag.raw, LazyPlace::from(at), out);
        };
        let OpenElementState::Block(block) = &mut self.open_element else { return };
        let name = tag.name.to_ascii_lowercase();
        let is_same_element = element.kind == block.element.kind && (element.index == block.element.index);
        let has_same_name = block.name.eq_ignore_ascii_case(tag.name);
        if tag.kind == TagKind::Close {
            if let Some(depth) = block.open_nested_names.iter().rposition(|inner| *inner == name) {
                block.open_nested_names.truncate(depth);
                return self.push_text(tag.raw, LazyPlace::from(at), out);
            }
            // The tag may be text of a string: the rest of the line decides. In commands an open quote may be
            // an apostrophe, so there the closing tag of the block counts at once.
            if let Some(quote) = block.string_tracker.open_quote
                && (block.holds_json() || block.holds_commands() && !is_same_element)
            {
                return self.markdown.hold_quote(token, at, quote);
            }
            if is_same_element {
                if !has_same_name {
                    let message = format!("`{}` closes `<{}>`", tag.raw, block.name);
                    report_at(rules::TAG_MISMATCHED, at, tag.raw.len(), message, "closed", out);
                }
                self.check_tag(tag, element, at, out);
                self.report_unused_attributes(tag, element, at, &[], out);
                return self.close_block(out);
            }
            if block.is_nested && element.kind == ElementKind::Content {
                self.close_unclosed(at.offset, out);
                return self.push_token(*token, LazyPlace::from(at), out);
            }
            return self.handle_unopened(tag, at, out);
        }
        if block.string_tracker.open_quote.is_some() && block.holds_json() {
            return self.push_text(tag.raw, LazyPlace::from(at), out);
        }
        let may_nest =
            matches!(element.kind, ElementKind::Details | ElementKind::Custom | ElementKind::Status);
        // For other kinds, the same name again means that the open block was not closed.
        let is_nested_tag = is_same_element && (may_nest || !has_same_name);
        if is_nested_tag && block.open_nested_names.len() < self.context.options.limits.depth {
            if tag.kind == TagKind::Open {
                block.open_nested_names.push(name);
            }
            return self.push_text(tag.raw, LazyPlace::from(at), out);
        }
        // The open block is closed first (F-202).
        self.close_unclosed(at.offset, out);
        self.push_token(*token, LazyPlace::from(at), out);
    }

    /// Handles a tag in an HTML status bar, which ends with the element that began it.
    fn handle_html_tag(&mut self, tag: &MarkupTag<'_>, at: Place, out: &mut dyn IntentSink) {
        let OpenElementState::Block(block) = &mut self.open_element else { return };
        let has_same_name = block.name.eq_ignore_ascii_case(tag.name);
        match tag.kind {
            TagKind::Close if has_same_name => match block.open_nested_names.pop() {
                Some(_) => self.push_text(tag.raw, LazyPlace::from(at), out),
                None => self.close_block(out),
            },
            TagKind::Open
                if has_same_name && block.open_nested_names.len() < self.context.options.limits.depth =>
            {
                // Only the number of open elements matters here.
                block.open_nested_names.push(String::new());
                self.push_text(tag.raw, LazyPlace::from(at), out);
            }
            _ if self.known_element(tag).is_some_and(|element| element.kind != ElementKind::Status) => {
                self.close_unclosed(at.offset, out);
                self.push_token(MarkupToken::Tag(*tag), LazyPlace::from(at), out);
            }
            _ => self.push_text(tag.raw, LazyPlace::from(at), out),
        }
    }

    /// Reads text of a block. Once the block exceeds the limit, all its text becomes text of the content.
    pub(super) fn push_block_text(&mut self, text: &str, at: LazyPlace<'_>, out: &mut dyn IntentSink) {
        let limit = self.context.options.limits.value;
        let OpenElementState::Block(block) = &mut self.open_element else { return };
        if block.is_overlong {
            return self.content.push_text(text, at, out);
        }
        if block.holds_json() || block.holds_commands() {
            let quotes: &[u8] = if block.holds_commands() { b"\"'`" } else { b"\"" };
            block.string_tracker.push_text(text, quotes);
        }
        block.body.push_str(text);
        if block.body.len() <= limit {
            return;
        }
        block.is_overlong = true;
        let body = std::mem::take(&mut block.body);
        let (tag_start, body_start, name) = (block.tag_start, block.body_start, block.name.clone());
        let message = format!("`<{name}>` is longer than {}", format_count(limit, "byte"));
        let end = body_start.offset + body.floor_char_boundary(limit);
        let report = FindingReport::new(rules::LIMIT_EXCEEDED, tag_start, end, message);
        out.report(report.with_repair("shown as text of the content"));
        self.content.begin_paragraph();
        self.content.push_text(&body, LazyPlace::from(body_start), out);
    }
}

impl FilamentBlock {
    /// Returns whether the block holds JSON.
    pub(super) fn holds_json(&self) -> bool {
        matches!(self.element.kind, ElementKind::Update | ElementKind::Call | ElementKind::Component)
            && !matches!(self.element.form, ElementForm::Commands | ElementForm::SingleUpdate)
    }

    /// Returns whether the block holds commands (F-140), or JSON in their place.
    fn holds_commands(&self) -> bool {
        self.element.form == ElementForm::Commands
    }
}
