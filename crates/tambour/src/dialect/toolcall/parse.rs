//! The reply as it comes: text goes on to the reader of plain text at once, what may be a mark waits until it is known, and a call
//! until it has ended.

use std::sync::Arc;

use super::formats::{self, Body, Format};
use super::head::{Begun, HEAD, Head, Which, begun};
use super::options::CallOptions;
use super::read::{Whole, Wrong};
use super::rules;
use super::scan::{Ended, Found, Scan};
use crate::dialect::called::{self, Fault};
use crate::dialect::plain::Plain;
use crate::dialect::{Action, Call, Dialect as _, Ending, Output};
use crate::finding::{Report, clip};
use crate::lex::marks;
use crate::lex::scan;
use crate::options::Options;
use crate::span::Place;

/// Bytes that are looked at together.
const PIECE: usize = 256;

pub(super) struct Reader {
    pub(super) plain: Plain,
    options: Arc<Options>,
    /// Which forms count.
    which: Which,
    /// What waits: a mark, or a call.
    raw: String,
    open: Option<Open>,
    calls: Vec<Waiting>,
    /// Whether marks within strings end calls.
    hasty: bool,
}

/// A form that is open.
struct Open {
    head: Head,
    scan: Scan,
}

/// A call that may run when the reply has ended by itself, and where it stands.
struct Waiting {
    call: Call,
    place: Place,
    end: usize,
}

impl Reader {
    pub(super) fn new(options: &Arc<Options>) -> Reader {
        let own: CallOptions = options.of();
        let harmony = own.format == Some(Format::Harmony);
        Reader {
            plain: Plain::new(options, false),
            options: Arc::clone(options),
            which: Which { format: own.format, start: true, harmony },
            raw: String::new(),
            open: None,
            calls: Vec::new(),
            hasty: false,
        }
    }

    /// Bytes that wait to be known; a call is delivered whole.
    pub(super) fn held(&self) -> usize {
        if self.open.is_some() { 0 } else { self.raw.len() }
    }

    /// What waits.
    pub(super) fn raw(&self) -> &str {
        &self.raw
    }

