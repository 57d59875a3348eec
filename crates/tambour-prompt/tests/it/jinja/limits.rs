use std::sync::atomic::{AtomicUsize, Ordering};

use tambour_prompt::jinja::{Assembly, Budget, Engine, JinjaLimits, PromptContext, UndefinedMode};

use super::{context, run, text};

#[test]
fn what_costs_too_much_is_an_error() {
    let nested = |body: &str| {
        format!(
            "{{% set ns = namespace(x=[1, 2]) %}}{{% for a in range(900) %}}{{% for b in range(100) %}}{body}{{% endfor %}}{{% endfor %}}{{{{ ns.x }}}}"
        )
    };
    for source in [
        "{% for i in range(100000) %}{{ i }}{% endfor %}".to_owned(),
        "{% macro f(n) %}{{ f(n) }}{% endmacro %}{{ f(1) }}".to_owned(),
        "{{ 'x' * 100000000 }}".to_owned(),
        nested("{% set ns.x = [ns.x] %}"),
        nested("{% set ns.x = {'a': ns.x} %}"),
        nested("{% set ns.x = ns.x | chain([1]) %}"),
        nested("{% set ns.x = ns.x | reverse %}"),
        nested("{% set ns.x = ns.x | batch(2) %}"),
        nested("{% set ns.x = namespace(x=ns.x) %}"),
        "{% set ns = namespace(x=0) %}{% set ns.x = ns %}{{ ns }}".to_owned(),
        format!("{{% set x = 1 %}}{}", "{% set x = [x] %}".repeat(2_000)),
        format!("{}{}", "{% set x %}".repeat(9_000), "{% endset %}".repeat(9_000)),
        format!("{{{{ {}{} }}}}", "(".repeat(50_000), ")".repeat(50_000)),
        format!("{{{{ {}1 }}}}", "-".repeat(50_000)),
        format!("{{{{ {}1", "-".repeat(50_000)),
        format!("{{{{ 1{} }}}}", "~1".repeat(50_000)),
        format!("{{{{ 1{} }}}}", "|string".repeat(50_000)),
        format!("{{{{ a{} }}}}", ".b".repeat(50_000)),
        format!("{{{{ {}1 }}}}", "not ".repeat(50_000)),
        format!("{{% if 0 %}}{}{{% endif %}}", "{% elif 0 %}1".repeat(10_000)),
        format!("{}{}", "{% if 1 %}".repeat(20_000), "{% endif %}".repeat(20_000)),
        "x".repeat((1 << 20) + 1),
    ] {
        // F-024
        let error = run(UndefinedMode::Lenient, &context(), &source).0.expect_err("it is too much");
        assert!(error.code().is_some(), "{error}");
    }
}

#[test]
fn what_is_just_within_the_limits_renders() {
    assert_eq!(text(&format!("{{{{ {}1 }}}}", "-".repeat(480))), "1");
    assert_eq!(text(&format!("{{{{ 1{} }}}}", "~1".repeat(240))).len(), 241);
    assert_eq!(text(&format!("{{% if 0 %}}{}{{% else %}}x{{% endif %}}", "{% elif 0 %}1".repeat(100))), "x");
    let many = format!("{{{{ [{}] | length }}}}", "1,".repeat(10_000));
    assert_eq!(text(&many), "10000");
}

#[test]
fn limits_can_be_set() {
    let render = |limits, source: &str| {
        let engine = Engine::with_limits(UndefinedMode::Lenient, limits);
        Assembly::new(&engine, PromptContext::default(), 1).render("t", source)
    };
    let mut limits = JinjaLimits::default();
    limits.output = 10;
    assert!(render(limits.clone(), "{{ 'x' * 10 }}").is_ok());
    assert_eq!(render(limits, "{{ 'x' * 11 }}").expect_err("too long").code(), Some("limit_exceeded"));
    let mut limits = JinjaLimits::default();
    limits.source = 4;
    assert_eq!(render(limits, "12345").expect_err("too long").code(), Some("limit_exceeded"));
    let mut limits = JinjaLimits::default();
    limits.templates = 2;
    let engine = Engine::with_limits(UndefinedMode::Lenient, limits);
    let mut assembly = Assembly::new(&engine, PromptContext::default(), 1);
    for at in 0..10 {
        assert_eq!(assembly.render("t", &format!("{{{{ {at} }}}}")).expect("it renders"), at.to_string());
    }
}

#[test]
fn errors_name_the_limit_that_the_output_exceeds() {
    // F-024
    let source = format!("{{% for i in range(100) %}}{}{{% endfor %}}", "x".repeat(1_000));
    let error_text = |limits: &JinjaLimits, budget: Budget| {
        let engine = Engine::with_limits(UndefinedMode::Lenient, limits.clone());
        let mut assembly = Assembly::with_budget(&engine, PromptContext::default(), 1, budget);
        let error = assembly.render("t", &source).expect_err("it is too much");
        assert_eq!(error.code(), Some("limit_exceeded"));
        error.to_string()
    };
    let mut limits = JinjaLimits::default();
    limits.output = 50_000;
    let text = error_text(&limits, Budget::new(&limits));
    assert!(text.contains("comes to more than 50000 bytes"), "{text}");
    let mut limits = JinjaLimits::default();
    limits.memory = 50_000;
    let text = error_text(&limits, Budget::new(&limits));
    assert!(text.contains("takes more memory than the prompt has left"), "{text}");
    // The callback ends the rendering while its output is written.
    let limits = JinjaLimits::default();
    let check_count = AtomicUsize::new(0);
    let stop = move || check_count.fetch_add(1, Ordering::Relaxed) >= 8;
    let text = error_text(&limits, Budget::with_stop(&limits, stop));
    assert!(text.contains("nobody waits"), "{text}");
}
