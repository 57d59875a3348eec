//! Search for the smallest reply that shows the same fault.

use std::collections::BTreeSet;

use super::account::Complaint;
use super::{Trial, find};

/// Removes pieces of the reply of `trial` as long as the fault stays; returns the smallest trial and its
/// complaint.
#[must_use]
pub fn minimise(trial: &Trial, complaint: &Complaint) -> (Trial, Complaint) {
    let (mut best, mut told) = (trial.clone(), complaint.clone());
    // Findings with other codes indicate another fault.
    let known = codes(trial);
    let mut attempt = |next: Trial, best: &mut Trial| {
        let found = next.check().err().unwrap_or_default();
        let found = found.into_iter().find(|found| (found.fault, found.word) == (told.fault, told.word));
        let found = found.filter(|_| codes(&next).is_subset(&known));
        if let Some(found) = found {
            told = found;
            *best = next;
            return true;
        }
        false
    };
    if best.reasoning.is_some() {
        attempt(Trial { reasoning: None, ..best.clone() }, &mut best);
    }
    if best.next.is_some() {
        attempt(Trial { next: None, ..best.clone() }, &mut best);
    }
    let standard = Trial::new(&best.dialect, 0, best.seed, best.input.clone());
    let (reasoning, next) = (best.reasoning.clone(), best.next.clone());
    attempt(Trial { reasoning, next, ..standard }, &mut best);
    loop {
        let before = best.input.len();
        let mut size = (before / 2).max(1);
        while size > 0 {
            let mut at = 0;
            while at < best.input.len() {
                let end = (at + size).min(best.input.len());
                // A word is kept whole or removed.
                let splits = find(&best.input).any(|(word, _)| {
                    (word < at && at < word + super::LEN) || (word < end && end < word + super::LEN)
                });
                let mut input = best.input.clone();
                input.drain(at..end);
                if splits || !attempt(Trial { input, ..best.clone() }, &mut best) {
                    at += size.min(4);
                }
            }
            size /= 2;
        }
        if best.input.len() == before {
            return (best, told);
        }
    }
}

fn codes(trial: &Trial) -> BTreeSet<String> {
    trial.read().findings.into_iter().map(|finding| finding.code.into_owned()).collect()
}
