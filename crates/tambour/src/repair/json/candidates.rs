//! Candidate values of a text, and the choice among them.
//!
//! Only the best value read so far is kept, and the list of all as long as they may form one array.

use super::build::Built;
use super::doubt::Doubts;
use super::event::{Closing, End, JsonEvent, JsonSink, Origin, Start};
use super::find::{Found, is_margin, rounded};
use super::keys::Duplicate;
use super::make::Make;
use crate::finding::Report;
use crate::lex::fence::Fence;
use crate::limits::Limits;
use crate::repair::rules;
use crate::span::{Place, Span};
use crate::texts::counted;

/// Text between two values, in ascending order of separation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    #[default]
    Blank,
    /// Commas.
    Comma,
    /// Closing brackets.
    Brackets,
    /// Fence marks.
    Fence,
    Prose,
}

/// Ranking criteria: strong and in a JSON fence, strong, not auto-closed. A strong value contains a quoted
/// string or key, or is a list with non-empty items.
type Rank = (bool, bool, bool);

/// Collects the values of a text and chooses among them.
pub(super) struct Candidates<M: Make> {
    maker: M,
    limits: Limits,
    /// Shape of the current value.
    shape: Shape,
    /// Reports since the last value, and number of reports so far.
    reports: Vec<Report>,
    reported: usize,
    /// Number of values so far, those in thinking included.
    pub(super) count: usize,
    /// Text since the last value, and the gap before the current one.
    text: String,
    before: Gap,
    /// True if thinking is open.
    pub(super) thinking: bool,
    /// Values since the last thinking ended, and values before.
    now: Block<M>,
    thought: Block<M>,
}

/// Shape of the current value.
struct Shape {
    start: Start,
    depth: usize,
    array: bool,
    brackets: bool,
    /// Flags: it has content; an item of it has content.
    filled: bool,
    nested: bool,
}

impl Default for Shape {
    fn default() -> Shape {
        let start = Start { index: 0, place: Place::START, origin: Origin::Bare, commented: false };
        Shape { start, depth: 0, array: false, brackets: false, filled: false, nested: false }
    }
}

/// Group of values: the best one, and the list of all.
struct Block<M: Make> {
    best: Option<Best<M>>,
    /// Number of values.
    count: usize,
    /// Gap before the first value, widest gap between two, and whether all gaps are commas.
    first: Gap,
    between: Gap,
    commas: bool,
    list: List<M>,
}

impl<M: Make> Default for Block<M> {
    fn default() -> Self {
        let (first, between) = (Gap::Blank, Gap::Blank);
        Block { best: None, count: 0, first, between, commas: true, list: List::default() }
    }
}

/// A candidate with its rank.
struct Best<M: Make> {
    /// The value; `None` if it exceeds the limits.
    made: Option<M::Made>,
    rank: Rank,
    reports: Vec<Report>,
    doubts: Doubts,
    closed_by_us: bool,
    repaired: bool,
    place: Place,
    end: usize,
    /// Index in the text, and the gap before it.
    index: usize,
    gap: Gap,
}

/// All values of a group, filled from the second one on.
struct List<M: Make> {
    made: M::List,
    reports: Vec<Report>,
    doubts: Doubts,
    /// Number of values.
    count: usize,
    span: Span,
    start: Place,
    closed_by_us: bool,
    /// Bytes and items.
    size: (usize, usize),
    over: bool,
}

impl<M: Make> Default for List<M> {
    fn default() -> Self {
        List {
            made: M::List::default(),
            reports: Vec::new(),
            doubts: Doubts::default(),
            count: 0,
            span: Span::default(),
            start: Place::START,
            closed_by_us: false,
            size: (0, 0),
            over: false,
        }
    }
}

impl<M: Make> Candidates<M> {
    pub(super) fn new(limits: &Limits) -> Self {
        Candidates {
            maker: M::new(limits),
            limits: limits.clone(),
            shape: Shape::default(),
            reports: Vec::new(),
            reported: 0,
            count: 0,
            text: String::new(),
            before: Gap::Blank,
            thinking: false,
            now: Block::default(),
            thought: Block::default(),
        }
    }

