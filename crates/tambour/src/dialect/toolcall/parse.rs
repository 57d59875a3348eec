//! Splits the reply as it arrives: text is passed at once to the plain-text reader, a possible mark is held
//! back until it is decided, and a call until it has ended.

use std::sync::Arc;

use super::formats::{self, Body, Format};
use super::head::{Begun, HEAD, Head, Which, begun_at};
use super::options::CallOptions;
use super::read::{Whole, WrittenCall, Wrong};
use super::rules;
use super::scan::{Ended, Found, Scan};
use crate::dialect::called;
use crate::dialect::plain::Plain;
use crate::dialect::{Action, Call, Dialect as _, Ending, Output};
use crate::finding::{Doubt, Report, clip};
use crate::lex::marks;
use crate::lex::prose::Line;
use crate::lex::scan;
use crate::options::Options;
use crate::span::Place;
use crate::texts::counted;
use crate::tool::CHECKS;

/// Bytes that are examined at once.
const PIECE: usize = 256;

/// Code fence around the arguments in some forms.
const FENCE: &str = "```";

/// Bytes after a call that decide whether its sentence continues.
const TRAIL: usize = 128;

/// Splits one reply into text, reasoning and calls.
pub(super) struct Reader {
    pub(super) plain: Plain,
    options: Arc<Options>,
    /// Recognized forms.
    which: Which,
    /// Set to recognize also forms of other formats than the first call's, which are refused.
    any_format: bool,
    /// Text held back: a mark, or a call.
    raw: String,
    open: Option<Open>,
    calls: Vec<Waiting>,
    /// Steps left for checks of arguments.
    checks: u64,
    /// Index of the first of the adjacent calls, which have nothing between them on their line.
    chain: usize,
    /// Line of the adjacent calls and the text after them, until it is known whether a sentence continues
    /// there.
    trailing: Option<(Line, String)>,
    /// Set if the current message is in Harmony's final channel.
    in_final: bool,
    /// Set if marks inside strings end calls.
    hasty: bool,
    /// Marks around the current calls.
    section: Section,
}

/// Marks of the structure around calls, and the outcome of the calls.
#[derive(Default)]
struct Section {
    /// Extents of the marks.
    marks: Vec<(Place, usize)>,
    /// Set if one of the calls may run.
    runs: bool,
    /// Set if one of the calls is shown as text.
    shown: bool,
}

/// A call that has begun.
struct Open {
    head: Head,
    scan: Scan,
    /// The line of the call.
    line: Line,
    /// Set if that line is in a message of the final channel.
    in_final: bool,
    /// End of the call, once it is known.
    ended: Option<(usize, Ended)>,
}

/// A call that may run if the reply is complete (R-68), with its extent.
struct Waiting {
    call: Call,
    place: Place,
    end: usize,
    /// Handle for asking about the surrounding text.
    watched: usize,
    /// Set once the call is known to be in a sentence.
    aside: bool,
}

impl Reader {
    pub(super) fn new(options: &Arc<Options>) -> Reader {
        let own: CallOptions = options.of();
        let harmony = own.format == Some(Format::Harmony);
        Reader {
            plain: Plain::new(options, false).follow(),
            options: Arc::clone(options),
            which: Which { format: own.format, start: true, harmony },
            any_format: own.format.is_none(),
            raw: String::new(),
            open: None,
            calls: Vec::new(),
            checks: CHECKS,
            chain: 0,
            trailing: None,
            in_final: false,
            hasty: false,
            section: Section::default(),
        }
    }

    /// Returns the bytes held back; a call is delivered complete and not counted.
    pub(super) fn held(&self) -> usize {
        if self.open.is_some() { 0 } else { self.raw.len() }
    }

    /// Returns the text held back.
    pub(super) fn raw(&self) -> &str {
        &self.raw
    }

    /// Reads the next text of the reply.
    #[inline]
    pub(super) fn text(&mut self, text: &str, out: &mut dyn Output) {
        if self.raw.is_empty() && !self.which.start && scan::find2(b'<', b'[', text.as_bytes()).is_none() {
            return self.pass(text, out);
        }
        self.read(text, out);
    }

