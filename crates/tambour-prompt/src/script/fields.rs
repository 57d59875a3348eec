//! Reader of the fields of a mapping. Fields are taken by name; those that were not taken are unknown
//! (S-012).

use serde_json::{Map, Value};

use super::model::SourceSpot;
use super::node::{NodeField, NodeValue, SpannedNode, to_object};
use super::problem::ScriptProblem;
use super::rules;
use tambour::finding::{FindingReport, Rule, clip};
use tambour::texts::{Language, bilingual};

/// List of problems, up to a limit. The parameter `row` of the functions in this folder is the
/// row of the specification that a problem breaks.
pub(super) struct ProblemList {
    problems: Vec<ScriptProblem>,
    /// Maximum number of errors, and of warnings. [`ProblemList::into_problems`] drops warnings until both
    /// together are within the limit.
    limit: usize,
    error_count: usize,
    warning_count: usize,
    /// Language of the messages.
    pub(super) language: Language,
}

/// Name of a kind of part of a script, such as a session, in Chinese and in English.
pub(super) type Noun = (&'static str, &'static str);

impl ProblemList {
    /// Creates an empty list for at most `limit` problems; a limit of 0 counts as 1.
    pub(super) fn new(limit: usize, language: Language) -> ProblemList {
        ProblemList { problems: Vec::new(), limit: limit.max(1), error_count: 0, warning_count: 0, language }
    }

    /// Returns the problems in source order. If errors and warnings together exceed the limit, the last
    /// warnings are dropped.
    pub(super) fn into_problems(self) -> Vec<ScriptProblem> {
        let mut problems = self.problems;
        let mut warnings_left = self.limit.saturating_sub(self.error_count);
        problems.retain(|problem| {
            if problem.is_error() {
                return true;
            }
            let is_kept = warnings_left > 0;
            warnings_left = warnings_left.saturating_sub(1);
            is_kept
        });
        problems.sort_by_key(|problem| problem.report.place.offset);
        problems
    }

    /// Returns the name of a kind of part in the language of the problems.
    pub(super) fn noun(&self, (zh, en): Noun) -> &'static str {
        match self.language {
            Language::Zh => zh,
            Language::En => en,
        }
    }

    /// Describes a value in the language of the problems.
    pub(super) fn describe(&self, node: &SpannedNode) -> String {
        node.describe(self.language)
    }

    /// Adds a problem, unless the limit is reached. Errors and warnings are counted separately, so that
    /// warnings never displace errors.
    pub(super) fn add(
        &mut self,
        path: String,
        spot: SourceSpot,
        rule: &'static Rule,
        row: &'static str,
        message: String,
    ) {
        let report = FindingReport::new(rule, spot.place, spot.end, message).with_row(row);
        self.push(ScriptProblem::new(path, report));
    }

    /// Adds a problem like [`ProblemList::add`].
    pub(super) fn push(&mut self, problem: ScriptProblem) {
        let count = if problem.is_error() { &mut self.error_count } else { &mut self.warning_count };
        if *count < self.limit {
            *count += 1;
            self.problems.push(problem);
        }
    }
}

/// A field of a mapping, or of its `config`.
#[derive(Clone, Copy)]
pub(super) struct FieldRef<'a> {
    pub(super) entry: &'a NodeField,
    /// True if the field is in `config`.
    is_in_config: bool,
}

impl<'a> FieldRef<'a> {
    /// Returns the value of the field.
    pub(super) fn node(self) -> &'a SpannedNode {
        &self.entry.value
    }
}

/// Reports a text that is entirely in curly quotes, as if they were YAML quotes.
pub(super) fn report_curly_quotes(fields: &FieldReader<'_>, field: FieldRef<'_>, problems: &mut ProblemList) {
    let NodeValue::Text(text) = &field.node().kind else { return };
    let is_curly = |c: char| matches!(c, '“' | '”' | '‘' | '’');
    let content = [('“', '”'), ('‘', '’')]
        .iter()
        .find_map(|(open, close)| text.trim().strip_prefix(*open)?.strip_suffix(*close));
    if content.is_some_and(|content| !content.contains(is_curly)) {
        let message = bilingual!(
            problems.language,
            "`{}` 外面的弯引号会成为文本的一部分；YAML 的引号是直的，或者不用引号",
            "the curly quotes around `{}` are part of its text; use straight quotes, or none",
            clip(&field.entry.key, 80)
        );
        fields.report(field, rules::QUOTES_CURLY, "S-001", message, problems);
    }
}

