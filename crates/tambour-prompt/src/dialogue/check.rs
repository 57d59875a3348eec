//! Checks a script against the templates it uses (S-022, S-038, S-043).

use std::collections::BTreeSet;

use serde_json::Value;

use super::call::template_id;
use super::machine::Templates;
use super::types::{self, Known};
use super::words;
use super::{condition, rules::script as rules};
use crate::script::{Action, ActionKind, Declared, Loaded, Problem, Script, Session, Spot};
use crate::template::{Layer, SYSTEM_NAMES, Template};
use tambour::finding::{Report, Rule, clip};
use tambour::texts::{Language, bilingual};

/// Variables provided by the machine.
const OWN: [&str; 2] = ["topic_content", "output_fields"];
/// Variables with a system variable that reads them and has a default (S-030, S-031).
const NAMES: [(&str, &str); 2] = [("咨询师名", "{%who%}"), ("用户名", "{%user%}")];

/// Field names for the content of `ai_say`.
const CONTENT: [&str; 3] = ["content", "content_template", "ai_say"];

/// Checks a script together with its templates: missing templates, variables without a value, unused
/// variables, invalid conditions. Problems are in source order.
#[must_use]
pub fn check(script: &Script, templates: &dyn Templates, language: Language) -> Vec<Problem> {
    check_told(script, templates, (language, language))
}

/// As [`check`], with the language of the texts and that of the problems.
fn check_told(
    script: &Script,
    templates: &dyn Templates,
    (texts, language): (Language, Language),
) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (index, session) in script.sessions.iter().enumerate() {
        let mut check = Check {
            templates,
            texts,
            language,
            problems: &mut problems,
            used: BTreeSet::new(),
            types: types::of(session),
        };
        let path = if is_flat(session) { "session".to_owned() } else { format!("sessions[{index}]") };
        check.session(session, &path);
    }
    problems.sort_by_key(|problem| problem.report.place.offset);
    problems
}

/// Returns all problems of a loaded script and its templates in source order. For a script with errors, the
/// readable part is checked; unused variables are not reported then, because their use may not have been
/// read.
#[must_use]
pub fn check_all(loaded: Loaded, templates: &dyn Templates, language: Language) -> Vec<Problem> {
    check_all_told(loaded, templates, language, language)
}

/// As [`check_all`], with the problems in the language of who reads them: which templates the script uses follows from that of the texts.
#[must_use]
pub fn check_all_told(
    loaded: Loaded,
    templates: &dyn Templates,
    texts: Language,
    told: Language,
) -> Vec<Problem> {
    let Loaded { script, part, mut problems } = loaded;
    let whole = script.is_some();
    if let Some(script) = script.or(part) {
        let found = check_told(&script, templates, (texts, told)).into_iter();
        problems
            .extend(found.filter(|problem| whole || problem.report.rule.code != rules::VARIABLE_UNUSED.code));
    }
    problems.sort_by_key(|problem| problem.report.place.offset);
    problems
}

/// Returns true if the session has the flat layout, judged by the paths of its actions.
fn is_flat(session: &Session) -> bool {
    session.actions().next().is_some_and(|action| action.path.starts_with("session."))
}

struct Check<'a> {
    templates: &'a dyn Templates,
    /// Language of the texts, whose templates are used.
    texts: Language,
    /// Language of the problems.
    language: Language,
    problems: &'a mut Vec<Problem>,
    /// Variables that are used.
    used: BTreeSet<String>,
    /// Known types of variables.
    types: Known,
}

