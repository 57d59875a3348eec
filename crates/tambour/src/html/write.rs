//! Writing side of the sanitizer: emits text and allowed tags; escapes or removes other tags, and reports
//! them.

use super::read::feed_trackers;
use super::rules::{HTML_ATTRIBUTE, HTML_COMMENT, HTML_ESCAPED, HTML_FORBIDDEN, HTML_STYLE, HTML_UNBALANCED};
use super::style::{StyleDeclaration, parse_declarations};
use super::tag::HtmlTag;
use super::{
    BacktickState, HtmlMode, HtmlSanitizer, OpenElement, STOPS_AT_AMPERSAND, SanitizedPiece, SanitizerState,
};
use crate::finding::{FindingReport, Rule, clip};
use crate::lex::code::CodeContext;
use crate::span::Place;

/// Maximum number of open elements; the tag of a further one is rejected.
const MAX_DEPTH: usize = 64;

/// Maximum number of characters of model text in a message.
const MAX_SHOWN: usize = 60;

/// Elements of the whitelist that have an end tag.
const ALLOWED_ELEMENTS: &[&str] = &["span", "b", "strong", "i", "em", "u", "s", "ruby", "rt", "rp"];

impl HtmlSanitizer {
    /// Emits text; escapes its backticks if they must not pass.
    pub(super) fn write_text(&mut self, text: &str, out: &mut impl FnMut(SanitizedPiece<'_>)) {
        if !self.backticks.escapes_backticks {
            return self.emit(text, out);
        }
        // Emitting a line end resets the flag.
        for line in text.split_inclusive('\n') {
            if self.backticks.escapes_backticks && line.contains('`') {
                self.emit(&line.replace('`', "&#96;"), out);
            } else {
                self.emit(line, out);
            }
        }
    }

    /// Emits text unchanged and tracks what code it begins or ends.
    fn emit(&mut self, text: &str, out: &mut impl FnMut(SanitizedPiece<'_>)) {
        if feed_trackers(&mut self.code, &mut self.trust, text) {
            self.backticks = BacktickState::default();
        }
        self.last_byte = text.bytes().next_back().unwrap_or(self.last_byte);
        out(SanitizedPiece::Text(text));
    }

    /// Emits an allowed tag.
    fn write_tag(&mut self, tag: &str, out: &mut impl FnMut(SanitizedPiece<'_>)) {
        let (_, stop) = self.code.read_to_stop(tag, STOPS_AT_AMPERSAND);
        if stop.is_some() {
            // Backticks before the tag have closed, which the tracker notices at the first byte of the tag.
            self.code.read_to_stop(tag, STOPS_AT_AMPERSAND);
            if self.code.context() == CodeContext::Text {
                self.trust.close_ticks();
            }
        }
        self.trust.observe_tag();
        self.last_byte = b'>';
        out(SanitizedPiece::Text(tag));
    }

    /// Emits what must replace the removed text `raw`: a line break if `raw` has one, otherwise a blank if
    /// the text before it ends with a backtick.
    fn mark_removal(&mut self, raw: &str, out: &mut impl FnMut(SanitizedPiece<'_>)) {
        if raw.contains('\n') {
            self.write_text("\n", out);
        } else if self.last_byte == b'`' {
            // Two runs of backticks would join.
            self.write_text(" ", out);
        }
    }

    /// Reports a fault of the markup that starts at `place` and ends at the current place.
    fn report(
        &self,
        rule: &'static Rule,
        place: Place,
        message: String,
        repair: &str,
        out: &mut impl FnMut(SanitizedPiece<'_>),
    ) {
        out(SanitizedPiece::Report(
            FindingReport::new(rule, place, self.place.offset, message).with_repair(repair),
        ));
    }

    /// Escapes text that begins like a tag but is not one.
    pub(super) fn escape_non_tag(
        &mut self,
        raw: &str,
        place: Place,
        out: &mut impl FnMut(SanitizedPiece<'_>),
    ) {
        let message = format!("`{}` does not begin a tag", printable(raw));
        self.report(HTML_ESCAPED, place, message, "the `<` is escaped", out);
        self.write_text("&lt;", out);
        self.write_tag_rest(raw, out);
    }

    /// Emits the text after the escaped `<` of `raw`; it contains no other `<`, so nothing is held back.
    fn write_tag_rest(&mut self, raw: &str, out: &mut impl FnMut(SanitizedPiece<'_>)) {
        if raw.len() > 1 {
            self.write_text(&raw[1..], out);
        }
    }

    /// Reports a comment whose text has been skipped; `is_closed` is true if the comment has an end.
    pub(super) fn remove_comment(
        &mut self,
        place: Place,
        is_closed: bool,
        out: &mut impl FnMut(SanitizedPiece<'_>),
    ) {
        // Its first line break was emitted when it was read.
        self.mark_removal("", out);
        let message = if is_closed { "a comment" } else { "a comment that is not closed" };
        self.report(HTML_COMMENT, place, message.to_owned(), "removed", out);
    }

    /// Reports a script or style whose text has been skipped; `is_closed` is true if it has an end tag.
    pub(super) fn remove_raw_text(
        &mut self,
        name: &str,
        place: Place,
        is_closed: bool,
        out: &mut impl FnMut(SanitizedPiece<'_>),
    ) {
        // Its first line break was emitted when it was read.
        self.mark_removal("", out);
        let suffix = if is_closed { "" } else { ", which is not closed" };
        self.report(HTML_FORBIDDEN, place, format!("`{name}`{suffix}"), "removed with its text", out);
    }

    /// Handles a complete tag.
    pub(super) fn handle_tag(&mut self, raw: &str, place: Place, out: &mut impl FnMut(SanitizedPiece<'_>)) {
        if is_autolink(raw) {
            return self.escape_non_tag(raw, place, out);
        }
        let tag = HtmlTag::parse(raw);
        let is_removed_by_name = ["script", "style", "!", "?"].contains(&tag.name.as_str());
        if !is_removed_by_name && !has_valid_syntax(raw) {
            // `a<b && c>d` is text (R-89).
            return self.escape_non_tag(raw, place, out);
        }
        let raw_text_element = ["script", "style"].into_iter().find(|name| *name == tag.name);
        match raw_text_element {
            Some(name) if !tag.is_closing && tag.is_self_closing => {
                self.mark_removal(raw, out);
                self.report(HTML_FORBIDDEN, place, format!("`{name}`"), "removed", out);
            }
            Some(name) if !tag.is_closing => {
                let has_line_break = raw.contains('\n');
                if has_line_break {
                    self.write_text("\n", out);
                }
                self.state = SanitizerState::RawText { name, place, matched_len: 0, has_line_break };
            }
            _ if tag.name == "br" && !tag.is_closing => {
                self.check_attributes(&tag, place, out);
                let is_canonical = matches!(raw.to_ascii_lowercase().as_str(), "<br>" | "<br/>" | "<br />");
                self.write_tag(if is_canonical { raw } else { "<br>" }, out);
                self.keep_line_break(raw, out);
            }
            // `</br>`, or an allowed element that would be empty, such as `<b/>`.
            _ if tag.name == "br" || tag.is_self_closing && ALLOWED_ELEMENTS.contains(&tag.name.as_str()) => {
                self.mark_removal(raw, out);
                let message = format!("`{}` opens and closes nothing", printable(raw));
                self.report(HTML_UNBALANCED, place, message, "removed", out);
            }
            _ if !ALLOWED_ELEMENTS.contains(&tag.name.as_str()) => self.reject_tag(raw, &tag, place, "", out),
            _ if tag.is_closing => self.close_element(raw, &tag, place, out),
            _ if self.open_elements.len() >= MAX_DEPTH => {
                self.reject_tag(raw, &tag, place, "nested too deeply", out)
            }
            _ => self.open_element(raw, &tag, place, out),
        }
    }

    /// Escapes or removes a tag that is not allowed. `reason` follows the tag's name in the message; it is
    /// empty for a tag that is not on the whitelist.
    fn reject_tag(
        &mut self,
        raw: &str,
        tag: &HtmlTag<'_>,
        place: Place,
        reason: &str,
        out: &mut impl FnMut(SanitizedPiece<'_>),
    ) {
        let slash = if tag.is_closing { "/" } else { "" };
        let reason = if reason.is_empty() { String::new() } else { format!(", {reason}") };
        let message = format!("`{slash}{}`{reason}", printable(&tag.name));
        if self.mode == HtmlMode::Strip {
            self.mark_removal(raw, out);
            return self.report(HTML_FORBIDDEN, place, message, "removed", out);
        }
        self.report(HTML_FORBIDDEN, place, message, "escaped", out);
        self.write_text("&lt;", out);
        self.write_tag_rest(raw, out);
    }

    /// Emits an allowed start tag, without attributes that are not allowed.
    fn open_element(
        &mut self,
        raw: &str,
        tag: &HtmlTag<'_>,
        place: Place,
        out: &mut impl FnMut(SanitizedPiece<'_>),
    ) {
        let style = self.check_attributes(tag, place, out);
        // `rt` and `rp` do not nest: each ends the one before it.
        let is_ruby_part = |name: &str| matches!(name, "rt" | "rp");
        if is_ruby_part(&tag.name)
            && let Some(element) = self.open_elements.pop_if(|element| is_ruby_part(&element.name))
        {
            self.close_unclosed(&element, out);
        }
        let name = &tag.name;
        let clean_tag = match style {
            None => format!("<{name}>"),
            Some(style) => format!("<{name} style=\"{style}\">"),
        };
        self.write_tag(if raw.eq_ignore_ascii_case(&clean_tag) { raw } else { &clean_tag }, out);
        self.open_elements.push(OpenElement { name: tag.name.clone(), place, end: self.place.offset });
        self.keep_line_break(raw, out);
    }

    /// Emits an end tag after closing the elements that are open inside its element; removes a tag that
    /// closes nothing.
    fn close_element(
        &mut self,
        raw: &str,
        tag: &HtmlTag<'_>,
        place: Place,
        out: &mut impl FnMut(SanitizedPiece<'_>),
    ) {
        let Some(index) = self.open_elements.iter().rposition(|element| element.name == tag.name) else {
            self.mark_removal(raw, out);
            let message = format!("`{}` closes nothing", printable(raw));
            return self.report(HTML_UNBALANCED, place, message, "removed", out);
        };
        self.check_attributes(tag, place, out);
        for element in self.open_elements.split_off(index + 1).iter().rev() {
            self.close_unclosed(element, out);
        }
        self.open_elements.pop();
        let clean_tag = format!("</{}>", tag.name);
        self.write_tag(if raw.eq_ignore_ascii_case(&clean_tag) { raw } else { &clean_tag }, out);
        self.keep_line_break(raw, out);
    }

    /// Emits a line break if the tag `raw` has one, so that the text after it begins a line as before.
    fn keep_line_break(&mut self, raw: &str, out: &mut impl FnMut(SanitizedPiece<'_>)) {
        if raw.contains('\n') {
            self.write_text("\n", out);
        }
    }

    /// Closes an element that the reply left open, and reports it.
    fn close_unclosed(&mut self, element: &OpenElement, out: &mut impl FnMut(SanitizedPiece<'_>)) {
        let report = FindingReport::new(
            HTML_UNBALANCED,
            element.place,
            element.end,
            format!("`{}` is not closed", element.name),
        );
        out(SanitizedPiece::Report(report.with_repair("closed")));
        self.write_tag(&format!("</{}>", element.name), out);
    }

    /// Closes all elements at the end of the text; only reports them if the text ends in fenced code.
    pub(super) fn close_all(&mut self, out: &mut impl FnMut(SanitizedPiece<'_>)) {
        self.code.end_line_start();
        if self.code.context() == CodeContext::Fence && self.trust.trusts_fences() {
            // An end tag would be code.
            for OpenElement { name, place, end } in self.open_elements.drain(..).rev() {
                let message = format!("`{name}` is not closed before code that continues to the end");
                out(SanitizedPiece::Report(FindingReport::new(HTML_UNBALANCED, place, end, message)));
            }
            return;
        }
        while let Some(element) = self.open_elements.pop() {
            self.close_unclosed(&element, out);
        }
    }

    /// Reports attributes that are not allowed; returns the allowed `style` attribute, if any, without its
    /// forbidden declarations.
    fn check_attributes(
        &mut self,
        tag: &HtmlTag<'_>,
        place: Place,
        out: &mut impl FnMut(SanitizedPiece<'_>),
    ) -> Option<String> {
        let mut style = None;
        for (name, value) in &tag.attributes {
            if name == "style" && tag.name == "span" && !tag.is_closing && style.is_none() {
                style = Some(self.check_style(value, place, out));
            } else {
                let message = format!("`{}` of `{}`", printable(name), tag.name);
                self.report(HTML_ATTRIBUTE, place, message, "removed", out);
            }
        }
        style.filter(|style| !style.is_empty())
    }

    /// Reports forbidden declarations; returns the style without them.
    fn check_style(&mut self, value: &str, place: Place, out: &mut impl FnMut(SanitizedPiece<'_>)) -> String {
        let (mut clean_declarations, mut is_unchanged) = (Vec::new(), true);
        for declaration in parse_declarations(value) {
            let removed_text = match declaration {
                StyleDeclaration::Allowed(text) => {
                    clean_declarations.push(text);
                    continue;
                }
                StyleDeclaration::AllowedUnimportant(text) => {
                    clean_declarations.push(text);
                    "!important"
                }
                StyleDeclaration::Forbidden(text) => text,
            };
            is_unchanged = false;
            let message = format!("`{}` in a style", printable(removed_text));
            self.report(HTML_STYLE, place, message, "removed", out);
        }
        // The style stays as written if all of it is allowed and plain ASCII.
        let is_plain = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
        if is_unchanged && value.bytes().all(is_plain) {
            return value.to_owned();
        }
        // A line break in a style must not add a line.
        clean_declarations.join("; ").replace(|c: char| c.is_control(), " ")
    }
}

/// Returns whether a tag is a Markdown autolink, which is shown in both modes, since its address is text.
fn is_autolink(raw: &str) -> bool {
    let target = &raw[1..raw.len() - 1];
    let has_scheme = target.split_once(':').is_some_and(|(scheme, _)| {
        let is_scheme_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte);
        scheme.len() > 1
            && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(is_scheme_byte)
    });
    let is_mail_address = target.starts_with(|c: char| c.is_ascii_alphabetic()) && target.contains('@');
    (has_scheme || is_mail_address)
        && !target.contains(|c: char| c.is_ascii_whitespace() || c == '"' || c == '\'')
}

/// Returns whether a tag has a valid name and valid attributes: `name`, `name=value`.
fn has_valid_syntax(raw: &str) -> bool {
    let body = raw.strip_prefix("</").or(raw.strip_prefix('<')).unwrap_or(raw);
    let mut unread = body.strip_suffix('>').unwrap_or(body);
    let is_separator = |c: char| c.is_ascii_whitespace() || c == '/';
    let name_len = |text: &str| {
        let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:@".contains(&byte);
        text.bytes().take_while(|byte| is_name_byte(*byte)).count()
    };
    let len = name_len(unread);
    if len == 0 {
        return false;
    }
    unread = &unread[len..];
    while !unread.is_empty() {
        let blank_len = unread.len() - unread.trim_start_matches(is_separator).len();
        unread = &unread[blank_len..];
        if unread.is_empty() {
            break;
        }
        let has_name_start =
            unread.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | ':' | '@'));
        let len = name_len(unread);
        if blank_len == 0 || !has_name_start {
            return false;
        }
        unread = &unread[len..];
        let Some(value) = unread.trim_start().strip_prefix('=').map(str::trim_start) else { continue };
        let end = match value.chars().next().filter(|c| matches!(c, '"' | '\'')) {
            Some(quote) => value[1..].find(quote).map(|end| end + 2),
            None => Some(value.find(|c: char| c.is_ascii_whitespace()).unwrap_or(value.len())),
        };
        let Some(end) = end.filter(|end| *end > 0) else { return false };
        unread = &value[end..];
    }
    true
}

/// Returns model text for a message, shortened and without control characters.
fn printable(text: &str) -> String {
    let excerpt = clip(text, MAX_SHOWN);
    excerpt.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