    fn read(&mut self, text: &str, out: &mut dyn Output) {
        let mut rest = text;
        while !rest.is_empty() {
            if self.raw.is_empty() {
                let Some(at) = self.mark(rest) else { return self.pass(rest, out) };
                self.pass(&rest[..at], out);
                rest = &rest[at..];
            }
            let had = self.raw.len();
            let room = self.room().saturating_sub(had).min(PIECE);
            let take = rest.floor_char_boundary(room);
            if take == 0 {
                self.too_long(out);
                continue;
            }
            self.raw.push_str(&rest[..take]);
            let used = self.step(false, out);
            let Some(used) = used else {
                rest = &rest[take..];
                // The text that arrived with the mark may exceed the limit of a call.
                let most = self.raw.floor_char_boundary(self.room());
                if self.raw.len() > most {
                    let behind = self.raw.split_off(most);
                    self.too_long(out);
                    self.read(&behind, out);
                }
                continue;
            };
            // Unused text is read again: new text from where it is, earlier text from the copy.
            if used >= had {
                self.raw.clear();
                rest = &rest[used - had..];
            } else {
                rest = &rest[take..];
                let held = std::mem::take(&mut self.raw);
                self.read(&held[used..], out);
            }
        }
    }

    /// Returns the limit of the held-back text.
    fn room(&self) -> usize {
        self.open.as_ref().map_or(HEAD + 1, |open| open.head.body + self.options.limits.value)
    }

    /// Returns the offset at which a mark may begin.
    #[inline]
    fn mark(&mut self, text: &str) -> Option<usize> {
        if self.which.start && self.plain.answers() {
            self.which.start = false;
        }
        match self.which.start {
            true => scan::find3(b'<', b'[', b'{', text.as_bytes()),
            false => scan::find2(b'<', b'[', text.as_bytes()),
        }
    }

    fn pass(&mut self, text: &str, out: &mut dyn Output) {
        if !text.is_empty() {
            self.trails(text);
            if self.chain < self.calls.len() && text.contains(|c| !matches!(c, ' ' | '\t')) {
                self.chain = self.calls.len();
            }
            self.plain.text(text, out);
        }
    }

