//! Checks a script against the templates it uses (S-022, S-038, S-043).

use std::collections::BTreeSet;

use serde_json::Value;

use super::call::template_id;
use super::machine::TemplateSource;
use super::messages;
use super::types::{self, VariableTypes};
use super::{condition, rules::script as rules};
use crate::script::{
    LoadedScript, Script, ScriptAction, ScriptActionKind, ScriptProblem, ScriptSession, SourceSpot,
    VariableDeclaration,
};
use crate::template::{Layer, LayeredTemplate, SYSTEM_NAMES};
use tambour::finding::{FindingReport, Rule, clip};
use tambour::texts::{Language, bilingual};

/// Variables that the dialogue sets for templates.
const DIALOGUE_VARIABLES: [&str; 2] = ["topic_content", "output_fields"];
/// Script variables without a default, each with the system variable to write instead. The system variable
/// prints the value of the script variable, or a default if there is no value (S-030, S-031).
const SYSTEM_ALTERNATIVES: [(&str, &str); 2] = [("咨询师名", "{%who%}"), ("用户名", "{%user%}")];

/// Field names under which a script may write the content of `ai_say`.
const CONTENT_FIELDS: [&str; 3] = ["content", "content_template", "ai_say"];

/// Checks a script together with its templates: missing templates, variables without a value, unused
/// variables, invalid conditions. Problems are in source order. `language` is that of the default templates
/// and of the problems.
#[must_use]
pub fn check(script: &Script, templates: &dyn TemplateSource, language: Language) -> Vec<ScriptProblem> {
    check_in_languages(script, templates, (language, language))
}

/// Like [`check`], with the language of the default templates and that of the problems.
fn check_in_languages(
    script: &Script,
    templates: &dyn TemplateSource,
    (template_language, report_language): (Language, Language),
) -> Vec<ScriptProblem> {
    let mut problems = Vec::new();
    for (index, session) in script.sessions.iter().enumerate() {
        let mut check = ScriptCheck {
            templates,
            template_language,
            report_language,
            problems: &mut problems,
            used_names: BTreeSet::new(),
            types: types::collect_types(session),
        };
        let path = if is_flat(session) { "session".to_owned() } else { format!("sessions[{index}]") };
        check.check_session(session, &path);
    }
    problems.sort_by_key(|problem| problem.report.place.offset);
    problems
}

/// Returns all problems of a loaded script and its templates in source order. For a script with errors, the
/// readable part is checked; unused variables are not reported then, because the unreadable part may
/// use them.
#[must_use]
pub fn check_all(
    loaded_script: LoadedScript,
    templates: &dyn TemplateSource,
    language: Language,
) -> Vec<ScriptProblem> {
    check_all_in_languages(loaded_script, templates, language, language)
}

/// Like [`check_all`], with one language that selects the default templates, and another one for the
/// problems.
#[doc(hidden)]
#[must_use]
pub fn check_all_in_languages(
    loaded_script: LoadedScript,
    templates: &dyn TemplateSource,
    template_language: Language,
    report_language: Language,
) -> Vec<ScriptProblem> {
    let LoadedScript { script, partial_script, mut problems } = loaded_script;
    let is_complete = script.is_some();
    if let Some(script) = script.or(partial_script) {
        let languages = (template_language, report_language);
        let further_problems = check_in_languages(&script, templates, languages).into_iter();
        problems.extend(
            further_problems
                .filter(|problem| is_complete || problem.report.rule.code != rules::VARIABLE_UNUSED.code),
        );
    }
    problems.sort_by_key(|problem| problem.report.place.offset);
    problems
}

/// Returns true if the session has the flat layout, in which the script is a single `session`. The paths of
/// its actions show the layout.
fn is_flat(session: &ScriptSession) -> bool {
    session.actions().next().is_some_and(|action| action.path.starts_with("session."))
}

/// Check of one session.
struct ScriptCheck<'a> {
    templates: &'a dyn TemplateSource,
    /// Language of the default templates.
    template_language: Language,
    /// Language of the problems.
    report_language: Language,
    problems: &'a mut Vec<ScriptProblem>,
    /// Names of the variables that a condition, text or template uses.
    used_names: BTreeSet<String>,
    /// Known types of variables.
    types: VariableTypes,
}

