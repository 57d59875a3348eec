//! Models that are asked: prompts, instructions, re-asks, prices, aliases, runs that are killed meanwhile.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::model::{Answer, ScriptedModel, last_text};
use super::{eval, report};
use crate::{VALID_REPLY, new_folder, run_in, tambour_command, write_file};

/// Evaluation of one model with the prompts of `prompts.jsonl`.
fn model_file(model: &ScriptedModel, dialect: &str, more: &str) -> String {
    format!(
        "{more}\n[contract]\ndialect = \"{dialect}\"\noptions = {{ text_language = \"en\" }}\n[prompts]\npath = \"prompts.jsonl\"\n\
         [[sources]]\nupstream = \"local\"\n[upstreams.local]\nkind = \"openai\"\nurl = \"{}\"\nmodel = \"small\"\n\
         prices = {{ small = {{ input = 1.0, output = 2.0 }} }}\n[timeouts]\nattempts = 1\n",
        model.url()
    )
}

fn prompts(count: usize) -> String {
    (0..count)
        .map(|number| {
            format!("{}\n", json!({"id": format!("p{number}"), "text": format!("question {number}")}))
        })
        .collect()
}

fn lines(folder: &std::path::Path, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join(name)).expect("a file of the run");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn a_model_is_asked_with_the_instructions_and_asked_again_with_the_faults() {
    let folder = new_folder("eval-model");
    write_file(&folder, "prompts.jsonl", prompts(4));
    // Four questions: a good reply; one that is repaired; one that is better after a re-ask; one that stays bad.
    let model = ScriptedModel::start(|body, _| {
        let messages = body["messages"].as_array().expect("messages").len();
        // A turn with the example stands before the question.
        let first_question = body["messages"][3]["content"].as_str().expect("a text");
        Answer::Reply(match (first_question, messages) {
            ("question 1", 4) => VALID_REPLY.replace("id=\"2\"", "id=\"3\""),
            ("question 2", 4) | ("question 3", _) => "<thinking>It is 4".to_owned(),
            _ => VALID_REPLY.to_owned(),
        })
    });
    let file = model_file(&model, "thinkingml", "parallel = 2");
    let measured = report(&folder, &file, &[]);
    let row = &measured["rows"][0];
    assert_eq!(
        (&row["source"], &row["model"], &row["dialect"]),
        (&json!("local"), &json!("small"), &json!("thinkingml"))
    );
    let counts = |name: &str| row[name]["count"].as_u64().expect("a count");
    assert_eq!(["valid", "repaired", "usable"].map(counts), [1, 2, 3], "{row}");
    let steps = json!({"constrained": 0, "plain": 1, "repaired": 1, "reasked": 1, "fallback": 1});
    assert_eq!((&row["yield"], &row["reasks"]), (&steps, &json!(2)), "{row}");
    // Six calls of 100 and 10 tokens.
    assert_eq!(
        (&row["input_tokens"], &row["output_tokens"], &row["unpriced_tokens"]),
        (&json!(600), &json!(60), &json!(0))
    );
    assert_eq!(row["cost"], json!(0.00072));
    assert!(row["first_text_ms"]["count"] == 4 && row["total_ms"]["median"].is_u64(), "{row}");
    let requests = model.requests();
    assert_eq!(requests.len(), 6);
    for body in &requests {
        assert_eq!(body["model"], "small");
        let system = &body["messages"][0];
        assert_eq!(system["role"], "system");
        assert!(
            system["content"].as_str().expect("a text").contains("<thinking>"),
            "the instructions: {system}"
        );
    }
    let reask =
        requests.iter().find(|body| body["messages"].as_array().map(Vec::len) == Some(6)).expect("a re-ask");
    assert_eq!(reask["messages"][4]["content"], "<thinking>It is 4");
    assert!(last_text(reask).starts_with("The reply above does not keep the format:\n- line 1: "), "{reask}");
    // Every reply is kept: the first ones as records of `check`, the others beside them.
    let (first, later) = (lines(&folder, "e.run/replies.jsonl"), lines(&folder, "e.run/reasks.jsonl"));
    assert_eq!((first.len(), later.len()), (4, 2));
    let ran = run_in(
        &folder,
        &[
            "check",
            "--field",
            "chunks",
            "--contract-field",
            "protocol",
            "--option",
            "examples=own",
            "--option",
            "text_language=en",
            "--format",
            "json",
            "e.run/replies.jsonl",
        ],
        "",
    );
    let passed = ran.json_lines().iter().filter(|line| line["verdict"] == "pass").count();
    assert_eq!(passed, 1, "{ran:?}");
    // The recorded run has the same figures, times and tokens included.
    assert_eq!(eval(&folder, &file, &["--resume", "--record", "kept"]).code, Some(0));
    assert_eq!(model.requests().len(), 6, "a finished run asks nobody");
    write_file(&folder, "kept/e.toml", std::fs::read(folder.join("kept/eval.toml")).expect("an evaluation"));
    let ran = run_in(&folder.join("kept"), &["eval", "e.toml", "--format", "json"], "");
    assert_eq!(
        serde_json::from_str::<Value>(&ran.stdout).expect("a report")["rows"],
        measured["rows"],
        "{ran:?}"
    );
}