    /// Skips marks of the surrounding structure after a call. Returns `None` if more of a mark is needed.
    fn behind_marks<'t>(&self, mut text: &'t str, end: bool) -> Option<&'t str> {
        while text.starts_with('<') {
            let which = Which { start: false, ..self.which };
            match begun_at(text, which, self.any_format, end) {
                Begun::Form(head) if head.form.body == Body::Nothing => text = &text[head.body..],
                Begun::Mark | Begun::Part if !end => return None,
                _ => break,
            }
        }
        Some(text)
    }

    /// Adds text after calls, including stray marks, and decides whether their sentence continues.
    fn trails(&mut self, text: &str) {
        let Some((line, behind)) = &mut self.trailing else { return };
        behind.push_str(&text[..text.floor_char_boundary(TRAIL)]);
        let Some(within) = line.goes_on(behind, false) else { return };
        self.trailing = None;
        if within {
            self.chain_aside();
        }
    }

    fn chain_aside(&mut self) {
        let chain = self.chain.min(self.calls.len());
        self.calls[chain..].iter_mut().for_each(|call| call.aside = true);
    }

    /// Examines the held-back text. Returns the bytes used, or `None` if more text is needed.
    fn step(&mut self, end: bool, out: &mut dyn Output) -> Option<usize> {
        if self.open.is_none() {
            let which = Which { start: self.which.start && self.plain.is_blank(), ..self.which };
            let text = |reader: &mut Reader, len: usize, out: &mut dyn Output| {
                let held = std::mem::take(&mut reader.raw);
                reader.pass(&held[..len], out);
                reader.raw = held;
                Some(len)
            };
            let first = self.raw.chars().next().map_or(0, char::len_utf8);
            match begun_at(&self.raw, which, self.any_format, end) {
                Begun::Mark | Begun::Part if !end => {
                    // A mark is not held back where it would have no meaning.
                    return if self.plain.admits() { None } else { text(self, first, out) };
                }
                Begun::No | Begun::Mark | Begun::Part => return text(self, first, out),
                _ if !self.plain.admits() || self.plain.line().is_quoted() => return text(self, first, out),
                Begun::Stray(mark) => {
                    let at = self.plain.place();
                    let message = format!("`{}` begins no call", &self.raw[..mark]);
                    let report = Report::new(rules::CALL_STRAY, at, at.offset + mark, message);
                    out.report(report.repaired("read as text"));
                    self.section.shown = true;
                    return text(self, mark, out);
                }
                Begun::Form(head) => {
                    self.which.harmony |= head.form.format == Format::Harmony;
                    match head.form.body {
                        Body::Nothing => {
                            self.channel(head.body);
                            self.around(&head, out);
                            let mark = &self.raw[..head.body];
                            match mark.ends_with("<|message|>") {
                                true => self.plain.next_message(mark, out),
                                false => self.plain.pass_over(mark, out),
                            }
                            return Some(head.body);
                        }
                        Body::Reasoning => {
                            self.plain.mark(&self.raw[..head.body], marks::HARMONY, out);
                            return Some(head.body);
                        }
                        _ => {}
                    }
                    let scan = Scan::new(head.form, head.body, self.hasty);
                    let in_final = self.in_final || is_final(head.form.format, &self.raw[..head.body]);
                    self.open = Some(Open { head, scan, line: self.plain.line(), in_final, ended: None });
                }
            }
        }
        let open = self.open.as_mut()?;
        let most = open.head.body + self.options.limits.value;
        let (found, ended) = match open.ended {
            Some(ended) => ended,
            None => match open.scan.go_on(&self.raw[..self.raw.floor_char_boundary(most)]) {
                Found::More => return None,
                Found::End(found, ended) => *open.ended.insert((found, ended)),
            },
        };
        // The text after the call on its line decides whether the call is in a sentence.
        let (line, behind) = (open.line, open.scan.behind_mark(found));
        line.goes_on(self.behind_marks(&self.raw[behind..], end)?, end)?;
        Some(self.ends(found, ended, out))
    }

    /// Tracks from marks between messages whether the current message is in the final channel.
    fn channel(&mut self, mark: usize) {
        let mark = &self.raw[..mark];
        self.in_final |= is_final(Format::Harmony, mark);
        self.in_final &= !matches!(mark, "<|end|>" | "<|return|>");
    }

    /// Handles a mark around calls, which is not text. If the calls are shown as text, the mark is reported.
    fn around(&mut self, head: &Head, out: &mut dyn Output) {
        if head.form.format == Format::Harmony {
            return;
        }
        let at = self.plain.place();
        let begins = head.form.open.contains("begin");
        if begins {
            self.section_ends(out);
        }
        self.section.marks.push((at, at.offset + head.body));
        if !begins {
            self.section_ends(out);
        }
    }

    fn section_ends(&mut self, out: &mut dyn Output) {
        let Section { marks, runs, shown } = std::mem::take(&mut self.section);
        if runs || !shown {
            return;
        }
        for (at, end) in marks {
            let report = Report::new(rules::CALL_STRAY, at, end, "the mark stands around no call that runs");
            out.report(report.repaired("left out"));
        }
    }

    /// Ends a call at `end`. Returns the bytes that belong to it.
    fn ends(&mut self, end: usize, ended: Ended, out: &mut dyn Output) -> usize {
        let Some(Open { head, mut scan, line, in_final, .. }) = self.open.take() else { return end };
        let raw = std::mem::take(&mut self.raw);
        let used = scan.behind_mark(end);
        let behind = self.behind_marks(&raw[used..], true).unwrap_or_default();
        let within = line.goes_on(behind, true).unwrap_or_default();
        self.trailing = if within { None } else { Some((line, String::new())) };
        if within {
            self.chain_aside();
        }
        if scan.values.is_empty() {
            scan.values.push(head.body..end);
        }
        let at = self.plain.place();
        let whole = Whole { head: &head, raw: &raw[..used], at, values: &scan.values };
        let mut told = Vec::new();
        let read = match ended {
            // Unclosed values are accepted as arguments if the call itself is closed (R-94).
            Ended::Early if head.form.body == Body::Python || head.form.body.has_values() && used == end => {
                Err((rules::CALL_INCOMPLETE, "the call is not complete".to_owned()))
            }
            _ => whole.calls(&self.options, &mut told),
        };
        let foreign = self.which.format.is_some_and(|format| format != head.form.format);
        let read = match read {
            Ok(_) if foreign => {
                Err((rules::CALL_ASIDE, "the call has another format than the first".to_owned()))
            }
            Ok(_) if in_final => Err((rules::CALL_ASIDE, "the call stands in the final channel".to_owned())),
            Ok(_) if within => Err((rules::CALL_ASIDE, "the call stands in a sentence".to_owned())),
            read => read,
        };
        let bare = head.form.open.is_empty();
        match read {
            // Without a mark of its own it is ordinary JSON or an ordinary list.
            Err(_) if bare => self.plain.verbatim(&raw[..used], out),
            Err(wrong) => {
                let name = named(&head, &raw);
                self.refuse(&head, &raw[..used], wrong, name.as_deref(), out);
            }
            Ok(calls) => {
                self.which.format = Some(head.form.format);
                if ended == Ended::Unmarked {
                    let message = format!("`{}` is missing", head.form.close.last().unwrap_or(&""));
                    let report = Report::new(rules::CALL_UNCLOSED, at, at.offset + used, message);
                    told.push(report.repaired("closed where its arguments end"));
                }
                self.judge(&head, &raw[..used], at, calls, told, out);
            }
        }
        self.raw = raw;
        used
    }

    /// Checks calls against the registered tools. If none may run, they are shown as written and their
    /// repairs are not reported.
    fn judge(
        &mut self,
        head: &Head,
        raw: &str,
        at: Place,
        calls: Vec<WrittenCall>,
        told: Vec<Report>,
        out: &mut dyn Output,
    ) {
        let end = at.offset + raw.len();
        let left = &mut self.checks;
        let mut check = |WrittenCall { call, doubt, bare }: &WrittenCall| {
            called::registered(&call.name, &self.options)?;
            called::certain(&call.name, doubt.as_ref())?;
            match bare {
                true => called::no_arguments(&call.name, &self.options, left).map(drop),
                false => called::check(&call.name, &call.args, &self.options, left),
            }
        };
        let judged: Vec<_> = calls.into_iter().map(|one| (check(&one), one.call)).collect();
        let some = judged.iter().any(|(checked, _)| checked.is_ok());
        for report in told {
            // The intended value is unknown (R-82).
            match report.doubt {
                Some(Doubt::DuplicateKey) => out.report(Report { repair: None, ..report }),
                _ if some => out.report(report),
                _ => {}
            }
        }
        let before = self.calls.len();
        for (checked, call) in judged {
            let Err((fault, message)) = checked else {
                self.calls.push(Waiting { call, place: at, end, watched: 0, aside: false });
                continue;
            };
            out.report(rules::CALLS.report(fault, at, end, message));
            notice(called::REFUSED, Some(&call.name), out);
        }
        self.section.runs |= some;
        self.section.shown |= !some;
        if some {
            self.plain.pass_over(raw, out);
            let watched = self.plain.watch();
            self.calls[before..].iter_mut().for_each(|call| call.watched = watched);
        } else {
            self.show(head, raw, out);
        }
    }

    /// Shows a complete call as text.
    fn show(&mut self, head: &Head, raw: &str, out: &mut dyn Output) {
        // A fence around arguments is not Markdown: its end need not be on a line of its own.
        match raw[..head.body].contains(FENCE) && raw.matches(FENCE).count() == 2 {
            true => self.plain.form(raw, out),
            false => self.plain.verbatim(raw, out),
        }
    }

    /// Shows a rejected call as text and notifies the user.
    fn refuse(
        &mut self,
        head: &Head,
        raw: &str,
        (rule, message): Wrong,
        name: Option<&str>,
        out: &mut dyn Output,
    ) {
        self.section.shown = true;
        let at = self.plain.place();
        out.report(Report::new(rule, at, at.offset + raw.len(), message));
        notice(called::REFUSED, name, out);
        self.show(head, raw, out);
    }

    /// Handles held-back text that has reached its limit.
    fn too_long(&mut self, out: &mut dyn Output) {
        if let Some((end, ended)) = self.open.as_ref().and_then(|open| open.ended) {
            let used = self.ends(end, ended, out);
            let held = std::mem::take(&mut self.raw);
            return self.read(&held[used..], out);
        }
        let early = self.open.as_ref().and_then(|open| open.scan.give_up());
        if let Some((end, ended)) = early {
            return self.ends_early(end, ended, out);
        }
        let raw = std::mem::take(&mut self.raw);
        let Some(open) = self.open.take() else { return self.pass(&raw, out) };
        if open.head.form.open.is_empty() {
            return self.plain.verbatim(&raw, out);
        }
        let most = counted(self.options.limits.value, "byte");
        let message = format!("the call is longer than `limits.value`, {most}");
        let at = self.plain.place();
        let report = Report::new(rules::LIMIT_EXCEEDED, at, at.offset + raw.len(), message);
        self.section.shown = true;
        out.report(report.repaired("read as text"));
        let name = named(&open.head, &raw);
        notice(called::REFUSED, name.as_deref(), out);
        self.plain.verbatim(&raw, out);
    }

    /// Ends the call at a mark inside a string; the text after it is read again.
    fn ends_early(&mut self, end: usize, ended: Ended, out: &mut dyn Output) {
        self.hasty = true;
        let used = self.ends(end, ended, out);
        let held = std::mem::take(&mut self.raw);
        self.read(&held[used..], out);
    }

    pub(super) fn finish(&mut self, ending: Ending, out: &mut dyn Output) {
        // Each iteration uses some of the held-back text.
        while !self.raw.is_empty() {
            if self.open.as_ref().is_some_and(|open| open.ended.is_some()) {
                self.too_long(out);
            } else if let Some(open) = &self.open {
                match open.scan.finish(&self.raw) {
                    Some((end, ended)) => self.ends_early(end, ended, out),
                    None => self.unclosed(ending.cut, out),
                }
            } else if ending.cut && self.begins() {
                let raw = std::mem::take(&mut self.raw);
                self.cut_within(&raw, None, out);
            } else if let Some(used) = self.step(true, out) {
                let held = std::mem::take(&mut self.raw);
                self.read(&held[used..], out);
            }
        }
        self.section_ends(out);
        let calls = std::mem::take(&mut self.calls);
        let acting = calls.iter().filter(|call| !call.aside).map(|call| (call.place.offset, call.watched));
        self.plain.end(ending, &acting.collect::<Vec<_>>(), out);
        for Waiting { call, place, end, watched, aside } in calls {
            if aside || self.plain.is_text(place.offset, watched) {
                let message =
                    format!("`{}` stands in reasoning, code or a sentence; it is not called", call.name);
                out.report(Report::new(rules::CALL_ASIDE, place, end, message));
                notice(called::REFUSED, Some(&call.name), out);
            } else if ending.cut {
                let message = format!("the reply was cut; `{}` is not called", call.name);
                out.report(Report::new(rules::CALL_CUT, place, end, message));
                notice(called::CUT, Some(&call.name), out);
            } else {
                out.act(Action::Call(call));
            }
        }
    }

    /// Handles a reply that ends inside a call: nothing of it runs.
    fn unclosed(&mut self, cut: bool, out: &mut dyn Output) {
        let raw = std::mem::take(&mut self.raw);
        let Some(open) = self.open.take() else { return };
        if open.head.form.open.is_empty() {
            return self.plain.verbatim(&raw, out);
        }
        let name = named(&open.head, &raw);
        if cut {
            return self.cut_within(&raw, name.as_deref(), out);
        }
        let at = self.plain.place();
        let report =
            Report::new(rules::CALL_INCOMPLETE, at, at.offset + raw.len(), "the reply ends within a call");
        self.section.shown = true;
        out.report(report.repaired("nothing of it runs; shown as text"));
        notice(called::REFUSED, name.as_deref(), out);
        self.plain.verbatim(&raw, out);
    }

    fn cut_within(&mut self, raw: &str, name: Option<&str>, out: &mut dyn Output) {
        let at = self.plain.place();
        let report =
            Report::new(rules::CALL_CUT, at, at.offset + raw.len(), "the reply was cut within a call");
        self.section.shown = true;
        out.report(report.repaired("nothing of it runs; shown as text"));
        notice(called::CUT, name, out);
        self.plain.verbatim(raw, out);
    }

    /// Returns true if the held-back text is a mark that may begin a call.
    fn begins(&self) -> bool {
        let which = Which { start: false, ..self.which };
        matches!(begun_at(&self.raw, which, self.any_format, false), Begun::Part) && self.plain.admits()
    }
}

/// Returns true if a Harmony header selects the final channel.
fn is_final(format: Format, header: &str) -> bool {
    format == Format::Harmony && header.contains("<|channel|>final")
}

/// Returns the name before the arguments of a call.
fn named(head: &Head, raw: &str) -> Option<String> {
    let written = &raw[head.name.clone()?];
    Some(formats::name(written, head.form.format, head.form.body).to_owned())
}

fn notice(code: &'static str, name: Option<&str>, out: &mut dyn Output) {
    let name = name.filter(|name| !name.is_empty()).map(|name| clip(name, 60).into_owned());
    out.act(Action::Notice(code, name));
}
