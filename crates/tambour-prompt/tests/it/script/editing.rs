//! Edits preserve the rest of the text (S-014).

use serde_json::{Value, json};
use tambour::limits::Limits;
use tambour_prompt::script::{ScriptActionKind, ScriptEditor, edit_script};

use super::{EXAMPLE, script, the_action};

const ACTION: &str = "sessions[0].phases[0].steps[0].actions[0]";

fn edited(text: &str, changes: &[(&str, Option<Value>)]) -> String {
    let changes: Vec<(String, Option<Value>)> =
        changes.iter().map(|(field, value)| (format!("{ACTION}.{field}"), value.clone())).collect();
    let changes: Vec<(&str, Option<Value>)> =
        changes.iter().map(|(path, value)| (path.as_str(), value.clone())).collect();
    edit_script(text, &changes, &Limits::default()).expect("the change can be made")
}

/// Lines of `before` that are not in `after`, and the reverse.
fn difference<'a>(before: &'a str, after: &'a str) -> (Vec<&'a str>, Vec<&'a str>) {
    let not_in = |text: &'a str, other: &'a str| {
        text.lines().filter(|line| !other.lines().any(|known| known == *line)).collect()
    };
    (not_in(before, after), not_in(after, before))
}

#[test]
fn nothing_changed_is_the_same_text() {
    let editor = ScriptEditor::new(EXAMPLE, &Limits::default()).expect("YAML");
    assert_eq!(editor.text(), EXAMPLE); // S-014
    let mut editor = editor;
    editor.remove(&format!("{ACTION}.nothing")).expect("there is none");
    assert_eq!(editor.text(), EXAMPLE); // S-014
    assert_eq!(script(editor.text()), script(EXAMPLE)); // S-014
}

#[test]
fn a_field_changes_and_comments_stay() {
    let after = edited(EXAMPLE, &[("max_rounds", Some(json!(3)))]);
    let (gone, new) = difference(EXAMPLE, &after);
    assert_eq!((gone.len(), new.len()), (1, 1), "{gone:?} {new:?}"); // S-014
    assert_eq!(new[0].trim(), "max_rounds: 3");
    assert!(after.contains("# 新增：最大交互轮数")); // S-014
    let after = edited(EXAMPLE, &[("exit_criteria.understanding_threshold", Some(json!(90)))]);
    let (gone, new) = difference(EXAMPLE, &after);
    assert_eq!((gone.len(), new.len()), (1, 1), "{gone:?} {new:?}");
    assert!(new[0].contains("understanding_threshold: 90  # 理解度阈值"), "{new:?}"); // S-014
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
        let after = edited(EXAMPLE, &[("content", Some(json!(content)))]);
        let ScriptActionKind::Say(say) = the_action(&script(&after)).kind else { panic!("a say") };
        assert_eq!(say.content, content); // S-014
        assert!(after.contains("# 用户画像变量")); // S-014
    }
}

#[test]
fn fields_are_added_and_taken_out() {
    let after = edited(
        EXAMPLE,
        &[("condition", Some(json!("教育背景 == '本科'"))), ("require_acknowledgment", None)],
    );
    let action = the_action(&script(&after));
    assert_eq!(action.condition.as_deref(), Some("教育背景 == '本科'")); // S-014
    let ScriptActionKind::Say(say) = action.kind else { panic!("a say") };
    assert!(say.require_acknowledgment); // S-014
    let after = edited(
        EXAMPLE,
        &[("exit_criteria", Some(json!({"understanding_threshold": 60, "has_questions": true})))],
    );
    let ScriptActionKind::Say(say) = the_action(&script(&after)).kind else { panic!("a say") };
    assert_eq!(say.exit_criteria.understanding_threshold(), 60.0); // S-014
    assert!(say.exit_criteria.allows_questions()); // S-014
}

#[test]
fn what_cannot_be_changed_is_refused_and_changes_nothing() {
    let mut editor = ScriptEditor::new(EXAMPLE, &Limits::default()).expect("YAML");
    for path in ["", "sessions", "sessions[7].session", "sessions[0].phases.x", "sessions[x].session", "a..b"]
    {
        let done = editor.set(path, &json!(1));
        assert!(done.is_err() == (path != "sessions"), "{path}");
        if path == "sessions" {
            editor = ScriptEditor::new(EXAMPLE, &Limits::default()).expect("YAML");
        }
        assert_eq!(editor.text(), EXAMPLE, "{path}"); // S-014
    }
}
