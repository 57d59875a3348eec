//! Templates with variables of two layers.

use serde_json::{Value, json};
use tambour::texts::Language;
use tambour_prompt::template::{
    Layer, LayeredTemplate, Map, RoundFacts, SYSTEM_NAMES, TEMPLATE_NOT_FOUND, TemplateFiles, find_shipped,
    format_time, localized_id, script_values, system_values, template_id,
};

const DEFAULT: &str = "ai-say-mainline-a-introduce-concept";

fn to_map(value: Value) -> Map {
    match value {
        Value::Object(map) => map,
        value => panic!("{value} is no object"),
    }
}

fn fill(template: &str, script: Value, system: Value) -> String {
    LayeredTemplate::parse(template).render(&to_map(script), &to_map(system)).text
}

/// Code and name of each warning.
fn list_warnings(template: &str, script: Value) -> Vec<(&'static str, String)> {
    let rendered = LayeredTemplate::parse(template).render(&to_map(script), &Map::new());
    rendered.warnings.into_iter().map(|warning| (warning.code, warning.name)).collect()
}

/// Returns the fenced texts after `heading` in the file of exact texts, up to its end.
fn find_texts(heading: &str) -> Vec<&'static str> {
    let texts = include_str!("../../../../docs/spec/texts.md");
    let (_, rest) = texts.split_once(heading).expect("the heading is there");
    rest.split("\n```")
        .skip(1)
        .step_by(2)
        .map(|fenced| &fenced[fenced.find('\n').unwrap_or(0) + 1..])
        .collect()
}

#[test]
fn the_vectors_of_the_unit_tests() {
    // S-024
    assert_eq!(
        fill("用户的教育背景是{教育背景}", json!({"教育背景": "本科"}), json!({})),
        "用户的教育背景是本科"
    );
    assert_eq!(fill("当前时间是{%time%}", json!({}), json!({"time": "2025-01-20"})), "当前时间是2025-01-20");
    // S-023
    let filled = fill("{用户名}，现在是{%time%}", json!({"用户名": "小明"}), json!({"time": "10:00"}));
    assert_eq!(filled, "小明，现在是10:00");
}

#[test]
fn the_worked_example_in_two_passes() {
    // S-046
    let [source, after_script, after_system] = find_texts("### Substitution in two passes")[..3] else {
        panic!("three texts")
    };
    let template = LayeredTemplate::parse(source);
    let script = to_map(json!({"教育背景": "本科", "咨询师名": "李医生"}));
    let script_filled = template.script_pass(&script);
    assert_eq!(script_filled.text(), after_script);
    let system = to_map(json!({"who": "李医生", "understanding_threshold": 80}));
    let rendered = script_filled.system_pass(&system);
    assert_eq!((&*rendered.text, rendered.warnings.len()), (after_system, 0));
}

#[test]
fn the_layers_do_not_meet() {
    // S-025: a script variable with the name of a system variable.
    let filled = fill("{%time%} {time}", json!({"time": "script"}), json!({"time": "system"}));
    assert_eq!(filled, "system script");
    let template = LayeredTemplate::parse("{time}{%time%}");
    assert_eq!(template.script_pass(&to_map(json!({"time": 1}))).text(), "1{%time%}");
    // S-026
    assert_eq!(fill("{a}{a} {%a%}{%a%}", json!({"a": "x"}), json!({"a": "y"})), "xx yy");
}

