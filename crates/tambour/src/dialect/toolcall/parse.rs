//! Splitting of the reply as it arrives: text is passed at once to the plain-text reader, a possible mark is
//! held back until more text decides, and a call until it has ended.

use std::sync::Arc;

use super::formats::{self, CallBody, CallFormat};
use super::head::{CallHead, CallStart, FormFilter, MAX_HEAD, read_call_start};
use super::read::{CallRejection, CompleteCallText, WrittenCall};
use super::scan::{CallEnding, CallScanner, ScanResult};
use super::{CallOptions, rules};
use crate::dialect::call_check;
use crate::dialect::plain::PlainReader;
use crate::dialect::{CallIntent, Dialect as _, IntentSink, MAX_EXCERPT_CHARS, ReplyAction, ReplyEnding};
use crate::finding::{Doubt, FindingReport, clip};
use crate::lex::marks;
use crate::lex::prose::ProseLine;
use crate::lex::scan;
use crate::options::Options;
use crate::span::{Extent, Place};
use crate::texts::format_count;
use crate::tool::MAX_REPLY_CHECK_STEPS;

/// Maximum length in bytes of a piece of text that is added to the held text at once.
const MAX_PIECE: usize = 256;

/// Code fence around the arguments in some forms.
const FENCE: &str = "```";

/// Maximum length in bytes of the part of each text after a call that is searched for the continuation of a
/// sentence.
const MAX_TEXT_AFTER: usize = 128;

/// Splits one reply into text, reasoning and calls.
pub(super) struct ToolcallReader {
    /// Reader of everything but calls.
    pub(super) plain: PlainReader,
    options: Arc<Options>,
    /// Recognized forms.
    forms: FormFilter,
    /// Set if forms of all formats are recognized. Calls in another format than the first call's are refused.
    accepts_any_format: bool,
    /// Text held back: a possible mark, or a call.
    held_text: String,
    /// Call that has begun at the start of `held_text`.
    open_call: Option<OpenCall>,
    /// Calls that may run at the end of the reply.
    held_calls: Vec<HeldCall>,
    /// Steps left for checks of arguments.
    steps_left: u64,
    /// Index in `held_calls` of the first call of the current chain: calls on one line with only blanks
    /// between them.
    chain_start: usize,
    /// Line of the chain and the text after it, until it is known whether a sentence continues there.
    text_after: Option<(ProseLine, String)>,
    /// Set if the current message is in Harmony's final channel, that of answers, where nothing is a call.
    is_in_final: bool,
    /// Set once a call has ended at a mark inside a string or value: from then on, such marks end calls at
    /// once.
    is_hasty: bool,
    /// Marks around the current calls.
    section: CallSection,
}

/// Marks of the structure around calls, and the outcome of the calls between them.
#[derive(Default)]
struct CallSection {
    /// Extents of the marks.
    marks: Vec<Extent>,
    /// Set if one of the calls may run.
    has_runnable: bool,
    /// Set if one of the calls is shown as text.
    has_shown: bool,
}

/// A call that has begun.
struct OpenCall {
    head: CallHead,
    scanner: CallScanner,
    /// Line of the call, up to the call.
    line: ProseLine,
    /// Set if that line is in a message of the final channel.
    is_in_final: bool,
    /// End of the call, once it is known.
    end: Option<(usize, CallEnding)>,
}

/// A call that may run if the reply is complete (R-68), with its extent.
struct HeldCall {
    call: CallIntent,
    place: Place,
    end: usize,
    /// Number under which the plain-text reader watches the place of the call
    /// ([`PlainReader::watch_skipped`]).
    watch_id: usize,
    /// Set once the call is known to be in a sentence.
    is_in_sentence: bool,
}

