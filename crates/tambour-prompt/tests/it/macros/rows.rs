//! Each row of the macro table: the macro with its own input, and the printed target written by hand.

use serde_json::{Value, json};
use tambour_prompt::macros::migrate;

use super::{render_template, run, run_blocks};

/// Row, macro and its result, printed target and its result.
const ROWS: &[(&str, &str, &str, &str, &str)] = &[
    ("M-001", "Hi {{user}}", "Hi Tom", "Hi {{ user }}", "Hi Tom"),
    ("M-002", "I am {{char}}", "I am Sera", "I am {{ char }}", "I am Sera"),
    ("M-003", "{{getvar::hp}}/10", "7/10", "{{ state.hp }}/10", "7/10"),
    ("M-004", "{{ state.inventory[0].name }}", "sword", "{{ state.inventory[0].name }}", "sword"),
    ("M-005", "{{ state_desc.hp }}", "health points", "{{ state_desc.hp }}", "health points"),
    ("M-006", "{{if {{getvar::hp}}}} a {{/if}}", "a", "{% if condition %}...{% endif %}", "..."),
    ("M-007", "{{random::A::A}}{{random}}", "A", "{{ random([a, b]) }}", "A"),
    ("M-008", "{{setvar::v::new}}{{getvar::v}}", "new", "{% set var = \"...\" %}{{ var }}", "..."),
    ("M-009", "{{var}}", "v1", "{{ var }}", "v1"),
    ("M-011", "{{user}} <USER> <user>x</user>", "Tom Tom <user>x</user>", "{{ user }}", "Tom"),
    ("M-012", "{{char}} <BOT> <CHAR> <bot>", "Sera Sera Sera Sera", "{{ char }}", "Sera"),
    ("M-013", "{{getvar::x}}", "ex", "{{ state.x }}", "ex"),
    ("M-014", "{{setvar::x::y z}}{{getvar::x}}", "y z", "{% set x = 'y' %}{{ x }}", "y"),
    (
        "M-015",
        "{{#if hp}} a {{/if}}{{#if off}}b{{/if}}{{#if other}}c{{/if}}",
        " a c",
        "{% if x %}...{% endif %}",
        "...",
    ),
    ("M-016", "{{random: one , one}}", "one", "{{ random(['a', 'a']) }}", "a"),
    ("M-017", "a{{// comment}}b", "ab", "a{# comment #}b", "ab"),
    ("M-018", "{{group}}", "Sera, Bo, Cy", "{{ group }}", "Sera, Bo, Cy"),
    ("M-019", "{{groupNotMuted}}", "Sera, Cy", "{{ group | filter_not_muted }}", "Sera, Cy"),
    ("M-020", "{{notChar}}", "Bo, Cy, Tom", "{{ not_char }}", "Bo, Cy, Tom"),
    ("M-021", "{{description}}", "Sera knows Tom.", "{{ char.description }}", "Sera knows Tom."),
    ("M-022", "{{personality}}", "calm", "{{ char.personality }}", "calm"),
    ("M-023", "{{persona}}", "Tom is a knight of Sera", "{{ user.persona }}", "Tom is a knight of Sera"),
    ("M-024", "{{scenario}}", "a ruin", "{{ char.scenario }}", "a ruin"),
    ("M-025", "{{charVersion}}", "1.2", "{{ char.version }}", "1.2"),
    ("M-026", "{{charPrompt}}", "Write as Sera. DEFAULT", "{{ char.main_prompt }}", "Write as Sera. DEFAULT"),
    (
        "M-027",
        "{{charJailbreak}}{{charInstruction}}",
        "Stay in character.Stay in character.",
        "{{ char.jailbreak }}",
        "Stay in character.",
    ),
    ("M-028", "{{charDepthPrompt}}", "Remember the oath.", "{{ char.depth_prompt }}", "Remember the oath."),
    ("M-029", "{{creatorNotes}}{{charCreatorNotes}}", "by Annby Ann", "{{ char.creator_notes }}", "by Ann"),
    ("M-030", "{{model}}", "m-1", "{{ config.model }}", "m-1"),
    (
        "M-031",
        "{{mesExamples}}",
        "<START>\nTom: Hi\nSera: Ho\n<START>\nTom: Bye",
        "{{ char.examples | format_examples }}",
        "<START>\nTom: Hi\nSera: Ho\n<START>\nTom: Bye",
    ),
    (
        "M-032",
        "{{mesExamplesRaw}}",
        "<START>\nTom: Hi\nSera: Ho\n<START>\nTom: Bye",
        "{{ char.examples_raw }}",
        "<START>\nTom: Hi\nSera: Ho\n<START>\nTom: Bye",
    ),
    ("M-033", "{{lastMessage}}", "second {{user}}", "{{ history[-1].content }}", "second {{user}}"),
    ("M-034", "{{lastMessageId}}", "1", "{{ history[-1].id }}", "1"),
    ("M-035", "{{lastUserMessage}}", "first", "{{ history | select('role', 'user') | last }}", "first"),
    (
        "M-036",
        "{{lastCharMessage}}",
        "second {{user}}",
        "{{ history | select('role', 'assistant') | last }}",
        "second {{user}}",
    ),
    ("M-037", "{{firstIncludedMessageId}}", "5", "{{ context[0].id }}", "5"),
    ("M-038", "{{firstDisplayedMessageId}}", "6", "{{ display_context[0].id }}", "6"),
    ("M-039", "{{lastSwipeId}}", "3", "{{ history[-1].swipe_count }}", "3"),
    ("M-040", "{{currentSwipeId}}", "2", "{{ history[-1].current_swipe }}", "2"),
    ("M-041", "{{lastGenerationType}}", "swipe", "{{ last_generation.type }}", "swipe"),
    ("M-042", "{{input}}", "typed", "{{ user_input }}", "typed"),
    ("M-043", "{{time}}", "3:09 PM", "{{ now | time_format('LT') }}", "3:09 PM"),
    ("M-044", "{{date}}", "March 14, 2026", "{{ now | date_format('LL') }}", "March 14, 2026"),
    ("M-045", "{{weekday}}", "Saturday", "{{ now | date_format('dddd') }}", "Saturday"),
    ("M-046", "{{isotime}}", "15:09", "{{ now | time_format('HH:mm') }}", "15:09"),
    ("M-047", "{{isodate}}", "2026-03-14", "{{ now | date_format('YYYY-MM-DD') }}", "2026-03-14"),
    (
        "M-048",
        "{{datetimeformat D/M/YY}} {{datetimeformat::HH}}",
        "14/3/26 15",
        "{{ now | date_format(format) }}",
        "2026",
    ),
    ("M-049", "{{time_UTC-5}}", "2:09 AM", "{{ now | utc_offset(X) | time_format }}", "9:09 AM"),
    ("M-050", "{{idle_duration}}", "an hour", "{{ idle_duration }}", "an hour"),
    (
        "M-051",
        "{{timeDiff::2026-01-01 12:00::2026-01-01 15:00}}",
        "3 hours ago",
        "{{ time_diff(time1, time2) }}",
        "3 hours ago",
    ),
    ("M-052", "{{getvar::name}}", "Ann", "{{ state.name }}", "Ann"),
    ("M-053", "{{setvar::name::value}}{{getvar::name}}", "value", "{% set name = value %}{{ name }}", "1"),
    (
        "M-054",
        "{{addvar::hp::2}}{{addvar::name::!}}{{getvar::hp}}{{getvar::name}}",
        "9Ann!",
        "{% set hp = state.hp + value %}{{ hp }}",
        "8",
    ),
    ("M-055", "{{incvar::hp}} {{incvar::new}}", "8 1", "{% set hp = state.hp + 1 %}{{ hp }}", "8"),
    ("M-056", "{{decvar::hp}} {{decvar::new}}", "6 -1", "{% set hp = state.hp - 1 %}{{ hp }}", "6"),
    ("M-057", "{{getglobalvar::name}}", "G", "{{ global_state.name }}", "G"),
    (
        "M-058",
        "{{setglobalvar::name::value}}{{getglobalvar::name}}",
        "value",
        "{% set_global name = value %}{{ global_state.name }}",
        "1",
    ),
    (
        "M-059",
        "{{addglobalvar::count::2}}{{getglobalvar::count}}",
        "6",
        "{% set_global count = global_state.count + value %}{{ global_state.count }}",
        "5",
    ),
    (
        "M-060",
        "{{incglobalvar::count}}",
        "5",
        "{% set_global count = global_state.count + 1 %}{{ global_state.count }}",
        "5",
    ),
    (
        "M-061",
        "{{decglobalvar::count}}",
        "3",
        "{% set_global count = global_state.count - 1 %}{{ global_state.count }}",
        "3",
    ),
    ("M-062", "{{var_name}} {{数}}", "v2 壹", "{{ state.var_name }}", "v2"),
    ("M-063", "a{{newline}}b", "a\nb", "a{{ '\\n' }}b", "a\nb"),
    ("M-064", "a\n{{trim}}\n b", "a b", "{{ content | trim }}", "c"),
    ("M-065", "a\n{{noop}}{{trim}}\nb", "a\nb", "a{# no-op #}b", "ab"),
    ("M-066", "{{random:a\\,b,a\\,b}}", "a,b", "{{ random(['arg1', 'arg1']) }}", "arg1"),
    ("M-067", "{{random:: a :: a }}", "a", "{{ random(['arg1', 'arg1']) }}", "arg1"),
    ("M-068", "{{pick::a::a}}", "a", "{{ pick(['arg1', 'arg1']) }}", "arg1"),
    ("M-069", "{{roll:2d1+3}}", "5", "{{ roll('2d1-1') }}{{ roll(formula) }}", "11"),
    ("M-070", "{{reverse:añ中}}", "中ña", "{{ content | reverse }}", "  c  "),
    ("M-071", "a{{banned \"word\"}}b", "ab", "a{# 安全过滤 #}b", "ab"),
    ("M-072", "{{isMobile}}", "false", "{{ is_mobile }}", "false"),
    ("M-073", "{{outlet::two}}", "a\nb", "{{ outlet('name') }}", "outlet of Sera"),
    ("M-074", "{{maxPrompt}}", "4096", "{{ config.max_context }}", "4096"),
    ("M-075", "{{pipe}}", "piped", "{{ pipe_result }}", "piped"),
    ("M-076", "{{anchorBefore}}", "ab", "{{ anchor_before }}", "ab"),
    ("M-077", "{{anchorAfter}}", "aa", "{{ anchor_after }}", "aa"),
    ("M-078", "{{wiBefore}}{{loreBefore}}", "lblb", "{{ lore_before }}", "lb"),
    ("M-079", "{{wiAfter}}{{loreAfter}}", "lala", "{{ lore_after }}", "la"),
    ("M-080", "{{system}}", "the system", "{{ system_prompt }}", "the system"),
    ("M-081", "{{instructSystemPrompt}}", "sys", "{{ instruct.system_prompt }}", "sys"),
    ("M-082", "{{instructUserPrefix}}{{instructInput}}", "<u><u>", "{{ instruct.user_prefix }}", "<u>"),
    ("M-083", "{{instructUserSuffix}}", "</u>", "{{ instruct.user_suffix }}", "</u>"),
    (
        "M-084",
        "{{instructAssistantPrefix}}{{instructOutput}}",
        "<a><a>",
        "{{ instruct.assistant_prefix }}",
        "<a>",
    ),
    (
        "M-085",
        "{{instructAssistantSuffix}}{{instructSeparator}}",
        "</a></a>",
        "{{ instruct.assistant_suffix }}",
        "</a>",
    ),
    (
        "M-086",
        "{{get_message_variable::path}} {{get_message_variable::text}} {{get_message_variable::no.where}}",
        "{\"a\":[1,true,null],\"b\":\"x\"} plain null",
        "{{ state.message.text }}",
        "plain",
    ),
    ("M-087", "{{get_chat_variable::path}}", "2", "{{ state.chat.path }}", "2"),
    ("M-088", "{{get_character_variable::path}}", "true", "{{ state.character.path }}", "true"),
    ("M-089", "{{get_preset_variable::path}}", "[1,2]", "{{ state.preset.path }}", "[1,2]"),
    ("M-090", "{{get_global_variable::path}}", "{\"k\":\"v\"}", "{{ state.global.path }}", "{\"k\":\"v\"}"),
    (
        "M-091",
        "中: {{format_message_variable::path}}|{{format_message_variable::text}}",
        "中: a:\n     - 1\n     - true\n     - null\n   b: x|plain",
        "{{ state.message.text | to_yaml }}",
        "plain",
    ),
    ("M-092", "{{format_chat_variable::path}}", "2", "{{ state.chat.path | to_yaml }}", "2"),
    ("M-093", "{{format_character_variable::path}}", "true", "{{ state.character.path | to_yaml }}", "true"),
    (
        "M-094",
        "x: {{format_preset_variable::path}}",
        "x: - 1\n   - 2",
        "{{ state.preset.path | to_yaml }}",
        "- 1\n- 2",
    ),
    ("M-095", "{{format_global_variable::path}}", "k: v", "{{ state.global.path | to_yaml }}", "k: v"),
    (
        "M-096",
        "{{userAvatar}} {{userAvatarPath}}",
        "avatars/tom.png avatars/tom.png",
        "{{ user.avatar_path }}",
        "avatars/tom.png",
    ),
];

