//! Fields of one mapping, taken by name; fields that were not taken are unknown (S-012).

use serde_json::{Map, Value};

use super::model::Spot;
use super::node::{Entry, Kind, Node, object};
use super::problem::Problem;
use super::rules;
use tambour::finding::{Report, Rule, clip};
use tambour::texts::{Language, bilingual};

/// List of problems, with its limit and language.
pub(super) struct Problems {
    pub(super) list: Vec<Problem>,
    /// Number of problems that may still be added.
    pub(super) room: usize,
    /// Language of the messages.
    pub(super) language: Language,
}

/// Name of a part of a script, in Chinese and in English.
pub(super) type Noun = (&'static str, &'static str);

impl Problems {
    /// Returns the name of a part in the language of the problems.
    pub(super) fn noun(&self, (zh, en): Noun) -> &'static str {
        match self.language {
            Language::Zh => zh,
            Language::En => en,
        }
    }

    /// Describes a value in that language.
    pub(super) fn what(&self, node: &Node) -> String {
        node.what(self.language)
    }

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
    /// Set if the field is in `config`.
    nested: bool,
}

impl<'a> Field<'a> {
    pub(super) fn node(self) -> &'a Node {
        &self.entry.value
    }
}

/// Reports a text that is entirely in curly quotes, as if they were YAML quotes.
pub(super) fn curly(fields: &Fields<'_>, field: Field<'_>, problems: &mut Problems) {
    let Kind::Text(text) = &field.node().kind else { return };
    let is_curly = |c: char| matches!(c, '“' | '”' | '‘' | '’');
    let inside = [('“', '”'), ('‘', '’')]
        .iter()
        .find_map(|(open, close)| text.trim().strip_prefix(*open)?.strip_suffix(*close));
    if inside.is_some_and(|inside| !inside.contains(is_curly)) {
        let message = bilingual!(
            problems.language,
            "`{}` 外面的弯引号会成为文本的一部分；YAML 的引号是直的，或者不用引号",
            "the curly quotes around `{}` are part of its text; those of YAML are straight, or there are none",
            clip(&field.entry.key, 80)
        );
        fields.fault(field, rules::QUOTES_CURLY, "S-001", message, problems);
    }
}

/// Describes a missing field of a part.
fn lacks(what: Noun, name: &str, problems: &Problems) -> String {
    bilingual!(problems.language, "{}没有 `{}`", "{} has no `{}`", problems.noun(what), name)
}

/// Describes a field that should be a text.
pub(super) fn no_text(field: Field<'_>, problems: &Problems) -> String {
    let (key, what) = (clip(&field.entry.key, 80), problems.what(field.node()));
    let message = bilingual!(problems.language, "`{}` 应是文本，不是{}", "`{}` is a text, not {}", key, what);
    match &field.node().kind {
        // YAML reads an unquoted `{name}` as a map.
        Kind::Map(entries) if entries.len() == 1 && entries[0].value.is_null() => {
            let name = clip(&entries[0].key, 80);
            let quoted = bilingual!(
                problems.language,
                "；以 `{{` 开头的文本要加引号：`\"{{{}}}\"`",
                "; a text that begins with `{{` stands in quotes: `\"{{{}}}\"`",
                name
            );
            message + &quoted
        }
        _ => message,
    }
}

/// Reader of the fields of one mapping.
pub(super) struct Fields<'a> {
    /// Path of the mapping.
    pub(super) path: String,
    /// Place of the mapping.
    pub(super) spot: Spot,
    fields: Vec<(Field<'a>, bool)>,
    /// Known names, whether taken or not.
    known: Vec<&'static str>,
}