/// Describes a missing field; `noun` names the part that lacks it.
fn missing_message(noun: Noun, name: &str, problems: &ProblemList) -> String {
    bilingual!(problems.language, "{}没有 `{}`", "{} has no `{}`", problems.noun(noun), name)
}

/// Describes a field that should be a text.
pub(super) fn not_text_message(field: FieldRef<'_>, problems: &ProblemList) -> String {
    let (key, description) = (clip(&field.entry.key, 80), problems.describe(field.node()));
    let message = bilingual!(
        problems.language,
        "`{}` 应是文本，不是{}",
        "`{}` must be a text, not {}",
        key,
        description
    );
    match &field.node().kind {
        // YAML reads an unquoted `{name}` as a map.
        NodeValue::Map(entries) if entries.len() == 1 && entries[0].value.is_null() => {
            let name = clip(&entries[0].key, 80);
            let hint = bilingual!(
                problems.language,
                "；以 `{{` 开头的文本要加引号：`\"{{{}}}\"`",
                "; a text that begins with `{{` must be in quotes: `\"{{{}}}\"`",
                name
            );
            message + &hint
        }
        _ => message,
    }
}

/// Reader of the fields of one mapping.
pub(super) struct FieldReader<'a> {
    /// Path of the mapping.
    pub(super) path: String,
    /// Place of the mapping.
    pub(super) spot: SourceSpot,
    /// Fields; the flag is true once the field was taken.
    fields: Vec<(FieldRef<'a>, bool)>,
    /// Names that were asked for, whether present or not.
    known_names: Vec<&'static str>,
}