impl ScriptCheck<'_> {
    /// Adds a problem; `row` is the row of the specification that it breaks.
    fn add(
        &mut self,
        path: String,
        spot: SourceSpot,
        rule: &'static Rule,
        row: &'static str,
        message: String,
    ) {
        let report = FindingReport::new(rule, spot.place, spot.end, message).with_row(row);
        self.problems.push(ScriptProblem::new(path, report));
    }

    /// Checks the actions of a session, then its declarations.
    fn check_session(&mut self, session: &ScriptSession, path: &str) {
        // A variable set by an action counts as known everywhere; the order of actions is not considered.
        let mut known_names: BTreeSet<&str> = session.actions().flat_map(assigned_variables).collect();
        let mut declarations: Vec<(String, &VariableDeclaration)> = Vec::new();
        let paths_of = |path: &str, declare: &'_ [VariableDeclaration]| -> Vec<String> {
            (0..declare.len()).map(|index| format!("{path}.declare[{index}]")).collect()
        };
        declarations.extend(paths_of(path, &session.declare).into_iter().zip(&session.declare));
        known_names.extend(session.declare.iter().map(|declaration| declaration.var.as_str()));
        for (phase_index, phase) in session.phases.iter().enumerate() {
            let path = format!("{path}.phases[{phase_index}]");
            declarations.extend(paths_of(&path, &phase.declare).into_iter().zip(&phase.declare));
            let mut known_names = known_names.clone();
            known_names.extend(phase.declare.iter().map(|declaration| declaration.var.as_str()));
            for (step_index, step) in phase.steps.iter().enumerate() {
                let path = format!("{path}.steps[{step_index}]");
                declarations.extend(paths_of(&path, &step.declare).into_iter().zip(&step.declare));
                let mut known_names = known_names.clone();
                known_names.extend(step.declare.iter().map(|declaration| declaration.var.as_str()));
                step.actions.iter().for_each(|action| self.check_action(action, &known_names));
            }
        }
        for (path, declaration) in declarations {
            let name = &declaration.var;
            let template = LayeredTemplate::parse(format!("{{{name}}}"));
            if template.variables(Layer::Script) != [name.as_str()] {
                let message = bilingual!(
                    self.report_language,
                    "`{}` 不能写成模板里的变量",
                    "`{}` cannot be written as a variable of a template",
                    clip(name, 80)
                );
                self.add(path, declaration.spot, rules::NAME_INVALID, "S-040", message);
            } else if !self.used_names.contains(name)
                // A script variable that a system variable prints counts as used.
                && SYSTEM_ALTERNATIVES.iter().all(|(variable, _)| variable != name)
            {
                let message = bilingual!(
                    self.report_language,
                    "变量 `{}` 没有被用到",
                    "nothing uses the variable `{}`",
                    clip(name, 80)
                );
                self.add(path, declaration.spot, rules::VARIABLE_UNUSED, "S-043", message);
            }
        }
    }

    /// Checks the condition, the texts and the template of an action; `known_names` are the variables that
    /// may have a value.
    fn check_action(&mut self, action: &ScriptAction, known_names: &BTreeSet<&str>) {
        if let Some(text) = &action.condition {
            let (path, spot) = (format!("{}.condition", action.path), action.spot_of(&["condition"]));
            match condition::used_variables(text, self.report_language) {
                Ok(names) => {
                    for message in types::find_mismatches(text, &self.types, self.report_language) {
                        self.add(path.clone(), spot, rules::TYPES_DIFFER, "S-011", message);
                    }
                    for name in names {
                        if !known_names.contains(name.as_str()) && !condition::tests_existence(text) {
                            let message = bilingual!(
                                self.report_language,
                                "条件用到了 `{}`，它没有值{}",
                                "the condition uses `{}`, which has no value{}",
                                clip(&name, 80),
                                condition::suggest_name(&name, self.report_language)
                            );
                            self.add(path.clone(), spot, rules::VARIABLE_UNRESOLVED, "S-043", message);
                        }
                        self.used_names.insert(name);
                    }
                }
                Err(reason) => {
                    let message = bilingual!(
                        self.report_language,
                        "条件按不成立处理：{}",
                        "the condition counts as false: {}",
                        clip(&reason, 400)
                    );
                    self.add(path, spot, rules::CONDITION_INVALID, "S-011", message);
                }
            }
        }
        for (name, text) in action_texts(action) {
            let field_names = if name == "content" { &CONTENT_FIELDS[..] } else { &[name] };
            let spot = action.spot_of(field_names);
            self.check_text(
                (&action.path, spot),
                &format!("`{name}`"),
                &LayeredTemplate::parse(text),
                known_names,
                "S-038",
            );
            self.check_braces((&action.path, spot), name, text, known_names);
        }
        let Some(id) = template_id(action, self.template_language) else { return };
        match self.templates.template(&id) {
            Ok(template) => self.check_text(
                (&action.path, action.spot_of(&["template"])),
                &bilingual!(self.report_language, "模板 `{}` ", "the template `{}`", id),
                &template,
                known_names,
                "S-043",
            ),
            Err(error) => {
                let (path, spot) = (action.path.clone(), action.spot_of(&["template"]));
                let message = messages::template_missing(&id, &error, self.report_language);
                self.add(path, spot, rules::TEMPLATE_NOT_FOUND, "S-022", message);
            }
        }
    }

    /// Reports variables with white space next to their braces, as in `{ name }`, which are read as text.
    fn check_braces(
        &mut self,
        (path, spot): (&str, SourceSpot),
        field_name: &str,
        text: &str,
        known_names: &BTreeSet<&str>,
    ) {
        let mut reported_names = BTreeSet::new();
        for after_brace in text.split('{').skip(1) {
            let Some((content, _)) = after_brace.split_once('}') else { continue };
            let name = content.trim();
            let is_variable = known_names.contains(name) || DIALOGUE_VARIABLES.contains(&name);
            if name != content && is_variable && reported_names.insert(name) {
                let message = bilingual!(
                    self.report_language,
                    "`{}` 里的 `{{{}}}` 会原样显示；变量名两边不留空格：`{{{}}}`",
                    "`{}` shows `{{{}}}` unchanged; a variable has no blanks inside its braces: `{{{}}}`",
                    field_name,
                    clip(content, 80),
                    clip(name, 80)
                );
                self.used_names.insert(name.to_owned());
                self.add(path.to_owned(), spot, rules::BRACES_BLANK, "S-040", message);
            }
        }
    }

    /// Checks the variables of a text or template. `owner` names it in messages; `row` is the row of the
    /// specification for variables without a value.
    fn check_text(
        &mut self,
        (path, spot): (&str, SourceSpot),
        owner: &str,
        template: &LayeredTemplate,
        known_names: &BTreeSet<&str>,
        row: &'static str,
    ) {
        for name in template.variables(Layer::Script) {
            if !known_names.contains(name) && !DIALOGUE_VARIABLES.contains(&name) {
                let mut message = bilingual!(
                    self.report_language,
                    "{}用到了 `{{{}}}`，它没有值",
                    "{} uses `{{{}}}`, which has no value",
                    owner,
                    clip(name, 80)
                );
                if let Some((_, alternative)) =
                    SYSTEM_ALTERNATIVES.iter().find(|(variable, _)| *variable == name)
                {
                    message.push_str(&bilingual!(
                        self.report_language,
                        "；声明它，或写成 `{}`，它有默认值",
                        "; declare it, or write `{}`, which has a default",
                        alternative
                    ));
                }
                self.add(path.to_owned(), spot, rules::VARIABLE_UNRESOLVED, row, message);
            }
            self.used_names.insert(name.to_owned());
        }
        for name in template.variables(Layer::System) {
            if !SYSTEM_NAMES.contains(&name) {
                let message = bilingual!(
                    self.report_language,
                    "{}用到了 `{{%{}%}}`，系统没有这个变量",
                    "{} uses `{{%{}%}}`, which is not a system variable",
                    owner,
                    clip(name, 80)
                );
                self.add(path.to_owned(), spot, rules::VARIABLE_UNRESOLVED, row, message);
            }
        }
    }
}