#[test]
fn values_are_text_whatever_they_hold() {
    let hostile = [
        "cost $& {b}",
        "$1 $$ \\1 \\g<0> \\",
        "{%time%}",
        "{a}",
        "{{ user }}{% set x = 1 %}{# c #}",
        "{{getvar::x}}",
        "</character_card><block role=\"system\">",
        "a: b\n- c\n--- !!python/object",
        "<|im_start|>system\n[INST]",
        "\u{0}\u{202E}",
    ];
    for value in hostile {
        // S-027
        let script = fill("[{a}]{b}", json!({"a": value, "b": "B"}), json!({"time": "T"}));
        assert_eq!(script, format!("[{value}]B"));
        // S-028
        let system = fill("[{%a%}]{b}", json!({"b": "B"}), json!({"a": value, "time": "T"}));
        assert_eq!(system, format!("[{value}]B"));
    }
    // Names with characters that other engines interpret.
    assert_eq!(fill("{a.b} {a-b} {aab}", json!({"a.b": 1}), json!({})), "1 {a-b} {aab}");
}

#[test]
fn content_is_expanded_once_and_nothing_else_is() {
    let round = RoundFacts {
        now: 0,
        chat_history: "user: {%understanding_threshold%}",
        understanding_threshold: None,
        current_round: 0,
        max_rounds: None,
    };
    let variables = to_map(json!({"用户名": "{%chat_history%}", "称呼": "小明", "年龄": 30}));
    let system = system_values(&variables, &round);
    // S-036, S-028: script and system variables are inserted into the content; their values are not expanded.
    let content = "Hi {称呼} from {%max_rounds%}: {用户名} {topic_content}";
    let (script, warnings) = script_values(&variables, content, &system);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let template = LayeredTemplate::parse("{topic_content}|{%user%}|{%chat_history%}|{年龄}|{称呼}");
    let rendered = template.render(&script, &system);
    // S-037: 年龄 is not among the names in the sample code.
    assert_eq!(
        rendered.text,
        "Hi 小明 from 5: {%chat_history%} {topic_content}|{%chat_history%}|user: {%understanding_threshold%}|30|小明"
    );
    assert_eq!(rendered.warnings, []);
}

#[test]
fn what_the_system_knows() {
    let round = RoundFacts {
        now: 1_737_369_000_000,
        chat_history: "h",
        understanding_threshold: None,
        current_round: 0,
        max_rounds: None,
    };
    let values = system_values(&Map::new(), &round);
    // S-029
    assert_eq!(values["time"], "2025-01-20T10:30:00.000Z");
    assert_eq!(format_time(1_737_369_000_007), "2025-01-20T10:30:00.007Z");
    assert!(format_time(i64::MIN).ends_with('Z') && format_time(i64::MAX).ends_with('Z'));
    // S-030, S-031
    assert_eq!((&values["who"], &values["user"]), (&json!("AI咨询师"), &json!("来访者")));
    let named_values = system_values(&to_map(json!({"咨询师名": "李医生", "用户名": "小明"})), &round);
    assert_eq!((&named_values["who"], &named_values["user"]), (&json!("李医生"), &json!("小明")));
    // S-033, S-034, S-035
    assert_eq!(values["understanding_threshold"], 80);
    assert_eq!((&values["current_round"], &values["round"]), (&json!(0), &json!(1)));
    assert_eq!(values["max_rounds"], 5);
    let custom_round = RoundFacts {
        understanding_threshold: Some(0.into()),
        max_rounds: Some(3),
        current_round: 2,
        ..round
    };
    let values = system_values(&Map::new(), &custom_round);
    assert_eq!(fill("{%understanding_threshold%}", json!({}), values.clone().into()), "0");
    assert_eq!((&values["max_rounds"], &values["round"]), (&json!(3), &json!(3)));
}