#[test]
fn every_row_renders_as_macro_and_as_printed() {
    let mut failures = Vec::new();
    for (row, input, expected, printed, rendered) in ROWS {
        let output = std::panic::catch_unwind(|| run(input)).unwrap_or_else(|_| "<error>".to_owned());
        if output != *expected {
            let migrated = migrate(input).text;
            failures.push(format!("{row} {input:?}: {output:?}, not {expected:?}\n   {migrated:?}"));
        }
        let output =
            std::panic::catch_unwind(|| render_template(printed)).unwrap_or_else(|_| "<error>".to_owned());
        if output != *rendered {
            failures.push(format!("{row} by hand {printed:?}: {output:?}, not {rendered:?}"));
        }
    }
    // All rows except M-010, which `multi_line_content` tests:
    // M-001 M-002 M-003 M-004 M-005 M-006 M-007 M-008 M-009 M-010 M-011 M-012 M-013 M-014 M-015 M-016
    // M-017 M-018 M-019 M-020 M-021 M-022 M-023 M-024 M-025 M-026 M-027 M-028 M-029 M-030 M-031 M-032
    // M-033 M-034 M-035 M-036 M-037 M-038 M-039 M-040 M-041 M-042 M-043 M-044 M-045 M-046 M-047 M-048
    // M-049 M-050 M-051 M-052 M-053 M-054 M-055 M-056 M-057 M-058 M-059 M-060 M-061 M-062 M-063 M-064
    // M-065 M-066 M-067 M-068 M-069 M-070 M-071 M-072 M-073 M-074 M-075 M-076 M-077 M-078 M-079 M-080
    // M-081 M-082 M-083 M-084 M-085 M-086 M-087 M-088 M-089 M-090 M-091 M-092 M-093 M-094 M-095 M-096
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!(ROWS.len(), 95);
    // F-030
    for (at, (row, ..)) in ROWS.iter().enumerate() {
        let number = if at < 9 { at + 1 } else { at + 2 };
        assert_eq!(*row, format!("M-{number:03}"));
    }
}