#[test]
fn a_re_ask_that_is_worse_is_not_used() {
    let folder = new_folder("eval-worse");
    write_file(&folder, "prompts.jsonl", prompts(1));
    // Prose is at least a text; the re-ask gives nothing.
    let model =
        ScriptedModel::start(|_, number| Answer::Reply(if number == 0 { "It is 4." } else { "" }.to_owned()));
    let row = report(&folder, &model_file(&model, "thinkingml", "max_reasks = 2"), &[])["rows"][0].clone();
    assert_eq!(model.requests().len(), 3);
    assert_eq!(
        (&row["text"]["count"], &row["usable"]["count"], &row["reasks"]),
        (&json!(1), &json!(0), &json!(2)),
        "{row}"
    );
    let none = ScriptedModel::start(|_, _| Answer::Reply("It is 4.".to_owned()));
    report(&folder, &model_file(&none, "thinkingml", "max_reasks = 0"), &["--run", "none"]);
    assert_eq!(none.requests().len(), 1);
}

#[test]
fn an_example_that_is_repeated_is_not_usable() {
    let folder = new_folder("eval-echo");
    write_file(&folder, "prompts.jsonl", prompts(1));
    let instructions = run_in(&folder, &["contract", "show", "thinkingml", "--lang", "en"], "").stdout;
    let start = instructions.find("<serp>").or_else(|| instructions.find("<thinking>")).expect("an example");
    let end = instructions.find("</final>").expect("an example") + "</final>".len();
    let example = instructions[start..end].to_owned();
    let model = ScriptedModel::start(move |_, _| Answer::Reply(example.clone()));
    let row = report(&folder, &model_file(&model, "thinkingml", "max_reasks = 0"), &[])["rows"][0].clone();
    // `check` has only a warning for it, so it is valid as written.
    assert_eq!((&row["valid"]["count"], &row["text"]["count"]), (&json!(1), &json!(0)), "{row}");
    assert!(row["rules"].to_string().contains("example_echo"), "{row}");
}

#[test]
fn prompts_are_records_messages_or_inputs_of_scripts() {
    let folder = new_folder("eval-prompts");
    write_file(&folder, "p/a.txt", "\u{feff}first input\n\n  second input  \n");
    let own = json!({"id": 7, "system_prompt": "Mine.", "messages": [
        {"role": "system", "content": "More."}, {"role": "user", "content": "one"},
        {"role": "assistant", "content": "two"}, {"role": "user", "content": "three"}]});
    write_file(&folder, "p/b.jsonl", format!("{own}\n{}\n", json!({"text": "hello", "lang": "en"})));
    write_file(&folder, "p/notes.md", "not a prompt");
    let model = ScriptedModel::start(|_, _| Answer::Reply("It is 4.".to_owned()));
    let file = model_file(&model, "plain", "parallel = 1")
        .replace("path = \"prompts.jsonl\"", "path = \"p\"\nsystem_prompt = \"Ours.\"");
    let file = format!("{file}[request]\ntemperature = 0.5\nmax_tokens = 9\nseed = 3\n");
    report(&folder, &file, &[]);
    let requests = model.requests();
    let messages = |index: usize| -> Vec<String> {
        let messages = requests[index]["messages"].as_array().expect("messages").iter();
        messages
            .map(|it| {
                format!(
                    "{}: {}",
                    it["role"].as_str().expect("a role"),
                    it["content"].as_str().expect("a text")
                )
            })
            .collect()
    };
    assert_eq!(messages(0), ["system: Ours.", "user: first input"]);
    assert_eq!(messages(1), ["system: Ours.", "user: second input"]);
    assert_eq!(messages(2), ["system: Mine.\n\nMore.", "user: one", "assistant: two", "user: three"]);
    assert_eq!(messages(3), ["system: Ours.", "user: hello"]);
    assert_eq!(
        (&requests[0]["temperature"], &requests[0]["max_tokens"], &requests[0]["seed"]),
        (&json!(0.5), &json!(9), &json!(3))
    );
    let ids: Vec<Value> =
        lines(&folder, "e.run/replies.jsonl").iter().map(|line| line["prompt_id"].clone()).collect();
    assert_eq!(json!(ids), json!(["a:1", "a:3", "7", "b:2"]));
}

