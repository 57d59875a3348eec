//! What may stand before `<thinking>` besides a draft: `<serp>`, the summary; and what both share.

use super::outside::{FenceLine, Outside};
use super::parse::{Line, Mode, Reader};
use super::rules;
use super::structure::{self, Name};
use crate::dialect::{Action, Intent, Output, Written};
use crate::finding::Report;
use crate::lex::entity;
use crate::lex::markup::{Tag, TagKind, Token};
use crate::lex::seam::{Joined, Seam};
use crate::options::Options;
use crate::span::Place;

/// The summary under way.
pub(super) struct Serp {
    pub(super) at: Place,
    text: String,
    /// Bytes of it as it was written.
    written: usize,
    seam: Seam,
    limit: usize,
    /// Where it became too long.
    full: Option<Place>,
    /// With text before it: what it is if it turns out to be an example in prose.
    pub(super) prose: Option<Prose>,
    /// Findings on it, which are untrue in that case.
    reports: Vec<Report>,
}

/// A `<serp>` behind text, as it was written.
pub(super) struct Prose {
    /// The text outside before it, and the fence around the reply.
    before: Outside,
    fence: Option<FenceLine>,
    raw: String,
    /// Whether it began a line.
    line_start: bool,
}

/// A summary behind text: it is sent when a structure begins. If none does, it is part of the text.
pub(super) struct Waiting {
    text: String,
    /// Where the element stands.
    at: Place,
    end: usize,
    /// The text outside without it, and the fence that was taken off.
    clean: Outside,
    fence: Option<FenceLine>,
    /// Bytes of the text outside up to its end.
    len: usize,
    reports: Vec<Report>,
}

impl Waiting {
    pub(super) fn is_behind(&self, at: Place) -> bool {
        self.at.offset >= at.offset
    }

    pub(super) fn held(&self) -> usize {
        self.text.len()
    }
}

impl Serp {
    pub(super) fn new(options: &Options) -> Serp {
        let limits = &options.limits;
        let seam = Seam::new("", limits.tag);
        Serp {
            at: Place::START,
            text: String::new(),
            written: 0,
            seam,
            limit: limits.hold,
            full: None,
            prose: None,
            reports: Vec::new(),
        }
    }

    /// Text. Where a tag was taken out of it, its neighbours make no new one.
    fn text(&mut self, text: &str, at: Place) {
        let text = self.room_for(text, at);
        let Serp { text: kept, seam, .. } = self;
        seam.text(text, at, &mut |joined| add(kept, joined));
    }

    /// Markup that is kept as text.
    fn keep(&mut self, raw: &str, at: Place) {
        let raw = self.room_for(raw, at);
        let Serp { text: kept, seam, .. } = self;
        seam.end(&mut |joined| add(kept, joined));
        kept.push_str(raw);
    }

    /// The part of `text` that there is room for.
    fn room_for<'a>(&mut self, text: &'a str, at: Place) -> &'a str {
        if self.full.is_some() {
            return "";
        }
        let room = self.limit - self.written;
        let kept = &text[..text.floor_char_boundary(room)];
        self.written += kept.len();
        if kept.len() < text.len() {
            self.full = Some(at.after(kept));
        }
        kept
    }
}

/// Most findings that wait with a summary; one with more is a summary.
const KEPT_BACK: usize = 64;

/// Keeps findings back, and hands on all else.
struct KeptBack<'a> {
    reports: &'a mut Vec<Report>,
    out: &'a mut dyn Output,
}

impl Output for KeptBack<'_> {
    fn intent(&mut self, intent: Intent<'_>) {
        self.out.intent(intent);
    }

    fn queries(&mut self, written: Written<'_>, place: Place, end: usize) -> Option<usize> {
        self.out.queries(written, place, end)
    }

    fn act(&mut self, action: Action) {
        self.out.act(action);
    }

    fn report(&mut self, report: Report) {
        self.reports.push(report);
    }

    fn fall_back(&mut self, reason: &'static str) {
        self.out.fall_back(reason);
    }
}

