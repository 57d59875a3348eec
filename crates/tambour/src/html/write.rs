//! Writing side of the sanitizer: emits text and allowed tags, and reports the others.

use super::read::feed;
use super::rules::{HTML_ATTRIBUTE, HTML_COMMENT, HTML_ESCAPED, HTML_FORBIDDEN, HTML_STYLE, HTML_UNBALANCED};
use super::style::{Declaration, declarations};
use super::tag::Tag;
use super::{Line, Mode, Open, Piece, Reading, Sanitizer};
use crate::finding::{Report, Rule, clip};
use crate::lex::code::Inside;
use crate::span::Place;

/// Most open elements; deeper ones are forbidden.
const DEPTH: usize = 64;

/// Most characters of model text in a message.
const SHOWN: usize = 60;

/// Elements of the whitelist that have an end tag.
const ELEMENTS: &[&str] = &["span", "b", "strong", "i", "em", "u", "s", "ruby", "rt", "rp"];

impl Sanitizer {
    /// Emits text; escapes its backticks if they must not pass.
    pub(super) fn text(&mut self, text: &str, out: &mut impl FnMut(Piece<'_>)) {
        if !self.line.shut {
            return self.send(text, out);
        }
        for line in text.split_inclusive('\n') {
            if self.line.shut && line.contains('`') {
                self.send(&line.replace('`', "&#96;"), out);
            } else {
                self.send(line, out);
            }
        }
    }

    fn send(&mut self, text: &str, out: &mut impl FnMut(Piece<'_>)) {
        if feed(&mut self.code, &mut self.trust, text) {
            self.line = Line::default();
        }
        self.last = text.bytes().next_back().unwrap_or(self.last);
        out(Piece::Text(text));
    }

    /// Emits a tag.
    fn markup(&mut self, tag: &str, out: &mut impl FnMut(Piece<'_>)) {
        let (_, stop) = self.code.text(tag, false);
        if stop.is_some() {
            // Backticks before it have closed, which is noticed at its first byte.
            self.code.text(tag, false);
            if self.code.inside() == Inside::Text {
                self.trust.settle();
            }
        }
        self.trust.tag();
        self.last = b'>';
        out(Piece::Text(tag));
    }

    /// Marks the place of removed text.
    fn gone(&mut self, raw: &str, out: &mut impl FnMut(Piece<'_>)) {
        if raw.contains('\n') {
            self.text("\n", out);
        } else if self.last == b'`' {
            // Two runs of backticks would join.
            self.text(" ", out);
        }
    }

    fn report(
        &self,
        rule: &'static Rule,
        at: Place,
        message: String,
        repair: &str,
        out: &mut impl FnMut(Piece<'_>),
    ) {
        out(Piece::Found(Report::new(rule, at, self.here.offset, message).repaired(repair)));
    }

    /// Escapes text that begins like a tag but is none.
    pub(super) fn no_tag(&mut self, raw: &str, at: Place, out: &mut impl FnMut(Piece<'_>)) {
        let message = format!("`{}` begins no tag", visible(raw));
        self.report(HTML_ESCAPED, at, message, "the `<` is escaped", out);
        self.text("&lt;", out);
        self.rest(raw, out);
    }

    /// Emits the text behind an escaped `<`; it contains no other one, so nothing is held back.
    fn rest(&mut self, raw: &str, out: &mut impl FnMut(Piece<'_>)) {
        if raw.len() > 1 {
            self.text(&raw[1..], out);
        }
    }

    pub(super) fn comment(&mut self, at: Place, closed: bool, out: &mut impl FnMut(Piece<'_>)) {
        self.gone("", out);
        let message = if closed { "a comment" } else { "a comment that is not closed" };
        self.report(HTML_COMMENT, at, message.to_owned(), "removed", out);
    }

    pub(super) fn body(&mut self, name: &str, at: Place, closed: bool, out: &mut impl FnMut(Piece<'_>)) {
        self.gone("", out);
        let open = if closed { "" } else { ", which is not closed" };
        self.report(HTML_FORBIDDEN, at, format!("`{name}`{open}"), "removed with its text", out);
    }

    /// Handles a complete tag.
    pub(super) fn tag(&mut self, raw: &str, at: Place, out: &mut impl FnMut(Piece<'_>)) {
        if is_address(raw) {
            return self.no_tag(raw, at, out);
        }
        let tag = Tag::of(raw);
        let taken = ["script", "style", "!", "?"].contains(&tag.name.as_str());
        if !taken && !is_written(raw) {
            // `a<b && c>d` is text (R-89).
            return self.no_tag(raw, at, out);
        }
        let body = ["script", "style"].into_iter().find(|name| *name == tag.name);
        match body {
            Some(name) if !tag.closing && tag.empty => {
                self.gone(raw, out);
                self.report(HTML_FORBIDDEN, at, format!("`{name}`"), "removed", out);
            }
            Some(name) if !tag.closing => {
                let broken = raw.contains('\n');
                if broken {
                    self.text("\n", out);
                }
                self.reading = Reading::Body { name, at, matched: 0, broken };
            }
            _ if tag.name == "br" && !tag.closing => {
                self.attributes(&tag, at, out);
                let written = matches!(raw.to_ascii_lowercase().as_str(), "<br>" | "<br/>" | "<br />");
                self.markup(if written { raw } else { "<br>" }, out);
                self.line_break(raw, out);
            }
            _ if tag.name == "br" || tag.empty && ELEMENTS.contains(&tag.name.as_str()) => {
                self.gone(raw, out);
                let message = format!("`{}` opens and closes nothing", visible(raw));
                self.report(HTML_UNBALANCED, at, message, "removed", out);
            }
            _ if !ELEMENTS.contains(&tag.name.as_str()) => self.forbidden(raw, &tag, at, "", out),
            _ if tag.closing => self.closing(raw, &tag, at, out),
            _ if self.open.len() >= DEPTH => self.forbidden(raw, &tag, at, "too deep", out),
            _ => self.opening(raw, &tag, at, out),
        }
    }

    fn forbidden(&mut self, raw: &str, tag: &Tag<'_>, at: Place, why: &str, out: &mut impl FnMut(Piece<'_>)) {
        let slash = if tag.closing { "/" } else { "" };
        let why = if why.is_empty() { String::new() } else { format!(", {why}") };
        let message = format!("`{slash}{}`{why}", visible(&tag.name));
        if self.mode == Mode::Strip {
            self.gone(raw, out);
            return self.report(HTML_FORBIDDEN, at, message, "removed", out);
        }
        self.report(HTML_FORBIDDEN, at, message, "escaped", out);
        self.text("&lt;", out);
        self.rest(raw, out);
    }

    fn opening(&mut self, raw: &str, tag: &Tag<'_>, at: Place, out: &mut impl FnMut(Piece<'_>)) {
        let style = self.attributes(tag, at, out);
        let ruby = |name: &str| matches!(name, "rt" | "rp");
        if ruby(&tag.name)
            && let Some(open) = self.open.pop_if(|open| ruby(&open.name))
        {
            self.unclosed(&open, out);
        }
        let name = &tag.name;
        let written = match style {
            None => format!("<{name}>"),
            Some(style) => format!("<{name} style=\"{style}\">"),
        };
        self.markup(if raw.eq_ignore_ascii_case(&written) { raw } else { &written }, out);
        self.open.push(Open { name: tag.name.clone(), at, end: self.here.offset });
        self.line_break(raw, out);
    }

    fn closing(&mut self, raw: &str, tag: &Tag<'_>, at: Place, out: &mut impl FnMut(Piece<'_>)) {
        let Some(place) = self.open.iter().rposition(|open| open.name == tag.name) else {
            self.gone(raw, out);
            let message = format!("`{}` closes nothing", visible(raw));
            return self.report(HTML_UNBALANCED, at, message, "removed", out);
        };
        self.attributes(tag, at, out);
        for open in self.open.split_off(place + 1).iter().rev() {
            self.unclosed(open, out);
        }
        self.open.pop();
        let written = format!("</{}>", tag.name);
        self.markup(if raw.eq_ignore_ascii_case(&written) { raw } else { &written }, out);
        self.line_break(raw, out);
    }

    /// Preserves a line break in a tag.
    fn line_break(&mut self, raw: &str, out: &mut impl FnMut(Piece<'_>)) {
        if raw.contains('\n') {
            self.text("\n", out);
        }
    }

    /// Closes an element at the latest possible place.
    fn unclosed(&mut self, open: &Open, out: &mut impl FnMut(Piece<'_>)) {
        let report =
            Report::new(HTML_UNBALANCED, open.at, open.end, format!("`{}` is not closed", open.name));
        out(Piece::Found(report.repaired("closed")));
        self.markup(&format!("</{}>", open.name), out);
    }

    /// Closes all elements at the end of the text.
    pub(super) fn close_all(&mut self, out: &mut impl FnMut(Piece<'_>)) {
        self.code.boundary();
        if self.code.inside() == Inside::Fence && self.trust.fences() {
            // An end tag would be code.
            for Open { name, at, end } in self.open.drain(..).rev() {
                let message = format!("`{name}` is not closed before code that goes on to the end");
                out(Piece::Found(Report::new(HTML_UNBALANCED, at, end, message)));
            }
            return;
        }
        while let Some(open) = self.open.pop() {
            self.unclosed(&open, out);
        }
    }

    /// Reports attributes that do not pass; returns the style that does.
    fn attributes(&mut self, tag: &Tag<'_>, at: Place, out: &mut impl FnMut(Piece<'_>)) -> Option<String> {
        let mut style = None;
        for (name, value) in &tag.attributes {
            if name == "style" && tag.name == "span" && !tag.closing && style.is_none() {
                style = Some(self.style(value, at, out));
            } else {
                let message = format!("`{}` of `{}`", visible(name), tag.name);
                self.report(HTML_ATTRIBUTE, at, message, "removed", out);
            }
        }
        style.filter(|style| !style.is_empty())
    }

    fn style(&mut self, value: &str, at: Place, out: &mut impl FnMut(Piece<'_>)) -> String {
        let (mut kept, mut all) = (Vec::new(), true);
        for declaration in declarations(value) {
            let (dropped, repair) = match declaration {
                Declaration::Kept(text) => {
                    kept.push(text);
                    continue;
                }
                Declaration::Unimportant(text) => {
                    kept.push(text);
                    ("!important", "removed")
                }
                Declaration::Dropped(text) => (text, "removed"),
            };
            all = false;
            self.report(HTML_STYLE, at, format!("`{}` in a style", visible(dropped)), repair, out);
        }
        // Kept as written if it is plain.
        let plain = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
        if all && value.bytes().all(plain) {
            return value.to_owned();
        }
        // A line break in a style must not add a line.
        kept.join("; ").replace(|c: char| c.is_control(), " ")
    }
}

/// Returns whether a tag is a Markdown autolink, which is shown in both modes, since its URL is text.
fn is_address(raw: &str) -> bool {
    let inside = &raw[1..raw.len() - 1];
    let scheme = inside.split_once(':').is_some_and(|(scheme, _)| {
        let sign = |byte: u8| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte);
        scheme.len() > 1 && scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.bytes().all(sign)
    });
    let mail = inside.starts_with(|c: char| c.is_ascii_alphabetic()) && inside.contains('@');
    (scheme || mail) && !inside.contains(|c: char| c.is_ascii_whitespace() || c == '"' || c == '\'')
}

/// Returns whether a tag has a valid name and valid attributes: `name`, `name=value`.
fn is_written(raw: &str) -> bool {
    let inside = raw.strip_prefix("</").or(raw.strip_prefix('<')).unwrap_or(raw);
    let mut rest = inside.strip_suffix('>').unwrap_or(inside);
    let between = |c: char| c.is_ascii_whitespace() || c == '/';
    let name = |text: &str| {
        let sign = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:@".contains(&byte);
        text.bytes().take_while(|byte| sign(*byte)).count()
    };
    let len = name(rest);
    if len == 0 {
        return false;
    }
    rest = &rest[len..];
    while !rest.is_empty() {
        let blank = rest.len() - rest.trim_start_matches(between).len();
        rest = &rest[blank..];
        if rest.is_empty() {
            break;
        }
        let begins = rest.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | ':' | '@'));
        let len = name(rest);
        if blank == 0 || !begins {
            return false;
        }
        rest = &rest[len..];
        let Some(value) = rest.trim_start().strip_prefix('=').map(str::trim_start) else { continue };
        let end = match value.chars().next().filter(|c| matches!(c, '"' | '\'')) {
            Some(quote) => value[1..].find(quote).map(|end| end + 2),
            None => Some(value.find(|c: char| c.is_ascii_whitespace()).unwrap_or(value.len())),
        };
        let Some(end) = end.filter(|end| *end > 0) else { return false };
        rest = &value[end..];
    }
    true
}

/// Model text, shortened and without control characters, for a message.
fn visible(text: &str) -> String {
    let shown = clip(text, SHOWN);
    shown.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