#[test]
fn aliases_bring_their_settings() {
    let folder = new_folder("eval-alias");
    write_file(&folder, "prompts.jsonl", prompts(2));
    let model = ScriptedModel::start(|_, _| Answer::Reply("{\"a\": 1}".to_owned()));
    let config = format!(
        "currency = \"EUR\"\n[upstreams.far]\nkind = \"openai\"\nurl = \"{}\"\nmodel = \"base\"\n\
         [aliases.coach]\nupstream = \"far\"\nmodel = \"tuned\"\ndialect = \"json_value\"\nsystem_prompt = \"Be kind.\"\nmax_reasks = 2\n\
         contract = {{ options = {{ \"json_value.schema\" = {{ required = [\"b\"] }} }} }}\n\
         [aliases.skein]\nupstream = \"far\"\nskein = \"s.yaml\"\n",
        model.url()
    );
    write_file(&folder, "server/tambour.toml", config);
    let file = "config = \"server/tambour.toml\"\n[contract]\ndialects = [\"plain\", \"aiplan\"]\n[prompts]\npath = \"prompts.jsonl\"\n\
                instructions = false\n[[sources]]\nalias = \"coach\"\n[[sources]]\nupstream = \"far\"\n";
    let measured = report(&folder, file, &[]);
    assert_eq!(measured["currency"], "EUR");
    let rows: Vec<String> = measured["rows"]
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| {
            format!("{} {} {} {}", row["source"], row["model"], row["dialect"], row["usable"]["count"])
                .replace('"', "")
        })
        .collect();
    assert_eq!(rows, ["coach tuned json_value 0", "far base plain 2", "far base aiplan 0"]);
    let coach: Vec<Value> = model.requests().into_iter().filter(|body| body["model"] == "tuned").collect();
    assert_eq!(coach.len(), 6, "two re-asks of each");
    assert!(coach.iter().all(|body| body["messages"][0]["content"] == "Be kind."), "{coach:?}");
    for (source, message) in [
        ("alias = \"coach2\"", "there is no alias `coach2`; known: coach, skein"),
        ("alias = \"skein\"", "the alias `skein` has `skein`, which only a server has"),
        ("upstream = \"near\"", "there is no upstream `near`; known: "),
        ("upstream = \"demo=x\"", "plays recordings; give their file as `recorded` instead"),
        ("upstream = \"replay=r.jsonl\"", "plays recordings; give their file as `recorded` instead"),
    ] {
        let ran = eval(&folder, &file.replace("alias = \"coach\"", source), &["--run", "x"]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(message), "{source}: {}", ran.stderr);
    }
}