    /// Ranks a value that has ended and adds it.
    fn value(&mut self, built: Option<Built<M::Made>>, end: End) {
        let mut reports = std::mem::take(&mut self.reports);
        let (made, duplicates, doubts) = match built {
            Some(Built { value, duplicates, doubts, .. }) => (Some(value), duplicates, doubts),
            None => (None, Vec::new(), Doubts::default()),
        };
        let room = self.limits.findings.saturating_sub(self.reported);
        self.reported += duplicates.len();
        reports.extend(duplicates.iter().take(room).map(Duplicate::last_kept));
        let place = self.shape.start.place;
        if made.is_none() {
            reports.push(self.too_large(place, end.offset));
        }
        let candidate = Best {
            made,
            rank: self.shape.rank(&end),
            reports,
            doubts,
            closed_by_us: end.closed_by_us,
            repaired: end.repaired,
            place,
            end: end.offset,
            index: self.count,
            gap: self.before,
        };
        self.count += 1;
        let most = (self.limits.value, self.limits.items);
        self.now.add(candidate, self.maker.size(), most);
    }

    fn too_large(&self, place: Place, end: usize) -> Report {
        let Limits { value, items, .. } = self.limits;
        let (bytes, values) = (counted(value, "byte"), counted(items, "value"));
        let message = format!("the value has more than {bytes} of text or {values}");
        Report::new(&rules::LIMIT_EXCEEDED, place, end, message)
    }

    /// Chooses the result.
    pub(super) fn choose(mut self, text: &str) -> Found<M::Made> {
        let after = gap(&self.text);
        let used = if self.now.count > 0 { &mut self.now } else { &mut self.thought };
        let Block { best, count, first, between, commas, list } = std::mem::take(used);
        let Some(best) = best else { return Found::default() };
        if count > 1 && (commas || between.max(first).max(after) <= Gap::Comma) {
            return self.several(text, list, first, after);
        }
        let Best { made, mut reports, doubts, closed_by_us, repaired, place, end, index, gap, .. } = best;
        let span = Span { start: place.offset, end };
        text_before(if index == 0 { gap } else { Gap::Prose }, span.start, &mut reports);
        text_after(text, if index + 1 == self.count { after } else { Gap::Prose }, span.end, &mut reports);
        Found { value: made, candidates: self.count, reports, closed_by_us, repaired, span, doubts }
    }

    /// Turns consecutive values into an array.
    fn several(&self, text: &str, list: List<M>, first: Gap, after: Gap) -> Found<M::Made> {
        let List { made, mut reports, doubts, span, start, closed_by_us, over, .. } = list;
        text_before(first, span.start, &mut reports);
        text_after(text, after, span.end, &mut reports);
        if over {
            reports.push(self.too_large(start, span.end));
        }
        let value = (!over).then(|| M::array(made));
        Found { value, candidates: self.count, reports, closed_by_us, repaired: true, span, doubts }
    }
}

impl Shape {
    /// Tracks the value.
    fn see(&mut self, event: &JsonEvent<'_>) {
        match event {
            JsonEvent::ObjectEnd | JsonEvent::ArrayEnd => self.depth -= 1,
            JsonEvent::ObjectStart | JsonEvent::ArrayStart => {
                self.array |= self.depth == 0 && *event == JsonEvent::ArrayStart;
                self.brackets = true;
                self.holds();
                self.depth += 1;
            }
            JsonEvent::StringDelta(_) | JsonEvent::StringEnd | JsonEvent::ValueEnd(_) => {}
            _ => self.holds(),
        }
    }

    fn holds(&mut self) {
        self.filled |= self.depth > 0;
        self.nested |= self.depth > 1;
    }

    fn rank(&self, end: &End) -> Rank {
        let strong = (self.filled || !self.brackets) && (end.quoted || self.array && self.nested);
        (self.start.origin == Origin::JsonFence && strong, strong, !end.closed_by_us)
    }
}

impl<M: Make> Block<M> {
    /// Adds the next value, of this size; `most` limits all values together.
    fn add(&mut self, value: Best<M>, (bytes, items): (usize, usize), most: (usize, usize)) {
        self.count += 1;
        if self.count == 1 {
            self.first = value.gap;
            self.list.size = (bytes, items);
            self.best = Some(value);
            return;
        }
        self.between = self.between.max(value.gap);
        self.commas &= value.gap == Gap::Comma;
        if self.commas || self.between <= Gap::Comma {
            let list = &mut self.list;
            if let Some(first) = self.best.as_ref().filter(|_| self.count == 2) {
                list.start(first, &value);
            }
            list.size = (list.size.0 + bytes, list.size.1 + items);
            list.over |= list.size.0 > most.0 || list.size.1 > most.1;
            list.add(&value);
        } else {
            self.list = List::default();
        }
        if self.best.as_ref().is_none_or(|best| value.rank > best.rank) {
            self.best = Some(value);
        }
    }

