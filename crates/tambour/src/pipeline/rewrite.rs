//! Rewriting of a reply in its canonical form. The written text is read again before it is returned: it must
//! not act where the reply did not, must pass the strict check, and must be written the same the next time.
//! If no form meets these conditions, the last one tried is returned, without actions and with all markup
//! escaped.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{InputEnd, Pipeline};
use crate::event::{Event, Extension, JoinedEvents};
use crate::finding::{Profile, Severity};
use crate::options::Options;
use crate::state;

/// Maximum number of times that a reply is rewritten before it counts as unstable.
const MAX_PASSES: usize = 4;

/// Writes a reply again and checks the text against the actions of the original.
pub(super) struct ReplyRewriter<'a> {
    /// Names of the requested and of the detected dialect. In both, the result acts no more than the original
    /// reply; in the detected one it is also stable.
    dialects: [&'static str; 2],
    options: Options,
    /// Writes events as text of the dialect.
    write: &'a dyn Fn(&[Event<'_>]) -> Option<String>,
}

/// Result of reading a written reply again.
enum RereadOutcome {
    /// The text is written the same again.
    Stable,
    /// The text is written differently, or breaks a rule; holds the text as written now.
    Changed(String),
    /// The text acts where the reply did not.
    Active,
}

impl<'a> ReplyRewriter<'a> {
    pub(super) fn new(
        dialects: [&'static str; 2],
        options: &Arc<Options>,
        write: &'a dyn Fn(&[Event<'_>]) -> Option<String>,
    ) -> ReplyRewriter<'a> {
        let options = Options { profile: Profile::Strict, tool_loop: false, ..(**options).clone() };
        ReplyRewriter { dialects, options, write }
    }

    /// Writes the events as the dialect does if that is stable, otherwise with markup escaped. `None` if the
    /// dialect cannot be written.
    pub(super) fn rewrite(&self, events: &[Event<'_>]) -> Option<String> {
        let allowed_actions = count_actions(events);
        let text = match self.stabilize((self.write)(events)?, &allowed_actions) {
            Ok(text) => return Some(text),
            Err(text) => text,
        };
        // Tags in the text of the answer may be the only problem: then the actions stay.
        if let Some(Ok(text)) = self.write_stable(events.iter().map(escape_tags).collect(), &allowed_actions)
        {
            return Some(text);
        }
        // Otherwise all actions are dropped. The text may then be stable as it is, or with its tags escaped;
        // other markup is escaped last.
        let silent_events = || {
            events.iter().filter(|event| {
                !matches!(event, Event::Extension(_) | Event::Aside { .. } | Event::DraftDelta { .. })
            })
        };
        let escaped_events = silent_events().map(escape_tags);
        for candidate_events in [silent_events().cloned().collect(), escaped_events.collect()] {
            if let Some(Ok(text)) = self.write_stable(candidate_events, &HashMap::new()) {
                return Some(text);
            }
        }
        match self.write_stable(events.iter().filter_map(escape_markup).collect(), &HashMap::new()) {
            // The last attempt: its text is used even if it is not stable.
            Some(result) => Some(result.unwrap_or_else(|unstable_text| unstable_text)),
            None => Some(text),
        }
    }

    /// Writes the events and stabilizes the text with [`Self::stabilize`]. `None` if the dialect cannot be
    /// written. The events are dropped before the text is read again, to save memory.
    fn write_stable(
        &self,
        events: Vec<Event<'_>>,
        allowed_actions: &HashMap<String, usize>,
    ) -> Option<Result<String, String>> {
        let text = (self.write)(&events)?;
        drop(events);
        Some(self.stabilize(text, allowed_actions))
    }

    /// Rewrites the text until it is stable and acts only as allowed; otherwise the last text is the error.
    fn stabilize(
        &self,
        mut text: String,
        allowed_actions: &HashMap<String, usize>,
    ) -> Result<String, String> {
        for _ in 0..MAX_PASSES {
            match self.reread(&text, allowed_actions) {
                RereadOutcome::Stable => return Ok(text),
                RereadOutcome::Changed(changed_text) => text = changed_text,
                RereadOutcome::Active => break,
            }
        }
        Err(text)
    }

    /// Reads the text in both dialects and writes it again in the detected one.
    fn reread(&self, text: &str, allowed_actions: &HashMap<String, usize>) -> RereadOutcome {
        let [requested_dialect, detected_dialect] = self.dialects;
        // One reading is enough if both are the same.
        let first_index = usize::from(requested_dialect == detected_dialect);
        for dialect in &self.dialects[first_index..] {
            let Ok(pipeline) = Pipeline::new(dialect, &self.options) else { continue };
            let mut pipeline = pipeline.with_extensions(true);
            let mut output = JoinedEvents::default();
            pipeline.push_str(text, &mut output);
            pipeline.finish(&InputEnd::stop(), &mut output);
            let actions = count_actions(&output.events);
            if actions
                .iter()
                .any(|(action, count)| allowed_actions.get(action).is_none_or(|limit| limit < count))
            {
                return RereadOutcome::Active;
            }
            if *dialect != detected_dialect {
                continue;
            }
            let has_errors = output.findings.iter().any(|finding| finding.severity == Severity::Error);
            let next_text = pipeline.rewrite_once(&output.events).unwrap_or_default();
            if has_errors || next_text != text {
                return RereadOutcome::Changed(next_text);
            }
        }
        RereadOutcome::Stable
    }
}

