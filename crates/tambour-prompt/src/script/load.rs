//! Loads a script from its text, with all its problems.

use super::action;
use super::fields::{Fields, Problems, join};
use super::model::{Declared, Phase, Script, Session, Step};
use super::node::{Kind, Node, parse};
use super::problem::Problem;
use super::rules;
use tambour::finding::clip;
use tambour::limits::Limits;
use tambour::texts::{Language, bilingual};

/// Result of loading a script.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Loaded {
    /// The script; `None` if one of the problems is an error.
    pub script: Option<Script>,
    /// The readable part of a script with errors, for further checks. It cannot run.
    pub part: Option<Script>,
    /// All problems, in source order.
    pub problems: Vec<Problem>,
}

/// Reads a script in the layout of the specification or in the flat one (S-013). A wrong field is an error;
/// it is never replaced by its default.
///
/// Linear in the text. Reports at most `limits.findings` problems.
#[must_use]
pub fn load(text: &str, limits: &Limits) -> Loaded {
    load_in(text, limits, Language::En)
}

/// As [`load`], with messages in `language`.
#[must_use]
pub fn load_in(text: &str, limits: &Limits, language: Language) -> Loaded {
    let mut problems = Problems { list: Vec::new(), room: limits.findings.max(1), language };
    let script = match parse(text, limits, language) {
        Ok(root) => script(&root, &mut problems),
        Err(problem) => {
            problems.list.push(*problem);
            None
        }
    };
    let mut problems = problems.list;
    problems.sort_by_key(|problem| problem.report.place.offset);
    let (script, part) = if problems.iter().any(Problem::is_error) { (None, script) } else { (script, None) };
    Loaded { script, part, problems }
}

fn script(root: &Node, problems: &mut Problems) -> Option<Script> {
    let mut fields = Fields::of(root, String::new(), (("脚本", "a script"), "S-001"), problems)?;
    let sessions = sessions(&mut fields, problems);
    Some(Script { sessions, more: fields.rest(problems) })
}

