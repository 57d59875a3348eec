//! `tambour eval --compare`.

use serde_json::{Value, json};

use super::{PLAIN, eval, records, report};
use crate::{new_folder, write_file};

/// Measures so many valid replies of a total in a run of its own, and compares with the run `before`.
fn compare(
    folder: &std::path::Path,
    run: &str,
    counts: (usize, usize),
    arguments: &[&str],
) -> (Option<i32>, Value) {
    write_file(folder, "r.jsonl", records(counts.0, counts.1));
    let ran = eval(folder, PLAIN, &[&["--run", run, "--format", "json"], arguments].concat());
    let report = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("a report: {ran:?}"));
    (ran.code, report)
}

#[test]
fn intervals_are_those_of_the_books() {
    let folder = new_folder("eval-intervals");
    let (code, before) = compare(&folder, "before", (56, 70), &[]);
    assert_eq!(code, Some(0));
    // Wilson without correction for 56 of 70.
    let usable = &before["rows"][0]["usable"];
    assert_eq!(usable, &json!({"count": 56, "share": 0.8, "low": 0.691834, "high": 0.876953}));
    // Newcombe 1998, example (a) of his table for method 10: 56/70 and 48/80.
    let (code, after) = compare(&folder, "after", (48, 80), &["--compare", "before"]);
    assert_eq!(code, Some(1));
    let share = &after["comparison"]["shares"][2];
    assert_eq!(
        (&share["figure"], &share["before"], &share["after"]),
        (&json!("usable"), &json!(0.8), &json!(0.6))
    );
    assert_eq!(
        (&share["drop"], &share["low"], &share["high"]),
        (&json!(0.2), &json!(0.052431), &json!(0.333873))
    );
    assert_eq!(share["is_regression"], true);
    // The same drop, as a file, within a bound that its interval reaches.
    for (bound, expected) in [("5.3", Some(0)), ("5.2", Some(1)), ("100", Some(0))] {
        let arguments = ["--compare", "before/report.json", "--max-drop", bound, "--resume"];
        assert_eq!(compare(&folder, "after", (48, 80), &arguments).0, expected, "{bound}");
    }
    // Better is no regression, and neither is a drop that may be chance.
    for (run, counts) in [("better", (80, 80)), ("chance", (54, 70)), ("same", (56, 70))] {
        assert_eq!(compare(&folder, run, counts, &["--compare", "before"]).0, Some(0), "{run}");
    }
}

#[test]
fn a_row_that_is_gone_fails() {
    let folder = new_folder("eval-gone");
    assert_eq!(compare(&folder, "before", (5, 5), &[]).0, Some(0));
    let ran = eval(&folder, &PLAIN.replace("\"m\"", "\"other\""), &["--run", "after", "--compare", "before"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("missing: m · m · plain has no reply in this run"), "{}", ran.stderr);
    // A new row is none that is worse.
    let both = format!("{PLAIN}[[sources]]\nname = \"other\"\nrecorded = \"r.jsonl\"\n");
    assert_eq!(eval(&folder, &both, &["--run", "both", "--compare", "before"]).code, Some(0));
}

#[test]
fn a_run_of_something_else_is_told() {
    let folder = new_folder("eval-other-basis");
    assert_eq!(compare(&folder, "before", (5, 5), &[]).0, Some(0));
    let ran = eval(&folder, PLAIN, &["--run", "same", "--compare", "before"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    let lenient = PLAIN.replace("\"plain\"\n", "\"plain\"\nprofile = \"lenient\"\n");
    for format in ["table", "markdown", "html", "json"] {
        let arguments = ["--run", format, "--compare", "before", "--format", format];
        let ran = eval(&folder, &lenient, &arguments);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(
            ran.stderr.contains("note: the earlier run has another `contract.profile`"),
            "{}",
            ran.stderr
        );
        assert!(ran.stdout.contains("contract.profile"), "{}", ran.stdout);
    }
}

#[test]
fn a_report_that_is_none_is_wrong_use() {
    let folder = new_folder("eval-no-report");
    write_file(&folder, "r.jsonl", records(5, 5));
    let whole = report(&folder, PLAIN, &[]);
    write_file(&folder, "unfinished/run.json", "{}");
    write_file(&folder, "text.json", "It is 4.");
    write_file(&folder, "shape.json", "{\"version\": 1, \"basis\": {}, \"rows\": [{}]}");
    let mut later = whole.clone();
    later["version"] = json!(9);
    write_file(&folder, "later.json", later.to_string());
    let mut impossible = whole;
    impossible["rows"][0]["valid"]["count"] = json!(6);
    write_file(&folder, "impossible.json", impossible.to_string());
    for (file, message) in [
        ("missing", "cannot open missing"),
        ("unfinished", "unfinished has no report: the run is not finished"),
        ("text.json", "not the report of a run"),
        ("shape.json", "not the report of a run"),
        ("later.json", "a report of version 9, not 1"),
        ("impossible.json", "counts more replies than there are"),
    ] {
        let ran = eval(&folder, PLAIN, &["--run", "next", "--compare", file]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
        assert!(ran.stderr.contains(message), "{file}: {}", ran.stderr);
    }
    assert!(!folder.join("next").exists(), "nothing is measured before the report is read");
    for bound in ["-1", "101", "x"] {
        assert_eq!(
            eval(&folder, PLAIN, &["--compare", "e.run", "--max-drop", bound]).code,
            Some(2),
            "{bound}"
        );
    }
}
