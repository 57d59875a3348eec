//! Loads a script from its text, with all its problems.

use super::action;
use super::fields::{FieldReader, ProblemList, join_path};
use super::model::{Script, ScriptPhase, ScriptSession, ScriptStep, VariableDeclaration};
use super::node::{NodeValue, SpannedNode, parse_yaml};
use super::problem::ScriptProblem;
use super::rules;
use tambour::finding::clip;
use tambour::limits::Limits;
use tambour::texts::{Language, bilingual};

/// Result of loading a script.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LoadedScript {
    /// The script; `None` if one of the problems is an error.
    pub script: Option<Script>,
    /// The readable part of a script with errors, for further checks. It cannot run.
    pub partial_script: Option<Script>,
    /// All problems, in source order.
    pub problems: Vec<ScriptProblem>,
}

/// Reads a script in the layout of the specification, or in the flat layout, which has a single `session` in
/// place of the list `sessions` (S-013). A field with a wrong value is an error, so that no
/// script runs with a default in its place.
///
/// Linear in the text. Reports at most `limits.findings` problems (0 counts as 1); warnings are dropped
/// before errors.
#[must_use]
pub fn load(text: &str, limits: &Limits) -> LoadedScript {
    load_with_language(text, limits, Language::En)
}

/// Like [`load`], with messages in `language`.
#[must_use]
pub fn load_with_language(text: &str, limits: &Limits, language: Language) -> LoadedScript {
    let mut problem_list = ProblemList::new(limits.findings, language);
    let script = match parse_yaml(text, limits, language) {
        Ok(root) => read_script(&root, &mut problem_list),
        Err(problem) => {
            problem_list.push(*problem);
            None
        }
    };
    let problems = problem_list.into_problems();
    let (script, partial_script) =
        if problems.iter().any(ScriptProblem::is_error) { (None, script) } else { (script, None) };
    LoadedScript { script, partial_script, problems }
}

/// Reads the root of a script; `None` if it is not a mapping.
fn read_script(root: &SpannedNode, problems: &mut ProblemList) -> Option<Script> {
    let mut fields = FieldReader::new(root, String::new(), (("脚本", "a script"), "S-001"), problems)?;
    let sessions = read_sessions(&mut fields, problems);
    Some(Script { sessions, unknown_fields: fields.report_remaining(problems) })
}

/// Reads the sessions of a script in either layout.
fn read_sessions(fields: &mut FieldReader<'_>, problems: &mut ProblemList) -> Vec<ScriptSession> {
    // The flat layout has one session and no list of sessions.
    let session_field = fields.take_field(&["session"]);
    if let Some(session_field) = session_field {
        let path = fields.field_path(session_field);
        if let NodeValue::List(items) = &session_field.node().kind {
            // A list under `session` is read as if it were under `sessions`.
            let message = bilingual!(
                problems.language,
                "会话的列表应写在 `sessions` 下，不是 `session`",
                "a list of sessions belongs under `sessions`, not under `session`"
            );
            fields.report(session_field, rules::FIELD_TYPE, "S-001", message, problems);
            return read_items(items, &path, problems, read_session);
        }
        // Makes `sessions` known, so that it is not reported as unknown.
        fields.take_field(&["sessions"]);
        return read_session(session_field.node(), path, problems).into_iter().collect();
    }
    let Some((path, items)) = fields.take_list(Some(("脚本", "a script")), &["sessions"], "S-001", problems)
    else {
        return Vec::new();
    };
    if items.is_empty() {
        problems.add(
            path.clone(),
            fields.spot,
            rules::FIELD_MISSING,
            "S-001",
            bilingual!(problems.language, "`sessions` 是空的", "`sessions` is empty"),
        );
    }
    let sessions = read_items(items, &path, problems, read_session);
    let names = sessions.iter().map(|session| (session.session.as_str(), session.spot));
    for (index, (name, spot)) in find_duplicates(names) {
        let message = bilingual!(
            problems.language,
            "已经有名为 `{}` 的会话；这一个不能按名称选择",
            "there is a session `{}` already; this one cannot be chosen by its name",
            clip(name, 80)
        );
        problems.add(format!("{path}[{index}].session"), spot, rules::NAME_TWICE, "S-001", message);
    }
    sessions
}

/// Reads each item of a list and drops unreadable ones.
fn read_items<T>(
    items: &[SpannedNode],
    path: &str,
    problems: &mut ProblemList,
    read: fn(&SpannedNode, String, &mut ProblemList) -> Option<T>,
) -> Vec<T> {
    let indexed_items = items.iter().enumerate();
    indexed_items.filter_map(|(index, item)| read(item, format!("{path}[{index}]"), problems)).collect()
}

