//! `tambour state apply`.

use serde_json::{Value, json};

use crate::{RunOutput, new_folder, run, write_file};

/// The results on standard error, which holds nothing else.
fn result_lines(ran: &RunOutput) -> Vec<Value> {
    ran.stderr.lines().map(|line| serde_json::from_str(line).expect("each result is JSON")).collect()
}

#[test]
fn operations_give_the_new_state_and_their_results() {
    // F-111, F-113
    let folder = new_folder("state");
    let state = write_file(&folder, "state.json", r#"{"纯田真奈":{"好感度":5},"bag":["a"]}"#);
    let operations = r#"[["ADD","纯田真奈.好感度",3],["push","bag","b"]]"#;
    let ran = run(&["state", "apply", "--state", &state], operations);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.stdout, "{\"纯田真奈\":{\"好感度\":8},\"bag\":[\"a\",\"b\"]}\n");
    assert_eq!(result_lines(&ran)[0], json!({"index": 0, "ok": true, "before": 5, "after": 8}));
    assert_eq!(result_lines(&ran)[1]["warning"]["code"], json!("operation_case"));
    // The state file itself is not changed.
    assert!(std::fs::read_to_string(&state).expect("it is there").contains(":5"));

    let path = write_file(&folder, "ops.json", r#"[["SET","x",1],["POP","none"]]"#);
    let ran = run(&["state", "apply", "--state", &state, &path], "");
    assert_eq!(ran.code, Some(1));
    assert!(ran.stdout.contains(r#""x":1"#));
    let refusal = &result_lines(&ran)[1];
    assert_eq!((&refusal["ok"], &refusal["reason"]), (&json!(false), &json!("path_missing")));
    let ran = run(&["state", "apply", "--state", &state, "--atomic", &path], "");
    assert_eq!(ran.code, Some(1));
    assert!(!ran.stdout.contains("\"x\""));
    assert_eq!(result_lines(&ran)[0]["reason"], json!("not_applied"));
}

#[test]
fn a_number_out_of_range_is_refused_alone() {
    // R-81
    let state = write_file(&new_folder("state-range"), "state.json", "{}");
    let operations =
        r#"[["SET","a",1e400],["SET","b",12345678901234567890123],["PUSH","c",[1e300]],["SET","d",1]]"#;
    let ran = run(&["state", "apply", "--state", &state], operations);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "{\"d\":1}\n"), "{ran:?}");
    let reasons: Vec<Value> = result_lines(&ran).iter().map(|result| result["reason"].clone()).collect();
    assert_eq!(
        reasons,
        [
            json!("number_out_of_range"),
            json!("number_out_of_range"),
            json!("number_out_of_range"),
            Value::Null
        ]
    );
    // Refused as in a reply.
    let event = r#"{"analysis":"","operations":[{"op":"DELETE","path":"a","refused":"value_guessed"}]}"#;
    let state = write_file(&new_folder("state-refused"), "state.json", r#"{"a":1}"#);
    let ran = run(&["state", "apply", "--state", &state], event);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "{\"a\":1}\n"), "{ran:?}");
}

