//! Property test: text that was thought, quoted, guessed, cut, doubled, unregistered, in mid-sentence or absent from the reply
//! before its repair never acts.
//!
//! `ACTS_ITERATIONS` sets the number of replies of each dialect, `ACTS_FROM` the first seed, `ACTS_DIALECT` the only dialect;
//! `ACTS_TABLE=1` prints the counts of all trials. The same seed gives the same reply on every machine.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::each_dialect::each_dialect;
use tambour_fixtures::acts::{Action, ActionKind, FORMS, Outcome, Trial, Way, Zone, trial, zones};

/// Damaged replies of each dialect without `ACTS_ITERATIONS`. Before a release, and after changes to a dialect, seeds 0 to
/// 100,000 are read.
const ITERATIONS: u64 = 600;

fn number(name: &str, otherwise: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.map_or(otherwise, |given| given.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

fn seeds() -> std::ops::Range<u64> {
    let from = number("ACTS_FROM", 0);
    from..from + number("ACTS_ITERATIONS", ITERATIONS)
}

/// Results for the replies of one dialect.
#[derive(Default)]
struct Total {
    tried: Outcome,
    /// Failing seeds by kind of violation.
    wrong: BTreeMap<Way, Vec<u64>>,
}

#[test]
fn nothing_acts_that_must_not() {
    // S-055, X-014
    let read = each_dialect("ACTS_DIALECT", |name| {
        let mut total = Total::default();
        for seed in seeds() {
            match trial(name, seed).check() {
                Ok(tried) => total.tried.add(&tried),
                Err(found) => {
                    for way in found.iter().map(|found| found.way) {
                        let seeds = total.wrong.entry(way).or_default();
                        if seeds.last() != Some(&seed) {
                            seeds.push(seed);
                        }
                    }
                }
            }
        }
        total
    });
    let table = std::env::var_os("ACTS_TABLE").is_some();
    let mut stories = String::new();
    for (name, Total { tried, wrong }) in &read {
        if table {
            println!("{name}: {tried:?}");
        }
        for (way, seeds) in wrong {
            let _ = writeln!(stories, "{name}: {} replies {way:?}, such as", seeds.len());
            for seed in seeds.iter().take(if table { 3 } else { 1 }) {
                let trial = trial(name, *seed);
                let found = trial.check().expect_err("it was wrong before");
                let found = found.iter().find(|found| found.way == *way).expect("it was found before");
                let _ = writeln!(stories, "{trial}\n{found}\n");
            }
        }
    }
    assert!(stories.is_empty(), "{stories}");
    for (name, total) in &read {
        assert_shares(name, &total.tried);
    }
}

/// Fails if too few blocks acted, or too few stood in zones in which nothing may act: the property would then prove nothing.
fn assert_shares(dialect: &str, tried: &Outcome) {
    // `auto` shares its replies among all dialects.
    let share = if dialect == "auto" { 1000 } else { 200 };
    let least = (seeds().end - seeds().start) as usize / share;
    // A repair preserves actions, except where the text around them must be escaped.
    let Outcome { acting, kept, .. } = tried;
    assert!(kept * 20 >= acting * 19, "{dialect}: all acts of {kept} of {acting} repaired replies");
    for zone in zones(dialect) {
        let count = tried.zones.get(&zone).copied().unwrap_or_default();
        assert!(count > least, "{dialect}: only {count} blocks in {zone:?}");
    }
    if dialect == "toolcall" {
        assert_forms(tried);
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
        let count = tried.actions.get(kind).copied().unwrap_or_default();
        assert!(count > least, "{dialect}: only {count} of {kind:?} acted");
    }
}

/// Fails unless every form of a call was read in acting and in forbidden zones.
fn assert_forms(tried: &Outcome) {
    let least = (seeds().end - seeds().start) as usize / ITERATIONS as usize;
    let count = |form: &str, zone: Zone| tried.forms.get(&(form, zone)).copied().unwrap_or_default();
    for form in FORMS {
        assert!(count(form, Zone::Plain) > least, "{form}: only {} acted", count(form, Zone::Plain));
        let zones = zones("toolcall");
        let tried: usize = zones.iter().map(|zone| count(form, *zone)).sum();
        assert!(tried > 4 * least, "{form}: only {tried} that must not act");
        // Few replies do not cover all zones. Values between tags are texts and are never guessed.
        let never = |zone: Zone| match zone {
            Zone::Guessed => ["qwen3_coder", "function", "glm", "python", "minimax"].contains(form),
            // The form holds backticks itself.
            Zone::Span | Zone::LongSpan => *form == "deepseek",
            _ => false,
        };
        for zone in zones.into_iter().filter(|zone| least >= 20 && !never(*zone)) {
            assert!(count(form, zone) > 0, "{form}: none in {zone:?}");
        }
    }
}

/// Violations that a trial reports after a change to its actions.
fn when(trial: &Trial, change: impl FnOnce(&mut Vec<Action>)) -> Vec<Way> {
    let mut actions = trial.read().actions;
    change(&mut actions);
    trial.judge(&actions).into_iter().map(|found| found.way).collect()
}

#[test]
fn planted_faults_are_noticed() {
    let mut planted: BTreeMap<String, usize> = BTreeMap::new();
    for dialect in ["filament", "toolcall", "aiplan", "ai_say", "plain"] {
        for seed in 0..400 {
            let trial = trial(dialect, seed);
            let actions = trial.read().actions;
            if !trial.judge(&actions).is_empty() {
                continue;
            }
            let forbidden: Vec<_> = trial.forbidden().collect();
            for (word, way) in forbidden {
                let data = serde_json::json!({ "items": [{ "name": "mood", "text": word }] });
                let status = Action { kind: ActionKind::Status, data };
                let ways = when(&trial, |actions| actions.push(status));
                assert!(ways.contains(&way), "{trial}\n{word} {way:?}");
                *planted.entry(format!("{way:?}")).or_default() += 1;
            }
            for (at, action) in actions.iter().enumerate() {
                if !action.words().is_empty() {
                    let ways = when(&trial, |actions| {
                        for _ in 0..trial.input.len() / 8 {
                            actions.push(actions[at].clone());
                        }
                    });
                    assert!(ways.contains(&Way::Twice), "{trial}\n{action:?}");
                    *planted.entry("Twice".to_owned()).or_default() += 1;
                }
                if action.kind == ActionKind::Call {
                    let other =
                        |actions: &mut Vec<Action>| actions[at].data["args"]["text"] = "guessed".into();
                    assert!(when(&trial, other).contains(&Way::Guess), "{trial}");
                    let other = |actions: &mut Vec<Action>| actions[at].data["args"]["more"] = 4711.into();
                    assert!(when(&trial, other).contains(&Way::Guess), "{trial}");
                    let other = |actions: &mut Vec<Action>| actions[at].data["name"] = "wipe".into();
                    assert!(when(&trial, other).contains(&Way::Tool), "{trial}");
                    let cut = trial.clone().ending("length");
                    assert!(cut.judge(&actions).iter().any(|found| found.way == Way::Cut), "{trial}");
                    *planted.entry("Call".to_owned()).or_default() += 1;
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
        "Cut",
        "Twice",
        "Call",
    ];
    for way in ways {
        let count = planted.get(way).copied().unwrap_or_default();
        assert!(count > 20, "{way}: only {count} planted");
    }
}