/// Returns the names that also occur earlier in the list, each with its index and the data paired with it.
fn find_duplicates<'a, S>(names: impl Iterator<Item = (&'a str, S)>) -> Vec<(usize, (&'a str, S))> {
    let mut seen_names = std::collections::HashSet::new();
    names.enumerate().filter(|(_, (name, _))| !seen_names.insert(*name)).collect()
}

/// Reads a session; `None`, with a problem, if it is not a mapping.
fn read_session(node: &SpannedNode, path: String, problems: &mut ProblemList) -> Option<ScriptSession> {
    let mut fields = FieldReader::new(node, path, (("会话", "a session"), "S-001"), problems)?;
    let name = fields.take_name(
        ("会话", "a session"),
        &["session", "session_name", "name", "session_id"],
        "S-001",
        problems,
    );
    let declare = read_declarations(&mut fields, problems);
    let phases = fields.take_list(Some(("会话", "a session")), &["phases"], "S-001", problems);
    let phases = phases.map(|(path, items)| read_items(items, &path, problems, read_phase));
    let spot = fields.spot;
    let unknown_fields = fields.report_remaining(problems);
    Some(ScriptSession {
        session: name.unwrap_or_default(),
        declare,
        phases: phases.unwrap_or_default(),
        unknown_fields,
        spot,
    })
}

/// Reads a phase; `None`, with a problem, if it is not a mapping.
fn read_phase(node: &SpannedNode, path: String, problems: &mut ProblemList) -> Option<ScriptPhase> {
    let mut fields = FieldReader::new(node, path, (("阶段", "a phase"), "S-001"), problems)?;
    let name = fields.take_name(
        ("阶段", "a phase"),
        &["phase", "phase_name", "name", "phase_id"],
        "S-001",
        problems,
    );
    let declare = read_declarations(&mut fields, problems);
    let steps = fields.take_list(Some(("阶段", "a phase")), &["steps", "topics"], "S-001", problems);
    let steps = steps.map(|(path, items)| read_items(items, &path, problems, read_step));
    let spot = fields.spot;
    let unknown_fields = fields.report_remaining(problems);
    Some(ScriptPhase {
        phase: name.unwrap_or_default(),
        declare,
        steps: steps.unwrap_or_default(),
        unknown_fields,
        spot,
    })
}

/// Reads a step; `None`, with a problem, if it is not a mapping.
fn read_step(node: &SpannedNode, path: String, problems: &mut ProblemList) -> Option<ScriptStep> {
    let mut fields = FieldReader::new(node, path, (("步骤", "a step"), "S-001"), problems)?;
    let topic =
        fields.take_name(("步骤", "a step"), &["topic", "topic_name", "name", "topic_id"], "S-001", problems);
    let declare = read_declarations(&mut fields, problems);
    let actions = fields.take_list(Some(("步骤", "a step")), &["actions"], "S-001", problems);
    if let (Some((path, [])), Some(_)) = (&actions, &topic) {
        let message = bilingual!(
            problems.language,
            "`actions` 是空的，这一步什么也不做",
            "`actions` is empty, so the step does nothing"
        );
        problems.add(path.clone(), fields.spot, rules::ACTIONS_EMPTY, "S-001", message);
    }
    let actions = actions.map(|(path, items)| read_items(items, &path, problems, action::read_action));
    let spot = fields.spot;
    let unknown_fields = fields.report_remaining(problems);
    Some(ScriptStep {
        topic: topic.unwrap_or_default(),
        declare,
        actions: actions.unwrap_or_default(),
        unknown_fields,
        spot,
    })
}

/// Reads the variables of a session, phase or step.
fn read_declarations(fields: &mut FieldReader<'_>, problems: &mut ProblemList) -> Vec<VariableDeclaration> {
    let Some((path, items)) = fields.take_list(None, &["declare"], "S-002", problems) else {
        return Vec::new();
    };
    let declarations = read_items(items, &path, problems, read_declaration);
    let names = declarations.iter().map(|declaration| (declaration.var.as_str(), declaration.spot));
    for (index, (name, spot)) in find_duplicates(names).into_iter().filter(|(_, (name, _))| !name.is_empty())
    {
        let message = bilingual!(
            problems.language,
            "`{}` 已经声明过；以最后的值为准",
            "`{}` is declared already; the last value counts",
            clip(name, 80)
        );
        problems.add(
            join_path(&format!("{path}[{index}]"), "var"),
            spot,
            rules::NAME_TWICE,
            "S-002",
            message,
        );
    }
    declarations
}

/// Reads the declaration of a variable; `None`, with a problem, if it is not a mapping.
fn read_declaration(
    node: &SpannedNode,
    path: String,
    problems: &mut ProblemList,
) -> Option<VariableDeclaration> {
    let mut fields = FieldReader::new(node, path, (("变量声明", "a declaration"), "S-002"), problems)?;
    let var = fields.take_name(("变量声明", "a declaration"), &["var"], "S-002", problems);
    let value = fields.take_field(&["value"]).map(|field| field.node());
    let value = match value.map(|node| &node.kind) {
        None | Some(NodeValue::Null) => serde_json::Value::Null,
        Some(_) => value.map(SpannedNode::to_value).unwrap_or_default(),
    };
    let spot = fields.spot;
    let unknown_fields = fields.report_remaining(problems);
    Some(VariableDeclaration { var: var.unwrap_or_default(), value, unknown_fields, spot })
}