impl Reader {
    /// Comment marks and the failure marker in plain text.
    pub(super) fn plain_token(&mut self, token: &Token<'_>, at: Place, out: &mut dyn Output) {
        match token {
            Token::CommentOpen => self.in_comment = true,
            Token::CommentClose => self.in_comment = false,
            Token::Mark(_) => self.embedded_marker(at, "kept as text", out),
            Token::Text(_) | Token::Tag(_) | Token::Reasoning(..) => {}
        }
    }

    pub(super) fn tag_in_plain_text(
        &self,
        name: &str,
        at: Place,
        len: usize,
        repair: &str,
        out: &mut dyn Output,
    ) {
        let message = format!("`{name}` is a tag in plain text");
        let report = Report::new(rules::TAG_IN_PLAIN_TEXT, at, at.offset + len, message);
        let row = if self.mode == Mode::Serp { "T-006" } else { "T-003" };
        out.report(report.row(row).repaired(repair));
    }

    /// Reports an element that ends at `end` without its closing tag (T-016).
    pub(super) fn unclosed(&mut self, name: Name, start: Place, end: usize, out: &mut dyn Output) {
        let message = format!("`<{}>` is not closed", name.text());
        let report = Report::new(rules::UNCLOSED_ELEMENT, start, end, message);
        out.report(report.repaired("closed here"));
    }

    /// `<serp>` begins; with text before it, that is kept as it stood.
    pub(super) fn begin_serp_tag(&mut self, exact: bool, tag: &Tag<'_>, at: Place, out: &mut dyn Output) {
        // Only the first one counts, so that the text is copied once at most.
        let first = self.reads_marks() && !self.seen.contains(&"serp");
        let prose = (first && !self.outside.is_blank()).then(|| Prose {
            before: self.outside.clone(),
            fence: self.fence.clone(),
            raw: tag.raw.to_owned(),
            line_start: self.line != Line::Text,
        });
        let mut reports = Vec::new();
        if prose.is_some() {
            self.check_tag(
                Name::Serp,
                exact,
                tag,
                at,
                &mut KeptBack { reports: &mut reports, out: &mut *out },
            );
        } else {
            self.check_tag(Name::Serp, exact, tag, at, out);
        }
        self.begin(Name::Serp, at, tag.raw.len(), out);
        if self.mode == Mode::Serp {
            // A fence alone is that around the reply.
            self.serp.prose = prose.filter(|_| !self.outside.is_blank());
        }
        self.keep_back(reports, out);
    }

    /// Findings on a summary wait as long as it may be text.
    fn keep_back(&mut self, reports: Vec<Report>, out: &mut dyn Output) {
        match &mut self.waiting {
            _ if self.mode == Mode::Serp && self.serp.prose.is_some() && reports.len() < KEPT_BACK => {
                self.serp.reports = reports;
            }
            Some(waiting) if self.mode == Mode::Outside => waiting.reports.extend(reports),
            _ => {
                self.serp.prose = None;
                reports.into_iter().for_each(|report| out.report(report));
            }
        }
    }

    pub(super) fn serp_token(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        if self.serp.prose.is_none() {
            return self.serp_inside(token, at, out);
        }
        let mut reports = std::mem::take(&mut self.serp.reports);
        self.serp_inside(token, at, &mut KeptBack { reports: &mut reports, out: &mut *out });
        self.keep_back(reports, out);
    }

