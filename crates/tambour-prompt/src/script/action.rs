//! Reads actions: their fields, by type (S-003 to S-011).

use serde_json::{Map, Value};

use super::answer;
use super::fields::{Field, Fields, Problems, close, curly, no_text};
use super::model::{Action, ActionKind, Ask, ClientAction, ClientKind, Say, Think};
use super::node::{Kind, Node};
use super::rules;
use tambour::exit::Criteria;
use tambour::finding::clip;
use tambour::texts::{Language, bilingual};

/// Types of actions.
const TYPES: [&str; 6] = ["ai_say", "ai_ask", "ai_think", "use_skill", "show_form", "show_pic"];

/// Default rounds of `ai_say` and `ai_ask`.
const SAY_ROUNDS: u32 = 5;
const ASK_ROUNDS: u32 = 3;

pub(super) fn read(node: &Node, path: String, problems: &mut Problems) -> Option<Action> {
    let fields = Fields::of(node, path, (("动作", "an action"), "S-003"), problems)?;
    let mut fields = fields.with_config(problems);
    let kind = fields.take(&["type", "action_type"]);
    let action_id = fields.text(&["action_id"], "S-011", problems);
    let condition = fields.text(&["condition"], "S-011", problems);
    let Some(name) = type_name(kind, &mut fields, problems) else {
        // Without its type the other fields cannot be checked.
        return None;
    };
    let client = match name.as_str() {
        "use_skill" => Some(ClientKind::Skill),
        "show_form" => Some(ClientKind::Form),
        "show_pic" => Some(ClientKind::Picture),
        _ => None,
    };
    let template = if client.is_none() { fields.text(&["template"], "S-011", problems) } else { None };
    let (path, spot, spots) = (fields.path.clone(), fields.spot, fields.spots());
    let (kind, more) = match (client, name.as_str()) {
        (Some(kind), _) => {
            let variable = fields.text(&["variable", "target_variable"], "S-011", problems);
            let client = ClientAction { kind, variable, fields: fields.kept() };
            (ActionKind::Client(client), Map::new())
        }
        (None, "ai_ask") => (ActionKind::Ask(ask(&mut fields, problems)), fields.rest(problems)),
        (None, "ai_think") => (ActionKind::Think(think(&mut fields, problems)), fields.rest(problems)),
        (None, _) => (ActionKind::Say(say(&mut fields, problems)), fields.rest(problems)),
    };
    Some(Action { kind, action_id, condition, template, more, path, spot, spots })
}

fn type_name(field: Option<Field<'_>>, fields: &mut Fields<'_>, problems: &mut Problems) -> Option<String> {
    let Some(field) = field else {
        let message = bilingual!(problems.language, "动作没有 `type`", "an action has no `type`");
        let message = message + &fields.meant(&["type", "action_type"], problems);
        fields.missing("type", rules::FIELD_MISSING, "S-003", message, problems);
        return None;
    };
    let Kind::Text(name) = &field.node().kind else {
        let message = no_text(field, problems);
        fields.fault(field, rules::FIELD_TYPE, "S-003", message, problems);
        return None;
    };
    if TYPES.contains(&name.as_str()) {
        return Some(name.clone());
    }
    let known = TYPES.join("`, `");
    let message = match close(name, &TYPES) {
        Some(near) => bilingual!(
            problems.language,
            "没有动作 `{}`；是不是 `{}`？",
            "there is no action `{}`; did you mean `{}`?",
            clip(name, 80),
            near
        ),
        None => bilingual!(
            problems.language,
            "没有动作 `{}`；有的是 `{}`",
            "there is no action `{}`; there are `{}`",
            clip(name, 80),
            known
        ),
    };
    fields.fault(field, rules::ACTION_UNKNOWN, "S-003", message, problems);
    None
}