/// Names of the flat layout that are never reported as unknown, although most of them have no effect (S-013).
const IGNORED_NAMES: [&str; 16] = [
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

impl<'a> FieldReader<'a> {
    /// Creates a reader of a mapping; `None`, with a problem, if the value is not one. `noun` names the part.
    pub(super) fn new(
        node: &'a SpannedNode,
        path: String,
        (noun, row): (Noun, &'static str),
        problems: &mut ProblemList,
    ) -> Option<FieldReader<'a>> {
        let NodeValue::Map(entries) = &node.kind else {
            let message = bilingual!(
                problems.language,
                "{}应是由字段组成的映射，不是{}",
                "{} must be a map of fields, not {}",
                problems.noun(noun),
                problems.describe(node)
            );
            problems.add(path, node.spot, rules::FIELD_TYPE, row, message);
            return None;
        };
        let fields = entries.iter().map(|entry| (FieldRef { entry, is_in_config: false }, false)).collect();
        Some(FieldReader { path, spot: node.spot, fields, known_names: Vec::new() })
    }

    /// Adds the fields of the mapping `config`. A field outside of `config` takes precedence over one of the
    /// same name inside it (S-013).
    pub(super) fn with_config(mut self, problems: &mut ProblemList) -> FieldReader<'a> {
        let Some(config) = self.take_field(&["config"]) else { return self };
        match &config.node().kind {
            NodeValue::Map(entries) => {
                let config_fields =
                    entries.iter().map(|entry| (FieldRef { entry, is_in_config: true }, false));
                self.fields.extend(config_fields);
            }
            NodeValue::Null => {}
            _ => {
                let message = bilingual!(
                    problems.language,
                    "`config` 应是由字段组成的映射，不是{}",
                    "`config` must be a map of fields, not {}",
                    problems.describe(config.node())
                );
                self.report(config, rules::FIELD_TYPE, "S-011", message, problems);
            }
        }
        self
    }

    /// Takes the field under the first of these names that is present. All the names count as known.
    pub(super) fn take_field(&mut self, names: &[&'static str]) -> Option<FieldRef<'a>> {
        self.known_names.extend(names);
        names.iter().find_map(|name| {
            let (field, is_taken) =
                self.fields.iter_mut().find(|(field, is_taken)| field.entry.key == *name && !is_taken)?;
            *is_taken = true;
            Some(*field)
        })
    }

    /// Returns the places of all values by field name.
    pub(super) fn value_spots(&self) -> Vec<(String, SourceSpot)> {
        self.fields.iter().map(|(field, _)| (field.entry.key.clone(), field.node().spot)).collect()
    }

    /// Returns the path of a field.
    pub(super) fn field_path(&self, field: FieldRef<'_>) -> String {
        let prefix = if field.is_in_config { "config." } else { "" };
        join_path(&self.path, &format!("{prefix}{}", clip(&field.entry.key, 80)))
    }

    /// Reports a fault of a field.
    pub(super) fn report(
        &self,
        field: FieldRef<'_>,
        rule: &'static Rule,
        row: &'static str,
        message: String,
        problems: &mut ProblemList,
    ) {
        problems.add(self.field_path(field), field.node().spot, rule, row, message);
    }

    /// Reports a problem of the field `name` at the place of the mapping, because the field is missing or was
    /// taken before.
    pub(super) fn report_by_name(
        &self,
        name: &str,
        rule: &'static Rule,
        row: &'static str,
        message: String,
        problems: &mut ProblemList,
    ) {
        problems.add(join_path(&self.path, name), self.spot, rule, row, message);
    }

    /// Suggests a field with a name similar to one of these missing names, to be appended to a message; the
    /// field is not reported again. Empty if there is none.
    pub(super) fn suggest_similar(&mut self, names: &[&'static str], problems: &ProblemList) -> String {
        let known_names = &self.known_names;
        let similar = self.fields.iter_mut().find(|(field, is_taken)| {
            let key = field.entry.key.as_str();
            !is_taken
                && !IGNORED_NAMES.contains(&key)
                && !known_names.contains(&key)
                && find_similar(key, names).is_some()
        });
        let Some((field, is_taken)) = similar else { return String::new() };
        *is_taken = true;
        let key = clip(&field.entry.key, 80);
        bilingual!(problems.language, "；是不是把它写成了 `{}`？", "; is `{}` a misspelling of it?", key)
    }

    /// Takes a required text that is not blank, under one of these names; `None`, with a problem, if there is
    /// none.
    pub(super) fn take_name(
        &mut self,
        noun: Noun,
        names: &[&'static str],
        row: &'static str,
        problems: &mut ProblemList,
    ) -> Option<String> {
        let Some(field) = self.take_field(names) else {
            let message = missing_message(noun, names[0], problems) + &self.suggest_similar(names, problems);
            self.report_by_name(names[0], rules::FIELD_MISSING, row, message, problems);
            return None;
        };
        report_curly_quotes(self, field, problems);
        let text = match &field.node().kind {
            NodeValue::Text(text) => text.clone(),
            // Names such as 1 or true need no quotes.
            NodeValue::Number(number) => number.to_string(),
            NodeValue::Bool(flag) => flag.to_string(),
            _ => {
                let message = not_text_message(field, problems);
                self.report(field, rules::FIELD_TYPE, row, message, problems);
                return None;
            }
        };
        if text.trim().is_empty() {
            let message =
                bilingual!(problems.language, "`{}` 是空的", "`{}` is empty", clip(&field.entry.key, 80));
            self.report(field, rules::FIELD_MISSING, row, message, problems);
            return None;
        }
        Some(text)
    }

    /// Takes an optional text under one of these names. Null counts as absent; another value is reported.
    pub(super) fn take_text(
        &mut self,
        names: &[&'static str],
        row: &'static str,
        problems: &mut ProblemList,
    ) -> Option<String> {
        let field = self.take_field(names).filter(|field| !field.node().is_null())?;
        if field.entry.key != "condition" {
            // The check of conditions reports curly quotes itself.
            report_curly_quotes(self, field, problems);
        }
        match &field.node().kind {
            NodeValue::Text(text) => Some(text.clone()),
            _ => {
                let message = not_text_message(field, problems);
                self.report(field, rules::FIELD_TYPE, row, message, problems);
                None
            }
        }
    }

    /// Takes `true` or `false`. Returns the default if the field is absent or, with a problem, something
    /// else.
    pub(super) fn take_flag(
        &mut self,
        name: &'static str,
        default: bool,
        row: &'static str,
        problems: &mut ProblemList,
    ) -> bool {
        let Some(field) = self.take_field(&[name]) else { return default };
        match field.node().kind {
            NodeValue::Bool(flag) => flag,
            _ => {
                let message = bilingual!(
                    problems.language,
                    "`{}` 应是 true 或 false，不是{}",
                    "`{}` must be true or false, not {}",
                    name,
                    problems.describe(field.node())
                );
                self.report(field, rules::FIELD_TYPE, row, message, problems);
                default
            }
        }
    }

    /// Takes `max_rounds` of an action, from 1 to 20 (S-006). Returns the default if the field is absent or,
    /// with a problem, something else.
    pub(super) fn take_rounds(&mut self, default: u32, problems: &mut ProblemList) -> u32 {
        let Some(field) = self.take_field(&["max_rounds"]) else { return default };
        let rounds = match &field.node().kind {
            // A negative number counts as 0, which is out of range as well.
            NodeValue::Number(number) => number.as_u64().or_else(|| number.as_i64().map(|_| 0)),
            _ => None,
        };
        match rounds {
            Some(rounds @ 1..=20) => rounds as u32,
            Some(_) => {
                let message = bilingual!(
                    problems.language,
                    "`max_rounds` 应在 1 到 20 之间，不是{}",
                    "`max_rounds` must be from 1 to 20, not {}",
                    problems.describe(field.node())
                );
                self.report(field, rules::FIELD_RANGE, "S-006", message, problems);
                default
            }
            None => {
                let message = bilingual!(
                    problems.language,
                    "`max_rounds` 应是整数，不是{}",
                    "`max_rounds` must be a whole number, not {}",
                    problems.describe(field.node())
                );
                self.report(field, rules::FIELD_TYPE, "S-006", message, problems);
                default
            }
        }
    }

    /// Takes the items of a list under one of these names, with the path of the list; `None` if it is absent,
    /// or not a list. `noun` names the part that needs the list; without it, the list is optional.
    pub(super) fn take_list(
        &mut self,
        noun: Option<Noun>,
        names: &[&'static str],
        row: &'static str,
        problems: &mut ProblemList,
    ) -> Option<(String, &'a [SpannedNode])> {
        let Some(field) = self.take_field(names) else {
            if let Some(noun) = noun {
                let message =
                    missing_message(noun, names[0], problems) + &self.suggest_similar(names, problems);
                self.report_by_name(names[0], rules::FIELD_MISSING, row, message, problems);
            }
            return None;
        };
        match &field.node().kind {
            NodeValue::List(items) => Some((self.field_path(field), items)),
            NodeValue::Null if noun.is_none() => None,
            _ => {
                let message = bilingual!(
                    problems.language,
                    "`{}` 应是列表，不是{}",
                    "`{}` must be a list, not {}",
                    clip(&field.entry.key, 80),
                    problems.describe(field.node())
                );
                self.report(field, rules::FIELD_TYPE, row, message, problems);
                None
            }
        }
    }

    /// Returns the fields that were not taken, without reporting them.
    pub(super) fn into_remaining(self) -> Map<String, Value> {
        let remaining = self.fields.iter().filter(|(_, is_taken)| !is_taken);
        to_object(remaining.map(|(field, _)| field.entry))
    }

    /// Returns the fields that were not taken, and reports the unknown ones among them, each with the known
    /// name that it may be a misspelling of (S-012).
    pub(super) fn report_remaining(self, problems: &mut ProblemList) -> Map<String, Value> {
        for (field, is_taken) in &self.fields {
            let key = field.entry.key.as_str();
            if *is_taken || IGNORED_NAMES.contains(&key) || self.known_names.contains(&key) {
                continue;
            }
            let message = match find_similar(key, &self.known_names) {
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
                    "unknown field `{}`; it is kept but has no effect",
                    clip(key, 80)
                ),
            };
            let spot = field.entry.spot;
            problems.add(self.field_path(*field), spot, rules::FIELD_UNKNOWN, "S-012", message);
        }
        self.into_remaining()
    }
}

/// Returns the name that a word resembles most, if they differ in at most a third of the name's characters,
/// or in one character.
pub(super) fn find_similar<'n>(word: &str, names: &[&'n str]) -> Option<&'n str> {
    // No name is nearly this long, so a comparison would only take time.
    if word.len() > 80 {
        return None;
    }
    let distance = |name: &str| strsim::damerau_levenshtein(word, name);
    let best = names.iter().copied().min_by_key(|name| distance(name))?;
    (distance(best) <= (best.chars().count() / 3).max(1)).then_some(best)
}

/// Returns the path of a field of the part at `path`.
pub(super) fn join_path(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
