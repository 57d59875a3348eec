//! Candidate values of a text, and the choice among them.
//!
//! Only the best value so far is kept, and the list of all values as long as they may form one array.

use super::builder::BuiltValue;
use super::doubt::ValueDoubts;
use super::event::{JsonEvent, JsonSink, ThoughtClosing, ValueEnd, ValueOrigin, ValueStart};
use super::finder::{FoundValue, is_margin, rounding_report};
use super::keys::DuplicateKey;
use super::value_maker::ValueMaker;
use crate::finding::FindingReport;
use crate::lex::fence::Fence;
use crate::limits::Limits;
use crate::repair::rules;
use crate::span::{Place, Span};
use crate::texts::format_count;

/// Text between two values, in ascending order of separation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum CandidateGap {
    /// White space.
    #[default]
    Blank,
    /// Commas or semicolons.
    Comma,
    /// Closing brackets.
    Brackets,
    /// Fences.
    Fence,
    /// Any other text.
    Prose,
}

/// Ranking criteria in the order of their weight: the value is strong and in a JSON fence; it is strong; it
/// is not auto-closed. A strong value is unlikely to be prose in brackets: it contains a quoted string or
/// key, or it is a list that contains a non-empty object or list.
type CandidateRank = (bool, bool, bool);

/// Collects the values of a text and chooses among them.
pub(super) struct CandidateSelector<M: ValueMaker> {
    maker: M,
    limits: Limits,
    /// Shape of the current value.
    shape: CandidateShape,
    /// Reports since the last value.
    reports: Vec<FindingReport>,
    /// Number of all reports so far.
    report_count: usize,
    /// Number of values so far, those in thinking included.
    pub(super) count: usize,
    /// Text since the last value, without thinking.
    text: String,
    /// Gap before the current value.
    gap_before: CandidateGap,
    /// True if thinking is open.
    pub(super) is_thinking: bool,
    /// Values after the last unopened closing mark (all text before such a mark is thinking); all values if
    /// there is no such mark.
    current_group: CandidateGroup<M>,
    /// Values before that mark, which were in thinking.
    thought_group: CandidateGroup<M>,
}

/// Shape of the current value.
struct CandidateShape {
    start: ValueStart,
    /// Number of open brackets.
    depth: usize,
    is_array: bool,
    /// True if the value is an object or array.
    has_brackets: bool,
    /// True if it has an item or key.
    has_content: bool,
    /// True if one of its items has an item or key.
    has_nested_content: bool,
}

impl Default for CandidateShape {
    fn default() -> CandidateShape {
        let start = ValueStart {
            index: 0,
            place: Place::START,
            origin: ValueOrigin::Bare,
            is_in_open_comment: false,
        };
        CandidateShape {
            start,
            depth: 0,
            is_array: false,
            has_brackets: false,
            has_content: false,
            has_nested_content: false,
        }
    }
}

/// Group of values: the best one, and the list of all.
struct CandidateGroup<M: ValueMaker> {
    best: Option<RankedCandidate<M>>,
    /// Number of values.
    count: usize,
    /// Gap before the first value.
    first_gap: CandidateGap,
    /// Widest gap between two values.
    widest_gap: CandidateGap,
    /// True if all gaps between values are commas.
    has_only_commas: bool,
    /// All values, as long as they may form one array.
    list: CandidateList<M>,
}

impl<M: ValueMaker> Default for CandidateGroup<M> {
    fn default() -> Self {
        let (first_gap, widest_gap) = (CandidateGap::Blank, CandidateGap::Blank);
        CandidateGroup {
            best: None,
            count: 0,
            first_gap,
            widest_gap,
            has_only_commas: true,
            list: CandidateList::default(),
        }
    }
}

/// A candidate with its rank.
struct RankedCandidate<M: ValueMaker> {
    /// The value; `None` if it exceeds the limits.
    value: Option<M::Representation>,
    rank: CandidateRank,
    reports: Vec<FindingReport>,
    doubts: ValueDoubts,
    is_auto_closed: bool,
    is_repaired: bool,
    /// Place of its start.
    place: Place,
    /// Byte offset after its end.
    end: usize,
    /// Index among the values of the text.
    index: usize,
    /// Gap before the value.
    gap: CandidateGap,
}