fn say(fields: &mut Fields<'_>, problems: &mut Problems) -> Say {
    let legacy = fields.take(&["ai_say"]);
    let content = match (fields.take(&["content", "content_template"]), legacy) {
        (Some(content), legacy) => {
            if let Some(legacy) = legacy {
                let message = bilingual!(
                    problems.language,
                    "用的是 `content`，旧的键 `ai_say` 不起作用",
                    "`content` is used, and the older key `ai_say` is not"
                );
                fields.fault(legacy, rules::CONTENT_TWICE, "S-010", message, problems);
            }
            Some(content)
        }
        (None, legacy) => legacy,
    };
    let text = match content.map(|content| &content.node().kind) {
        Some(Kind::Text(text)) if !text.trim().is_empty() => {
            content.into_iter().for_each(|content| curly(fields, content, problems));
            text.clone()
        }
        _ => {
            match content {
                Some(content) => {
                    let message = match &content.node().kind {
                        Kind::Text(_) | Kind::Null => {
                            bilingual!(problems.language, "`{}` 是空的", "`{}` is empty", content.entry.key)
                        }
                        _ => no_text(content, problems),
                    };
                    fields.fault(content, rules::CONTENT_REQUIRED, "S-004", message, problems);
                }
                None => {
                    let message =
                        bilingual!(problems.language, "`ai_say` 没有 `content`", "`ai_say` has no `content`");
                    let message = message + &fields.meant(&["content", "content_template"], problems);
                    fields.missing("content", rules::CONTENT_REQUIRED, "S-004", message, problems);
                }
            }
            String::new()
        }
    };
    Say {
        content: text,
        require_acknowledgment: fields.flag("require_acknowledgment", true, "S-005", problems),
        max_rounds: fields.rounds(SAY_ROUNDS, problems),
        exit_criteria: criteria(fields, problems),
    }
}

fn criteria(fields: &mut Fields<'_>, problems: &mut Problems) -> Criteria {
    let field = fields.take(&["exit_criteria"]).filter(|field| !field.node().is_null());
    let Some(field) = field else { return Criteria::default() };
    let path = fields.path_of(field);
    let Some(mut own) =
        Fields::of(field.node(), path, (("`exit_criteria` ", "`exit_criteria`"), "S-007"), problems)
    else {
        return Criteria::default();
    };
    let mut given = Map::new();
    for (name, row, may_be_off) in
        [("understanding_threshold", "S-008", false), ("expressed_threshold", "S-083", true)]
    {
        let Some(field) = own.take(&[name]) else { continue };
        let value = field.node().value();
        if value.as_f64().is_some_and(|level| level > 0.0 && level < 1.0) {
            let message = bilingual!(
                problems.language,
                "`{}` 的范围是 0 到 100，{} 一开始就会达到；是不是 {}？",
                "`{}` is from 0 to 100, so {} is reached at once; did you mean {}?",
                name,
                value,
                value.as_f64().unwrap_or_default() * 100.0
            );
            own.fault(field, rules::LEVEL_SCALE, row, message, problems);
        }
        match &value {
            Value::Null if may_be_off => {}
            Value::Number(number) if number.as_f64().is_some_and(|level| (0.0..=100.0).contains(&level)) => {}
            Value::Number(_) => {
                let message = bilingual!(
                    problems.language,
                    "`{}` 应在 0 到 100 之间，不是{}",
                    "`{}` is from 0 to 100, not {}",
                    name,
                    problems.what(field.node())
                );
                own.fault(field, rules::FIELD_RANGE, row, message, problems);
                continue;
            }
            _ => {
                let off = match (may_be_off, problems.language) {
                    (false, _) => "",
                    (true, Language::Zh) => "，或用 null 关闭这条规则",
                    (true, Language::En) => ", or null to switch the rule off",
                };
                let message = bilingual!(
                    problems.language,
                    "`{}` 应是 0 到 100 的数字{}，不是{}",
                    "`{}` is a number from 0 to 100{}, not {}",
                    name,
                    off,
                    problems.what(field.node())
                );
                own.fault(field, rules::FIELD_TYPE, "S-008", message, problems);
                continue;
            }
        }
        given.insert(name.to_owned(), value);
    }
    let questions = own.flag("has_questions", false, "S-009", problems);
    given.insert("has_questions".to_owned(), questions.into());
    own.rest(problems);
    Criteria::from_value(&Value::Object(given)).unwrap_or_default()
}

