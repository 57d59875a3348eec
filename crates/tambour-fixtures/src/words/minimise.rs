//! Search for the smallest reply with the same fault, after a complaint about marker words.

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
    // Makes `candidate` the best trial if it shows the same fault; returns true if it does.
    let mut accept_if_faulty = |candidate: WordTrial, best: &mut WordTrial| {
        let complaints = candidate.check_words().err().unwrap_or_default();
        let same_complaint = complaints.into_iter().find(|complaint| {
            (complaint.fault, complaint.word) == (best_complaint.fault, best_complaint.word)
        });
        let same_complaint = same_complaint.filter(|_| finding_codes(&candidate).is_subset(&known_codes));
        if let Some(same_complaint) = same_complaint {
            best_complaint = same_complaint;
            *best = candidate;
            return true;
        }
        false
    };
    if best.reasoning.is_some() {
        accept_if_faulty(WordTrial { reasoning: None, ..best.clone() }, &mut best);
    }
    if best.next_reply.is_some() {
        accept_if_faulty(WordTrial { next_reply: None, ..best.clone() }, &mut best);
    }
    // Prefers the default settings if they show the fault too.
    let with_defaults = WordTrial::new(&best.dialect, 0, best.seed, best.input.clone());
    let (reasoning, next_reply) = (best.reasoning.clone(), best.next_reply.clone());
    accept_if_faulty(WordTrial { reasoning, next_reply, ..with_defaults }, &mut best);
    loop {
        let len_before = best.input.len();
        let mut size = (len_before / 2).max(1);
        while size > 0 {
            let mut at = 0;
            while at < best.input.len() {
                let end = (at + size).min(best.input.len());
                // A word is kept whole or removed.
                let splits_word = find_words(&best.input).any(|(word_start, _)| {
                    let word_end = word_start + super::MARKER_LEN;
                    (word_start < at && at < word_end) || (word_start < end && end < word_end)
                });
                let mut input = best.input.clone();
                input.drain(at..end);
                if splits_word || !accept_if_faulty(WordTrial { input, ..best.clone() }, &mut best) {
                    // Pieces that overlap this one are tried next.
                    at += size.min(4);
                }
            }
            size /= 2;
        }
        if best.input.len() == len_before {
            return (best, best_complaint);
        }
    }
}

fn finding_codes(trial: &WordTrial) -> BTreeSet<String> {
    trial.read().findings.into_iter().map(|finding| finding.code.into_owned()).collect()
}
