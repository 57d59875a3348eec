//! Edits preserve the rest of the text (S-014).

use serde_json::{Value, json};
use tambour::limits::Limits;
use tambour_prompt::script::{ScriptActionKind, ScriptEditor, edit_script};

use super::{EXAMPLE, first_action, load_valid};

const ACTION: &str = "sessions[0].phases[0].steps[0].actions[0]";

fn edit_fields(text: &str, changes: &[(&str, Option<Value>)]) -> String {
    let changes: Vec<(String, Option<Value>)> =
        changes.iter().map(|(field, value)| (format!("{ACTION}.{field}"), value.clone())).collect();
    let changes: Vec<(&str, Option<Value>)> =
        changes.iter().map(|(path, value)| (path.as_str(), value.clone())).collect();
    edit_script(text, &changes, &Limits::default()).expect("the change can be made")
}

/// Lines of `before` that are not in `after`, and the reverse.
fn difference<'a>(before: &'a str, after: &'a str) -> (Vec<&'a str>, Vec<&'a str>) {
    let lines_missing_in = |text: &'a str, other: &'a str| {
        text.lines().filter(|line| !other.lines().any(|other_line| other_line == *line)).collect()
    };
    (lines_missing_in(before, after), lines_missing_in(after, before))
}

#[test]
fn nothing_changed_is_the_same_text() {
    let editor = ScriptEditor::new(EXAMPLE, &Limits::default()).expect("YAML");
    assert_eq!(editor.text(), EXAMPLE); // S-014
    let mut editor = editor;
    editor.remove(&format!("{ACTION}.nothing")).expect("there is none");
    assert_eq!(editor.text(), EXAMPLE); // S-014
    assert_eq!(load_valid(editor.text()), load_valid(EXAMPLE)); // S-014
}

#[test]
fn a_field_changes_and_comments_stay() {
    let after = edit_fields(EXAMPLE, &[("max_rounds", Some(json!(3)))]);
    let (removed, added) = difference(EXAMPLE, &after);
    assert_eq!((removed.len(), added.len()), (1, 1), "{removed:?} {added:?}"); // S-014
    assert_eq!(added[0].trim(), "max_rounds: 3");
    assert!(after.contains("# 新增：最大交互轮数")); // S-014
    let after = edit_fields(EXAMPLE, &[("exit_criteria.understanding_threshold", Some(json!(90)))]);
    let (removed, added) = difference(EXAMPLE, &after);
    assert_eq!((removed.len(), added.len()), (1, 1), "{removed:?} {added:?}");
    assert!(added[0].contains("understanding_threshold: 90  # 理解度阈值"), "{added:?}"); // S-014
}

#[test]
fn texts_of_several_lines_and_of_any_kind_are_written() {
    for content in [
        "一行",
        "two\nlines\n",
        "  led by blanks\nand: colons # hashes",
        "yes",
        "17",
        "- a\n- b\n",
        "{x} {%y%}",
        "\"quoted\" 'twice'",
        "tab\there",
        "最后\n\n\n",
    ] {
        let after = edit_fields(EXAMPLE, &[("content", Some(json!(content)))]);
        let ScriptActionKind::Say(say) = first_action(&load_valid(&after)).kind else { panic!("a say") };
        assert_eq!(say.content, content); // S-014
        assert!(after.contains("# 用户画像变量")); // S-014
    }
}

#[test]
fn fields_are_added_and_taken_out() {
    let after = edit_fields(
        EXAMPLE,
        &[("condition", Some(json!("教育背景 == '本科'"))), ("require_acknowledgment", None)],
    );
    let action = first_action(&load_valid(&after));
    assert_eq!(action.condition.as_deref(), Some("教育背景 == '本科'")); // S-014
    let ScriptActionKind::Say(say) = action.kind else { panic!("a say") };
    assert!(say.require_acknowledgment); // S-014
    let after = edit_fields(
        EXAMPLE,
        &[("exit_criteria", Some(json!({"understanding_threshold": 60, "has_questions": true})))],
    );
    let ScriptActionKind::Say(say) = first_action(&load_valid(&after)).kind else { panic!("a say") };
    assert_eq!(say.exit_criteria.understanding_threshold(), 60.0); // S-014
    assert!(say.exit_criteria.allows_questions()); // S-014
}

#[test]
fn what_cannot_be_changed_is_refused_and_changes_nothing() {
    let mut editor = ScriptEditor::new(EXAMPLE, &Limits::default()).expect("YAML");
    for path in ["", "sessions", "sessions[7].session", "sessions[0].phases.x", "sessions[x].session", "a..b"]
    {
        let result = editor.set(path, &json!(1));
        assert!(result.is_err() == (path != "sessions"), "{path}");
        if path == "sessions" {
            editor = ScriptEditor::new(EXAMPLE, &Limits::default()).expect("YAML");
        }
        assert_eq!(editor.text(), EXAMPLE, "{path}"); // S-014
    }
}
