//! Events to plain text: the answer, and reasoning in a leading `<think>`.

use crate::event::Event;

/// Writes the events of one reply as plain text.
#[must_use]
pub(super) fn write(events: &[Event<'_>]) -> String {
    let (mut reasoning, mut answer) = (String::new(), String::new());
    for event in events {
        match event {
            Event::PhaseDelta { text, .. } => reasoning.push_str(text),
            Event::FinalDelta { text } => answer.push_str(text),
            _ => {}
        }
    }
    if reasoning.is_empty() { answer } else { format!("<think>{reasoning}</think>\n{answer}") }
}