impl ToolcallReader {
    /// Creates a reader at the start of a reply.
    pub(super) fn new(options: &Arc<Options>) -> ToolcallReader {
        let section: CallOptions = options.section();
        let has_harmony = section.format == Some(CallFormat::Harmony);
        let is_detected = false;
        ToolcallReader {
            plain: PlainReader::new(options, is_detected).with_prose(),
            options: Arc::clone(options),
            forms: FormFilter { format: section.format, is_reply_start: true, has_harmony },
            accepts_any_format: section.format.is_none(),
            held_text: String::new(),
            open_call: None,
            held_calls: Vec::new(),
            steps_left: MAX_REPLY_CHECK_STEPS,
            chain_start: 0,
            text_after: None,
            is_in_final: false,
            is_hasty: false,
            section: CallSection::default(),
        }
    }

    /// Returns the number of bytes held back; a call is not counted, since it is delivered only when
    /// complete.
    pub(super) fn held_bytes(&self) -> usize {
        if self.open_call.is_some() { 0 } else { self.held_text.len() }
    }

    /// Returns the text held back.
    pub(super) fn held_text(&self) -> &str {
        &self.held_text
    }

    /// Reads the next text of the reply.
    #[inline]
    pub(super) fn push_text(&mut self, text: &str, out: &mut dyn IntentSink) {
        if self.held_text.is_empty()
            && !self.forms.is_reply_start
            && scan::find2(b'<', b'[', text.as_bytes()).is_none()
        {
            return self.pass_text(text, out);
        }
        self.read_text(text, out);
    }

    /// Reads text that may contain marks, or continues held text.
    fn read_text(&mut self, text: &str, out: &mut dyn IntentSink) {
        let mut rest = text;
        while !rest.is_empty() {
            if self.held_text.is_empty() {
                let Some(at) = self.find_mark(rest) else { return self.pass_text(rest, out) };
                self.pass_text(&rest[..at], out);
                rest = &rest[at..];
            }
            let held_len = self.held_text.len();
            let room = self.hold_limit().saturating_sub(held_len).min(MAX_PIECE);
            let take_len = rest.floor_char_boundary(room);
            if take_len == 0 {
                self.handle_limit(out);
                continue;
            }
            self.held_text.push_str(&rest[..take_len]);
            let is_end = false;
            let Some(read_len) = self.read_held(is_end, out) else {
                rest = &rest[take_len..];
                // The text that arrived with the mark may exceed the limit of a call.
                let max_len = self.held_text.floor_char_boundary(self.hold_limit());
                if self.held_text.len() > max_len {
                    let overflow = self.held_text.split_off(max_len);
                    self.handle_limit(out);
                    self.read_text(&overflow, out);
                }
                continue;
            };
            // The part that was not used is read again.
            if read_len >= held_len {
                self.held_text.clear();
                rest = &rest[read_len - held_len..];
            } else {
                rest = &rest[take_len..];
                let held_text = std::mem::take(&mut self.held_text);
                self.read_text(&held_text[read_len..], out);
            }
        }
    }

    /// Returns the maximum length of the held text in bytes.
    fn hold_limit(&self) -> usize {
        self.open_call
            .as_ref()
            .map_or(MAX_HEAD + 1, |open_call| open_call.head.body_start + self.options.limits.value)
    }

    /// Returns the offset at which a mark may begin.
    #[inline]
    fn find_mark(&mut self, text: &str) -> Option<usize> {
        if self.forms.is_reply_start && self.plain.has_answer() {
            self.forms.is_reply_start = false;
        }
        match self.forms.is_reply_start {
            true => scan::find3(b'<', b'[', b'{', text.as_bytes()),
            false => scan::find2(b'<', b'[', text.as_bytes()),
        }
    }

    /// Passes text to the plain-text reader.
    fn pass_text(&mut self, text: &str, out: &mut dyn IntentSink) {
        if !text.is_empty() {
            self.push_text_after(text);
            if self.chain_start < self.held_calls.len() && text.contains(|c| !matches!(c, ' ' | '\t')) {
                self.chain_start = self.held_calls.len();
            }
            self.plain.push_text(text, out);
        }
    }

