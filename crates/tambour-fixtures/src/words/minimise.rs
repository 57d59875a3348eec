//! Search for the smallest reply that shows the same fault.

use std::collections::BTreeSet;

use super::account::WordComplaint;
use super::{WordTrial, find_words};

/// Removes pieces of the reply of `trial` as long as the fault stays; returns the smallest trial and its
/// complaint.
#[must_use]
pub fn minimise_trial(trial: &WordTrial, complaint: &WordComplaint) -> (WordTrial, WordComplaint) {
    let (mut best, mut best_complaint) = (trial.clone(), complaint.clone());
    // Findings with other codes indicate another fault.
    let known_codes = finding_codes(trial);
    let mut attempt = |next: WordTrial, best: &mut WordTrial| {
        let found = next.check_words().err().unwrap_or_default();
        let found = found
            .into_iter()
            .find(|found| (found.fault, found.word) == (best_complaint.fault, best_complaint.word));
        let found = found.filter(|_| finding_codes(&next).is_subset(&known_codes));
        if let Some(found) = found {
            best_complaint = found;
            *best = next;
            return true;
        }
        false
    };
    if best.reasoning.is_some() {
        attempt(WordTrial { reasoning: None, ..best.clone() }, &mut best);
    }
    if best.next_reply.is_some() {
        attempt(WordTrial { next_reply: None, ..best.clone() }, &mut best);
    }
    let standard = WordTrial::new(&best.dialect, 0, best.seed, best.input.clone());
    let (reasoning, next_reply) = (best.reasoning.clone(), best.next_reply.clone());
    attempt(WordTrial { reasoning, next_reply, ..standard }, &mut best);
    loop {
        let before = best.input.len();
        let mut size = (before / 2).max(1);
        while size > 0 {
            let mut at = 0;
            while at < best.input.len() {
                let end = (at + size).min(best.input.len());
                // A word is kept whole or removed.
                let splits_word = find_words(&best.input).any(|(word, _)| {
                    (word < at && at < word + super::MARKER_LEN)
                        || (word < end && end < word + super::MARKER_LEN)
                });
                let mut input = best.input.clone();
                input.drain(at..end);
                if splits_word || !attempt(WordTrial { input, ..best.clone() }, &mut best) {
                    at += size.min(4);
                }
            }
            size /= 2;
        }
        if best.input.len() == before {
            return (best, best_complaint);
        }
    }
}

fn finding_codes(trial: &WordTrial) -> BTreeSet<String> {
    trial.read().findings.into_iter().map(|finding| finding.code.into_owned()).collect()
}
