//! Detection of messages that repeat their tool calls.

use std::collections::HashMap;

use serde_json::Value;
use sha2::{Digest, Sha256};
use tambour::event::ToolCall;

/// Maximum number of calls of a message with the same tool and arguments.
const MAX_IDENTICAL_CALLS: u32 = 2;

/// Tool calls of a message so far.
#[derive(Default)]
pub(super) struct CallRepeats {
    /// Number of calls by fingerprint.
    calls: HashMap<Fingerprint, u32>,
    /// For each reply, one fingerprint of all its calls.
    replies: Vec<Fingerprint>,
}

/// SHA-256 of the name and arguments of a call, independent of the order of fields; or of all calls of a
/// reply.
type Fingerprint = [u8; 32];

impl CallRepeats {
    /// Adds the calls of a reply. Returns a description of the repetition if a call is made for the third
    /// time, or if the last four replies alternate between the same two lists of calls.
    pub(super) fn add(&mut self, calls: &[ToolCall]) -> Option<String> {
        let fingerprints: Vec<Fingerprint> = calls.iter().map(fingerprint).collect();
        let mut reply_hash = Sha256::new();
        fingerprints.iter().for_each(|fingerprint| reply_hash.update(fingerprint));
        self.replies.push(reply_hash.finalize().into());
        for (call, fingerprint) in calls.iter().zip(fingerprints) {
            let count = self.calls.entry(fingerprint).or_default();
            *count += 1;
            if *count > MAX_IDENTICAL_CALLS {
                return Some(format!("`{}` was called {count} times with the same arguments", call.name));
            }
        }
        match self.replies.last_chunk() {
            Some([a, b, c, d]) if a == c && b == d && a != b => {
                Some("two replies with the same calls alternated".to_owned())
            }
            _ => None,
        }
    }
}

fn fingerprint(call: &ToolCall) -> Fingerprint {
    let mut text = Value::from(call.name.as_str()).to_string();
    write_canonical(&call.args, &mut text);
    Sha256::digest(text).into()
}

/// Writes JSON with the fields of objects sorted by name.
fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            out.push('{');
            for (name, value) in fields {
                out.push_str(&Value::from(name.as_str()).to_string());
                out.push(':');
                write_canonical(value, out);
                out.push(',');
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write_canonical(item, out);
                out.push(',');
            }
            out.push(']');
        }
        other => out.push_str(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tambour::event::ToolCall;

    use super::CallRepeats;

    fn call(name: &str, args: Value) -> ToolCall {
        ToolCall { call_id: String::new(), name: name.into(), args }
    }

    #[test]
    fn a_call_is_the_same_whatever_the_order_of_its_fields() {
        let mut repeats = CallRepeats::default();
        assert_eq!(repeats.add(&[call("a", json!({"x": 1, "y": {"p": [1], "q": 2}}))]), None);
        assert_eq!(repeats.add(&[call("a", json!({"y": {"q": 2, "p": [1]}, "x": 1}))]), None);
        assert_eq!(repeats.add(&[call("a", json!({"x": 2}))]), None);
        assert_eq!(repeats.add(&[call("b", json!({"x": 1, "y": {"p": [1], "q": 2}}))]), None);
        assert!(repeats.add(&[call("a", json!({"x": 1, "y": {"p": [1], "q": 2}}))]).is_some());
    }

    #[test]
    fn two_replies_that_alternate_twice_are_a_repetition() {
        let mut repeats = CallRepeats::default();
        let (a, b) = (call("a", json!({})), call("b", json!({})));
        assert_eq!(repeats.add(std::slice::from_ref(&a)), None);
        assert_eq!(repeats.add(std::slice::from_ref(&b)), None);
        assert_eq!(repeats.add(std::slice::from_ref(&a)), None);
        assert!(repeats.add(std::slice::from_ref(&b)).is_some());
        let mut repeats = CallRepeats::default();
        assert_eq!(repeats.add(&[a.clone(), b.clone()]), None);
        assert_eq!(repeats.add(&[a, b]), None);
    }
}
