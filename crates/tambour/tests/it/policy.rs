//! Actions that the policy stage permits, for intents of any dialect at any time.

use serde_json::json;
use tambour::Options;
use tambour::dialect::{CallIntent, PlanIntent, ReplyAction};
use tambour::event::Extension;
use tambour::policy::Policy;

/// Passes a call and a plan with one call to the policy; returns the resulting extensions.
fn run_actions(policy: &mut Policy) -> Vec<Extension> {
    let mut extensions = Vec::new();
    let call = CallIntent { name: "ping".to_owned(), args: json!({}) };
    let plan = json!({"tool_calls": [{"name": "ping", "args": {}}]});
    policy.act(ReplyAction::Call(call), true, &mut |extension| extensions.push(extension));
    policy.act(ReplyAction::Plan(PlanIntent { plan, is_fallback: false }), true, &mut |extension| {
        extensions.push(extension)
    });
    extensions
}

#[test]
fn calls_wait_for_an_end_that_is_not_cut() {
    // nothing is called before the end of the reply or after a cut end.
    let is_refused = |extensions: &[Extension]| match extensions {
        [Extension::Notice(notice), Extension::Plan(plan)] => {
            notice.code == "tool_call_cut" && notice.reference.as_deref() == Some("ping") && !plan.executable
        }
        _ => false,
    };
    let mut policy = Policy::new(&Options::default());
    let before_end = run_actions(&mut policy);
    assert!(is_refused(&before_end), "{before_end:?}");
    policy.end_reply(true);
    let after_cut = run_actions(&mut policy);
    assert!(is_refused(&after_cut), "{after_cut:?}");
    policy.end_reply(false);
    let after_end = run_actions(&mut policy);
    let [Extension::ToolCall(first), Extension::Plan(plan), Extension::ToolCall(second)] = &after_end[..]
    else {
        panic!("{after_end:?}");
    };
    assert!(plan.executable);
    assert_eq!((&*first.call_id, &*second.call_id), ("call_1", "call_2"));
}