    /// Returns `text`, which follows a call, without the marks of the structure at its start; `None` if more
    /// of a mark is needed.
    fn skip_marks<'t>(&self, mut text: &'t str, is_end: bool) -> Option<&'t str> {
        while text.starts_with('<') {
            let filter = FormFilter { is_reply_start: false, ..self.forms };
            match read_call_start(text, filter, self.accepts_any_format, is_end) {
                CallStart::Form(head) if head.form.body == CallBody::NoArguments => {
                    text = &text[head.body_start..]
                }
                CallStart::PartialMark | CallStart::PartialHead if !is_end => return None,
                _ => break,
            }
        }
        Some(text)
    }

    /// Adds text after calls, including stray marks, and decides whether it continues a sentence around them.
    fn push_text_after(&mut self, text: &str) {
        let Some((line, text_after)) = &mut self.text_after else { return };
        text_after.push_str(&text[..text.floor_char_boundary(MAX_TEXT_AFTER)]);
        let is_end = false;
        let Some(is_in_sentence) = line.continues_with(text_after, is_end) else { return };
        self.text_after = None;
        if is_in_sentence {
            self.mark_chain_in_sentence();
        }
    }

    /// Records that the calls of the current chain are in a sentence.
    fn mark_chain_in_sentence(&mut self) {
        let chain_start = self.chain_start.min(self.held_calls.len());
        self.held_calls[chain_start..].iter_mut().for_each(|call| call.is_in_sentence = true);
    }

    /// Examines the held text. Returns the number of bytes used, or `None` if more text is needed.
    fn read_held(&mut self, is_end: bool, out: &mut dyn IntentSink) -> Option<usize> {
        if self.open_call.is_none() {
            let filter = FormFilter {
                is_reply_start: self.forms.is_reply_start && self.plain.is_blank(),
                ..self.forms
            };
            let use_as_text = |reader: &mut ToolcallReader, len: usize, out: &mut dyn IntentSink| {
                let held_text = std::mem::take(&mut reader.held_text);
                reader.pass_text(&held_text[..len], out);
                reader.held_text = held_text;
                Some(len)
            };
            let first_len = self.held_text.chars().next().map_or(0, char::len_utf8);
            match read_call_start(&self.held_text, filter, self.accepts_any_format, is_end) {
                CallStart::PartialMark | CallStart::PartialHead if !is_end => {
                    // A mark is not held back where it would have no meaning.
                    return if self.plain.admits_mark() { None } else { use_as_text(self, first_len, out) };
                }
                CallStart::NoMark | CallStart::PartialMark | CallStart::PartialHead => {
                    return use_as_text(self, first_len, out);
                }
                _ if !self.plain.admits_mark() || self.plain.current_line().is_quoted() => {
                    return use_as_text(self, first_len, out);
                }
                CallStart::StrayMark(mark_len) => {
                    let at = self.plain.place();
                    let message = format!("`{}` does not begin a call", &self.held_text[..mark_len]);
                    let report = FindingReport::new(rules::CALL_STRAY, at, at.offset + mark_len, message);
                    out.report(report.with_repair("read as text"));
                    self.section.has_shown = true;
                    return use_as_text(self, mark_len, out);
                }
                CallStart::Form(head) => {
                    self.forms.has_harmony |= head.form.format == CallFormat::Harmony;
                    match head.form.body {
                        CallBody::NoArguments => {
                            self.track_channel(head.body_start);
                            self.push_structure_mark(&head, out);
                            let mark = &self.held_text[..head.body_start];
                            match mark.ends_with("<|message|>") {
                                true => self.plain.begin_message(mark, out),
                                false => self.plain.skip(mark, out),
                            }
                            return Some(head.body_start);
                        }
                        CallBody::Reasoning => {
                            self.plain.push_mark(
                                &self.held_text[..head.body_start],
                                marks::HARMONY_MARK,
                                out,
                            );
                            return Some(head.body_start);
                        }
                        _ => {}
                    }
                    let scanner = CallScanner::new(head.form, head.body_start, self.is_hasty);
                    let is_in_final = self.is_in_final
                        || is_final_channel(head.form.format, &self.held_text[..head.body_start]);
                    self.open_call = Some(OpenCall {
                        head,
                        scanner,
                        line: self.plain.current_line(),
                        is_in_final,
                        end: None,
                    });
                }
            }
        }
        let open_call = self.open_call.as_mut()?;
        let limit = open_call.head.body_start + self.options.limits.value;
        let max_len = self.held_text.floor_char_boundary(limit);
        let (end, ending) = match open_call.end {
            Some(end) => end,
            None => match open_call.scanner.scan(&self.held_text[..max_len]) {
                ScanResult::NeedMore => return None,
                ScanResult::End(end, ending) => *open_call.end.insert((end, ending)),
            },
        };
        // The text after the call on its line decides whether the call is in a sentence: more text is needed
        // until that is known.
        let (line, mark_end) = (open_call.line, open_call.scanner.mark_end(end));
        line.continues_with(self.skip_marks(&self.held_text[mark_end..], is_end)?, is_end)?;
        Some(self.end_call(end, ending, out))
    }

    /// Tracks whether the current message is in the final channel, from a mark between messages. The mark is
    /// the first `mark_len` bytes of the held text.
    fn track_channel(&mut self, mark_len: usize) {
        let mark = &self.held_text[..mark_len];
        self.is_in_final |= is_final_channel(CallFormat::Harmony, mark);
        self.is_in_final &= !matches!(mark, "<|end|>" | "<|return|>");
    }

    /// Handles a mark around calls, which is left out. It is reported if the calls are shown as text.
    fn push_structure_mark(&mut self, head: &CallHead, out: &mut dyn IntentSink) {
        if head.form.format == CallFormat::Harmony {
            return;
        }
        let at = self.plain.place();
        // Only the marks that begin a section of calls contain this word.
        let is_opening = head.form.open_mark.contains("begin");
        if is_opening {
            self.end_section(out);
        }
        self.section.marks.push(Extent { place: at, end: at.offset + head.body_start });
        if !is_opening {
            self.end_section(out);
        }
    }

    /// Ends the section of calls; reports its marks if no call may run and one is shown.
    fn end_section(&mut self, out: &mut dyn IntentSink) {
        let CallSection { marks, has_runnable, has_shown } = std::mem::take(&mut self.section);
        if has_runnable || !has_shown {
            return;
        }
        for Extent { place: at, end } in marks {
            let report =
                FindingReport::new(rules::CALL_STRAY, at, end, "the mark does not enclose a call that runs");
            out.report(report.with_repair("left out"));
        }
    }

    /// Ends the open call at `end`. Returns the number of bytes of held text that belong to it.
    fn end_call(&mut self, end: usize, ending: CallEnding, out: &mut dyn IntentSink) -> usize {
        let Some(OpenCall { head, mut scanner, line, is_in_final, .. }) = self.open_call.take() else {
            return end;
        };
        let raw = std::mem::take(&mut self.held_text);
        let used_len = scanner.mark_end(end);
        let is_end = true;
        let text_after = self.skip_marks(&raw[used_len..], is_end).unwrap_or_default();
        let is_in_sentence = line.continues_with(text_after, is_end).unwrap_or_default();
        self.text_after = if is_in_sentence { None } else { Some((line, String::new())) };
        if is_in_sentence {
            self.mark_chain_in_sentence();
        }
        if scanner.arguments.is_empty() {
            scanner.arguments.push(head.body_start..end);
        }
        let place = self.plain.place();
        let complete_call = CompleteCallText {
            head: &head,
            raw: &raw[..used_len],
            place,
            argument_ranges: &scanner.arguments,
        };
        let mut reports = Vec::new();
        let calls = match ending {
            // Unclosed values are accepted as arguments if the call itself has its closing mark (R-94).
            CallEnding::Incomplete
                if head.form.body == CallBody::Python || head.form.body.has_values() && used_len == end =>
            {
                Err((rules::CALL_INCOMPLETE, "the call is not complete".to_owned()))
            }
            _ => complete_call.read_calls(&self.options, &mut reports),
        };
        let is_foreign = self.forms.format.is_some_and(|format| format != head.form.format);
        let calls = match calls {
            Ok(_) if is_foreign => {
                Err((rules::CALL_ASIDE, "the call has a different format than the first".to_owned()))
            }
            Ok(_) if is_in_final => Err((rules::CALL_ASIDE, "the call is in the final channel".to_owned())),
            Ok(_) if is_in_sentence => Err((rules::CALL_ASIDE, "the call is in a sentence".to_owned())),
            calls => calls,
        };
        let has_no_mark = head.form.open_mark.is_empty();
        match calls {
            // Without an opening mark, text that is not a call is ordinary JSON or an ordinary list.
            Err(_) if has_no_mark => self.plain.push_verbatim(&raw[..used_len], out),
            Err(rejection) => {
                let name = head_name(&head, &raw);
                self.refuse_call(&head, &raw[..used_len], rejection, name.as_deref(), out);
            }
            Ok(calls) => {
                self.forms.format = Some(head.form.format);
                if ending == CallEnding::Unclosed {
                    let message = format!("`{}` is missing", head.form.close_marks.last().unwrap_or(&""));
                    let report =
                        FindingReport::new(rules::CALL_UNCLOSED, place, place.offset + used_len, message);
                    reports.push(report.with_repair("closed where its arguments end"));
                }
                self.check_calls(&head, &raw[..used_len], place, calls, reports, out);
            }
        }
        self.held_text = raw;
        used_len
    }

    /// Checks calls against the registered tools. If none may run, they are shown as written and their
    /// repairs are not reported.
    fn check_calls(
        &mut self,
        head: &CallHead,
        raw: &str,
        at: Place,
        calls: Vec<WrittenCall>,
        reports: Vec<FindingReport>,
        out: &mut dyn IntentSink,
    ) {
        let end = at.offset + raw.len();
        let steps_left = &mut self.steps_left;
        let mut check = |WrittenCall { call, doubt, is_without_args }: &WrittenCall| {
            call_check::require_tools(&call.name, &self.options)?;
            call_check::check_doubt(&call.name, doubt.as_ref())?;
            match is_without_args {
                true => call_check::default_arguments(&call.name, &self.options, steps_left).map(drop),
                false => call_check::check_call(&call.name, &call.args, &self.options, steps_left),
            }
        };
        let checked_calls: Vec<_> =
            calls.into_iter().map(|written_call| (check(&written_call), written_call.call)).collect();
        let has_valid = checked_calls.iter().any(|(result, _)| result.is_ok());
        for report in reports {
            // The intended value of a duplicate key is unknown, so nothing is repaired (R-82).
            match report.doubt {
                Some(Doubt::DuplicateKey) => out.report(FindingReport { repair: None, ..report }),
                _ if has_valid => out.report(report),
                _ => {}
            }
        }
        let first_index = self.held_calls.len();
        for (result, call) in checked_calls {
            let Err((fault, message)) = result else {
                self.held_calls.push(HeldCall {
                    call,
                    place: at,
                    end,
                    // Set once the call has been skipped.
                    watch_id: 0,
                    is_in_sentence: false,
                });
                continue;
            };
            out.report(rules::CALLS.report(fault, at, end, message));
            emit_notice(call_check::REFUSED_CODE, Some(&call.name), out);
        }
        self.section.has_runnable |= has_valid;
        self.section.has_shown |= !has_valid;
        if has_valid {
            self.plain.skip(raw, out);
            let watch_id = self.plain.watch_skipped();
            self.held_calls[first_index..].iter_mut().for_each(|call| call.watch_id = watch_id);
        } else {
            self.show_call(head, raw, out);
        }
    }

    /// Shows a complete call as text.
    fn show_call(&mut self, head: &CallHead, raw: &str, out: &mut dyn IntentSink) {
        // A fence around arguments is not Markdown: its end need not be alone on its line.
        match raw[..head.body_start].contains(FENCE) && raw.matches(FENCE).count() == 2 {
            true => self.plain.push_call_form(raw, out),
            false => self.plain.push_verbatim(raw, out),
        }
    }

    /// Shows a rejected call as text and notifies the user.
    fn refuse_call(
        &mut self,
        head: &CallHead,
        raw: &str,
        (rule, message): CallRejection,
        name: Option<&str>,
        out: &mut dyn IntentSink,
    ) {
        self.section.has_shown = true;
        let at = self.plain.place();
        out.report(FindingReport::new(rule, at, at.offset + raw.len(), message));
        emit_notice(call_check::REFUSED_CODE, name, out);
        self.show_call(head, raw, out);
    }

    /// Handles held text that has reached its limit, or a call whose end is known at the end of the reply.
    fn handle_limit(&mut self, out: &mut dyn IntentSink) {
        if let Some((end, ending)) = self.open_call.as_ref().and_then(|open_call| open_call.end) {
            let used_len = self.end_call(end, ending, out);
            let held_text = std::mem::take(&mut self.held_text);
            return self.read_text(&held_text[used_len..], out);
        }
        let early_end = self.open_call.as_ref().and_then(|open_call| open_call.scanner.fallback_end());
        if let Some((end, ending)) = early_end {
            return self.end_call_early(end, ending, out);
        }
        let raw = std::mem::take(&mut self.held_text);
        let Some(open_call) = self.open_call.take() else { return self.pass_text(&raw, out) };
        if open_call.head.form.open_mark.is_empty() {
            return self.plain.push_verbatim(&raw, out);
        }
        let limit = format_count(self.options.limits.value, "byte");
        let message = format!("the call is longer than `limits.value`, {limit}");
        let at = self.plain.place();
        let report = FindingReport::new(rules::LIMIT_EXCEEDED, at, at.offset + raw.len(), message);
        self.section.has_shown = true;
        out.report(report.with_repair("read as text"));
        let name = head_name(&open_call.head, &raw);
        emit_notice(call_check::REFUSED_CODE, name.as_deref(), out);
        self.plain.push_verbatim(&raw, out);
    }

    /// Ends the call at a mark inside a string or value; the text after it is read again.
    fn end_call_early(&mut self, end: usize, ending: CallEnding, out: &mut dyn IntentSink) {
        self.is_hasty = true;
        let used_len = self.end_call(end, ending, out);
        let held_text = std::mem::take(&mut self.held_text);
        self.read_text(&held_text[used_len..], out);
    }

    /// Ends the reply. The held calls run, unless the reply is truncated or they are in reasoning, code or a
    /// sentence.
    pub(super) fn finish(&mut self, ending: ReplyEnding, out: &mut dyn IntentSink) {
        let is_end = true;
        // Each iteration uses some of the held-back text.
        while !self.held_text.is_empty() {
            if self.open_call.as_ref().is_some_and(|open_call| open_call.end.is_some()) {
                self.handle_limit(out);
            } else if let Some(open_call) = &self.open_call {
                match open_call.scanner.finish(&self.held_text) {
                    Some((end, call_ending)) => self.end_call_early(end, call_ending, out),
                    None => self.end_unclosed(ending.is_truncated, out),
                }
            } else if ending.is_truncated && self.may_begin_call() {
                let raw = std::mem::take(&mut self.held_text);
                self.end_truncated(&raw, None, out);
            } else if let Some(used_len) = self.read_held(is_end, out) {
                let held_text = std::mem::take(&mut self.held_text);
                self.read_text(&held_text[used_len..], out);
            }
        }
        self.end_section(out);
        let calls = std::mem::take(&mut self.held_calls);
        let runnable_calls =
            calls.iter().filter(|call| !call.is_in_sentence).map(|call| (call.place.offset, call.watch_id));
        self.plain.finish_with(ending, &runnable_calls.collect::<Vec<_>>(), out);
        for HeldCall { call, place, end, watch_id, is_in_sentence } in calls {
            if is_in_sentence || self.plain.is_text(place.offset, watch_id) {
                let message =
                    format!("`{}` is in reasoning, code or a sentence; it is not called", call.name);
                out.report(FindingReport::new(rules::CALL_ASIDE, place, end, message));
                emit_notice(call_check::REFUSED_CODE, Some(&call.name), out);
            } else if ending.is_truncated {
                let message = format!("the reply was cut; `{}` is not called", call.name);
                out.report(FindingReport::new(rules::CALL_CUT, place, end, message));
                emit_notice(call_check::TRUNCATED_CODE, Some(&call.name), out);
            } else {
                out.emit_action(ReplyAction::Call(call));
            }
        }
    }

    /// Handles a reply that ends inside a call: nothing of it runs.
    fn end_unclosed(&mut self, is_truncated: bool, out: &mut dyn IntentSink) {
        let raw = std::mem::take(&mut self.held_text);
        let Some(open_call) = self.open_call.take() else { return };
        if open_call.head.form.open_mark.is_empty() {
            return self.plain.push_verbatim(&raw, out);
        }
        let name = head_name(&open_call.head, &raw);
        if is_truncated {
            return self.end_truncated(&raw, name.as_deref(), out);
        }
        let at = self.plain.place();
        let report = FindingReport::new(
            rules::CALL_INCOMPLETE,
            at,
            at.offset + raw.len(),
            "the reply ends within a call",
        );
        self.section.has_shown = true;
        out.report(report.with_repair("none of it runs; shown as text"));
        emit_notice(call_check::REFUSED_CODE, name.as_deref(), out);
        self.plain.push_verbatim(&raw, out);
    }

    /// Shows as text a call within which the reply was truncated.
    fn end_truncated(&mut self, raw: &str, name: Option<&str>, out: &mut dyn IntentSink) {
        let at = self.plain.place();
        let report =
            FindingReport::new(rules::CALL_CUT, at, at.offset + raw.len(), "the reply was cut within a call");
        self.section.has_shown = true;
        out.report(report.with_repair("none of it runs; shown as text"));
        emit_notice(call_check::TRUNCATED_CODE, name, out);
        self.plain.push_verbatim(raw, out);
    }

    /// Returns whether the held text is a mark that may begin a call.
    fn may_begin_call(&self) -> bool {
        let filter = FormFilter { is_reply_start: false, ..self.forms };
        let is_end = false;
        matches!(
            read_call_start(&self.held_text, filter, self.accepts_any_format, is_end),
            CallStart::PartialHead
        ) && self.plain.admits_mark()
    }
}

/// Returns whether a Harmony header selects the final channel.
fn is_final_channel(format: CallFormat, header: &str) -> bool {
    format == CallFormat::Harmony && header.contains("<|channel|>final")
}

/// Returns the name before the arguments of a call.
fn head_name(head: &CallHead, raw: &str) -> Option<String> {
    let raw_name = &raw[head.name.clone()?];
    Some(formats::tool_name(raw_name, head.form.format, head.form.body).to_owned())
}

/// Emits a notice to the user about a call that does not run; `name` is that of the tool.
fn emit_notice(code: &'static str, name: Option<&str>, out: &mut dyn IntentSink) {
    let name = name.filter(|name| !name.is_empty()).map(|name| clip(name, MAX_EXCERPT_CHARS).into_owned());
    out.emit_action(ReplyAction::Notice(code, name));
}
