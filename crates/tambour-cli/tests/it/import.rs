//! `tambour import` and `tambour prompt render`.

use std::path::Path;

use serde_json::Value;

use crate::{new_folder, run, write_file};

fn example_path(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/roleplay").join(name).display().to_string()
}

#[test]
fn json_has_what_was_read() {
    let ran = run(&["import", "--json", &example_path("brunn.json"), &example_path("reef-book.json")], "");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let lines: Vec<Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let keys: Vec<_> = lines[0].as_object().expect("an object").keys().map(String::as_str).collect();
    // F-013
    assert_eq!(keys, ["kind", "version", "name", "card", "entries", "warnings"]);
    assert_eq!(
        (&lines[0]["kind"], &lines[0]["version"], &lines[0]["name"]),
        (&"card".into(), &"v2".into(), &"Brunn".into())
    );
    assert_eq!(lines[0]["entries"].as_array().map(Vec::len), Some(5));
    // F-010
    assert!(
        lines[0]["entries"][0]["normalised"]
            .as_str()
            .expect("text")
            .starts_with("<lamp>\n  fuel: whale oil\n")
    );
    assert_eq!((&lines[1]["kind"], &lines[1]["version"]), (&"lorebook".into(), &"sillytavern".into()));
}

#[test]
fn the_example_is_a_working_prompt() {
    let out = new_folder("import-example").display().to_string();
    let ran = run(
        &[
            "import",
            "--out",
            &out,
            &example_path("brunn.json"),
            &example_path("reef-book.json"),
            &example_path("slow-scene.json"),
        ],
        "",
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let file = |name: &str| format!("{out}/{name}");
    let render = |arguments: &[&str]| {
        let files = [
            file("slow-scene.yaml"),
            file("Brunn.yaml"),
            file("reef-book.yaml"),
            example_path("context.json"),
        ];
        let mut words = vec![
            "prompt",
            "render",
            &files[0],
            "--with",
            &files[1],
            "--with",
            &files[2],
            "--context",
            &files[3],
        ];
        words.extend(arguments);
        run(&words, "")
    };
    let text = render(&[]);
    assert_eq!(text.code, Some(0), "{}", text.stderr);
    // F-013, F-028, F-030
    for part in [
        "<lamp>\n  fuel: whale oil\n  burns: nine hours\n  keeper: Brunn\n",
        "last_seen: the Marigold",
        "sealed with green wax",
        "Brunn keeps the lighthouse of Hollow Reef.",
        "Ines rows the mail.",
        "Wind from the north-west, rising.",
        "It is 7:09 PM.",
        "There is oil for ",
    ] {
        assert!(text.stdout.contains(part), "{part}: {}", text.stdout);
    }
    for part in ["{{", "Mainland", "mainland for nine days", "below the water", "@@"] {
        assert!(!text.stdout.contains(part), "{part}: {}", text.stdout);
    }
    let messages: Vec<Value> = serde_json::from_str(&render(&["--messages"]).stdout).expect("JSON");
    let roles: Vec<_> = messages.iter().map(|message| message["role"].as_str().expect("a role")).collect();
    // F-003
    assert_eq!(roles, ["system", "system", "assistant", "system", "user", "system"]);
    // F-006
    let short = render(&["--max-context", "250"]);
    assert!(
        short.stderr.contains("left out for lack of room") && short.stdout.contains("whose ship is that?"),
        "{}",
        short.stderr
    );
    assert!(short.stdout.len() < text.stdout.len());
    // The card itself is a prompt too.
    let card_prompt = run(
        &["prompt", "render", &example_path("brunn.json"), "--context", &example_path("context.json")],
        "",
    );
    assert!(card_prompt.stdout.contains("<character_card>\nname: Brunn\n"), "{}", card_prompt.stdout);
}

#[test]
fn a_broken_file_leaves_nothing_behind() {
    let place = new_folder("import-broken");
    let bad = write_file(
        &place,
        "bad.json",
        "{\"spec\": \"chara_card_v2\", \"data\": {\"name\": \"A\", \"tags\": 7}}",
    );
    let out = place.join("out");
    let folder_name = out.display().to_string();
    let ran = run(&["import", "--out", &folder_name, &bad, &example_path("reef-book.json")], "");
    // F-013: the message names file and field; the other cards are written
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("bad.json") && ran.stderr.contains("`data.tags`"), "{}", ran.stderr);
    let remaining_files: Vec<_> =
        std::fs::read_dir(&out).expect("a folder").map(|file| file.expect("a file").file_name()).collect();
    assert_eq!(remaining_files, ["reef-book.yaml"]);
    let v3 = run(&["import", "--v3", "--out", &folder_name, &example_path("brunn.json")], "");
    assert_eq!(v3.code, Some(0), "{}", v3.stderr);
    let card: Value =
        serde_json::from_slice(&std::fs::read(out.join("Brunn.json")).expect("it is written")).expect("JSON");
    assert_eq!(card["spec"], "chara_card_v3");
}

