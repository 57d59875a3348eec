//! Macros and their results, written from the tables alone.

use super::run;

#[test]
fn inputs_give_what_the_tables_say() {
    let cases: &[(&str, &str)] = &[
        ("{{USER}} and {{Char}}", "Tom and Sera"),
        ("{{ user }}/{{ CHAR }}", "Tom/Sera"),
        ("<USER> met <BOT> and <char>", "Tom met Sera and Sera"),
        ("<user>markup</user> <USER>", "<user>markup</user> Tom"),
        ("<user id=\"1\"> stays", "<user id=\"1\"> stays"),
        ("{{{user}}}", "{Tom}"),
        ("{{user", "{{user"),
        ("{{user {{char}}", "{{user Sera"),
        ("{{foo::{{user}}}}", "{{foo::Tom}}"),
        ("{{foo bar}} {{foo:1}}", "{{foo bar}} {{foo:1}}"),
        ("{{nothing_here}}", "{{nothing_here}}"),
        ("\\{\\{user\\}\\}", "{{user}}"),
        ("a \\{b\\} c", "a {b} c"),
        ("{{getvar::hp}}", "7"),
        ("{{getvar:hp}} {{getvar hp}}", "7 7"),
        ("{{setvar::n::007}}{{getvar::n}}", "7"),
        ("{{setvar::n::0x10}}{{getvar::n}} {{setvar::m::1e3}}{{getvar::m}}", "16 1000"),
        ("{{setvar::n::Hello {{user}}!}}{{getvar::n}}", "Hello Tom!"),
        ("{{setvar::n::  padded  }}[{{getvar::n}}]", "[padded]"),
        ("{{setvar::n::{\"a\":1}}}{{getvar::n}}", "}{\"a\":1"),
        ("{{setvar::a::1::2}}", "{{setvar::a::1::2}}"),
        ("{{setvar::n::}}[{{getvar::n}}]", "[]"),
        ("{{setvar::t::{{noop}}}}[{{getvar::t}}]", "[]"),
        ("{{setvar::灰魂4::\n- 灰魂}}\n...\n{{灰魂4}}", "\n...\n- 灰魂"),
        ("{{setvar::n}}\n  one\n    two\n{{/setvar}}[{{getvar::n}}]", "[one\n  two]"),
        ("{{#setvar::n}} kept {{/setvar}}[{{getvar::n}}]", "[ kept ]"),
        ("{{addvar::hp::3}}{{getvar::hp}}", "10"),
        ("{{addvar::fresh::x}}{{getvar::fresh}}", "x"),
        ("{{setvar::l::[1]}}{{addvar::l::two}}{{getvar::l}}", "[1,\"two\"]"),
        ("{{incvar::k}}{{incvar::k}}{{decvar::k}}", "121"),
        ("{{setvar::s::abc}}{{incvar::s}}", "abc1"),
        ("{{getvar::none}}|", "|"),
        ("{{getglobalvar::name}} {{getglobalvar::none}}|", "G |"),
        ("{{setglobalvar::name::new}}{{getglobalvar::name}}", "new"),
        ("{{incglobalvar::count}} {{decglobalvar::count}}", "5 4"),
        ("{{#if hp}}yes{{else}}no{{/if}}", "yes"),
        ("{{#if off}}yes{{else}}no{{/if}}", "no"),
        ("{{if off}}yes{{else}}no{{/if}}", "no"),
        ("{{if hp}}yes{{/if}}", "yes"),
        ("{{if {{getvar::none}}}}yes{{else}}no{{/if}}", "no"),
        ("{{if !{{getvar::none}}}}yes{{else}}no{{/if}}", "yes"),
        ("{{if .hp}}yes{{else}}no{{/if}}", "yes"),
        ("{{if 0}}a{{else}}b{{/if}}{{if FALSE}}a{{else}}b{{/if}}{{if no}}a{{else}}b{{/if}}", "bba"),
        ("{{if 1}}\n    a\n      b\n{{/if}}", "a\n  b"),
        ("{{#if hp}} a {{/if}}", " a "),
        ("{{if::1::then}}", "then"),
        ("{{if 0::a}}", "{{if 0::a}}"),
        ("{{if 1}}open", "{{if 1}}open"),
        ("a{{// a comment }}b{{//}}", "ab"),
        ("x{{// ends #} early}}y", "xy"),
        ("{{random}}|{{random::a::a}}|{{random:a,a}}|{{random:a\\,b}}", "|a|a|a,b"),
        ("{{random:: a :: a }}|{{pick:a::a}}|{{random a, a}}", "a|a|a"),
        ("{{roll:1d1}} {{roll 3d1+2}} {{roll::1}} {{roll:x}}|", "1 5 1 |"),
        ("{{reverse:abc}} {{reverse::{{user}}}}", "cba moT"),
        ("a{{newline}}b{{space::2}}c", "a\nb  c"),
        ("a\r\n\n{{trim}}\n\nb {{trim}} c", "ab  c"),
        ("a\n{{noop}}{{trim}}\nb", "a\nb"),
        ("[{{trim}} in {{/trim}}]", "[in]"),
        ("{{time}} {{date}} {{weekday}}", "3:09 PM March 14, 2026 Saturday"),
        ("{{time_UTC+2}} {{time::UTC-3}} {{isotime}} {{isodate}}", "9:09 AM 4:09 AM 15:09 2026-03-14"),
        ("{{datetimeformat DD.MM.YYYY [at] HH:mm}}", "14.03.2026 at 15:09"),
        ("{{timeDiff::2026-01-01 15:00::2026-01-01 12:00}}", "in 3 hours"),
        ("{{banned \"word\"}}|{{banned::w}}|", "||"),
        ("{{get_message_variable::path}}", "{\"a\":[1,true,null],\"b\":\"x\"}"),
        ("{{get_message_variable::path.a[0]}} {{get_chat_variable::none}}", "1 null"),
        ("  - {{format_message_variable::path}}", "  - a:\n      - 1\n      - true\n      - null\n    b: x"),
        ("{{.k = 4}}{{.k}}{{.k++}}{{.k == 5}}{{.zz ?? none}}", "45truenone"),
        ("{{greeting}} {{greeting::1}}{{greeting::9}}", "Hello, Tom! Oh, you."),
        ("{{hasvar::hp}} {{hasvar::none}}", "true false"),
        ("{{description}} {{charPrompt}}", "Sera knows Tom. Write as Sera. DEFAULT"),
        ("css {#id} and {% none %} and {{a", "css {#id} and {% none %} and {{a"),
        ("{{lastMessage}} {{lastMessageId}} {{lastUserMessage}}", "second {{user}} 1 first"),
        ("{{mesExamplesRaw}}", "<START>\nTom: Hi\nSera: Ho\n<START>\nTom: Bye"),
    ];
    let failures: Vec<String> = cases
        .iter()
        .filter_map(|(input, expected)| {
            let output = std::panic::catch_unwind(|| run(input));
            let output = output.unwrap_or_else(|_| "<error>".to_owned());
            (output != *expected).then(|| {
                let migrated = tambour_prompt::macros::migrate(input).text;
                format!("{input:?}\n  gives    {output:?}\n  expected {expected:?}\n  migrated {migrated:?}")
            })
        })
        .collect();
    assert!(failures.is_empty(), "{} of {} fail:\n{}", failures.len(), cases.len(), failures.join("\n"));
}