/// All values of a group; empty until the second value arrives.
struct CandidateList<M: ValueMaker> {
    values: M::List,
    reports: Vec<FindingReport>,
    doubts: ValueDoubts,
    /// Number of values.
    count: usize,
    span: Span,
    /// Place of the first value.
    start: Place,
    /// True if one of the values is auto-closed.
    is_auto_closed: bool,
    /// Bytes and items of all values.
    size: (usize, usize),
    is_over_limit: bool,
}

impl<M: ValueMaker> Default for CandidateList<M> {
    fn default() -> Self {
        CandidateList {
            values: M::List::default(),
            reports: Vec::new(),
            doubts: ValueDoubts::default(),
            count: 0,
            span: Span::default(),
            start: Place::START,
            is_auto_closed: false,
            size: (0, 0),
            is_over_limit: false,
        }
    }
}

impl<M: ValueMaker> CandidateSelector<M> {
    pub(super) fn new(limits: &Limits) -> Self {
        CandidateSelector {
            maker: M::new(limits),
            limits: limits.clone(),
            shape: CandidateShape::default(),
            reports: Vec::new(),
            report_count: 0,
            count: 0,
            text: String::new(),
            gap_before: CandidateGap::Blank,
            is_thinking: false,
            current_group: CandidateGroup::default(),
            thought_group: CandidateGroup::default(),
        }
    }

    /// Ranks a value that has ended and adds it.
    fn end_value(&mut self, built_value: Option<BuiltValue<M::Representation>>, end: ValueEnd) {
        let mut reports = std::mem::take(&mut self.reports);
        let (value, duplicates, doubts) = match built_value {
            Some(BuiltValue { value, duplicates, doubts, .. }) => (Some(value), duplicates, doubts),
            None => (None, Vec::new(), ValueDoubts::default()),
        };
        let room = self.limits.findings.saturating_sub(self.report_count);
        self.report_count += duplicates.len();
        reports.extend(duplicates.iter().take(room).map(DuplicateKey::report_last_kept));
        let place = self.shape.start.place;
        if value.is_none() {
            reports.push(self.size_report(place, end.offset));
        }
        let candidate = RankedCandidate {
            value,
            rank: self.shape.rank(&end),
            reports,
            doubts,
            is_auto_closed: end.is_auto_closed,
            is_repaired: end.is_repaired,
            place,
            end: end.offset,
            index: self.count,
            gap: self.gap_before,
        };
        self.count += 1;
        let max_size = (self.limits.value, self.limits.items);
        self.current_group.add(candidate, self.maker.size(), max_size);
    }

    /// Report on a value beyond the limits.
    fn size_report(&self, place: Place, end: usize) -> FindingReport {
        let Limits { value, items, .. } = self.limits;
        let (bytes, values) = (format_count(value, "byte"), format_count(items, "value"));
        let message = format!("the value has more than {bytes} of text or {values}");
        FindingReport::new(&rules::LIMIT_EXCEEDED, place, end, message)
    }

    /// Chooses the value, or makes an array of all; `text` is the text that was searched.
    pub(super) fn choose(mut self, text: &str) -> FoundValue<M::Representation> {
        let last_gap = classify_gap(&self.text);
        let group =
            if self.current_group.count > 0 { &mut self.current_group } else { &mut self.thought_group };
        let CandidateGroup { best, count, first_gap, widest_gap, has_only_commas, list } =
            std::mem::take(group);
        let Some(best) = best else { return FoundValue::default() };
        // Prose may surround values that commas separate, but not values that only blanks separate.
        if count > 1 && (has_only_commas || widest_gap.max(first_gap).max(last_gap) <= CandidateGap::Comma) {
            return self.choose_all(text, list, first_gap, last_gap);
        }
        let RankedCandidate {
            value,
            mut reports,
            doubts,
            is_auto_closed,
            is_repaired,
            place,
            end,
            index,
            gap,
            ..
        } = best;
        let span = Span { start: place.offset, end };
        // Other values count as prose.
        let gap_before = if index == 0 { gap } else { CandidateGap::Prose };
        let gap_after = if index + 1 == self.count { last_gap } else { CandidateGap::Prose };
        report_text_before(gap_before, span.start, &mut reports);
        report_text_after(text, gap_after, span.end, &mut reports);
        FoundValue { value, candidate_count: self.count, reports, is_auto_closed, is_repaired, span, doubts }
    }