#[test]
fn wrong_use_is_told() {
    let place = new_folder("render-wrong");
    let context = write_file(&place, "c.json", "{\"user\": \"Ann\"}");
    let good = write_file(&place, "p.yaml", "blocks: [{tag: note, text: \"Hi {{ user }} {{ nothing }}\"}]");
    assert_eq!(run(&["import", "no/such/file"], "").code, Some(2));
    assert_eq!(run(&["import"], "").code, Some(2));
    assert_eq!(run(&["import", &good, &good], "").code, Some(2));
    // Without a context there are no variables.
    let ran = run(&["prompt", "render", &good], "");
    assert_eq!((ran.code, &*ran.stdout), (Some(0), "<note>\nHi  \n</note>\n"));
    // Faults of a context are reported for its file, by columns in characters.
    for (context, code, expected_text) in [
        ("{\"user\": 5}", 1, "w.json: `user` of a context must be a name"),
        ("{\"history\": [{\"role\": \"narrator\"}]}", 1, "w.json: `history[0].role` of a context must be"),
        (
            "{\n\"布伦\": \"石\" 1}",
            2,
            "w.json: not JSON: expected `,` or `}` (line 2, column 11): \"布伦\": \"石\" 1}",
        ),
    ] {
        let context = write_file(&place, "w.json", context);
        let ran = run(&["prompt", "render", &good, "--context", &context], "");
        assert_eq!(ran.code, Some(code), "{}", ran.stderr);
        assert!(ran.stderr.contains(expected_text) && !ran.stderr.contains("p.yaml"), "{}", ran.stderr);
    }
    let broken = write_file(&place, "card.json", "{\"name\": \"布伦\", \"description\": \"石\" \"x\"}");
    let ran = run(&["import", &broken], "");
    assert!(ran.stderr.contains("not JSON: expected `,` or `}` (line 1, column 35): "), "{}", ran.stderr);
    let cut = write_file(&place, "card.json", "{\"name\": \"布伦\",\n");
    let ran = run(&["import", &cut], "");
    assert!(ran.stderr.contains("(line 1, column 15): "), "{}", ran.stderr);
    // Format instructions have the language of other texts.
    let skein_text = "{use_protocol: [choice], blocks: [{slot: protocols}]}";
    for (option, head) in
        [(None, "请用以下标签书写回复"), (Some("text_language=en"), "Write your reply in these tags")]
    {
        let mut arguments = vec!["prompt", "render", "-", "--context", &context];
        arguments.extend(option.iter().flat_map(|option| ["--option", option]));
        let ran = run(&arguments, skein_text);
        assert!(ran.stdout.contains(head), "{option:?}: {ran:?}");
    }
    assert_eq!(run(&["prompt", "render", "no/such/file", "--context", &context], "").code, Some(2));
    assert_eq!(run(&["prompt", "render", "-", "--context", "-"], "").code, Some(2));
    assert_eq!(run(&["prompt", "render", &good, "--context", &good], "").code, Some(2));
    let ran = run(
        &["prompt", "render", "-", "--context", &context],
        "blocks: [{tag: note, text: \"Hi {{ user }}\"}]",
    );
    assert_eq!((ran.code, &*ran.stdout), (Some(0), "<note>\nHi Ann\n</note>\n"));
    for broken in ["blocks: [{tag: note}]", "blocks: [{tag: note, text: \"{{ 1 + \"}]", "blocks: [", "\u{0}"]
    {
        let path = write_file(&place, "broken.yaml", broken);
        let ran = run(&["prompt", "render", &path, "--context", &context], "");
        assert_eq!(ran.code, Some(1), "{broken}: {}", ran.stderr);
        assert!(ran.stdout.is_empty() && !ran.stderr.is_empty());
    }
    // F-024
    assert_eq!(run(&["prompt", "render", &good, "--context", &context], "").code, Some(0));
    assert_eq!(run(&["prompt", "render", "--strict", &good, "--context", &context], "").code, Some(1));
}

#[test]
fn world_info_goes_on_from_turn_to_turn() {
    // F-013: `sticky` counts messages of the chat; its state is kept in a file.
    let place = new_folder("render-timed");
    let entry = r#"{"keys": ["gate"], "content": "The gate is old.", "insertion_order": 1, "extensions": {"sticky": 3, "scan_depth": 1}}"#;
    let book = write_file(&place, "book.json", format!(r#"{{"name": "gates", "entries": [{entry}]}}"#));
    let timed_file = place.join("timed.json").display().to_string();
    let turn = |messages: &[&str], timed_file: Option<&str>| {
        let lines: Vec<_> =
            messages.iter().map(|text| serde_json::json!({"role": "user", "content": text})).collect();
        let context = write_file(&place, "context.json", serde_json::json!({"history": lines}).to_string());
        let mut args = vec!["prompt", "render", &book, "--context", &context];
        args.extend(timed_file.iter().flat_map(|timed_file| ["--timed", timed_file]));
        let ran = run(&args, "");
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.stdout.contains("The gate is old.")
    };
    assert!(turn(&["Open the gate."], Some(&timed_file)));
    assert!(turn(&["Open the gate.", "Hm.", "Go on."], Some(&timed_file)));
    assert!(!turn(&["Open the gate.", "Hm.", "Go on."], None));
    assert!(!turn(&["Open the gate.", "Hm.", "Go on.", "Hm.", "So."], Some(&timed_file)));
    let broken = write_file(&place, "broken.json", "[]");
    let ran = run(
        &["prompt", "render", &book, "--context", &write_file(&place, "c", "{}"), "--timed", &broken],
        "",
    );
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("broken.json"), "{}", ran.stderr);
}
