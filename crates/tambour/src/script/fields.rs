//! The fields of one mapping, taken by name; what is left is unknown (S-012).

use serde_json::{Map, Value};

use super::model::Spot;
use super::node::{Entry, Kind, Node, object};
use super::problem::Problem;
use super::rules;
use crate::finding::{Report, Rule, clip};

/// Where faults are gathered.
pub(super) struct Problems {
    pub(super) list: Vec<Problem>,
    /// Faults that may still be told.
    pub(super) room: usize,
}

impl Problems {
    pub(super) fn add(
        &mut self,
        path: String,
        spot: Spot,
        rule: &'static Rule,
        row: &'static str,
        message: String,
    ) {
        if self.room > 0 {
            self.room -= 1;
            let report = Report::new(rule, spot.place, spot.end, message).row(row);
            self.list.push(Problem::new(path, report));
        }
    }
}

/// A field that was taken.
#[derive(Clone, Copy)]
pub(super) struct Field<'a> {
    pub(super) entry: &'a Entry,
    /// Whether it stands in `config`.
    nested: bool,
}

impl<'a> Field<'a> {
    pub(super) fn node(self) -> &'a Node {
        &self.entry.value
    }
}

/// The fields of one mapping.
pub(super) struct Fields<'a> {
    /// The path of the mapping.
    pub(super) path: String,
    /// Where it stands.
    pub(super) spot: Spot,
    fields: Vec<(Field<'a>, bool)>,
    /// Names that are known without being taken.
    known: Vec<&'static str>,
}

/// Names of the flat layout that say nothing to us, and are no mistake (S-013).
const CARRIED: [&str; 16] = [
    "metadata",
    "description",
    "version",
    "author",
    "session_id",
    "session_name",
    "phase_id",
    "phase_name",
    "phase_goal",
    "topic_id",
    "topic_name",
    "topic_goal",
    "say_goal",
    "tone",
    "exit",
    "extraction_prompt",
];

impl<'a> Fields<'a> {
    /// The fields of a mapping; a fault if it is none.
    pub(super) fn of(
        node: &'a Node,
        path: String,
        (what, row): (&str, &'static str),
        problems: &mut Problems,
    ) -> Option<Fields<'a>> {
        let Kind::Map(entries) = &node.kind else {
            let message = format!("{what} is a map of fields, not {}", node.what());
            problems.add(path, node.spot, rules::FIELD_TYPE, row, message);
            return None;
        };
        let fields = entries.iter().map(|entry| (Field { entry, nested: false }, false)).collect();
        Some(Fields { path, spot: node.spot, fields, known: Vec::new() })
    }

