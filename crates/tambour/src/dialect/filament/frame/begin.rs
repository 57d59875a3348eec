//! Beginning of an element: opens it according to its kind, and reports faults of its tag and its position.

use super::super::block::{FilamentBlock, StringTracker};
use super::super::code_filter::MarkdownTracker;
use super::super::rules;
use super::super::tags::{ElementForm, ElementKind, KnownElement, attributes, contradicts_itself};
use super::{FilamentFrame, OpenElementState, OpenPart, report_at, thought_reasoning};
use crate::dialect::{Intent, IntentSink};
use crate::finding::FindingReport;
use crate::lex::markup::{MarkupTag, TagKind};
use crate::lex::prose::QuotingElements;
use crate::span::Place;
use crate::structure::{ElementMisfit, NameSpelling};

/// Maximum number of unused attributes of a tag that one finding names.
const MAX_REPORTED_ATTRIBUTES: usize = 8;

impl FilamentFrame {
    /// Begins an element of the structure.
    pub(super) fn begin_element(
        &mut self,
        tag: &MarkupTag<'_>,
        element: KnownElement,
        at: Place,
        out: &mut dyn IntentSink,
    ) {
        self.has_begun = true;
        // A `thought` or `content` right after the same element continues it (F-203).
        let is_adjacent = self.last_closed.take() == Some(element.index)
            && matches!(element.kind, ElementKind::Thought | ElementKind::Content);
        self.check_tag(tag, element, at, out);
        if self.tags.is_added_thought(element.index) {
            let message = format!("`{}` is not a tag of the structure", tag.name);
            let report = FindingReport::new(rules::TAG_UNEXPECTED, at, at.offset + tag.raw.len(), message);
            out.report(report.with_row("F-234").with_repair("read as thinking"));
        } else {
            self.report_alias(tag, element, at, out);
        }
        let is_empty = tag.kind == TagKind::SelfClosing;
        if is_empty && element.kind != ElementKind::Media {
            let message = format!("`{}` closes itself", tag.raw);
            report_at(rules::SELF_CLOSING, at, tag.raw.len(), message, "read as an empty element", out);
        }
        if is_adjacent {
            let message = format!("`{}` reopens the element that was just closed", tag.raw);
            report_at(rules::TAG_REDUNDANT, at, tag.raw.len(), message, "read as one element", out);
        } else {
            self.report_misfit(tag, element.index, at, out);
        }
        if !self.seen_elements.contains(&element.index) {
            self.seen_elements.push(element.index);
        }
        let tag_end = at.end_of(tag.raw);
        match element.kind {
            ElementKind::Thought | ElementKind::Content => {
                self.report_unused_attributes(tag, element, at, &[], out);
                let tag = Some((tag.name.to_owned(), at, tag.raw.len()));
                let open_reasoning = thought_reasoning(tag.as_ref().map_or("", |(name, ..)| name));
                let part = OpenPart {
                    index: element.index,
                    tag,
                    text_start: tag_end,
                    is_head: false,
                    open_reasoning,
                    // A thought that continues the last one stays in its phase.
                    has_phase: is_adjacent,
                };
                self.open_part(element.kind, part, is_adjacent, out);
                if is_empty {
                    self.close_empty_part(out);
                }
            }
            // All other elements are buffered as blocks.
            _ => {
                let is_nested = matches!(self.open_element, OpenElementState::Content(_));
                if let OpenElementState::Content(part) =
                    std::mem::replace(&mut self.open_element, OpenElementState::Outside)
                {
                    let markdown = std::mem::replace(
                        &mut self.markdown,
                        MarkdownTracker::new(self.context.options.limits.line),
                    );
                    self.suspended_content = Some((part, markdown));
                }
                let block = FilamentBlock {
                    element,
                    name: tag.name.to_owned(),
                    attributes: attributes(tag),
                    has_two_names: contradicts_itself(tag, "name"),
                    tag_start: at,
                    body_start: tag_end,
                    body: String::new(),
                    gaps: Vec::new(),
                    is_nested,
                    open_nested_names: Vec::new(),
                    string_tracker: StringTracker::default(),
                    is_in_analysis: false,
                    is_overlong: false,
                    is_unclosed: false,
                };
                let used_attributes: &[&str] = match element.kind {
                    ElementKind::Call => &["name"],
                    ElementKind::Component => &["view", "fallback"],
                    ElementKind::Media => &["type", "src", "alt"],
                    ElementKind::Update => &["path", "op", "value"],
                    ElementKind::Details => &["open"],
                    _ => &[],
                };
                // A custom tag may have any attributes, and attributes of HTML have no meaning here.
                if element.kind != ElementKind::Custom && element.form != ElementForm::Html {
                    self.report_unused_attributes(tag, element, at, used_attributes, out);
                }
                self.markdown.restart();
                self.open_element = OpenElementState::Block(Box::new(block));
                if is_empty {
                    self.close_block(out);
                }
            }
        }
    }

