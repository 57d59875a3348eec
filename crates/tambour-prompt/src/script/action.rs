//! Reads the actions of a script: their types, and the fields of each type (S-003 to S-011).

use serde_json::{Map, Value};

use super::answer;
use super::fields::{
    FieldReader, FieldRef, ProblemList, find_similar, not_text_message, report_curly_quotes,
};
use super::model::{
    AskAction, ClientAction, ClientActionKind, SayAction, ScriptAction, ScriptActionKind, ThinkAction,
};
use super::node::{NodeValue, SpannedNode};
use super::rules;
use tambour::exit::ExitCriteria;
use tambour::finding::clip;
use tambour::texts::{Language, bilingual};

/// Types of actions.
const ACTION_TYPES: [&str; 6] = ["ai_say", "ai_ask", "ai_think", "use_skill", "show_form", "show_pic"];

/// Default of `max_rounds` for `ai_say`.
const DEFAULT_SAY_ROUNDS: u32 = 5;
/// Default of `max_rounds` for `ai_ask`.
const DEFAULT_ASK_ROUNDS: u32 = 3;

/// Reads an action; `None`, with a problem, if it is not a mapping or has no known type.
pub(super) fn read_action(
    node: &SpannedNode,
    path: String,
    problems: &mut ProblemList,
) -> Option<ScriptAction> {
    let fields = FieldReader::new(node, path, (("动作", "an action"), "S-003"), problems)?;
    let mut fields = fields.with_config(problems);
    let type_field = fields.take_field(&["type", "action_type"]);
    let action_id = fields.take_text(&["action_id"], "S-011", problems);
    let condition = fields.take_text(&["condition"], "S-011", problems);
    let Some(type_name) = read_type(type_field, &mut fields, problems) else {
        // Without its type the other fields cannot be checked.
        return None;
    };
    let client_kind = match type_name.as_str() {
        "use_skill" => Some(ClientActionKind::Skill),
        "show_form" => Some(ClientActionKind::Form),
        "show_pic" => Some(ClientActionKind::Picture),
        _ => None,
    };
    let template =
        if client_kind.is_none() { fields.take_text(&["template"], "S-011", problems) } else { None };
    let (path, spot, spots) = (fields.path.clone(), fields.spot, fields.value_spots());
    let (kind, unknown_fields) = match (client_kind, type_name.as_str()) {
        (Some(kind), _) => {
            let variable = fields.take_text(&["variable", "target_variable"], "S-011", problems);
            // The client gets all other fields, so none is unknown.
            let client = ClientAction { kind, variable, fields: fields.into_remaining() };
            (ScriptActionKind::Client(client), Map::new())
        }
        (None, "ai_ask") => {
            (ScriptActionKind::Ask(read_ask(&mut fields, problems)), fields.report_remaining(problems))
        }
        (None, "ai_think") => {
            (ScriptActionKind::Think(read_think(&mut fields, problems)), fields.report_remaining(problems))
        }
        (None, _) => {
            (ScriptActionKind::Say(read_say(&mut fields, problems)), fields.report_remaining(problems))
        }
    };
    Some(ScriptAction { kind, action_id, condition, template, unknown_fields, path, spot, spots })
}

/// Reads the type of an action; `None`, with a problem, if it is missing or unknown.
fn read_type(
    field: Option<FieldRef<'_>>,
    fields: &mut FieldReader<'_>,
    problems: &mut ProblemList,
) -> Option<String> {
    let Some(field) = field else {
        let message = bilingual!(problems.language, "动作没有 `type`", "an action has no `type`");
        let message = message + &fields.suggest_similar(&["type", "action_type"], problems);
        fields.report_by_name("type", rules::FIELD_MISSING, "S-003", message, problems);
        return None;
    };
    let NodeValue::Text(name) = &field.node().kind else {
        let message = not_text_message(field, problems);
        fields.report(field, rules::FIELD_TYPE, "S-003", message, problems);
        return None;
    };
    if ACTION_TYPES.contains(&name.as_str()) {
        return Some(name.clone());
    }
    let type_names = ACTION_TYPES.join("`, `");
    let message = match find_similar(name, &ACTION_TYPES) {
        Some(similar) => bilingual!(
            problems.language,
            "没有动作 `{}`；是不是 `{}`？",
            "there is no action `{}`; did you mean `{}`?",
            clip(name, 80),
            similar
        ),
        None => bilingual!(
            problems.language,
            "没有动作 `{}`；有的是 `{}`",
            "there is no action `{}`; the actions are `{}`",
            clip(name, 80),
            type_names
        ),
    };
    fields.report(field, rules::ACTION_UNKNOWN, "S-003", message, problems);
    None
}

