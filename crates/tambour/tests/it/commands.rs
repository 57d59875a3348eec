//! Commands of MVU (F-140): values are taken as written and never computed, and guesses are refused with their place.

use serde_json::{Value, json};
use tambour::event::EventCollector;
use tambour::{Finding, InputEnd, Options, Pipeline};

/// Reads commands; returns their operations and the findings.
fn read(commands: &str) -> (Vec<Value>, Vec<Finding>) {
    let reply = format!("<content>x</content>\n<UpdateVariable>\n{commands}\n</UpdateVariable>");
    let mut sink = EventCollector::default();
    let mut pipeline =
        Pipeline::new("filament", &Options::default()).expect("a dialect").with_extensions(true);
    pipeline.push_str(&reply, &mut sink);
    pipeline.finish(&InputEnd::stop(), &mut sink);
    let update =
        sink.join_deltas().iter().find(|event| event.name() == "state_update").map(|event| event.data());
    let operations = update.map(|update| update["operations"].as_array().expect("a list").clone());
    (operations.unwrap_or_default(), sink.findings)
}

/// Fails unless no operation of these commands is carried out, with findings at these lines of the block.
fn assert_refused(commands: &str, lines: &[usize]) {
    let (operations, findings) = read(commands);
    for operation in &operations {
        let is_noop =
            operation["op"] == "" || operation.get("value").is_none() && operation["op"] != "DELETE";
        assert!(is_noop, "{commands}: {operation}");
    }
    assert!(!operations.is_empty(), "{commands}");
    let codes = ["value_guessed", "command_invalid", "number_out_of_range"];
    let reported = findings.iter().filter(|finding| codes.contains(&&*finding.code.to_string()));
    let reported: Vec<usize> = reported.map(|finding| finding.line as usize - 2).collect();
    assert_eq!(reported, lines, "{commands}: {findings:?}");
}

#[test]
fn values_that_would_have_to_be_computed_are_refused_with_their_place() {
    //
    for value in [
        // Arithmetic.
        "100 - 30",
        "hp - 30",
        "hp-30",
        "hp+1",
        "hp * 2",
        "hp/2",
        "7 % hp",
        "2 ** 3",
        "-hp",
        "+hp",
        "hp++",
        "--hp",
        "~5",
        "+=5",
        "1_000",
        "0x1F",
        "007",
        "5.",
        "5n",
        "NaN",
        "-Infinity",
        "1e400",
        "12345678901234567890123",
        // Texts of several parts.
        "'a' + 'b'",
        "'a' 'b'",
        "'a'.length",
        "'a'.concat('b')",
        "`${x}`",
        "`a ${1 + 1} b`",
        "tag`x`",
        "'a' ? 1 : 2",
        "\"a\" + hp",
        // Calls.
        "Math.max(1,2)",
        "Math.max (1, 2)",
        "Math.PI",
        "_.random(1,6)",
        "_.get(stat_data, 'hp')",
        "_.clamp(hp, 0, 100)",
        "new Date()",
        "Date.now()",
        "Number('5')",
        "parseInt('5', 10)",
        "getvar('hp')",
        "f()",
        "process.exit(1)",
        "(() => 1)()",
        "() => 1",
        "x => x",
        "function () { return 1 }",
        "async () => 1",
        "(1, 2)",
        "(5)",
        // Conditions.
        "hp > 5 ? 1 : 2",
        "a ?? b",
        "a?.b",
        "a || 5",
        "a && 5",
        "!a",
        "hp > 5",
        "hp == 5",
        "hp = 5",
        "a instanceof b",
        "typeof a",
        "await a",
        "void 0",
        "delete a.b",
        // Members and variables.
        "stat_data.hp",
        "a.b.c",
        "角色.好感度",
        "this.hp",
        "a[0]",
        "a['b']",
        // Spread, lists and objects with any of it.
        "...a",
        "[...a]",
        "[1, ...a, 2]",
        "[1, x]",
        "[1, 1 + 1]",
        "[f(1)]",
        "[new Date()]",
        "[`${x}`]",
        "[a ? 1 : 2]",
        "[Math.max(1, 2)]",
        "[NaN]",
        "[1,,2]",
        "[,1]",
        "[1] + [2]",
        "[1, 2][0]",
        "[1, 2].length",
        "{...a}",
        "{a: x}",
        "{a}",
        "{a, b: 1}",
        "{a: 1 + 1}",
        "{a: -x}",
        "{a: f(1)}",
        "{a: new Date()}",
        "{a: `${x}`}",
        "{a: x ? 1 : 2}",
        "{[k]: 1}",
        "{a: 'x' + 'y'}",
        "{a: 1}.a",
        "{f() { return 1 }}",
        "{get a() { return 1 }}",
        "/* 5 */ 3",
        "/a/g",
    ] {
        let values = [
            format!("_.set('hp', {value});"),
            format!("_.set('hp', 5, {value});"),
            format!("_.add('hp', {value});"),
            format!("_.assign('hp', {value});"),
            format!("_.assign('hp', 'k', {value});"),
        ];
        let keys = [format!("_.assign('hp', {value}, 1);"), format!("_.remove('hp', {value});")];
        // The state decides which element a number means.
        let is_number = value.ends_with("e400") || value.ends_with("0123");
        for command in values.iter().chain(keys.iter().filter(|_| !is_number)) {
            assert_refused(command, &[1]);
            assert_refused(&format!("\n{command}//why\n\n{command}"), &[2, 4]);
        }
    }
}