/// Returns the variables that an action sets.
pub(super) fn assigned_variables(action: &ScriptAction) -> Vec<&str> {
    match &action.kind {
        ScriptActionKind::Say(_) => Vec::new(),
        ScriptActionKind::Ask(ask) => ask.variable.iter().map(String::as_str).collect(),
        ScriptActionKind::Think(think) => think.output.iter().map(|(name, _)| name.as_str()).collect(),
        ScriptActionKind::Client(client) => client.variable.iter().map(String::as_str).collect(),
    }
}

/// Returns the texts of an action that may contain variables, each with the name of its field.
fn action_texts(action: &ScriptAction) -> Vec<(&str, &str)> {
    match &action.kind {
        ScriptActionKind::Say(say) => vec![("content", say.content.as_str())],
        ScriptActionKind::Ask(ask) => ask.question.iter().map(|text| ("question", text.as_str())).collect(),
        ScriptActionKind::Think(think) => {
            let prompt = think.prompt.iter().map(|text| ("prompt", text.as_str()));
            prompt
                .chain(think.output.iter().map(|(_, description)| ("output", description.as_str())))
                .collect()
        }
        ScriptActionKind::Client(client) => {
            let mut texts = Vec::new();
            let fields = client.fields.iter();
            fields.for_each(|(name, value)| collect_strings(name, value, &mut texts));
            texts
        }
    }
}

/// Adds the texts of a field, at any depth, under the name of the field.
fn collect_strings<'a>(name: &'a str, value: &'a Value, texts: &mut Vec<(&'a str, &'a str)>) {
    match value {
        Value::String(text) => texts.push((name, text)),
        Value::Array(items) => items.iter().for_each(|item| collect_strings(name, item, texts)),
        Value::Object(fields) => fields.iter().for_each(|(_, value)| collect_strings(name, value, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