    /// Takes the fields of `config` too, behind those that stand beside it (S-013).
    pub(super) fn with_config(mut self, problems: &mut Problems) -> Fields<'a> {
        let Some(config) = self.take(&["config"]) else { return self };
        match &config.node().kind {
            Kind::Map(entries) => {
                let nested = entries.iter().map(|entry| (Field { entry, nested: true }, false));
                self.fields.extend(nested);
            }
            Kind::Null => {}
            _ => {
                let message = format!("`config` is a map of fields, not {}", config.node().what());
                self.fault(config, rules::FIELD_TYPE, "S-011", message, problems);
            }
        }
        self
    }

    /// The first of these names that is there. All of them count as known.
    pub(super) fn take(&mut self, names: &[&'static str]) -> Option<Field<'a>> {
        self.known.extend(names);
        names.iter().find_map(|name| {
            let (field, taken) =
                self.fields.iter_mut().find(|(field, taken)| field.entry.key == *name && !taken)?;
            *taken = true;
            Some(*field)
        })
    }

    /// Where the values of all of them stand.
    pub(super) fn spots(&self) -> Vec<(String, Spot)> {
        self.fields.iter().map(|(field, _)| (field.entry.key.clone(), field.node().spot)).collect()
    }

    /// The path of a field.
    pub(super) fn path_of(&self, field: Field<'_>) -> String {
        let config = if field.nested { "config." } else { "" };
        join(&self.path, &format!("{config}{}", clip(&field.entry.key, 80)))
    }

    /// A fault of a field.
    pub(super) fn fault(
        &self,
        field: Field<'_>,
        rule: &'static Rule,
        row: &'static str,
        message: String,
        problems: &mut Problems,
    ) {
        problems.add(self.path_of(field), field.node().spot, rule, row, message);
    }

    /// A fault of a field that is not there.
    pub(super) fn missing(
        &self,
        name: &str,
        rule: &'static Rule,
        row: &'static str,
        message: String,
        problems: &mut Problems,
    ) {
        problems.add(join(&self.path, name), self.spot, rule, row, message);
    }

    /// A text that must be there and not be blank, under one of these names.
    pub(super) fn name(
        &mut self,
        what: &str,
        names: &[&'static str],
        row: &'static str,
        problems: &mut Problems,
    ) -> Option<String> {
        let Some(field) = self.take(names) else {
            let message = format!("{what} has no `{}`", names[0]);
            self.missing(names[0], rules::FIELD_MISSING, row, message, problems);
            return None;
        };
        let text = match &field.node().kind {
            Kind::Text(text) => text.clone(),
            // Names like 1 or true need no quotes.
            Kind::Number(number) => number.to_string(),
            Kind::Bool(flag) => flag.to_string(),
            _ => {
                let message = format!("`{}` is a text, not {}", field.entry.key, field.node().what());
                self.fault(field, rules::FIELD_TYPE, row, message, problems);
                return None;
            }
        };
        if text.trim().is_empty() {
            let message = format!("`{}` is empty", field.entry.key);
            self.fault(field, rules::FIELD_MISSING, row, message, problems);
            return None;
        }
        Some(text)
    }

    /// A text that may be absent.
    pub(super) fn text(
        &mut self,
        names: &[&'static str],
        row: &'static str,
        problems: &mut Problems,
    ) -> Option<String> {
        let field = self.take(names).filter(|field| !field.node().is_null())?;
        match &field.node().kind {
            Kind::Text(text) => Some(text.clone()),
            _ => {
                let message = format!("`{}` is a text, not {}", field.entry.key, field.node().what());
                self.fault(field, rules::FIELD_TYPE, row, message, problems);
                None
            }
        }
    }

    /// `true` or `false`, or the default.
    pub(super) fn flag(
        &mut self,
        name: &'static str,
        default: bool,
        row: &'static str,
        problems: &mut Problems,
    ) -> bool {
        let Some(field) = self.take(&[name]) else { return default };
        match field.node().kind {
            Kind::Bool(flag) => flag,
            _ => {
                let message = format!("`{name}` is true or false, not {}", field.node().what());
                self.fault(field, rules::FIELD_TYPE, row, message, problems);
                default
            }
        }
    }

    /// The rounds of an action, from 1 to 20 (S-006).
    pub(super) fn rounds(&mut self, default: u32, problems: &mut Problems) -> u32 {
        let Some(field) = self.take(&["max_rounds"]) else { return default };
        let given = match &field.node().kind {
            Kind::Number(number) => number.as_u64().or_else(|| number.as_i64().map(|_| 0)),
            _ => None,
        };
        match given {
            Some(rounds @ 1..=20) => rounds as u32,
            Some(_) => {
                let message = format!("`max_rounds` is from 1 to 20, not {}", field.node().what());
                self.fault(field, rules::FIELD_RANGE, "S-006", message, problems);
                default
            }
            None => {
                let message = format!("`max_rounds` is a whole number, not {}", field.node().what());
                self.fault(field, rules::FIELD_TYPE, "S-006", message, problems);
                default
            }
        }
    }

    /// The items of a list under one of these names; `None` when it is absent and need not be there, or is none.
    pub(super) fn list(
        &mut self,
        what: Option<&str>,
        names: &[&'static str],
        row: &'static str,
        problems: &mut Problems,
    ) -> Option<(String, &'a [Node])> {
        let Some(field) = self.take(names) else {
            if let Some(what) = what {
                let message = format!("{what} has no `{}`", names[0]);
                self.missing(names[0], rules::FIELD_MISSING, row, message, problems);
            }
            return None;
        };
        match &field.node().kind {
            Kind::List(items) => Some((self.path_of(field), items)),
            Kind::Null if what.is_none() => None,
            _ => {
                let message = format!("`{}` is a list, not {}", field.entry.key, field.node().what());
                self.fault(field, rules::FIELD_TYPE, row, message, problems);
                None
            }
        }
    }

    /// What was not taken, without a word about it.
    pub(super) fn kept(self) -> Map<String, Value> {
        let left = self.fields.iter().filter(|(_, taken)| !taken);
        object(left.map(|(field, _)| field.entry))
    }

    /// What was not taken: kept, and told with the names it may have been meant for (S-012).
    pub(super) fn rest(self, problems: &mut Problems) -> Map<String, Value> {
        for (field, taken) in &self.fields {
            let key = field.entry.key.as_str();
            if *taken || CARRIED.contains(&key) || self.known.contains(&key) {
                continue;
            }
            let message = match close(key, &self.known) {
                Some(name) => format!("there is no field `{}`; did you mean `{name}`?", clip(key, 80)),
                None => format!("there is no field `{}`; it is kept and not read", clip(key, 80)),
            };
            let spot = field.entry.spot;
            problems.add(self.path_of(*field), spot, rules::FIELD_UNKNOWN, "S-012", message);
        }
        self.kept()
    }
}

/// The name that a word was perhaps meant for.
pub(super) fn close<'n>(word: &str, names: &[&'n str]) -> Option<&'n str> {
    if word.len() > 80 {
        return None;
    }
    let likeness = |name: &str| strsim::damerau_levenshtein(word, name);
    let best = names.iter().copied().min_by_key(|name| likeness(name))?;
    (likeness(best) <= (best.chars().count() / 3).max(1)).then_some(best)
}

pub(super) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