#[test]
fn paths_and_arguments_that_would_have_to_be_computed_are_refused_with_their_place() {
    //
    for command in [
        "_.set('a' + b, 1);",
        "_.set(path + '.x', 1);",
        "_.set(`a.${x}`, 1);",
        "_.set(getPath(), 1);",
        "_.set(x ? 'a' : 'b', 1);",
        "_.set(a[i + 1], 1);",
        "_.set(['a', b], 1);",
        "_.set(...path);",
        "_.set(...path, 1);",
        "_.set('a', ...rest);",
        "_.set('a', ...rest, 1);",
        "_.set('a', 1, ...rest);",
        "_.set('a', , 1);",
        "_.set(, 1);",
        "_.set('a');",
        "_.set();",
        "_.set('a', 1, 2, 3);",
        "_.add('a');",
        "_.remove('a' + b);",
        "_.remove();",
        "_.set?.('a', 1);",
        "_.set.call(_, 'a', 1);",
        "_['set']('a', 1);",
        "_.mul('a', 2);",
        "_.push('a', 'b');",
        "_.pop('a');",
        "_.update('a', n => n + 1);",
    ] {
        let (operations, findings) = read(command);
        let op_names = ["SET", "ADD", "SUB", "MUL", "DIV", "PUSH", "POP", "DELETE"];
        let is_executed = |operation: &&Value| {
            operation.get("refused").is_none()
                && op_names.contains(&operation["op"].as_str().expect("a name"))
        };
        assert_eq!(operations.iter().find(is_executed), None, "{command}: {operations:?}");
        let is_reported = findings.iter().any(|finding| finding.line == 3);
        assert!(is_reported || operations.is_empty(), "{command}: {findings:?}");
    }
}