#[test]
fn a_run_that_is_killed_while_models_write_goes_on() {
    const COUNT: usize = 40;
    for (parallel, kill_at) in [(1, 1), (1, 14), (4, 20), (4, COUNT)] {
        let folder = new_folder(&format!("eval-model-killed-{parallel}-{kill_at}"));
        write_file(&folder, "prompts.jsonl", prompts(COUNT));
        let is_alive_again = Arc::new(AtomicBool::new(false));
        let flag = is_alive_again.clone();
        let model = ScriptedModel::start(move |_, number| {
            // The model falls silent, so that the run cannot end before it is killed.
            if number + 1 >= kill_at && !flag.load(Ordering::SeqCst) {
                return Answer::Silence;
            }
            Answer::Reply("It is 4.".to_owned())
        });
        let file = model_file(&model, "plain", &format!("parallel = {parallel}"));
        write_file(&folder, "e.toml", &file);
        let mut child = tambour_command(&["eval", "e.toml"])
            .current_dir(&folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the command starts");
        model.wait_requests(kill_at);
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
        let kept = lines(&folder, "e.run/replies.jsonl");
        assert!(kept.len() < kill_at, "{} of {kill_at}", kept.len());
        let before = model.requests().len();
        is_alive_again.store(true, Ordering::SeqCst);
        let row = report(&folder, &file, &["--resume"])["rows"][0].clone();
        assert_eq!((&row["replies"], &row["usable"]["count"]), (&json!(COUNT), &json!(COUNT)), "{row}");
        assert_eq!(lines(&folder, "e.run/replies.jsonl").len(), COUNT);
        let asked_again: Vec<Value> = model.requests().split_off(before);
        assert!(asked_again.len() >= COUNT - kept.len());
        for reply in &kept {
            let is_asked = |body: &Value| Some(last_text(body)) == reply["prompt"][0]["content"].as_str();
            assert!(!asked_again.iter().any(is_asked), "a finished prompt is asked again: {reply}");
        }
        // Printed once more, nothing changes, times included.
        let again = report(&folder, &file, &["--resume"]);
        assert_eq!(again["rows"][0], row);
    }
}

/// A model that obeys a grammar, or ignores it and answers with prose.
fn model_with_grammars(obeys: bool) -> ScriptedModel {
    ScriptedModel::start(move |body, _| {
        let grammar = body["grammar"].as_str().filter(|_| obeys);
        Answer::Reply(match grammar {
            // The canary, which only an engine of grammars writes.
            Some(grammar) if grammar.contains("Zyqumbra-47") => "Zyqumbra-47".to_owned(),
            Some(_) => VALID_REPLY.to_owned(),
            None => "It is 4, I think.".to_owned(),
        })
    })
}

/// Requests with a question of the prompts.
fn questions(model: &ScriptedModel) -> Vec<Value> {
    model.requests().into_iter().filter(|body| last_text(body).starts_with("question")).collect()
}

#[test]
fn contracts_are_sent_along_where_the_server_obeys_them() {
    let folder = new_folder("eval-constrain");
    write_file(&folder, "prompts.jsonl", prompts(2));
    let run = |model: &ScriptedModel, constrain: &str, run: &str| {
        let more = format!("max_reasks = 0\n[request]\nconstrain = \"{constrain}\"");
        let file = model_file(model, "thinkingml", &more)
            .replace("kind = \"openai\"", "kind = \"openai\"\nserver = \"llama.cpp\"");
        let ran = eval(&folder, &file, &["--run", run, "--format", "json"]);
        let report: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
        report["rows"][0].clone()
    };
    let model = model_with_grammars(true);
    let row = run(&model, "auto", "obeyed");
    let steps = json!({"constrained": 2, "plain": 0, "repaired": 0, "reasked": 0, "fallback": 0});
    assert_eq!(row["yield"], steps, "{row}");
    let asked = questions(&model);
    assert_eq!(asked.len(), 2);
    assert!(asked.iter().all(|body| body["grammar"].as_str().is_some_and(|text| text.contains("<final>"))));
    assert!(lines(&folder, "obeyed/replies.jsonl").iter().all(|line| line["constraint"] == "gbnf"));
    // A model that answers with prose gets no grammar, and none is asked that must have one.
    let model = model_with_grammars(false);
    let row = run(&model, "auto", "ignored");
    assert_eq!(row["yield"]["constrained"], 0, "{row}");
    assert!(questions(&model).iter().all(|body| body.get("grammar").is_none()));
    let model = model_with_grammars(false);
    let row = run(&model, "required", "required");
    assert_eq!((&row["failed"], questions(&model).len()), (&json!(2), 0), "{row}");
    let model = model_with_grammars(true);
    assert_eq!(run(&model, "off", "off")["yield"]["constrained"], 0);
    assert!(model.requests().iter().all(|body| body.get("grammar").is_none()));
}