impl Check<'_> {
    fn add(&mut self, path: String, spot: Spot, rule: &'static Rule, row: &'static str, message: String) {
        let report = Report::new(rule, spot.place, spot.end, message).row(row);
        self.problems.push(Problem::new(path, report));
    }

    fn session(&mut self, session: &Session, path: &str) {
        // A variable set by an action counts as known everywhere; the order of actions is not considered.
        let mut known: BTreeSet<&str> = session.actions().flat_map(assigned).collect();
        let mut declared: Vec<(String, &Declared)> = Vec::new();
        let of = |path: &str, declare: &'_ [Declared]| -> Vec<String> {
            (0..declare.len()).map(|index| format!("{path}.declare[{index}]")).collect()
        };
        declared.extend(of(path, &session.declare).into_iter().zip(&session.declare));
        known.extend(session.declare.iter().map(|declared| declared.var.as_str()));
        for (number, phase) in session.phases.iter().enumerate() {
            let path = format!("{path}.phases[{number}]");
            declared.extend(of(&path, &phase.declare).into_iter().zip(&phase.declare));
            let mut known = known.clone();
            known.extend(phase.declare.iter().map(|declared| declared.var.as_str()));
            for (number, step) in phase.steps.iter().enumerate() {
                let path = format!("{path}.steps[{number}]");
                declared.extend(of(&path, &step.declare).into_iter().zip(&step.declare));
                let mut known = known.clone();
                known.extend(step.declare.iter().map(|declared| declared.var.as_str()));
                step.actions.iter().for_each(|action| self.action(action, &known));
            }
        }
        for (path, declared) in declared {
            let name = &declared.var;
            let marker = Template::parse(format!("{{{name}}}"));
            if marker.variables(Layer::Script) != [name.as_str()] {
                let message = bilingual!(
                    self.language,
                    "`{}` 不能写成模板里的变量",
                    "`{}` cannot be written as a variable of a template",
                    clip(name, 80)
                );
                self.add(path, declared.spot, rules::NAME_INVALID, "S-040", message);
            } else if !self.used.contains(name) && NAMES.iter().all(|(read, _)| read != name) {
                let message = bilingual!(
                    self.language,
                    "变量 `{}` 没有被用到",
                    "nothing uses the variable `{}`",
                    clip(name, 80)
                );
                self.add(path, declared.spot, rules::VARIABLE_UNUSED, "S-043", message);
            }
        }
    }

    fn action(&mut self, action: &Action, known: &BTreeSet<&str>) {
        if let Some(text) = &action.condition {
            let (path, spot) = (format!("{}.condition", action.path), action.spot_of(&["condition"]));
            match condition::uses(text, self.language) {
                Ok(names) => {
                    for message in types::differ(text, &self.types, self.language) {
                        self.add(path.clone(), spot, rules::TYPES_DIFFER, "S-011", message);
                    }
                    for name in names {
                        if !known.contains(name.as_str()) && !condition::asks_for_existence(text) {
                            let message = bilingual!(
                                self.language,
                                "条件用到了 `{}`，它没有值{}",
                                "the condition uses `{}`, which has no value{}",
                                clip(&name, 80),
                                condition::instead(&name, self.language)
                            );
                            self.add(path.clone(), spot, rules::VARIABLE_UNRESOLVED, "S-043", message);
                        }
                        self.used.insert(name);
                    }
                }
                Err(why) => {
                    let message = bilingual!(
                        self.language,
                        "条件按不成立处理：{}",
                        "the condition counts as false: {}",
                        clip(&why, 400)
                    );
                    self.add(path, spot, rules::CONDITION_INVALID, "S-011", message);
                }
            }
        }
        for (name, text) in texts(action) {
            let names = if name == "content" { &CONTENT[..] } else { &[name] };
            let spot = action.spot_of(names);
            self.text((&action.path, spot), &format!("`{name}`"), &Template::parse(text), known, "S-038");
            self.braces((&action.path, spot), name, text, known);
        }
        let Some(id) = template_id(action, self.texts) else { return };
        match self.templates.template(&id) {
            Ok(template) => self.text(
                (&action.path, action.spot_of(&["template"])),
                &bilingual!(self.language, "模板 `{}` ", "the template `{}`", id),
                &template,
                known,
                "S-043",
            ),
            Err(error) => {
                let (path, spot) = (action.path.clone(), action.spot_of(&["template"]));
                let message = words::no_template(&id, &error, self.language);
                self.add(path, spot, rules::TEMPLATE_NOT_FOUND, "S-022", message);
            }
        }
    }

    /// Reports names in braces with inner white space, which would be variables without it.
    fn braces(&mut self, (path, spot): (&str, Spot), what: &str, text: &str, known: &BTreeSet<&str>) {
        let mut told = BTreeSet::new();
        for piece in text.split('{').skip(1) {
            let Some((inside, _)) = piece.split_once('}') else { continue };
            let name = inside.trim();
            let is_variable = known.contains(name) || OWN.contains(&name);
            if name != inside && is_variable && told.insert(name) {
                let message = bilingual!(
                    self.language,
                    "`{}` 里的 `{{{}}}` 会原样显示；变量名两边不留空格：`{{{}}}`",
                    "`{}` shows `{{{}}}` as it is; a variable has no blanks inside its braces: `{{{}}}`",
                    what,
                    clip(inside, 80),
                    clip(name, 80)
                );
                self.used.insert(name.to_owned());
                self.add(path.to_owned(), spot, rules::BRACES_BLANK, "S-040", message);
            }
        }
    }

    /// Checks the variables of a text or template.
    fn text(
        &mut self,
        (path, spot): (&str, Spot),
        what: &str,
        template: &Template,
        known: &BTreeSet<&str>,
        row: &'static str,
    ) {
        for name in template.variables(Layer::Script) {
            if !known.contains(name) && !OWN.contains(&name) {
                let mut message = bilingual!(
                    self.language,
                    "{}用到了 `{{{}}}`，它没有值",
                    "{} uses `{{{}}}`, which has no value",
                    what,
                    clip(name, 80)
                );
                if let Some((_, system)) = NAMES.iter().find(|(read, _)| *read == name) {
                    message.push_str(&bilingual!(
                        self.language,
                        "；声明它，或写成 `{}`，它有默认值",
                        "; declare it, or write `{}`, which has a default",
                        system
                    ));
                }
                self.add(path.to_owned(), spot, rules::VARIABLE_UNRESOLVED, row, message);
            }
            self.used.insert(name.to_owned());
        }
        for name in template.variables(Layer::System) {
            if !SYSTEM_NAMES.contains(&name) {
                let message = bilingual!(
                    self.language,
                    "{}用到了 `{{%{}%}}`，系统没有这个变量",
                    "{} uses `{{%{}%}}`, which the system does not have",
                    what,
                    clip(name, 80)
                );
                self.add(path.to_owned(), spot, rules::VARIABLE_UNRESOLVED, row, message);
            }
        }
    }
}