/// Counts the actions among the events, by kind and content.
fn count_actions(events: &[Event<'_>]) -> HashMap<String, usize> {
    let mut found = HashMap::new();
    let mut add = |name: &str, data: &Value| {
        *found.entry(format!("{name} {data}")).or_default() += 1;
    };
    for event in events.iter().filter_map(Event::extension) {
        match event {
            Extension::ToolCall(call) => add("call", &json!([call.name, call.args])),
            Extension::Plan(outcome) if outcome.executable => add("plan", &outcome.plan["tool_calls"]),
            Extension::StateUpdate(update) => {
                for (index, operation) in state::operations_from_event(update).iter().enumerate() {
                    let is_refused = update.results.as_ref().is_some_and(|results| !results[index].ok);
                    if !is_refused && operation.refusal().is_none() {
                        let parts = json!([operation.op(), operation.path(), operation.value()]);
                        add("operation", &parts);
                    }
                }
            }
            Extension::StatusBar(_)
            | Extension::Choice(_)
            | Extension::UiComponent(_)
            | Extension::Media(_)
            | Extension::Element(_)
            | Extension::ExitDecision(_) => add(event.name(), &event.data()),
            _ => {}
        }
    }
    found
}

/// Escapes the tags in the answer text of an event.
fn escape_tags<'a>(event: &'a Event<'_>) -> Event<'a> {
    let Event::FinalDelta { text } = event else { return event.clone() };
    let mut out = String::with_capacity(text.len());
    // End of the last run of `<` and white space. It is searched for once per run, so the work is linear.
    let mut run_end = 0;
    for (start, c) in text.char_indices() {
        let end = start + c.len_utf8();
        let is_tag_start = |c: char| c.is_alphabetic() || matches!(c, '/' | '／' | '!' | '?' | '|' | '｜');
        if matches!(c, '<' | '＜') && run_end < end {
            run_end = text.len() - text[end..].trim_start_matches(['<', '＜', ' ', '\t', '\n', '\r']).len();
        }
        match c {
            '<' | '＜' if run_end == text.len() || text[run_end..].starts_with(is_tag_start) => {
                out.push_str("&lt;");
            }
            c => out.push(c),
        }
    }
    Event::FinalDelta { text: out.into() }
}

/// Escapes all markup in the text of an event; `None` for actions, asides and drafts.
fn escape_markup<'a>(event: &'a Event<'_>) -> Option<Event<'a>> {
    Some(match event {
        Event::FinalDelta { text } => Event::FinalDelta { text: escape_markup_starts(text).into() },
        Event::PhaseDelta { id, text } => {
            Event::PhaseDelta { id: *id, text: escape_markup_starts(text).into() }
        }
        Event::Extension(_) | Event::Aside { .. } | Event::DraftDelta { .. } => return None,
        other => other.clone(),
    })
}

/// Escapes the characters that tags, template marks, bracketed marks and JSON begin with.
fn escape_markup_starts(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' | '＜' => out.push_str("&lt;"),
            '◁' => out.push_str("&#9665;"),
            '[' => out.push_str("&#91;"),
            '{' => out.push_str("&#123;"),
            c => out.push(c),
        }
    }
    out
}