    /// Turns consecutive values into an array.
    fn choose_all(
        &self,
        text: &str,
        list: CandidateList<M>,
        first_gap: CandidateGap,
        last_gap: CandidateGap,
    ) -> FoundValue<M::Representation> {
        let CandidateList { values, mut reports, doubts, span, start, is_auto_closed, is_over_limit, .. } =
            list;
        report_text_before(first_gap, span.start, &mut reports);
        report_text_after(text, last_gap, span.end, &mut reports);
        if is_over_limit {
            reports.push(self.size_report(start, span.end));
        }
        let value = (!is_over_limit).then(|| M::finish_array(values));
        FoundValue {
            value,
            candidate_count: self.count,
            reports,
            is_auto_closed,
            is_repaired: true,
            span,
            doubts,
        }
    }
}

impl CandidateShape {
    /// Tracks the value by its next event.
    fn push_event(&mut self, event: &JsonEvent<'_>) {
        match event {
            JsonEvent::ObjectEnd | JsonEvent::ArrayEnd => self.depth -= 1,
            JsonEvent::ObjectStart | JsonEvent::ArrayStart => {
                self.is_array |= self.depth == 0 && *event == JsonEvent::ArrayStart;
                self.has_brackets = true;
                self.note_content();
                self.depth += 1;
            }
            JsonEvent::StringDelta(_) | JsonEvent::StringEnd | JsonEvent::ValueEnd(_) => {}
            _ => self.note_content(),
        }
    }

    /// Records that an item or key begins at the current depth.
    fn note_content(&mut self) {
        self.has_content |= self.depth > 0;
        self.has_nested_content |= self.depth > 1;
    }

    fn rank(&self, end: &ValueEnd) -> CandidateRank {
        let is_strong = (self.has_content || !self.has_brackets)
            && (end.has_quotes || self.is_array && self.has_nested_content);
        (self.start.origin == ValueOrigin::JsonFence && is_strong, is_strong, !end.is_auto_closed)
    }
}

impl<M: ValueMaker> CandidateGroup<M> {
    /// Adds the next candidate, whose value has this size; `max_size` limits all values of the list together.
    fn add(
        &mut self,
        candidate: RankedCandidate<M>,
        (bytes, items): (usize, usize),
        max_size: (usize, usize),
    ) {
        self.count += 1;
        if self.count == 1 {
            self.first_gap = candidate.gap;
            self.list.size = (bytes, items);
            self.best = Some(candidate);
            return;
        }
        self.widest_gap = self.widest_gap.max(candidate.gap);
        self.has_only_commas &= candidate.gap == CandidateGap::Comma;
        if self.has_only_commas || self.widest_gap <= CandidateGap::Comma {
            let list = &mut self.list;
            // Before the second value, the best one is the first.
            if let Some(first) = self.best.as_ref().filter(|_| self.count == 2) {
                list.begin(first, &candidate);
            }
            list.size = (list.size.0 + bytes, list.size.1 + items);
            list.is_over_limit |= list.size.0 > max_size.0 || list.size.1 > max_size.1;
            list.add(&candidate);
        } else {
            self.list = CandidateList::default();
        }
        if self.best.as_ref().is_none_or(|best| candidate.rank > best.rank) {
            self.best = Some(candidate);
        }
    }

    /// Adds the values of a later part of thinking. Values of different parts never form one list.
    fn append_group(&mut self, other: CandidateGroup<M>) {
        if self.count == 0 {
            *self = other;
            return;
        }
        if let Some(best) = other.best {
            self.list = CandidateList::default();
            (self.has_only_commas, self.widest_gap) = (false, CandidateGap::Prose);
            self.count += other.count;
            if self.best.as_ref().is_none_or(|own_best| best.rank > own_best.rank) {
                self.best = Some(best);
            }
        }
    }
}

impl<M: ValueMaker> CandidateList<M> {
    /// Starts the list with the first value, when a second one arrives, and reports that there are several.
    fn begin(&mut self, first: &RankedCandidate<M>, second: &RankedCandidate<M>) {
        self.start = first.place;
        self.span.start = first.place.offset;
        self.add(first);
        let message = "several values where one belongs";
        let report = FindingReport::new(&rules::SEVERAL_VALUES, second.place, second.end, message);
        self.reports.push(report.with_repair("made an array of them"));
    }