    fn serp_inside(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        if let Some(prose) = &mut self.serp.prose {
            prose.raw.push_str(token.raw());
            if prose.before.len() + prose.raw.len() > self.options.limits.hold {
                self.serp.prose = None;
            }
        }
        match token {
            Token::Text(text) if self.in_comment => self.serp.keep(text, at),
            Token::Text(text) => self.serp.text(text, at),
            Token::Tag(tag) => match structure::find(tag.name) {
                Some((Name::Serp, exact)) if tag.kind == TagKind::Close => {
                    self.check_tag(Name::Serp, exact, &tag, at, out);
                    if !self.serp_waits(at.offset + tag.raw.len(), true) {
                        self.end_serp(at.offset, out);
                    }
                }
                Some((name, exact)) if name.is_top() && name != Name::Serp && tag.kind == TagKind::Open => {
                    self.unclosed(Name::Serp, self.serp.at, at.offset, out);
                    self.end_serp(at.offset, out);
                    self.check_tag(name, exact, &tag, at, out);
                    self.begin(name, at, tag.raw.len(), out);
                }
                _ if self.in_comment => self.serp.keep(tag.raw, at),
                _ => self.tag_in_plain_text(tag.name, at, tag.raw.len(), "tag removed", out),
            },
            other => {
                self.plain_token(&other, at, out);
                self.serp.keep(other.raw(), at);
            }
        }
    }

    /// Whether the element that ends at `end` waits for a structure. One that is not closed does in the middle of a line.
    pub(super) fn serp_waits(&mut self, end: usize, closed: bool) -> bool {
        let prose = self.serp.prose.take().filter(|prose| closed || !prose.line_start);
        let Some(Prose { before, fence, raw, .. }) = prose.filter(|_| self.serp.full.is_none()) else {
            return false;
        };
        self.mode = Mode::Outside;
        self.in_comment = false;
        let mut serp = std::mem::replace(&mut self.serp, Serp::new(&self.options));
        serp.seam.end(&mut |joined| add(&mut serp.text, joined));
        let clean = std::mem::replace(&mut self.outside, before);
        let fence = std::mem::replace(&mut self.fence, fence);
        self.outside.push(&raw, serp.at, true, usize::MAX);
        let len = self.outside.len();
        let reports = serp.reports;
        self.waiting = Some(Waiting { text: serp.text, at: serp.at, end, clean, fence, len, reports });
        true
    }

    /// A structure begins: the summary that waits for it is one.
    pub(super) fn send_waiting(&mut self, out: &mut dyn Output) {
        let Some(waiting) = self.waiting.take() else { return };
        let whole = std::mem::replace(&mut self.outside, waiting.clean);
        for (text, at) in whole.runs_from(waiting.len) {
            self.outside.push(text, at, false, usize::MAX);
        }
        self.fence = waiting.fence;
        self.tell_fence(out);
        waiting.reports.into_iter().for_each(|report| out.report(report));
        out.intent(Intent::Summary(entity::decode(&waiting.text).into()));
    }

    /// None does: it is part of the text.
    pub(super) fn drop_waiting(&mut self, out: &mut dyn Output) {
        let Some(Waiting { at, end, .. }) = self.waiting.take() else { return };
        self.seen.retain(|name| *name != "serp");
        let message = "`<serp>` stands in text without a structure";
        self.report(rules::TAG_MISPLACED, at, end - at.offset, message, "read as text", out);
    }

    pub(super) fn end_serp(&mut self, end: usize, out: &mut dyn Output) {
        self.tell_fence(out);
        self.mode = Mode::Outside;
        self.in_comment = false;
        let mut serp = std::mem::replace(&mut self.serp, Serp::new(&self.options));
        serp.seam.end(&mut |joined| add(&mut serp.text, joined));
        serp.reports.drain(..).for_each(|report| out.report(report));
        if let Some(full) = serp.full {
            let message = "`<serp>` is longer than `limits.hold`";
            let report = Report::new(rules::LIMIT_EXCEEDED, full, end, message);
            out.report(report.repaired("the rest left out"));
        }
        out.intent(Intent::Summary(entity::decode(&serp.text).into()));
    }
}

/// Adds text to a summary. A tag that was made of its neighbours is none with a blank in it.
fn add(summary: &mut String, joined: Joined<'_>) {
    match joined {
        Joined::Text(text) => summary.push_str(text),
        Joined::Tag { raw, .. } => summary.push_str(&raw.replace('<', "< ")),
        // The `<` behind it ends it.
        Joined::Open(raw, _) => summary.push_str(raw),
    }
}