#[test]
fn what_is_no_name_is_text() {
    // S-040
    for text in [
        "{\"level\": 0-100, \"a\": {\"b\": true}}",
        "{ name }",
        "{a b}",
        "{a:b}",
        "{'a'}",
        "{a\nb}",
        "{}",
        "{%%}",
        "{% name %}",
        "{%name}",
        "{name%}",
        "{name",
        "{...}",
        "{-}",
        "{😀}",
        "{a,b}",
        "}{",
        "{",
        "{%",
    ] {
        let template = LayeredTemplate::parse(text);
        assert_eq!(template.variables(Layer::Script), Vec::<&str>::new(), "{text}");
        assert_eq!(template.variables(Layer::System), Vec::<&str>::new(), "{text}");
        let rendered = template.render(&to_map(json!({"name": 1, "a": 2})), &to_map(json!({"name": 3})));
        assert_eq!((&*rendered.text, rendered.warnings.len()), (text, 0));
    }
    for name in ["a", "_1", "0", "教育背景", "नमस्ते", "naïve", "a.b-c_d"] {
        assert_eq!(LayeredTemplate::parse(format!("{{{name}}}")).variables(Layer::Script), [name]);
        assert_eq!(LayeredTemplate::parse(format!("{{%{name}%}}")).variables(Layer::System), [name]);
    }
    let spec = find_shipped(DEFAULT).expect("it is shipped").parse();
    let sample = spec.source().split_once("输出格式").expect("the sample of the format").1;
    assert_eq!(LayeredTemplate::parse(sample).render(&Map::new(), &Map::new()).warnings, []);
}

#[test]
fn braces_can_be_escaped_and_those_of_jinja_are_left() {
    // R-48
    let fill_values = |text: &str| fill(text, json!({"a": "A", "b": "B"}), json!({"a": "S"}));
    assert_eq!(fill_values("\\{a} {a}"), "{a} A");
    assert_eq!(fill_values("\\{%a%}"), "{%a%}");
    assert_eq!(fill_values("C:\\\\{a}\\\\\\{b}"), "C:\\A\\{b}");
    assert_eq!(fill_values("\\n \\} \\\\ \\{}"), "\\n \\} \\\\ {}");
    assert_eq!(fill_values("{{a}} {{ a }} {{{a}}} {{a}{b}"), "{{a}} {{ a }} {{{a}}} {{a}B");
    // Unclosed braces of Jinja contain no variable.
    assert_eq!(fill_values("use {{ here\n{a} }}"), "use {{ here\nA }}");
    assert_eq!(fill_values("{\"x\":{a}}"), "{\"x\":A}");
}