    /// The next text of the reply.
    #[inline]
    pub(super) fn text(&mut self, text: &str, out: &mut dyn Output) {
        if self.raw.is_empty() && !self.which.start && scan::find2(b'<', b'[', text.as_bytes()).is_none() {
            return self.plain.text(text, out);
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
                // What came together with the mark may be more than a call may have.
                let most = self.raw.floor_char_boundary(self.room());
                if self.raw.len() > most {
                    let behind = self.raw.split_off(most);
                    self.too_long(out);
                    self.read(&behind, out);
                }
                continue;
            };
            // What was not used is read again: what has just come from where it is, what came before from here.
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

    /// Most bytes of what waits.
    fn room(&self) -> usize {
        self.open.as_ref().map_or(HEAD + 1, |open| open.head.body + self.options.limits.value)
    }

    /// Where a mark may begin in text.
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
            self.plain.text(text, out);
        }
    }

    /// Looks at what waits. How many bytes of it were used; `None` while more is to come.
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
            match begun(&self.raw, which, end) {
                Begun::Mark | Begun::Part if !end => {
                    // Where it would mean nothing it need not wait.
                    return if self.plain.admits() { None } else { text(self, first, out) };
                }
                Begun::No | Begun::Mark | Begun::Part => return text(self, first, out),
                _ if !self.plain.admits() => return text(self, first, out),
                Begun::Stray(mark) => {
                    let at = self.plain.place();
                    let message = format!("`{}` begins no call", &self.raw[..mark]);
                    let report = Report::new(rules::CALL_STRAY, at, at.offset + mark, message);
                    out.report(report.repaired("read as text"));
                    return text(self, mark, out);
                }
                Begun::Form(head) => {
                    self.which.harmony |= head.form.format == Format::Harmony;
                    match head.form.body {
                        Body::Nothing => {
                            self.plain.pass_over(&self.raw[..head.body], out);
                            return Some(head.body);
                        }
                        Body::Reasoning => {
                            self.plain.mark(&self.raw[..head.body], marks::HARMONY, out);
                            return Some(head.body);
                        }
                        _ => {}
                    }
                    let scan = Scan::new(head.form, head.body, self.hasty);
                    self.open = Some(Open { head, scan });
                }
            }
        }
        let open = self.open.as_mut()?;
        let most = open.head.body + self.options.limits.value;
        let (found, ended) = match open.scan.go_on(&self.raw[..self.raw.floor_char_boundary(most)]) {
            Found::More => return None,
            Found::End(found, ended) => (found, ended),
        };
        Some(self.ends(found, ended, out))
    }

    /// A form ends before `end`. Gives the bytes that belong to it.
    fn ends(&mut self, end: usize, ended: Ended, out: &mut dyn Output) -> usize {
        let Some(Open { head, mut scan }) = self.open.take() else { return end };
        let raw = std::mem::take(&mut self.raw);
        let used = scan.behind_mark(end);
        if scan.values.is_empty() {
            scan.values.push(head.body..end);
        }
        let at = self.plain.place();
        let whole = Whole { head: &head, raw: &raw[..used], at, values: &scan.values };
        let mut told = Vec::new();
        let read = match ended {
            Ended::Early if matches!(head.form.body, Body::Python | Body::Parameters | Body::Pairs) => {
                Err((rules::CALL_INCOMPLETE, "the call is not complete".to_owned()))
            }
            _ => whole.calls(&self.options, &mut told),
        };
        let bare = head.form.open.is_empty();
        match read {
            // Without a mark of its own it is JSON, or a list, like any other.
            Err(_) if bare => self.plain.verbatim(&raw[..used], out),
            Err(wrong) => {
                let name = named(&head, &raw);
                self.refuse(&raw[..used], wrong, name.as_deref(), out);
            }
            Ok(calls) => {
                if self.which.format.is_none() {
                    self.which.format = Some(head.form.format);
                }
                if ended == Ended::Unmarked {
                    let message = format!("`{}` is missing", head.form.close.last().unwrap_or(&""));
                    let report = Report::new(rules::CALL_UNCLOSED, at, at.offset + used, message);
                    told.push(report.repaired("closed where its arguments end"));
                }
                self.judge(&raw[..used], at, calls, told, out);
            }
        }
        self.raw = raw;
        used
    }

    /// Holds calls against the registered tools. If none of them may run, they are text as it was written, and what was mended in
    /// them is not told.
    fn judge(&mut self, raw: &str, at: Place, calls: Vec<Call>, told: Vec<Report>, out: &mut dyn Output) {
        let end = at.offset + raw.len();
        let check = |call: &Call| called::check(&call.name, &call.args, &self.options);
        let judged: Vec<_> = calls.into_iter().map(|call| (check(&call), call)).collect();
        let some = judged.iter().any(|(checked, _)| checked.is_ok());
        if some {
            told.into_iter().for_each(|report| out.report(report));
        }
        for (checked, call) in judged {
            let Err((fault, message)) = checked else {
                self.calls.push(Waiting { call, place: at, end });
                continue;
            };
            let rule = match fault {
                Fault::Unknown => rules::TOOL_UNKNOWN,
                Fault::Forbidden => rules::TOOL_FORBIDDEN,
                Fault::Arguments => rules::ARGS_INVALID,
            };
            out.report(Report::new(rule, at, end, message));
            notice(called::REFUSED, Some(&call.name), out);
        }
        if some {
            self.plain.pass_over(raw, out);
        } else {
            self.plain.verbatim(raw, out);
        }
    }

    /// What is no call is text, and the user is told.
    fn refuse(&mut self, raw: &str, (rule, message): Wrong, name: Option<&str>, out: &mut dyn Output) {
        let at = self.plain.place();
        out.report(Report::new(rule, at, at.offset + raw.len(), message));
        notice(called::REFUSED, name, out);
        self.plain.verbatim(raw, out);
    }

    /// What waits has become longer than it may be.
    fn too_long(&mut self, out: &mut dyn Output) {
        let early = self.open.as_ref().and_then(|open| open.scan.give_up());
        if let Some((end, ended)) = early {
            return self.ends_early(end, ended, out);
        }
        let raw = std::mem::take(&mut self.raw);
        let Some(open) = self.open.take() else { return self.pass(&raw, out) };
        if open.head.form.open.is_empty() {
            return self.plain.verbatim(&raw, out);
        }
        let message = format!("the call is longer than `limits.value`, {} bytes", self.options.limits.value);
        let at = self.plain.place();
        let report = Report::new(rules::LIMIT_EXCEEDED, at, at.offset + raw.len(), message);
        out.report(report.repaired("read as text"));
        let name = named(&open.head, &raw);
        notice(called::REFUSED, name.as_deref(), out);
        self.plain.verbatim(&raw, out);
    }

    /// Only a mark within a string has ended the call: what stands behind it is read again.
    fn ends_early(&mut self, end: usize, ended: Ended, out: &mut dyn Output) {
        self.hasty = true;
        let used = self.ends(end, ended, out);
        let held = std::mem::take(&mut self.raw);
        self.read(&held[used..], out);
    }

    pub(super) fn finish(&mut self, ending: Ending, out: &mut dyn Output) {
        // Each turn uses some of what waits.
        while !self.raw.is_empty() {
            if let Some(open) = &self.open {
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
        let acts = !self.calls.is_empty();
        self.plain.end(ending, acts, out);
        for Waiting { call, place, end } in std::mem::take(&mut self.calls) {
            if ending.cut {
                let message = format!("the reply was cut; `{}` is not called", call.name);
                out.report(Report::new(rules::CALL_CUT, place, end, message));
                notice(called::CUT, Some(&call.name), out);
            } else {
                out.act(Action::Call(call));
            }
        }
    }

    /// The reply ends within a call: nothing of it runs.
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
        out.report(report.repaired("nothing of it runs; shown as text"));
        notice(called::REFUSED, name.as_deref(), out);
        self.plain.verbatim(&raw, out);
    }

    fn cut_within(&mut self, raw: &str, name: Option<&str>, out: &mut dyn Output) {
        let at = self.plain.place();
        let report =
            Report::new(rules::CALL_CUT, at, at.offset + raw.len(), "the reply was cut within a call");
        out.report(report.repaired("nothing of it runs; shown as text"));
        notice(called::CUT, name, out);
        self.plain.verbatim(raw, out);
    }

    /// Whether what waits is a mark that a call may stand behind.
    fn begins(&self) -> bool {
        let which = Which { start: false, ..self.which };
        matches!(begun(&self.raw, which, false), Begun::Part) && self.plain.admits()
    }
}

/// The name that stands before the arguments of a call.
fn named(head: &Head, raw: &str) -> Option<String> {
    let written = &raw[head.name.clone()?];
    Some(formats::name(written, head.form.format, head.form.body).to_owned())
}

fn notice(code: &'static str, name: Option<&str>, out: &mut dyn Output) {
    let name = name.filter(|name| !name.is_empty()).map(|name| clip(name, 60).into_owned());
    out.act(Action::Notice(code, name));
}