#[test]
fn commands_in_code_that_nobody_runs_are_refused_with_their_place() {
    //
    for (commands, lines) in [
        ("if (hp < 10) _.set('a', 1);", &[1][..]),
        ("if (hp < 10)\n  _.set('a', 1);", &[2]),
        ("if (hp < 10) {\n  _.set('a', 1);\n  _.set('b', 1);\n}", &[2, 3]),
        ("if (f(hp)) { if (x) { } _.set('a', 1); }", &[1]),
        ("for (let i = 0; i < 3; i++) _.set('a', 1);", &[1]),
        ("while (hp < 10) { _.set('a', 1); }", &[1]),
        ("hp < 10 && _.set('a', 1);", &[1]),
        ("hp < 10 || _.set('a', 1);", &[1]),
        ("function f() { _.set('a', 1); }", &[1]),
        ("const f = () => _.set('a', 1);", &[1]),
        ("list.forEach(one => {\n  _.set('a', 1);\n});", &[2]),
        ("_.forEach(list, one => {\n_.set('a', 1);\n});", &[1, 2]),
        ("hp < 10 ? _.set('a', 1) : _.set('a', 2);", &[1, 1]),
        ("_.f(_.set('a', 1);", &[1, 1]),
        ("const d = 30;\n_.set('hp', d);", &[2]),
        ("let path = 'hp';\n_.set(path, 5);", &[2]),
    ] {
        assert_refused(commands, lines);
    }
    let (operations, _) = read("if (x) { _.set('a', 1); } else { _.set('b', 1); }\n_.set('c', 1);");
    assert_eq!(operations[2], json!({"op": "SET", "path": "c", "value": 1}));
    let (operations, _) = read("if (x) { _.set('a', 1); } else _.set('b', 1);_.set('c', 1);");
    assert!(operations[1].get("value").is_none() && operations[2]["value"] == 1, "{operations:?}");
}

#[test]
fn what_can_only_be_meant_as_it_stands_is_carried_out() {
    // R-81, F-140
    for (value, expected) in [
        ("5", json!(5)),
        ("-5", json!(-5)),
        ("+5", json!(5)),
        (".5", json!(0.5)),
        ("1e3", json!(1e3)),
        ("true", json!(true)),
        ("undefined", Value::Null),
        ("calm", json!("calm")),
        ("very calm", json!("very calm")),
        ("平静", json!("平静")),
        ("half-elf", json!("half-elf")),
        ("he/him", json!("he/him")),
        ("AT&T", json!("AT&T")),
        ("50%", json!("50%")),
        ("A+", json!("A+")),
        ("who?", json!("who?")),
        ("oh! no", json!("oh! no")),
        ("12:30", json!("12:30")),
        ("3.5km", json!("3.5km")),
        ("v1.2", json!("v1.2")),
        ("new", json!("new")),
        ("2024-03-05", json!("2024-03-05")),
        ("2024/3/5", json!("2024/3/5")),
        ("2024-03-05 12:30", json!("2024-03-05 12:30")),
        ("2024-03-05T12:30:00.5+08:00", json!("2024-03-05T12:30:00.5+08:00")),
        ("'100 - 30'", json!("100 - 30")),
        ("'Math.max(1, 2)'", json!("Math.max(1, 2)")),
        ("`it's`", json!("it's")),
        ("'${x}'", json!("${x}")),
        ("[1, 'a', {b: null}]", json!([1, "a", {"b": null}])),
        ("{a: 'b', c: [1,2,],}", json!({"a": "b", "c": [1, 2]})),
    ] {
        let (operations, findings) = read(&format!("_.set('a', {value});"));
        assert_eq!(
            operations,
            [json!({"op": "SET", "path": "a", "value": expected})],
            "{value}: {findings:?}"
        );
    }
    for (command, path) in [
        ("_.set(hp, 1);", "hp"),
        ("_.set(角色.好感度, 1);", "角色.好感度"),
        ("_.set(a-b.c[0], 1);", "a-b.c[0]"),
        ("_.set('a b.c d', 1, );", "a b.c d"),
        ("_.set('hp', 100 - 30, 1);", "hp"),
        ("because (she said) so: _.set('hp', 1);", "hp"),
        ("if she says so, _.set('hp', 1);", "hp"),
    ] {
        let (operations, findings) = read(command);
        assert_eq!(operations, [json!({"op": "SET", "path": path, "value": 1})], "{command}: {findings:?}");
    }
}