#[test]
fn multi_line_content() {
    // M-010
    let migrated = migrate("{{setvar::灰魂4::\n- 灰魂会在...}}\n...\n{{灰魂4}}");
    assert_eq!(migrated.text, "{% set 灰魂4 = \"- 灰魂会在...\" %}\n...\n{{ 灰魂4 }}");
    let lines = migrate("{{setvar::灰魂4::\n- a {{user}}\n- b\n}}|{{灰魂4}}");
    assert_eq!(lines.text, "{% set 灰魂4 %}- a {{ user }}\n- b{% endset %}|{{ 灰魂4 }}");
    assert_eq!(run("{{setvar::灰魂4::\n- a {{user}}\n- b\n}}|{{灰魂4}}"), "|- a Tom\n- b");
    let printed =
        "{# 1. 定义 #}\n{% set grey_soul_fragment %}\n- 灰魂\n{% endset %}\n{{ grey_soul_fragment }}";
    assert_eq!(render_template(printed), "\n\n\n- 灰魂\n");
    // The variable is visible in another block of the prompt, and the state is unchanged.
    let (text, outcome) = run_blocks(&["{{setvar::灰魂4::x}}", "{{灰魂4}} {{ 灰魂4 }}", "{{getvar::灰魂4}}"]);
    assert_eq!(text, ["", "x x", "x"]);
    assert_eq!(Value::Object(outcome.local), json!({"灰魂4": "x"}));
    assert_eq!(outcome.effects, []);
}

/// Macros of all rows but M-004, which is Jinja.
pub(super) fn inputs() -> Vec<&'static str> {
    ROWS.iter().filter(|row| !matches!(row.0, "M-004")).map(|row| row.1).collect()
}