/// Reads the fields of `ai_say`.
fn read_say(fields: &mut FieldReader<'_>, problems: &mut ProblemList) -> SayAction {
    let legacy_field = fields.take_field(&["ai_say"]);
    let content = match (fields.take_field(&["content", "content_template"]), legacy_field) {
        (Some(content), legacy_field) => {
            if let Some(legacy_field) = legacy_field {
                let message = bilingual!(
                    problems.language,
                    "用的是 `content`，旧的键 `ai_say` 不起作用",
                    "`content` is used, and the older key `ai_say` is not"
                );
                fields.report(legacy_field, rules::CONTENT_TWICE, "S-010", message, problems);
            }
            Some(content)
        }
        (None, legacy_field) => legacy_field,
    };
    let text = match content.map(|content| &content.node().kind) {
        Some(NodeValue::Text(text)) if !text.trim().is_empty() => {
            content.into_iter().for_each(|content| report_curly_quotes(fields, content, problems));
            text.clone()
        }
        _ => {
            match content {
                Some(content) => {
                    let message = match &content.node().kind {
                        NodeValue::Text(_) | NodeValue::Null => {
                            bilingual!(problems.language, "`{}` 是空的", "`{}` is empty", content.entry.key)
                        }
                        _ => not_text_message(content, problems),
                    };
                    fields.report(content, rules::CONTENT_REQUIRED, "S-004", message, problems);
                }
                None => {
                    let message =
                        bilingual!(problems.language, "`ai_say` 没有 `content`", "`ai_say` has no `content`");
                    let message =
                        message + &fields.suggest_similar(&["content", "content_template"], problems);
                    fields.report_by_name("content", rules::CONTENT_REQUIRED, "S-004", message, problems);
                }
            }
            String::new()
        }
    };
    SayAction {
        content: text,
        require_acknowledgment: fields.take_flag("require_acknowledgment", true, "S-005", problems),
        max_rounds: fields.take_rounds(DEFAULT_SAY_ROUNDS, problems),
        exit_criteria: read_criteria(fields, problems),
    }
}

/// Reads `exit_criteria`. A wrong field is reported and left out.
fn read_criteria(fields: &mut FieldReader<'_>, problems: &mut ProblemList) -> ExitCriteria {
    let field = fields.take_field(&["exit_criteria"]).filter(|field| !field.node().is_null());
    let Some(field) = field else { return ExitCriteria::default() };
    let path = fields.field_path(field);
    let Some(mut criteria_fields) =
        FieldReader::new(field.node(), path, (("`exit_criteria` ", "`exit_criteria`"), "S-007"), problems)
    else {
        return ExitCriteria::default();
    };
    let mut criteria = Map::new();
    for (name, row, can_be_null) in
        [("understanding_threshold", "S-008", false), ("expressed_threshold", "S-083", true)]
    {
        let Some(field) = criteria_fields.take_field(&[name]) else { continue };
        let value = field.node().to_value();
        if value.as_f64().is_some_and(|level| level > 0.0 && level < 1.0) {
            let message = bilingual!(
                problems.language,
                "`{}` 的范围是 0 到 100，{} 一开始就会达到；是不是 {}？",
                "`{}` is on a scale from 0 to 100, so {} is reached at once; did you mean {}?",
                name,
                value,
                value.as_f64().unwrap_or_default() * 100.0
            );
            criteria_fields.report(field, rules::LEVEL_SCALE, row, message, problems);
        }
        match &value {
            Value::Null if can_be_null => {}
            Value::Number(number) if number.as_f64().is_some_and(|level| (0.0..=100.0).contains(&level)) => {}
            Value::Number(_) => {
                let message = bilingual!(
                    problems.language,
                    "`{}` 应在 0 到 100 之间，不是{}",
                    "`{}` must be from 0 to 100, not {}",
                    name,
                    problems.describe(field.node())
                );
                criteria_fields.report(field, rules::FIELD_RANGE, row, message, problems);
                continue;
            }
            _ => {
                let suffix = match (can_be_null, problems.language) {
                    (false, _) => "",
                    (true, Language::Zh) => "，或用 null 关闭这条规则",
                    (true, Language::En) => ", or null to switch the rule off",
                };
                let message = bilingual!(
                    problems.language,
                    "`{}` 应是 0 到 100 的数字{}，不是{}",
                    "`{}` must be a number from 0 to 100{}, not {}",
                    name,
                    suffix,
                    problems.describe(field.node())
                );
                criteria_fields.report(field, rules::FIELD_TYPE, row, message, problems);
                continue;
            }
        }
        criteria.insert(name.to_owned(), value);
    }
    let has_questions = criteria_fields.take_flag("has_questions", false, "S-009", problems);
    criteria.insert("has_questions".to_owned(), has_questions.into());
    criteria_fields.report_remaining(problems);
    ExitCriteria::from_value(&Value::Object(criteria)).unwrap_or_default()
}