    /// Adds the values of a later part of thinking. Values of both parts form no list.
    fn join(&mut self, later: Block<M>) {
        if self.count == 0 {
            *self = later;
            return;
        }
        if let Some(best) = later.best {
            self.list = List::default();
            (self.commas, self.between) = (false, Gap::Prose);
            self.count += later.count;
            if self.best.as_ref().is_none_or(|own| best.rank > own.rank) {
                self.best = Some(best);
            }
        }
    }
}

impl<M: Make> List<M> {
    /// Starts the list when a second value arrives.
    fn start(&mut self, first: &Best<M>, second: &Best<M>) {
        self.start = first.place;
        self.span.start = first.place.offset;
        self.add(first);
        let message = "several values where one belongs";
        let report = Report::new(&rules::SEVERAL_VALUES, second.place, second.end, message);
        self.reports.push(report.repaired("made an array of them"));
    }

    fn add(&mut self, value: &Best<M>) {
        self.span.end = value.end;
        self.closed_by_us |= value.closed_by_us;
        self.reports.extend(value.reports.iter().cloned());
        self.doubts.extend(value.doubts.clone().item(self.count));
        self.count += 1;
        match &value.made {
            Some(made) if !self.over => M::add(&mut self.made, made.clone()),
            _ => {
                self.over = true;
                self.made = M::List::default();
            }
        }
    }
}

impl<M: Make> JsonSink for Candidates<M> {
    fn event(&mut self, event: JsonEvent<'_>) {
        match event {
            JsonEvent::Text(text) | JsonEvent::Comment(text) => self.text.push_str(text),
            JsonEvent::ThoughtStart(_) => self.thinking = true,
            JsonEvent::Thought(_) => {}
            JsonEvent::ThoughtEnd(_, Closing::Own | Closing::Foreign) => self.thinking = false,
            // All text so far was thinking.
            JsonEvent::ThoughtEnd(_, Closing::Unopened) => {
                self.text.clear();
                let thought = std::mem::take(&mut self.now);
                self.thought.join(thought);
            }
            JsonEvent::ValueStart(start) => {
                self.before = gap(&self.text);
                self.text.clear();
                self.shape = Shape { start, ..Shape::default() };
            }
            _ => self.shape.see(&event),
        }
        let built = self.maker.see(&event);
        if let JsonEvent::ValueEnd(end) = event {
            self.value(built, end);
        }
    }

    fn report(&mut self, report: Report) {
        self.maker.note(&report);
        self.reports.push(report);
        self.reported += 1;
    }

    fn rounded(&mut self, place: Place, end: usize) {
        let report = rounded(place, end);
        if self.reported < self.limits.findings {
            self.report(report);
        } else {
            self.maker.note(&report);
        }
    }
}

fn text_before(gap: Gap, start: usize, reports: &mut Vec<Report>) {
    if gap == Gap::Prose {
        let report = Report::new(&rules::TEXT_AROUND, Place::START, start, "text before the value");
        reports.insert(0, report.repaired("read only the value"));
    }
}

fn text_after(text: &str, gap: Gap, end: usize, reports: &mut Vec<Report>) {
    let (rule, message) = match gap {
        Gap::Prose => (&rules::TEXT_AROUND, "text after the value"),
        Gap::Brackets => (&rules::EXTRA_BRACKET, "closing brackets after the value"),
        Gap::Comma => (&rules::EXTRA_COMMA, "a comma after the value"),
        Gap::Blank | Gap::Fence => return,
    };
    let place = Place::START.after(&text[..end]);
    reports.push(Report::new(rule, place, text.len(), message).repaired("read only the value"));
}

/// Classifies the text between two values.
fn gap(text: &str) -> Gap {
    let mut gap = Gap::Blank;
    let mut rest = text.trim_start_matches(is_margin);
    while let Some(&byte) = rest.as_bytes().first() {
        let (found, length) = match byte {
            b',' | b';' => (Gap::Comma, 1),
            b'}' | b']' | b')' => (Gap::Brackets, 1),
            b'`' | b'~' => {
                let Some((fence, info)) = Fence::of(rest) else { return Gap::Prose };
                let tag = |byte: &u8| byte.is_ascii_alphanumeric() || b"_+-.".contains(byte);
                (Gap::Fence, fence.len + info.bytes().take_while(tag).count())
            }
            _ => return Gap::Prose,
        };
        gap = gap.max(found);
        rest = rest[length..].trim_start();
    }
    gap
}
