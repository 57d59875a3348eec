//! Thoughts in the text around JSON: drafts before the structure, asides after it. Nothing in
//! them acts.

use super::draft::{Rules, attributes, mismatched, unclosed};
use super::preface::Preface;
use super::unclosed::Reasoning;
use super::{Intent, Output};
use crate::event::AsideKind;
use crate::finding::Report;
use crate::limits::Limits;
use crate::repair::json::{Closing, JsonEvent, ThoughtMark};
use crate::span::Place;

/// Thoughts of one reply, after its leading draft.
#[derive(Clone, Debug)]
pub(super) struct Thoughts {
    rules: Rules,
    limits: Limits,
    open: Option<Open>,
    /// Set if the structure was found in an unclosed thought.
    found: bool,
}

#[derive(Clone, Debug)]
struct Open {
    at: Place,
    /// Offset after the text read so far.
    end: usize,
    /// Text of the thought, if it precedes the structure.
    early: Option<Box<Reasoning>>,
}

impl Thoughts {
    pub(super) fn new(rules: Rules, limits: &Limits) -> Thoughts {
        Thoughts { rules, limits: limits.clone(), open: None, found: false }
    }

    /// Returns the bytes held back.
    pub(super) fn held(&self) -> usize {
        let early = self.open.as_ref().and_then(|open| open.early.as_ref());
        early.map_or(0, |reasoning| reasoning.held())
    }

    /// Returns whether the structure was found in an unclosed thought: nothing of it may act.
    pub(super) fn found(&self) -> bool {
        self.found
    }

    /// Records whether the structure was found in the leading draft.
    pub(super) fn found_in_draft(&mut self, found: bool) {
        self.found = found;
    }

    /// Handles an event of the reader if it is about a thought, and returns whether it was. `late` is set
    /// once the structure has begun; until then the text is in `preface`. An unopened closing mark also turns
    /// the earlier text into a thought; further consequences are the caller's.
    #[inline]
    pub(super) fn see(
        &mut self,
        event: &JsonEvent<'_>,
        late: bool,
        preface: &mut Preface,
        out: &mut dyn Output,
    ) -> bool {
        // Text before a structure that has begun is no longer a preface.
        let mut preface = (!late).then_some(preface);
        match event {
            JsonEvent::ThoughtStart(mark) => {
                let end = mark.place.offset + mark.text.len();
                attributes(self.rules.attributes, mark.text, mark.place, out);
                hide(&mut preface, mark.place.offset, end);
                let early = (!late).then(|| Reasoning::new(mark.end(), self.rules.fields, &self.limits));
                self.open = Some(Open { at: mark.place, end, early: early.map(Box::new) });
            }
            JsonEvent::Thought(text) => {
                let Some(open) = &mut self.open else { return true };
                hide(&mut preface, open.end, open.end + text.len());
                open.end += text.len();
                match &mut open.early {
                    Some(early) => early.push(text, &mut |text| out.intent(Intent::Draft(text))),
                    None => out.intent(Intent::Aside { kind: AsideKind::Thought, text }),
                }
            }
            JsonEvent::ThoughtEnd(mark, closing) => self.end(mark, *closing, preface, out),
            _ => return false,
        }
        true
    }

    fn end(
        &mut self,
        mark: &ThoughtMark<'_>,
        closing: Closing,
        mut preface: Option<&mut Preface>,
        out: &mut dyn Output,
    ) {
        let (at, end) = (mark.place, mark.place.offset + mark.text.len());
        hide(&mut preface, at.offset, end);
        if closing == Closing::Unopened {
            let message = format!("`{}` closes nothing", mark.text);
            let report = Report::new(self.rules.unopened, at, end, message);
            let before = preface.is_some();
            let repair = if before { "left out; what stands before it is reasoning" } else { "left out" };
            out.report(report.repaired(repair));
            if let Some(preface) = preface {
                preface.thought_before(end, &mut |text| out.intent(Intent::Draft(text)));
            }
            return;
        }
        attributes(self.rules.attributes, mark.text, at, out);
        let Some(open) = self.open.take() else { return };
        match open.early {
            Some(mut early) => early.close(&mut |text| out.intent(Intent::Draft(text))),
            None => self.late(open.at, end, out),
        }
        if closing == Closing::Foreign {
            out.report(mismatched(self.rules.mismatched, mark.text, at));
        }
    }

    fn late(&self, at: Place, end: usize, out: &mut dyn Output) {
        let report = Report::new(self.rules.late, at, end, "reasoning after the reply has begun");
        out.report(report.repaired("told beside the answer"));
    }

    /// Ends the reply. Returns the structure and its start, if an unclosed thought ends with one.
    pub(super) fn finish(&mut self, end: usize, out: &mut dyn Output) -> Option<(Place, String)> {
        let open = self.open.take()?;
        let Some(early) = open.early else {
            out.report(unclosed(self.rules, open.at, end, false));
            self.late(open.at, end, out);
            return None;
        };
        let (place, structure) = early.finish(&mut |text| out.intent(Intent::Draft(text)));
        self.found = structure.is_some();
        out.report(unclosed(self.rules, open.at, if self.found { place.offset } else { end }, self.found));
        Some((place, structure?))
    }
}

fn hide(preface: &mut Option<&mut Preface>, from: usize, to: usize) {
    if let Some(preface) = preface {
        preface.thought(from, to);
    }
}