/// Reports that `question`, `prompt` or `output` is missing or empty; the action loads all the same (S-011).
fn report_incomplete(fields: &FieldReader<'_>, name: &str, problems: &mut ProblemList) {
    let message = bilingual!(
        problems.language,
        "没有 `{}`，动作无法执行",
        "without `{}` the action cannot be carried out",
        name
    );
    fields.report_by_name(name, rules::ACTION_INCOMPLETE, "S-011", message, problems);
}

/// Reads the fields of `ai_ask`.
fn read_ask(fields: &mut FieldReader<'_>, problems: &mut ProblemList) -> AskAction {
    let names = ["question", "question_template", "ai_ask", "content", "content_template"];
    let question = fields.take_text(&names, "S-011", problems).filter(|text| !text.trim().is_empty());
    if question.is_none() {
        report_incomplete(fields, "question", problems);
    }
    let variable = fields.take_text(&["variable", "target_variable", "extract_to"], "S-011", problems);
    // In the flat layout (a script with a single `session`), a question names its one variable under
    // `output`, as `ai_think` does.
    let variable =
        variable.or_else(|| read_output(fields, problems).into_iter().next().map(|(name, _)| name));
    let variable = variable.filter(|name| !name.trim().is_empty());
    if variable.is_none() {
        let message = bilingual!(
            problems.language,
            "没有 `variable`，回答不会保存",
            "without `variable` the answer is not kept"
        );
        fields.report_by_name("variable", rules::ACTION_INCOMPLETE, "S-011", message, problems);
    }
    AskAction {
        question,
        answer: answer::read_answer(fields, problems),
        variable,
        max_rounds: fields.take_rounds(DEFAULT_ASK_ROUNDS, problems),
        required: fields.take_flag("required", false, "S-011", problems),
    }
}

/// Reads the fields of `ai_think`.
fn read_think(fields: &mut FieldReader<'_>, problems: &mut ProblemList) -> ThinkAction {
    let names = ["prompt", "think_goal", "ai_think", "content", "content_template", "prompt_template"];
    let prompt = fields.take_text(&names, "S-011", problems).filter(|text| !text.trim().is_empty());
    if prompt.is_none() {
        report_incomplete(fields, "prompt", problems);
    }
    let output = read_output(fields, problems);
    if output.is_empty() {
        report_incomplete(fields, "output", problems);
    }
    ThinkAction { prompt, output }
}

/// Reads the variables of `output` with their descriptions: a map, or a list as in the flat layout.
fn read_output(fields: &mut FieldReader<'_>, problems: &mut ProblemList) -> Vec<(String, String)> {
    let Some(field) = fields.take_field(&["output", "output_variables"]) else { return Vec::new() };
    let description_of = |node: &SpannedNode| match &node.kind {
        NodeValue::Null => Some(String::new()),
        NodeValue::Text(text) => Some(text.clone()),
        _ => None,
    };
    let report_item = |node: &SpannedNode, problems: &mut ProblemList| {
        let message = bilingual!(
            problems.language,
            "`{}` 应列出变量和各自的说明，不是{}",
            "`{}` must list variables with a description each, not {}",
            field.entry.key,
            problems.describe(node)
        );
        problems.add(fields.field_path(field), node.spot, rules::FIELD_TYPE, "S-011", message);
    };
    let mut variables = Vec::new();
    match &field.node().kind {
        NodeValue::Null => {}
        NodeValue::Map(entries) => {
            for entry in entries {
                match description_of(&entry.value) {
                    Some(description) => variables.push((entry.key.clone(), description)),
                    None => report_item(&entry.value, problems),
                }
            }
        }
        NodeValue::List(items) => {
            for item in items {
                let variable = match &item.kind {
                    NodeValue::Text(name) => Some((name.clone(), String::new())),
                    NodeValue::Map(entries) => {
                        let text_of = |names: [&str; 3]| {
                            let named_entry =
                                entries.iter().find(|entry| names.contains(&entry.key.as_str()))?;
                            description_of(&named_entry.value)
                        };
                        let description = text_of(["define", "description", "about"]).unwrap_or_default();
                        text_of(["get", "var", "name"]).map(|name| (name, description))
                    }
                    _ => None,
                };
                match variable {
                    Some(variable) => variables.push(variable),
                    None => report_item(item, problems),
                }
            }
        }
        _ => report_item(field.node(), problems),
    }
    variables
}
