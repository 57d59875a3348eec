//! Rules of answers of `ai_ask` and `ai_think`, and of scripts checked against their templates. The examples
//! in `ask` and `think` are answers of a model; those in `think` answer a prompt that asks for the variables
//! `mood` and `reason`. The examples in `script` are scripts.

/// Rules of answers of `ai_ask`.
pub(crate) mod ask {
    use tambour::finding::rules;

    const GOOD: &str = r#"{"value": "Ann", "usable": true, "response": {"咨询师": "Hello Ann."}}"#;

    rules! {
        UNSTRUCTURED = "unstructured" ["S-054"] Must "the reply is an answer object",
            broken "I am not sure.", correct GOOD;
        MESSAGE_MISSING = "message_missing" ["S-052"] Must "the answer has a message",
            broken r#"{"value": "Ann", "usable": true}"#, correct GOOD;
        ROLE_KEY_UNEXPECTED = "role_key_unexpected" ["S-052"] Must "the role is the only key of `response`",
            broken r#"{"value": "Ann", "usable": true, "response": {"coach": "Hello Ann."}}"#, correct GOOD;
        RESPONSE_NOT_OBJECT = "response_not_object" ["S-052"] Must "`response` is an object with the role as its key",
            broken r#"{"value": "Ann", "usable": true, "response": "Hello Ann."}"#, correct GOOD;
        FIELD_MISSING = "field_missing" ["R-51"] Must "the answer says whether it is usable, and has a value if it is",
            broken r#"{"value": "Ann", "response": {"咨询师": "Hello Ann."}}"#, correct GOOD;
        FIELD_TYPE = "field_type" ["R-51"] Must "`usable` is true or false",
            broken r#"{"value": "Ann", "usable": "yes", "response": {"咨询师": "Hello Ann."}}"#, correct GOOD;
        VALUE_UNFIT = "value_unfit" ["S-011"] Must "the value is an answer to the question, of its type",
            broken r#"{"value": "<answer>", "usable": true, "response": {"咨询师": "Hello Ann."}}"#, correct GOOD;
    }
}

/// Rules of answers of `ai_think`.
pub(crate) mod think {
    use tambour::finding::rules;

    const GOOD: &str = r#"{"mood": "calm", "reason": null}"#;

    rules! {
        UNSTRUCTURED = "unstructured" ["S-054"] Must "the reply is one JSON object",
            broken "They seem calm.", correct GOOD;
        FIELD_MISSING = "field_missing" ["R-51"] Must "the object has a key for each variable",
            broken r#"{"mood": "calm"}"#, correct GOOD;
        FIELD_UNEXPECTED = "field_unexpected" ["R-51"] Info "the object has no other keys",
            broken r#"{"mood": "calm", "reason": "x", "age": 3}"#, correct GOOD;
    }
}

/// Rules of scripts with their templates.
pub(crate) mod script {
    use tambour::finding::rules;

    /// Builds a script with a single action, which `$action` holds as YAML. The script declares the variables
    /// that the shipped template uses, and those of `$declare`.
    macro_rules! script {
        ($declare:literal, $action:literal) => {
            concat!(
                "sessions:\n  - session: s\n    declare: [{var: 教育背景}, {var: 心理学知识}, {var: 学习风格}",
                $declare,
                "]\n    phases:\n      - phase: p\n        steps:\n          - topic: t\n            actions:\n              - ",
                $action,
                "\n"
            )
        };
    }

    const GOOD: &str = script!("", "{type: ai_say, content: Hello.}");

    rules! {
        TEMPLATE_NOT_FOUND = "template_not_found" ["S-022"] Must "the template of an action exists",
            broken script!("", "{type: ai_say, content: Hello., template: mine}"), correct GOOD;
        VARIABLE_UNRESOLVED = "variable_unresolved" ["S-038", "S-043"] Should "variables that are used have a value",
            broken script!("", "{type: ai_say, content: \"Hello {name}.\"}"), correct GOOD;
        VARIABLE_UNUSED = "variable_unused" ["S-043"] Should "variables that are declared are used",
            broken script!(", {var: name}", "{type: ai_say, content: Hello.}"), correct GOOD;
        NAME_INVALID = "name_invalid" ["S-040"] Should "a variable has a name that templates can use",
            broken script!(", {var: \"my name\"}", "{type: ai_say, content: Hello.}"), correct GOOD;
        CONDITION_INVALID = "condition_invalid" ["S-011"] Should "a condition is an expression over variables",
            broken script!("", "{type: ai_say, content: Hello., condition: a >}"), correct GOOD;
        TYPES_DIFFER = "types_differ" ["S-011"] Should "a condition compares values of one type",
            broken script!(", {var: age, value: 30}", "{type: ai_say, content: Hello., condition: age == 'old'}"),
            correct script!(", {var: age, value: 30}", "{type: ai_say, content: Hello., condition: age > 17}");
        BRACES_BLANK = "braces_blank" ["S-040"] Should "a variable has no blanks inside its braces",
            broken script!(", {var: name}", "{type: ai_say, content: \"Hello { name }.\"}"),
            correct script!(", {var: name}", "{type: ai_say, content: \"Hello {name}.\"}");
    }
}