/// Names of the flat layout that have no effect and are not faults (S-013).
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
    /// Creates a reader of a mapping; reports a value that is not one.
    pub(super) fn of(
        node: &'a Node,
        path: String,
        (what, row): (Noun, &'static str),
        problems: &mut Problems,
    ) -> Option<Fields<'a>> {
        let Kind::Map(entries) = &node.kind else {
            let message = bilingual!(
                problems.language,
                "{}应是由字段组成的映射，不是{}",
                "{} is a map of fields, not {}",
                problems.noun(what),
                problems.what(node)
            );
            problems.add(path, node.spot, rules::FIELD_TYPE, row, message);
            return None;
        };
        let fields = entries.iter().map(|entry| (Field { entry, nested: false }, false)).collect();
        Some(Fields { path, spot: node.spot, fields, known: Vec::new() })
    }

    /// Adds the fields of `config`, after those beside it (S-013).
    pub(super) fn with_config(mut self, problems: &mut Problems) -> Fields<'a> {
        let Some(config) = self.take(&["config"]) else { return self };
        match &config.node().kind {
            Kind::Map(entries) => {
                let nested = entries.iter().map(|entry| (Field { entry, nested: true }, false));
                self.fields.extend(nested);
            }
            Kind::Null => {}
            _ => {
                let message = bilingual!(
                    problems.language,
                    "`config` 应是由字段组成的映射，不是{}",
                    "`config` is a map of fields, not {}",
                    problems.what(config.node())
                );
                self.fault(config, rules::FIELD_TYPE, "S-011", message, problems);
            }
        }
        self
    }

    /// Takes the first of these names that is present. All of them count as known.
    pub(super) fn take(&mut self, names: &[&'static str]) -> Option<Field<'a>> {
        self.known.extend(names);
        names.iter().find_map(|name| {
            let (field, taken) =
                self.fields.iter_mut().find(|(field, taken)| field.entry.key == *name && !taken)?;
            *taken = true;
            Some(*field)
        })
    }

    /// Returns the places of all values by field name.
    pub(super) fn spots(&self) -> Vec<(String, Spot)> {
        self.fields.iter().map(|(field, _)| (field.entry.key.clone(), field.node().spot)).collect()
    }

    /// Returns the path of a field.
    pub(super) fn path_of(&self, field: Field<'_>) -> String {
        let config = if field.nested { "config." } else { "" };
        join(&self.path, &format!("{config}{}", clip(&field.entry.key, 80)))
    }

    /// Reports a fault of a field.
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

    /// Reports a missing field.
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

    /// Suggests a field with a name similar to one of these missing names, to be appended to a message; the
    /// field is not reported again. Empty if there is none.
    pub(super) fn meant(&mut self, names: &[&'static str], problems: &Problems) -> String {
        let known = &self.known;
        let meant = self.fields.iter_mut().find(|(field, taken)| {
            let key = field.entry.key.as_str();
            !taken && !CARRIED.contains(&key) && !known.contains(&key) && close(key, names).is_some()
        });
        let Some((field, taken)) = meant else { return String::new() };
        *taken = true;
        let key = clip(&field.entry.key, 80);
        bilingual!(problems.language, "；是不是把它写成了 `{}`？", "; is `{}` meant to be it?", key)
    }

    /// Takes a required, non-blank text under one of these names.
    pub(super) fn name(
        &mut self,
        what: Noun,
        names: &[&'static str],
        row: &'static str,
        problems: &mut Problems,
    ) -> Option<String> {
        let Some(field) = self.take(names) else {
            let message = lacks(what, names[0], problems) + &self.meant(names, problems);
            self.missing(names[0], rules::FIELD_MISSING, row, message, problems);
            return None;
        };
        curly(self, field, problems);
        let text = match &field.node().kind {
            Kind::Text(text) => text.clone(),
            // Names such as 1 or true need no quotes.
            Kind::Number(number) => number.to_string(),
            Kind::Bool(flag) => flag.to_string(),
            _ => {
                let message = no_text(field, problems);
                self.fault(field, rules::FIELD_TYPE, row, message, problems);
                return None;
            }
        };
        if text.trim().is_empty() {
            let message =
                bilingual!(problems.language, "`{}` 是空的", "`{}` is empty", clip(&field.entry.key, 80));
            self.fault(field, rules::FIELD_MISSING, row, message, problems);
            return None;
        }
        Some(text)
    }

    /// Takes an optional text.
    pub(super) fn text(
        &mut self,
        names: &[&'static str],
        row: &'static str,
        problems: &mut Problems,
    ) -> Option<String> {
        let field = self.take(names).filter(|field| !field.node().is_null())?;
        if field.entry.key != "condition" {
            // Faults of a condition are reported with it.
            curly(self, field, problems);
        }
        match &field.node().kind {
            Kind::Text(text) => Some(text.clone()),
            _ => {
                let message = no_text(field, problems);
                self.fault(field, rules::FIELD_TYPE, row, message, problems);
                None
            }
        }
    }

    /// Takes `true` or `false`, or returns the default.
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
                let message = bilingual!(
                    problems.language,
                    "`{}` 应是 true 或 false，不是{}",
                    "`{}` is true or false, not {}",
                    name,
                    problems.what(field.node())
                );
                self.fault(field, rules::FIELD_TYPE, row, message, problems);
                default
            }
        }
    }

    /// Takes the rounds of an action, from 1 to 20 (S-006).
    pub(super) fn rounds(&mut self, default: u32, problems: &mut Problems) -> u32 {
        let Some(field) = self.take(&["max_rounds"]) else { return default };
        let given = match &field.node().kind {
            Kind::Number(number) => number.as_u64().or_else(|| number.as_i64().map(|_| 0)),
            _ => None,
        };
        match given {
            Some(rounds @ 1..=20) => rounds as u32,
            Some(_) => {
                let message = bilingual!(
                    problems.language,
                    "`max_rounds` 应在 1 到 20 之间，不是{}",
                    "`max_rounds` is from 1 to 20, not {}",
                    problems.what(field.node())
                );
                self.fault(field, rules::FIELD_RANGE, "S-006", message, problems);
                default
            }
            None => {
                let message = bilingual!(
                    problems.language,
                    "`max_rounds` 应是整数，不是{}",
                    "`max_rounds` is a whole number, not {}",
                    problems.what(field.node())
                );
                self.fault(field, rules::FIELD_TYPE, "S-006", message, problems);
                default
            }
        }
    }

    /// Takes the items of a list under one of these names; `None` if it is absent and optional, or not a
    /// list.
    pub(super) fn list(
        &mut self,
        what: Option<Noun>,
        names: &[&'static str],
        row: &'static str,
        problems: &mut Problems,
    ) -> Option<(String, &'a [Node])> {
        let Some(field) = self.take(names) else {
            if let Some(what) = what {
                let message = lacks(what, names[0], problems) + &self.meant(names, problems);
                self.missing(names[0], rules::FIELD_MISSING, row, message, problems);
            }
            return None;
        };
        match &field.node().kind {
            Kind::List(items) => Some((self.path_of(field), items)),
            Kind::Null if what.is_none() => None,
            _ => {
                let message = bilingual!(
                    problems.language,
                    "`{}` 应是列表，不是{}",
                    "`{}` is a list, not {}",
                    clip(&field.entry.key, 80),
                    problems.what(field.node())
                );
                self.fault(field, rules::FIELD_TYPE, row, message, problems);
                None
            }
        }
    }

    /// Returns the fields that were not taken, without reporting them.
    pub(super) fn kept(self) -> Map<String, Value> {
        let left = self.fields.iter().filter(|(_, taken)| !taken);
        object(left.map(|(field, _)| field.entry))
    }

    /// Returns the fields that were not taken, and reports each with the name it may stand for (S-012).
    pub(super) fn rest(self, problems: &mut Problems) -> Map<String, Value> {
        for (field, taken) in &self.fields {
            let key = field.entry.key.as_str();
            if *taken || CARRIED.contains(&key) || self.known.contains(&key) {
                continue;
            }
            let message = match close(key, &self.known) {
                Some(name) => bilingual!(
                    problems.language,
                    "没有字段 `{}`；是不是 `{}`？",
                    "there is no field `{}`; did you mean `{}`?",
                    clip(key, 80),
                    name
                ),
                None => bilingual!(
                    problems.language,
                    "没有字段 `{}`；它会保留，但不起作用",
                    "there is no field `{}`; it is kept and not read",
                    clip(key, 80)
                ),
            };
            let spot = field.entry.spot;
            problems.add(self.path_of(*field), spot, rules::FIELD_UNKNOWN, "S-012", message);
        }
        self.kept()
    }
}

/// Returns the name that a word resembles, if any.
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