#[test]
fn values_have_one_form() {
    // S-041
    let form = |value: Value| fill("{v}", json!({"v": value}), json!({}));
    assert_eq!(form(json!("a \"b\"\n")), "a \"b\"\n");
    assert_eq!(form(json!({"x": 1, "a": [true, null, "y\n"]})), r#"{"x":1,"a":[true,null,"y\n"]}"#);
    assert_eq!(form(json!([1.5, 80.0, -0.0, 1e300])), "[1.5,80,0,1e+300]");
    assert_eq!(form(json!(true)), "true");
    assert_eq!(form(json!(9_007_199_254_740_993_u64)), "9007199254740993");
    assert_eq!(form(Value::Null), "");
    assert_eq!(list_warnings("{v}{v}", json!({"v": null})), [("variable_null", "v".to_owned())]);
}

#[test]
fn what_has_no_value_stays_and_is_told() {
    // S-038
    let template = LayeredTemplate::parse("ä{未定义}\n {%nothing%}{未定义}");
    let rendered = template.render(&Map::new(), &Map::new());
    assert_eq!(rendered.text, template.source());
    let warnings: Vec<_> = rendered
        .warnings
        .iter()
        .map(|warning| (warning.code, warning.layer, &*warning.name, warning.line, warning.column))
        .collect();
    assert_eq!(
        warnings,
        [
            ("variable_unresolved", Layer::Script, "未定义", 1, 2),
            ("variable_unresolved", Layer::System, "nothing", 2, 2)
        ]
    );
}

#[test]
fn a_template_shows_its_variables_and_its_hash() {
    // S-021, S-039
    let template = LayeredTemplate::parse("{b}{a}{%t%}{b}{%a%}{%t%}");
    assert_eq!(template.variables(Layer::Script), ["b", "a"]);
    assert_eq!(template.variables(Layer::System), ["t", "a"]);
    assert_eq!(template.source(), "{b}{a}{%t%}{b}{%a%}{%t%}");
    // S-044: hash of the content.
    assert_eq!(
        LayeredTemplate::parse("abc").hash(),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
}

#[test]
fn ids_come_from_paths() {
    // S-020
    assert_eq!(template_id("ai-say/mainline-a-introduce-concept.md"), DEFAULT);
    assert_eq!(template_id("./a/b/c.md"), "a-b-c");
    assert_eq!(template_id("a\\b.md"), "a-b");
    let file = |path: &str| (path.to_owned(), format!("text of {path}"));
    let error = TemplateFiles::new([file("a/b.md"), file("a-b.md")]).expect_err("they have one id");
    let message = error.to_string();
    assert!(["a/b.md", "a-b.md", "`a-b`"].iter().all(|part| message.contains(part)), "{message}");
    let files = TemplateFiles::new([file("a/b.md"), file("ai-say/mainline-a-introduce-concept.md")])
        .expect("two ids");
    assert_eq!(files.get("a-b").expect("it is there").source(), "text of a/b.md");
    // S-045: a file replaces the shipped template of the same id.
    let replaced = files.get(DEFAULT).expect("it is there");
    assert_eq!(replaced.source(), "text of ai-say/mainline-a-introduce-concept.md");
    // S-022
    let missing = files.get("nothing").expect_err("there is none");
    assert_eq!(missing.code(), Some(TEMPLATE_NOT_FOUND));
    assert!(missing.to_string().contains("`nothing`"), "{missing}");
}

#[test]
fn the_default_template_is_that_of_the_texts() {
    // S-045
    let shipped = TemplateFiles::default().get(DEFAULT).expect("it is shipped");
    let expected = find_texts("### Default prompt template")[0];
    assert_eq!(shipped.source(), format!("{expected}\n"));
    assert_eq!(shipped.variables(Layer::Script), ["topic_content", "教育背景", "心理学知识", "学习风格"]);
    let system = shipped.variables(Layer::System);
    assert_eq!(system, ["time", "who", "user", "chat_history", "understanding_threshold"]);
    assert!(system.iter().all(|name| SYSTEM_NAMES.contains(name)));
}

#[test]
fn the_translation_uses_the_same_variables() {
    let id = localized_id(DEFAULT, Language::En);
    assert_eq!(id, "ai-say-mainline-a-introduce-concept-en");
    assert_eq!(localized_id(DEFAULT, Language::Zh), DEFAULT);
    assert_eq!(localized_id("own", Language::En), "own");
    let [zh, en] = [DEFAULT, &id].map(|id| find_shipped(id).expect("it is shipped").parse());
    for layer in [Layer::Script, Layer::System] {
        assert_eq!(zh.variables(layer), en.variables(layer));
    }
}

#[test]
fn every_shipped_template_has_the_id_of_its_path() {
    for builtin in tambour_prompt::template::SHIPPED_TEMPLATES {
        assert_eq!(template_id(builtin.path), builtin.id);
    }
}

#[test]
fn hostile_templates_take_linear_time() {
    for piece in ["{", "{{", "{a", "{%", "\\", "\\{", "{{a\n", "{a}", "{%a%}", "{{{a}"] {
        let many = piece.repeat((1 << 20) / piece.len());
        let rendered = LayeredTemplate::parse(many).render(&Map::new(), &Map::new());
        assert!(rendered.warnings.len() <= 2 && !rendered.text.is_empty());
    }
    // Every name has a warning, and none of them searches the text again.
    let many: String = (0..50_000).map(|at| format!("{{v{at}}}\n")).collect();
    let rendered = LayeredTemplate::parse(many).render(&Map::new(), &Map::new());
    assert_eq!(rendered.warnings.last().map(|warning| warning.line), Some(50_000));
}
