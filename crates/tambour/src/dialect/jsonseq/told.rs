//! Findings of the lines on their way out. What stands before the first event is left out only if one comes: until then
//! its findings wait, and a reply without events, which is the answer as it stands, has none of them.

use crate::dialect::Output;
use crate::finding::Report;

/// Findings that wait for the first event, or go straight on.
#[derive(Debug)]
pub(super) struct Told {
    waiting: Option<Vec<Report>>,
    /// Most findings that wait.
    most: usize,
}

impl Told {
    pub(super) fn new(most: usize) -> Told {
        Told { waiting: Some(Vec::new()), most }
    }

    pub(super) fn add(&mut self, report: Report, out: &mut dyn Output) {
        match &mut self.waiting {
            None => out.report(report),
            Some(waiting) if waiting.len() < self.most => waiting.push(report),
            Some(waiting) => {
                // The last one stands for all that follow.
                if let Some(last) = waiting.last_mut() {
                    last.end = last.end.max(report.end);
                }
            }
        }
    }

    /// What came so far is no part of the reply: findings that wait are about nothing.
    pub(super) fn forget(&mut self) {
        if let Some(waiting) = &mut self.waiting {
            waiting.clear();
        }
    }

    /// Whether an event has come.
    pub(super) fn begun(&self) -> bool {
        self.waiting.is_none()
    }

    /// An event has come.
    #[inline]
    pub(super) fn begin(&mut self, out: &mut dyn Output) {
        if let Some(waiting) = self.waiting.take() {
            waiting.into_iter().for_each(|report| out.report(report));
        }
    }
}