#[test]
fn a_schema_is_held_to() {
    // F-115
    let folder = new_folder("state-schema");
    let state = write_file(&folder, "state.json", r#"{"hp":5}"#);
    let schema = write_file(&folder, "schema.json", r#"{"properties":{"hp":{"maximum":10}}}"#);
    let apply =
        |operations: &str| run(&["state", "apply", "--state", &state, "--schema", &schema], operations);
    let ran = apply(r#"[["ADD","hp",6],["ADD","hp",5]]"#);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "{\"hp\":10}\n"));
    assert_eq!(result_lines(&ran)[0]["reason"], json!("schema_violation"));
}

#[test]
fn wrong_use_is_told() {
    let folder = new_folder("state-wrong");
    let state = write_file(&folder, "state.json", "{}");
    let broken = write_file(&folder, "broken.json", "{");
    let code = |arguments: &[&str], input: &str| {
        let arguments: Vec<&str> = ["state", "apply"].iter().chain(arguments).copied().collect();
        let ran = run(&arguments, input);
        assert_eq!(ran.stdout, "");
        assert!(!ran.stderr.is_empty());
        ran.code
    };
    assert_eq!(code(&[], "[]"), Some(2));
    assert_eq!(code(&["--state", "no/such/file"], "[]"), Some(2));
    assert_eq!(code(&["--state", &broken], "[]"), Some(2));
    assert_eq!(code(&["--state", "-"], "[]"), Some(2));
    assert_eq!(code(&["--state", &state], "no JSON"), Some(2));
    assert_eq!(code(&["--state", &state], "{}"), Some(2));
    assert_eq!(code(&["--state", &state, "--schema", &broken], "[]"), Some(2));
    let schema = write_file(&folder, "schema.json", r#"{"type":3}"#);
    assert_eq!(code(&["--state", &state, "--schema", &schema], "[]"), Some(2));
}

#[test]
fn what_decode_prints_can_be_applied() {
    // F-110, F-116
    let folder = new_folder("state-event");
    let state = write_file(&folder, "state.json", r#"{"gold":5}"#);
    let reply = r#"<content>x</content><variable_update>[["ADD","gold",2],["SET","at","inn"],["JUMP","a"]]</variable_update>"#;
    let events = run(&["decode", "--from", "filament", "--extensions"], reply).stdout;
    let update: Value = events
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("an event"))
        .find(|event| event["event"] == "state_update")
        .expect("an update");
    let ran = run(&["state", "apply", "--state", &state], update["data"].to_string());
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "{\"gold\":7,\"at\":\"inn\"}\n"), "{ran:?}");
    assert_eq!(result_lines(&ran)[2]["reason"], json!("operation_unknown"));
    let ran = run(&["state", "apply", "--state", &state], &events);
    assert!(ran.stdout.contains("\"gold\":7"), "{ran:?}");
    let ran = run(&["state", "apply", "--state", &state], update["data"]["operations"].to_string());
    assert!(ran.stdout.contains("\"gold\":7"), "{ran:?}");
}

#[test]
fn a_byte_order_mark_before_a_file_is_no_text() {
    // R-88
    let folder = new_folder("marks");
    let with_mark = |name: &str, text: &str| {
        let plain = write_file(&folder, name, text);
        (plain, write_file(&folder, &format!("marked-{name}"), format!("\u{FEFF}{text}")))
    };
    let (state, with_state) = with_mark("state.json", r#"{"a":1}"#);
    let (operations, marked_operations) = with_mark("ops.json", r#"[["ADD","a",1]]"#);
    let (chunks, with_chunks) = with_mark("chunks.json", r#"["<final>","Hi</final>"]"#);
    let (context, with_context) = with_mark("context.json", r#"{"user":"Ann"}"#);
    let (text, with_text) = with_mark("text.txt", "Hi {{user}}");
    let pairs: [(Vec<&str>, Vec<&str>); 3] = [
        (
            vec!["state", "apply", "--state", &state, &operations],
            vec!["state", "apply", "--state", &with_state, &marked_operations],
        ),
        (vec!["decode", "--chunks", &chunks], vec!["decode", "--chunks", &with_chunks]),
        (
            vec!["macros", "render", "--context", &context, &text],
            vec!["macros", "render", "--context", &with_context, &with_text],
        ),
    ];
    for (plain, with_mark) in pairs {
        let (plain, with_mark) = (run(&plain, ""), run(&with_mark, ""));
        assert_eq!(plain.code, Some(0), "{plain:?}");
        assert!(!plain.stdout.is_empty());
        assert_eq!((&with_mark.stdout, with_mark.code), (&plain.stdout, plain.code), "{with_mark:?}");
    }
}