    fn add(&mut self, candidate: &RankedCandidate<M>) {
        self.span.end = candidate.end;
        self.is_auto_closed |= candidate.is_auto_closed;
        self.reports.extend(candidate.reports.iter().cloned());
        self.doubts.extend(candidate.doubts.clone().into_item(self.count));
        self.count += 1;
        match &candidate.value {
            Some(value) if !self.is_over_limit => M::push_item(&mut self.values, value.clone()),
            _ => {
                self.is_over_limit = true;
                self.values = M::List::default();
            }
        }
    }
}

impl<M: ValueMaker> JsonSink for CandidateSelector<M> {
    fn event(&mut self, event: JsonEvent<'_>) {
        match event {
            JsonEvent::Text(text) | JsonEvent::Comment(text) => self.text.push_str(text),
            JsonEvent::ThoughtStart(_) => self.is_thinking = true,
            JsonEvent::Thought(_) => {}
            JsonEvent::ThoughtEnd(_, ThoughtClosing::SameName | ThoughtClosing::OtherName) => {
                self.is_thinking = false
            }
            // All text so far was thinking.
            JsonEvent::ThoughtEnd(_, ThoughtClosing::Unopened) => {
                self.text.clear();
                let thought_group = std::mem::take(&mut self.current_group);
                self.thought_group.append_group(thought_group);
            }
            JsonEvent::ValueStart(start) => {
                self.gap_before = classify_gap(&self.text);
                self.text.clear();
                self.shape = CandidateShape { start, ..CandidateShape::default() };
            }
            _ => self.shape.push_event(&event),
        }
        let built_value = self.maker.push_event(&event);
        if let JsonEvent::ValueEnd(end) = event {
            self.end_value(built_value, end);
        }
    }

    fn report(&mut self, report: FindingReport) {
        self.maker.note_report(&report);
        self.reports.push(report);
        self.report_count += 1;
    }

    fn report_rounding(&mut self, place: Place, end: usize) {
        let report = rounding_report(place, end);
        if self.report_count < self.limits.findings {
            self.report(report);
        } else {
            self.maker.note_report(&report);
        }
    }
}

/// Reports text before the value, whose start is the byte offset `start`.
fn report_text_before(gap: CandidateGap, start: usize, reports: &mut Vec<FindingReport>) {
    if gap == CandidateGap::Prose {
        let report = FindingReport::new(&rules::TEXT_AROUND, Place::START, start, "text before the value");
        reports.insert(0, report.with_repair("read only the value"));
    }
}

/// Reports text after the value, whose end is the byte offset `end`.
fn report_text_after(text: &str, gap: CandidateGap, end: usize, reports: &mut Vec<FindingReport>) {
    let (rule, message) = match gap {
        CandidateGap::Prose => (&rules::TEXT_AROUND, "text after the value"),
        CandidateGap::Brackets => (&rules::EXTRA_BRACKET, "closing brackets after the value"),
        CandidateGap::Comma => (&rules::EXTRA_COMMA, "a comma after the value"),
        CandidateGap::Blank | CandidateGap::Fence => return,
    };
    let place = Place::START.end_of(&text[..end]);
    reports.push(FindingReport::new(rule, place, text.len(), message).with_repair("read only the value"));
}

/// Classifies the text between two values, or before or after all of them.
fn classify_gap(text: &str) -> CandidateGap {
    let mut gap = CandidateGap::Blank;
    let mut unread = text.trim_start_matches(is_margin);
    while let Some(&byte) = unread.as_bytes().first() {
        let (sign_gap, length) = match byte {
            b',' | b';' => (CandidateGap::Comma, 1),
            b'}' | b']' | b')' => (CandidateGap::Brackets, 1),
            b'`' | b'~' => {
                let Some((fence, info)) = Fence::parse(unread) else { return CandidateGap::Prose };
                let is_language_byte = |byte: &u8| byte.is_ascii_alphanumeric() || b"_+-.".contains(byte);
                (CandidateGap::Fence, fence.len + info.bytes().take_while(is_language_byte).count())
            }
            _ => return CandidateGap::Prose,
        };
        gap = gap.max(sign_gap);
        unread = unread[length..].trim_start();
    }
    gap
}
