//! Property test: text that was thought, quoted, guessed, cut, doubled, unregistered, in mid-sentence or absent from the reply
//! before its repair never acts.
//!
//! `ACTS_ITERATIONS` sets the number of replies of each dialect, `ACTS_FROM` the first seed, `ACTS_DIALECT` the only dialect;
//! `ACTS_TABLE=1` prints the counts of all trials. The same seed gives the same reply on every machine.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::each_dialect::each_dialect;
use tambour_fixtures::acts::{
    Action, ActionKind, ActionTrial, BlockZone, FORMS, TrialOutcome, ViolationKind, make_action_trial, zones,
};

/// Damaged replies of each dialect without `ACTS_ITERATIONS`. Before a release, and after changes to a dialect, seeds 0 to
/// 100,000 are read.
const ITERATIONS: u64 = 600;

fn env_number(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

fn seeds() -> std::ops::Range<u64> {
    let first_seed = env_number("ACTS_FROM", 0);
    first_seed..first_seed + env_number("ACTS_ITERATIONS", ITERATIONS)
}

/// Results for the replies of one dialect.
#[derive(Default)]
struct DialectTotal {
    outcome: TrialOutcome,
    /// Failing seeds by kind of violation.
    failed_seeds: BTreeMap<ViolationKind, Vec<u64>>,
}

#[test]
fn nothing_acts_that_must_not() {
    // S-055, X-014
    let totals = each_dialect("ACTS_DIALECT", |name| {
        let mut total = DialectTotal::default();
        for seed in seeds() {
            match make_action_trial(name, seed).check() {
                Ok(outcome) => total.outcome.add(&outcome),
                Err(found) => {
                    for way in found.iter().map(|found| found.kind) {
                        let seeds = total.failed_seeds.entry(way).or_default();
                        if seeds.last() != Some(&seed) {
                            seeds.push(seed);
                        }
                    }
                }
            }
        }
        total
    });
    let prints_table = std::env::var_os("ACTS_TABLE").is_some();
    let mut reports = String::new();
    for (name, DialectTotal { outcome, failed_seeds }) in &totals {
        if prints_table {
            println!("{name}: {outcome:?}");
        }
        for (way, seeds) in failed_seeds {
            let _ = writeln!(reports, "{name}: {} replies {way:?}, such as", seeds.len());
            for seed in seeds.iter().take(if prints_table { 3 } else { 1 }) {
                let trial = make_action_trial(name, *seed);
                let found = trial.check().expect_err("it was wrong before");
                let found = found.iter().find(|found| found.kind == *way).expect("it was found before");
                let _ = writeln!(reports, "{trial}\n{found}\n");
            }
        }
    }
    assert!(reports.is_empty(), "{reports}");
    for (name, total) in &totals {
        assert_shares(name, &total.outcome);
    }
}

/// Fails if too few blocks acted, or too few were in zones in which nothing may act: the property would then prove nothing.
fn assert_shares(dialect: &str, outcome: &TrialOutcome) {
    // `auto` shares its replies among all dialects.
    let share = if dialect == "auto" { 1000 } else { 200 };
    let min_count = (seeds().end - seeds().start) as usize / share;
    // Actions that ran before a repair run after it too, except where the text around them must be escaped.
    let TrialOutcome { acting_count: acting, stable_count: preserved_count, .. } = outcome;
    assert!(
        preserved_count * 20 >= acting * 19,
        "{dialect}: all acts of {preserved_count} of {acting} repaired replies"
    );
    for zone in zones(dialect) {
        let count = outcome.zones.get(&zone).copied().unwrap_or_default();
        assert!(count > min_count, "{dialect}: only {count} blocks in {zone:?}");
    }
    if dialect == "toolcall" {
        assert_forms(outcome);
    }
    use ActionKind::*;
    let kinds: &[ActionKind] = match dialect {
        "filament" => &[Call, Operation, Status, Choice, Component],
        "toolcall" => &[Call],
        "aiplan" => &[Call, Planned],
        "ai_say" => &[Exit],
        "auto" => &[Call, Planned, Operation, Status, Choice, Component, Exit],
        _ => &[],
    };
    for kind in kinds {
        let count = outcome.actions.get(kind).copied().unwrap_or_default();
        assert!(count > min_count, "{dialect}: only {count} of {kind:?} acted");
    }
}

/// Fails unless every form of a call was read in acting and in forbidden zones.
fn assert_forms(outcome: &TrialOutcome) {
    let min_count = (seeds().end - seeds().start) as usize / ITERATIONS as usize;
    let count = |form: &str, zone: BlockZone| outcome.forms.get(&(form, zone)).copied().unwrap_or_default();
    for form in FORMS {
        assert!(
            count(form, BlockZone::Plain) > min_count,
            "{form}: only {} acted",
            count(form, BlockZone::Plain)
        );
        let zones = zones("toolcall");
        let outcome: usize = zones.iter().map(|zone| count(form, *zone)).sum();
        assert!(outcome > 4 * min_count, "{form}: only {outcome} that must not act");
        // Few replies do not cover all zones. Values between tags are texts and are never guessed.
        let is_impossible = |zone: BlockZone| match zone {
            BlockZone::Guessed => ["qwen3_coder", "function", "glm", "python", "minimax"].contains(form),
            // The form holds backticks itself.
            BlockZone::Span | BlockZone::LongSpan => *form == "deepseek",
            _ => false,
        };
        for zone in zones.into_iter().filter(|zone| min_count >= 20 && !is_impossible(*zone)) {
            assert!(count(form, zone) > 0, "{form}: none in {zone:?}");
        }
    }
}

/// Violations that a trial reports after a change to its actions.
fn violated_ways(trial: &ActionTrial, change: impl FnOnce(&mut Vec<Action>)) -> Vec<ViolationKind> {
    let mut actions = trial.read().actions;
    change(&mut actions);
    trial.judge(&actions).into_iter().map(|found| found.kind).collect()
}

#[test]
fn planted_faults_are_noticed() {
    let mut planted_counts: BTreeMap<String, usize> = BTreeMap::new();
    for dialect in ["filament", "toolcall", "aiplan", "ai_say", "plain"] {
        for seed in 0..400 {
            let trial = make_action_trial(dialect, seed);
            let actions = trial.read().actions;
            if !trial.judge(&actions).is_empty() {
                continue;
            }
            let forbidden: Vec<_> = trial.forbidden_words().collect();
            for (word, way) in forbidden {
                let data = serde_json::json!({ "items": [{ "name": "mood", "text": word }] });
                let status = Action { kind: ActionKind::Status, data };
                let ways = violated_ways(&trial, |actions| actions.push(status));
                assert!(ways.contains(&way), "{trial}\n{word} {way:?}");
                *planted_counts.entry(format!("{way:?}")).or_default() += 1;
            }
            for (at, action) in actions.iter().enumerate() {
                if !action.words().is_empty() {
                    let ways = violated_ways(&trial, |actions| {
                        for _ in 0..trial.input.len() / 8 {
                            actions.push(actions[at].clone());
                        }
                    });
                    assert!(ways.contains(&ViolationKind::Duplicate), "{trial}\n{action:?}");
                    *planted_counts.entry("Twice".to_owned()).or_default() += 1;
                }
                if action.kind == ActionKind::Call {
                    let change =
                        |actions: &mut Vec<Action>| actions[at].data["args"]["text"] = "guessed".into();
                    assert!(violated_ways(&trial, change).contains(&ViolationKind::Guessed), "{trial}");
                    let change = |actions: &mut Vec<Action>| actions[at].data["args"]["more"] = 4711.into();
                    assert!(violated_ways(&trial, change).contains(&ViolationKind::Guessed), "{trial}");
                    let change = |actions: &mut Vec<Action>| actions[at].data["name"] = "wipe".into();
                    assert!(
                        violated_ways(&trial, change).contains(&ViolationKind::UnregisteredTool),
                        "{trial}"
                    );
                    let cut = trial.clone().with_finish("length");
                    assert!(
                        cut.judge(&actions).iter().any(|found| found.kind == ViolationKind::Truncated),
                        "{trial}"
                    );
                    *planted_counts.entry("Call".to_owned()).or_default() += 1;
                }
            }
        }
    }
    let ways = [
        "Zone(Reasoning)",
        "Zone(Unopened)",
        "Zone(Fence)",
        "Zone(Span)",
        "Zone(LongSpan)",
        "Zone(Quotation)",
        "Zone(Comment)",
        "Zone(Sentence)",
        "Zone(FinalChannel)",
        "Zone(Guessed)",
        "Zone(Doubled)",
        "Zone(Unregistered)",
        "Zone(Wrapped)",
        "Zone(Foreign)",
        "Truncated",
        "Twice",
        "Call",
    ];
    for way in ways {
        let count = planted_counts.get(way).copied().unwrap_or_default();
        assert!(count > 20, "{way}: only {count} planted");
    }
}