    /// Begins a thought or the content. With `is_joined` it continues the last one, which was just closed.
    pub(super) fn open_part(
        &mut self,
        kind: ElementKind,
        part: OpenPart,
        is_joined: bool,
        out: &mut dyn IntentSink,
    ) {
        self.markdown.restart();
        self.is_in_comment = false;
        if kind == ElementKind::Content {
            if part.tag.is_some() {
                // The thought is over, whatever was opened in it (F-202).
                (self.inner_thought_count, self.is_doubtful) = (0, false);
            }
            self.quoting = QuotingElements::default();
            if is_joined {
                self.content.continue_text(self.has_line_break)
            } else {
                self.content.begin_paragraph()
            }
            if !std::mem::replace(&mut self.is_answering, true) {
                out.emit_intent(Intent::ThinkingEnd);
            }
            self.open_element = OpenElementState::Content(part);
        } else {
            self.is_line_break_due = is_joined && self.has_line_break;
            self.open_element = OpenElementState::Thought(part);
        }
    }

    /// Reports a tag whose name is not the current name of its element. Names of older forms are reported
    /// when their blocks are read; aliases that the structure itself gives are allowed.
    pub(super) fn report_alias(
        &self,
        tag: &MarkupTag<'_>,
        element: KnownElement,
        at: Place,
        out: &mut dyn IntentSink,
    ) {
        if element.spelling != NameSpelling::Alias || element.form != ElementForm::OtherName {
            return;
        }
        let row = match element.kind {
            ElementKind::Content => "F-141",
            _ if ["think", "thought"].iter().any(|name| tag.name.eq_ignore_ascii_case(name)) => "F-140",
            _ => "R-69",
        };
        let name = &*self.tags.element(element.index).name;
        let message = format!("`{}` is another name for `{name}`", tag.name);
        let report =
            FindingReport::new(rules::TAG_ALIAS, at, at.offset + tag.raw.len(), message).with_row(row);
        out.report(report.with_repair(format!("read as `{name}`")));
    }

    /// Reports an element that comes too late, or again.
    pub(super) fn report_misfit(
        &self,
        tag: &MarkupTag<'_>,
        index: usize,
        at: Place,
        out: &mut dyn IntentSink,
    ) {
        match self.tags.misfit(index, &self.seen_elements) {
            None => {}
            Some(ElementMisfit::Late(other)) => {
                let message = format!("`{other}` must come after `{}`, but comes before it", tag.name);
                report_at(rules::TAG_ORDER, at, tag.raw.len(), message, "read where it is", out);
            }
            Some(ElementMisfit::Duplicate) => {
                let message = format!("`{}` is repeated", tag.name);
                report_at(rules::TAG_REPEATED, at, tag.raw.len(), message, "read where it is", out);
            }
        }
    }

    /// Reports attributes that are not in `used_names`.
    pub(super) fn report_unused_attributes(
        &self,
        tag: &MarkupTag<'_>,
        element: KnownElement,
        at: Place,
        used_names: &[&str],
        out: &mut dyn IntentSink,
    ) {
        let unused_names: Vec<&str> = tag
            .attributes()
            .map(|attribute| attribute.name)
            .filter(|name| !used_names.iter().any(|used_name| used_name.eq_ignore_ascii_case(name)))
            .take(MAX_REPORTED_ATTRIBUTES)
            .collect();
        if !unused_names.is_empty() {
            let name = &*self.tags.element(element.index).name;
            let message = format!("unknown attribute of `{name}`: `{}`", unused_names.join("`, `"));
            report_at(rules::ATTRIBUTE_UNUSED, at, tag.raw.len(), message, "not used", out);
        }
    }

    /// Handles a closing tag that closes nothing.
    pub(super) fn handle_unopened(&mut self, tag: &MarkupTag<'_>, at: Place, out: &mut dyn IntentSink) {
        let message = format!("`{}` closes nothing", tag.raw);
        report_at(rules::TAG_UNOPENED, at, tag.raw.len(), message, "left out", out);
        if self.known_element(tag).is_some_and(|element| element.kind == ElementKind::Thought) {
            self.refuse_held_calls(tag.raw, out);
        }
        self.content.mark_gap();
        if let OpenElementState::Block(block) = &mut self.open_element {
            block.append_gap(tag.raw);
        }
    }
}
