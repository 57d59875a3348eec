//! `tambour sanitize`.

use crate::{new_folder, run, write_file};

const TEXT: &str = "<b onclick=x>1 < 2</b> <div>中</div> `<p>`\n<span style=\"color:red\">a";

#[test]
fn text_goes_to_stdout_and_findings_to_stderr() {
    // F-104, F-236
    let ran = run(&["sanitize"], TEXT);
    assert_eq!(ran.code, Some(0));
    assert_eq!(ran.stdout, "<b>1 < 2</b> &lt;div>中&lt;/div> `<p>`\n<span style=\"color:red\">a</span>");
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(lines[0].starts_with("standard input:1:1: warning: F-236 html_attribute"), "{lines:?}");
    assert!(lines[1].starts_with("standard input:1:24: warning: F-236 html_forbidden: `div`"), "{lines:?}");
    let stripped = run(&["sanitize", "--mode", "strip", "-"], TEXT);
    assert_eq!(stripped.stdout, "<b>1 < 2</b> 中 `<p>`\n<span style=\"color:red\">a</span>");
}

#[test]
fn pieces_of_any_size_give_the_same() {
    // F-220
    let path = write_file(&new_folder("sanitize"), "text.md", TEXT);
    let whole_run = run(&["sanitize", &path], "");
    for size in ["1", "2", "3", "7", "1000"] {
        let cut_run = run(&["sanitize", "--chunk", size, &path], "");
        assert_eq!(
            (cut_run.stdout, cut_run.stderr),
            (whole_run.stdout.clone(), whole_run.stderr.clone()),
            "{size}"
        );
    }
}

#[test]
fn wrong_use_is_told() {
    assert_eq!(run(&["sanitize", "no/such/file"], "").code, Some(2));
    assert_eq!(run(&["sanitize", "--mode", "none"], "").code, Some(2));
    assert_eq!(run(&["sanitize", "--chunk", "0"], "").code, Some(2));
    assert_eq!(run(&["sanitize"], b"a\xFF").stdout, "a\u{FFFD}");
    let many = run(&["sanitize"], "<x>".repeat(1500));
    assert_eq!(many.stderr.lines().count(), 1001);
    assert!(many.stderr.ends_with("500 more findings are not listed\n"));
}