/// Returns the variables that an action sets.
pub(super) fn assigned(action: &Action) -> Vec<&str> {
    match &action.kind {
        ActionKind::Say(_) => Vec::new(),
        ActionKind::Ask(ask) => ask.variable.iter().map(String::as_str).collect(),
        ActionKind::Think(think) => think.output.iter().map(|(name, _)| name.as_str()).collect(),
        ActionKind::Client(client) => client.variable.iter().map(String::as_str).collect(),
    }
}

/// Returns the texts of an action that may contain variables, by field.
fn texts(action: &Action) -> Vec<(&str, &str)> {
    match &action.kind {
        ActionKind::Say(say) => vec![("content", say.content.as_str())],
        ActionKind::Ask(ask) => ask.question.iter().map(|text| ("question", text.as_str())).collect(),
        ActionKind::Think(think) => {
            let prompt = think.prompt.iter().map(|text| ("prompt", text.as_str()));
            prompt.chain(think.output.iter().map(|(_, about)| ("output", about.as_str()))).collect()
        }
        ActionKind::Client(client) => {
            let mut found = Vec::new();
            let fields = client.fields.iter();
            fields.for_each(|(name, value)| strings(name, value, &mut found));
            found
        }
    }
}

fn strings<'a>(name: &'a str, value: &'a Value, found: &mut Vec<(&'a str, &'a str)>) {
    match value {
        Value::String(text) => found.push((name, text)),
        Value::Array(items) => items.iter().for_each(|item| strings(name, item, found)),
        Value::Object(fields) => fields.iter().for_each(|(_, value)| strings(name, value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
