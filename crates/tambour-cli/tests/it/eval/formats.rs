//! Formats of the report of `tambour eval`.

use quick_xml::Reader;
use quick_xml::events::Event;
use serde_json::json;

use super::{PLAIN, eval, records};
use crate::{new_folder, write_file};

/// Names of a source and of prompts that no format may take for markup.
const HOSTILE: &str = "</script><img src=x onerror=alert(1)>]]>&|`\u{1b}[2J\u{202e}\"'";

/// Counts the elements of an XML document by name, and its cases by their child.
fn count_elements(xml: &str) -> std::collections::BTreeMap<String, usize> {
    let mut reader = Reader::from_str(xml);
    let mut counts = std::collections::BTreeMap::new();
    loop {
        match reader.read_event().expect("well-formed XML") {
            Event::Eof => return counts,
            Event::Start(tag) | Event::Empty(tag) => {
                tag.attributes().for_each(|attribute| {
                    attribute.expect("an attribute").unescape_value().expect("no unknown entity");
                });
                *counts.entry(String::from_utf8_lossy(tag.name().as_ref()).into_owned()).or_default() += 1;
            }
            _ => {}
        }
    }
}

/// Evaluation of replies with hostile names and texts, some usable and some not.
fn hostile_folder(name: &str) -> (std::path::PathBuf, String) {
    let folder = new_folder(name);
    let lines: String = (0..10)
        .map(|number| {
            let reply = if number < 6 { format!("<final>{HOSTILE}") } else { HOSTILE.to_owned() };
            let id = format!("{HOSTILE}{number}");
            format!("{}\n", json!({"id": id, "reply": reply, "finish_reason": "stop", "model": HOSTILE}))
        })
        .collect();
    write_file(&folder, "r.jsonl", lines);
    let file = PLAIN.replace("plain", "thinkingml").replace("\"m\"", &format!("{}", json!(HOSTILE)));
    (folder, file)
}

#[test]
fn junit_has_a_case_for_each_prompt() {
    let folder = new_folder("eval-junit");
    write_file(&folder, "r.jsonl", records(7, 10));
    assert_eq!(eval(&folder, PLAIN, &["--run", "before"]).code, Some(0));
    write_file(&folder, "r.jsonl", records(1, 10));
    let ran = eval(&folder, PLAIN, &["--format", "junit", "--compare", "before"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let counts = count_elements(&ran.stdout);
    assert_eq!((counts["testsuite"], counts["testcase"]), (2, 14), "{}", ran.stdout);
    // Nine prompts without a usable reply; two shares that are worse beyond chance, or more.
    let regressions = ran.stdout.matches("<failure type=\"regression\"").count();
    assert!(regressions > 0, "{}", ran.stdout);
    assert_eq!(counts["failure"], 9 + regressions);
    let head = format!(
        "<testsuites name=\"tambour eval\" tests=\"14\" failures=\"{}\" errors=\"0\">",
        9 + regressions
    );
    assert!(ran.stdout.contains(&head), "{}", ran.stdout);
    let (folder, file) = hostile_folder("eval-junit-hostile");
    let ran = eval(&folder, &file, &["--format", "junit"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(count_elements(&ran.stdout)["testcase"], 10);
}

#[test]
fn the_page_asks_nobody_and_runs_nothing() {
    let (folder, file) = hostile_folder("eval-html");
    let ran = eval(&folder, &file, &["--format", "html"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let page = &ran.stdout;
    for text in [
        "<script", "</script", "<img", "http:", "https:", "url(", "@import", "<link", "<iframe", " src=",
        " href=", "\u{1b}", "\u{202e}",
    ] {
        let found = page.find(text).map(|at| page[at..].chars().take(60).collect::<String>());
        // Escaped text of a model may have what looks like an attribute, but no tag.
        let is_text = text == " src=" && page.matches(text).count() == page.matches("&lt;img src=").count();
        assert!(found.is_none() || is_text, "{text}: {found:?}");
    }
    assert!(page.contains("default-src 'none'"), "{page}");
    assert!(page.contains("&lt;/script&gt;&lt;img src=x"), "the names are shown");
    assert!(page.matches("<svg ").count() >= 3, "{page}");
    // All else is well-formed: elements end where they began.
    let body = page.split_once("<body>").expect("a body").1.replace("<br>", "<br/>");
    count_elements(&format!("<html><body>{body}"));
}

#[test]
fn tables_stay_tables() {
    let (folder, file) = hostile_folder("eval-tables");
    let ran = eval(&folder, &file, &["--format", "markdown"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let tables: Vec<Vec<&str>> = ran
        .stdout
        .split("\n\n")
        .filter(|part| part.starts_with('|'))
        .map(|part| part.lines().collect())
        .collect();
    assert_eq!(tables.len(), 3, "{}", ran.stdout);
    for lines in tables {
        let cells = |line: &str| line.replace("\\|", "").matches('|').count();
        assert!(lines.iter().all(|line| cells(line) == cells(lines[0])), "{lines:?}");
    }
    let unescaped = ran.stdout.replace("\\<", "");
    assert!(!unescaped.contains(['\u{1b}', '<']), "{}", ran.stdout);
    let ran = eval(&folder, &file, &["--resume"]);
    assert!(!ran.stdout.contains('\u{1b}') && !ran.stdout.contains('\u{202e}'), "{}", ran.stdout);
    let first = ran.stdout.lines().next().expect("a header");
    assert!(first.starts_with("source") && first.ends_with("cost"), "{first}");
}