/// Reports a missing question or prompt; the action loads all the same (S-011).
fn incomplete(fields: &Fields<'_>, name: &str, problems: &mut Problems) {
    let message = bilingual!(
        problems.language,
        "没有 `{}`，动作无法执行",
        "without `{}` the action cannot be carried out",
        name
    );
    fields.missing(name, rules::ACTION_INCOMPLETE, "S-011", message, problems);
}

fn ask(fields: &mut Fields<'_>, problems: &mut Problems) -> Ask {
    let names = ["question", "question_template", "ai_ask", "content", "content_template"];
    let question = fields.text(&names, "S-011", problems).filter(|text| !text.trim().is_empty());
    if question.is_none() {
        incomplete(fields, "question", problems);
    }
    let variable = fields.text(&["variable", "target_variable", "extract_to"], "S-011", problems);
    // The flat layout names variables as `ai_think` does; a question has only one.
    let variable = variable.or_else(|| output(fields, problems).into_iter().next().map(|(name, _)| name));
    let variable = variable.filter(|name| !name.trim().is_empty());
    if variable.is_none() {
        let message = bilingual!(
            problems.language,
            "没有 `variable`，回答不会保存",
            "without `variable` the answer is not kept"
        );
        fields.missing("variable", rules::ACTION_INCOMPLETE, "S-011", message, problems);
    }
    Ask {
        question,
        answer: answer::read(fields, problems),
        variable,
        max_rounds: fields.rounds(ASK_ROUNDS, problems),
        required: fields.flag("required", false, "S-011", problems),
    }
}

fn think(fields: &mut Fields<'_>, problems: &mut Problems) -> Think {
    let names = ["prompt", "think_goal", "ai_think", "content", "content_template", "prompt_template"];
    let prompt = fields.text(&names, "S-011", problems).filter(|text| !text.trim().is_empty());
    if prompt.is_none() {
        incomplete(fields, "prompt", problems);
    }
    let output = output(fields, problems);
    if output.is_empty() {
        incomplete(fields, "output", problems);
    }
    Think { prompt, output }
}

/// Reads variables with their descriptions: a map, or the lists of the flat layout.
fn output(fields: &mut Fields<'_>, problems: &mut Problems) -> Vec<(String, String)> {
    let Some(field) = fields.take(&["output", "output_variables"]) else { return Vec::new() };
    let described = |node: &Node| match &node.kind {
        Kind::Null => Some(String::new()),
        Kind::Text(text) => Some(text.clone()),
        _ => None,
    };
    let wrong = |node: &Node, problems: &mut Problems| {
        let message = bilingual!(
            problems.language,
            "`{}` 应列出变量和各自的说明，不是{}",
            "`{}` names variables with a description each, not {}",
            field.entry.key,
            problems.what(node)
        );
        problems.add(fields.path_of(field), node.spot, rules::FIELD_TYPE, "S-011", message);
    };
    let mut variables = Vec::new();
    match &field.node().kind {
        Kind::Null => {}
        Kind::Map(entries) => {
            for entry in entries {
                match described(&entry.value) {
                    Some(about) => variables.push((entry.key.clone(), about)),
                    None => wrong(&entry.value, problems),
                }
            }
        }
        Kind::List(items) => {
            for item in items {
                let named = match &item.kind {
                    Kind::Text(name) => Some((name.clone(), String::new())),
                    Kind::Map(entries) => {
                        let of = |names: [&str; 3]| {
                            let found = entries.iter().find(|entry| names.contains(&entry.key.as_str()))?;
                            described(&found.value)
                        };
                        let about = of(["define", "description", "about"]).unwrap_or_default();
                        of(["get", "var", "name"]).map(|name| (name, about))
                    }
                    _ => None,
                };
                match named {
                    Some(named) => variables.push(named),
                    None => wrong(item, problems),
                }
            }
        }
        _ => wrong(field.node(), problems),
    }
    variables
}
