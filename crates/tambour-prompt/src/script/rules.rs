//! Rules of scripts. Examples are entire scripts.

use tambour::finding::rules;

/// Builds a script with a single action, which `$action` holds as YAML.
macro_rules! script {
    ($action:literal) => {
        concat!(
            "sessions:\n  - session: s\n    phases:\n      - phase: p\n        steps:\n          - topic: t\n",
            "            actions:\n              - ",
            $action,
            "\n"
        )
    };
}

const GOOD: &str = script!("{type: ai_say, content: Hello.}");

rules! {
    YAML_INVALID = "yaml_invalid" ["S-001"] Must
        "a script is one YAML document without anchors, aliases, merge keys or repeated keys",
        broken "sessions: [\n", correct GOOD;
    LIMIT_EXCEEDED = "limit_exceeded" ["X-007"] Must "a script stays inside the limits",
        with ["limits.depth=4"],
        broken GOOD, correct "sessions: [{session: s, phases: []}]\n";
    FIELD_MISSING = "field_missing" ["S-001", "S-002", "S-003", "S-011"] Must
        "sessions have `session` and `phases`, phases `phase` and `steps`, steps `topic` and `actions`, actions `type`, declarations `var`, a choice `options`",
        broken "sessions:\n  - session: s\n", correct GOOD;
    FIELD_TYPE = "field_type"
        ["S-001", "S-002", "S-003", "S-005", "S-006", "S-007", "S-008", "S-009", "S-011", "S-083"] Must
        "fields have their types",
        broken "sessions: {}\n", correct GOOD;
    FIELD_RANGE = "field_range" ["S-006", "S-008", "S-011", "S-083"] Must
        "`max_rounds` is from 1 to 20, thresholds are from 0 to 100, an answer's `min` is not above its `max`",
        broken script!("{type: ai_say, content: Hello., max_rounds: 21}"), correct GOOD;
    ACTION_UNKNOWN = "action_unknown" ["S-003"] Must
        "the type of an action is `ai_say`, `ai_ask`, `ai_think`, `use_skill`, `show_form` or `show_pic`",
        broken script!("{type: ai_shout, content: Hello.}"), correct GOOD;
    CONTENT_REQUIRED = "content_required" ["S-004"] Must "`ai_say` has `content`, a text that is not empty",
        broken script!("{type: ai_say}"), correct GOOD;
    CONTENT_TWICE = "content_twice" ["S-010"] Should "`content` stands alone, without the older key `ai_say`",
        broken script!("{type: ai_say, content: Hello., ai_say: Hi.}"), correct GOOD;
    ACTION_INCOMPLETE = "action_incomplete" ["S-011"] Should
        "`ai_ask` has `question` and `variable`, `ai_think` has `prompt` and `output`",
        broken script!("{type: ai_ask, question: Who are you?}"),
        correct script!("{type: ai_ask, question: Who are you?, variable: name}");
    FIELD_UNKNOWN = "field_unknown" ["S-012"] Should "a script has no unknown fields",
        broken script!("{type: ai_say, content: Hello., max_round: 3}"), correct GOOD;
    ACTIONS_EMPTY = "actions_empty" ["S-001"] Should "a step has actions",
        broken "sessions: [{session: s, phases: [{phase: p, steps: [{topic: t, actions: []}]}]}]\n", correct GOOD;
    LEVEL_SCALE = "level_scale" ["S-008", "S-083"] Should "thresholds are on a scale from 0 to 100, not from 0 to 1",
        broken script!("{type: ai_say, content: Hello., exit_criteria: {understanding_threshold: 0.8}}"),
        correct script!("{type: ai_say, content: Hello., exit_criteria: {understanding_threshold: 80}}");
    QUOTES_CURLY = "quotes_curly" ["S-001"] Should "a text is not in curly quotes, which YAML reads as text",
        broken script!("{type: ai_say, content: “Hello.”}"), correct GOOD;
    NAME_TWICE = "name_twice" ["S-001", "S-002", "S-011"] Should
        "sessions have different names, and so do the variables of one list and the options of a choice",
        broken concat!(
            "sessions:\n  - {session: s, phases: [{phase: p, steps: []}]}\n",
            "  - {session: s, phases: [{phase: p, steps: []}]}\n"
        ),
        correct GOOD;
}