fn sessions(fields: &mut Fields<'_>, problems: &mut Problems) -> Vec<Session> {
    // The flat layout has one session and no list of sessions.
    let flat = fields.take(&["session"]);
    if let Some(flat) = flat {
        let path = fields.path_of(flat);
        if let Kind::List(items) = &flat.node().kind {
            // The list of the other layout is meant.
            let message = bilingual!(
                problems.language,
                "会话的列表应写在 `sessions` 下，不是 `session`",
                "a list of sessions stands under `sessions`, not under `session`"
            );
            fields.fault(flat, rules::FIELD_TYPE, "S-001", message, problems);
            return each(items, &path, problems, session);
        }
        fields.take(&["sessions"]);
        return session(flat.node(), path, problems).into_iter().collect();
    }
    let Some((path, items)) = fields.list(Some(("脚本", "a script")), &["sessions"], "S-001", problems)
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
    let sessions = each(items, &path, problems, session);
    let names = sessions.iter().map(|session| (session.session.as_str(), session.spot));
    for (index, (name, spot)) in twice(names) {
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
fn each<T>(
    items: &[Node],
    path: &str,
    problems: &mut Problems,
    read: fn(&Node, String, &mut Problems) -> Option<T>,
) -> Vec<T> {
    let numbered = items.iter().enumerate();
    numbered.filter_map(|(index, item)| read(item, format!("{path}[{index}]"), problems)).collect()
}

/// Returns names that occurred before, with their index.
fn twice<'a, S>(names: impl Iterator<Item = (&'a str, S)>) -> Vec<(usize, (&'a str, S))> {
    let mut seen = std::collections::HashSet::new();
    names.enumerate().filter(|(_, (name, _))| !seen.insert(*name)).collect()
}

fn session(node: &Node, path: String, problems: &mut Problems) -> Option<Session> {
    let mut fields = Fields::of(node, path, (("会话", "a session"), "S-001"), problems)?;
    let name = fields.name(
        ("会话", "a session"),
        &["session", "session_name", "name", "session_id"],
        "S-001",
        problems,
    );
    let declare = declare(&mut fields, problems);
    let phases = fields.list(Some(("会话", "a session")), &["phases"], "S-001", problems);
    let phases = phases.map(|(path, items)| each(items, &path, problems, phase));
    let spot = fields.spot;
    let more = fields.rest(problems);
    Some(Session {
        session: name.unwrap_or_default(),
        declare,
        phases: phases.unwrap_or_default(),
        more,
        spot,
    })
}

fn phase(node: &Node, path: String, problems: &mut Problems) -> Option<Phase> {
    let mut fields = Fields::of(node, path, (("阶段", "a phase"), "S-001"), problems)?;
    let name =
        fields.name(("阶段", "a phase"), &["phase", "phase_name", "name", "phase_id"], "S-001", problems);
    let declare = declare(&mut fields, problems);
    let steps = fields.list(Some(("阶段", "a phase")), &["steps", "topics"], "S-001", problems);
    let steps = steps.map(|(path, items)| each(items, &path, problems, step));
    let spot = fields.spot;
    let more = fields.rest(problems);
    Some(Phase { phase: name.unwrap_or_default(), declare, steps: steps.unwrap_or_default(), more, spot })
}

fn step(node: &Node, path: String, problems: &mut Problems) -> Option<Step> {
    let mut fields = Fields::of(node, path, (("步骤", "a step"), "S-001"), problems)?;
    let topic =
        fields.name(("步骤", "a step"), &["topic", "topic_name", "name", "topic_id"], "S-001", problems);
    let declare = declare(&mut fields, problems);
    let actions = fields.list(Some(("步骤", "a step")), &["actions"], "S-001", problems);
    if let (Some((path, [])), Some(_)) = (&actions, &topic) {
        let message = bilingual!(
            problems.language,
            "`actions` 是空的，这一步什么也不做",
            "`actions` is empty, so the step does nothing"
        );
        problems.add(path.clone(), fields.spot, rules::ACTIONS_EMPTY, "S-001", message);
    }
    let actions = actions.map(|(path, items)| each(items, &path, problems, action::read));
    let spot = fields.spot;
    let more = fields.rest(problems);
    Some(Step { topic: topic.unwrap_or_default(), declare, actions: actions.unwrap_or_default(), more, spot })
}

/// Reads the variables of a session, phase or step.
fn declare(fields: &mut Fields<'_>, problems: &mut Problems) -> Vec<Declared> {
    let Some((path, items)) = fields.list(None, &["declare"], "S-002", problems) else { return Vec::new() };
    let declared = each(items, &path, problems, declared);
    let names = declared.iter().map(|declared| (declared.var.as_str(), declared.spot));
    for (index, (name, spot)) in twice(names).into_iter().filter(|(_, (name, _))| !name.is_empty()) {
        let message = bilingual!(
            problems.language,
            "`{}` 已经声明过；以最后的值为准",
            "`{}` is declared already; the last value counts",
            clip(name, 80)
        );
        problems.add(join(&format!("{path}[{index}]"), "var"), spot, rules::NAME_TWICE, "S-002", message);
    }
    declared
}

fn declared(node: &Node, path: String, problems: &mut Problems) -> Option<Declared> {
    let mut fields = Fields::of(node, path, (("变量声明", "a declaration"), "S-002"), problems)?;
    let var = fields.name(("变量声明", "a declaration"), &["var"], "S-002", problems);
    let value = fields.take(&["value"]).map(|field| field.node());
    let value = match value.map(|node| &node.kind) {
        None | Some(Kind::Null) => serde_json::Value::Null,
        Some(_) => value.map(Node::value).unwrap_or_default(),
    };
    let spot = fields.spot;
    let more = fields.rest(problems);
    Some(Declared { var: var.unwrap_or_default(), value, more, spot })
}
