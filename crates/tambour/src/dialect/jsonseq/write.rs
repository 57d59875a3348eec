//! Events to JSON Lines as a model should write them.

use serde_json::json;

use crate::event::{Event, EventKind};

/// Writes the contract events of one reply, one a line; neighbouring deltas are joined.
#[must_use]
pub(super) fn write(events: &[Event<'_>]) -> String {
    let mut out = String::new();
    let mut delta: Option<Event<'static>> = None;
    for event in events.iter().filter(|event| event.kind() == EventKind::Contract) {
        match (&mut delta, event) {
            (Some(Event::FinalDelta { text: whole }), Event::FinalDelta { text })
            | (Some(Event::PhaseDelta { text: whole, .. }), Event::PhaseDelta { text, .. }) => {
                whole.to_mut().push_str(text);
                continue;
            }
            _ => {}
        }
        line(delta.take().as_ref(), &mut out);
        if matches!(event, Event::FinalDelta { .. } | Event::PhaseDelta { .. }) {
            delta = Some(event.clone().into_owned());
        } else {
            line(Some(event), &mut out);
        }
    }
    line(delta.as_ref(), &mut out);
    out
}

fn line(event: Option<&Event<'_>>, out: &mut String) {
    if let Some(event) = event {
        out.push_str(&json!(event).to_string());
        out.push('\n');
    }
}
