//! Tests of `cargo xtask spec` itself. A row of the specification counts as covered if a test or fixture
//! proves it; tests and fixtures that name a row without proving it, planted here, must not count.

use std::path::{Path, PathBuf};

use tambour_fixtures::Fixture;
use tambour_fixtures::fixture::parse_line;

use super::prove::{
    FixtureProofs, objection_to_row_without_finding, objections_to_unasserted_rows, proof_pairs,
};
use super::table::{self, SpecRow};
use super::{SpecScope, find_gaps, scan};

/// Repository of a few files in a temporary folder, deleted on drop.
struct PlantedRepository(PathBuf);

impl PlantedRepository {
    /// Writes the files, given by path and text, and those that every repository has.
    fn new(name: &str, files: &[(&str, &str)]) -> PlantedRepository {
        let root = std::env::temp_dir().join(format!("tambour-spec-{name}-{}", std::process::id()));
        let repository = PlantedRepository(root);
        repository.write("Cargo.toml", "[workspace]\nmembers = [\"crates/a\"]\n");
        repository.write("crates/a/Cargo.toml", "[package]\nname = \"a\"\n");
        repository.write("fixtures/readme.txt", "");
        files.iter().for_each(|(path, text)| repository.write(path, text));
        repository
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        std::fs::create_dir_all(path.parent().expect("it is below the root")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }

    /// Returns `true` if a test or fixture of this repository counts for the row `id`.
    fn is_counted(&self, id: &str) -> bool {
        let rows = spec_rows(&[id]);
        find_gaps(&rows, &scan::read_places(&self.0, &rows).expect("the tree is readable")).is_empty()
    }
}

impl Drop for PlantedRepository {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Reads the rows with these ids from the real specification.
fn spec_rows(ids: &[&str]) -> Vec<SpecRow> {
    let mut rows = table::read_rows(&crate::repository_root()).expect("the tables are readable");
    rows.retain(|row| ids.contains(&row.id.as_str()));
    assert_eq!(rows.len(), ids.len());
    rows
}

fn parse_fixture(line: &str) -> Fixture {
    parse_line("planted.jsonl:1", Path::new("planted.jsonl"), 0, line)
        .expect("a fixture")
        .expect("not a corpus")
}

/// Returns the reason why fixtures, given by their lines, do not prove `code` on `row`; `None` if they do.
/// `owner` is the rule table of the code.
fn proof_objection(owner: &str, code: &str, row: &str, lines: &[&str]) -> Option<String> {
    let fixtures: Vec<Fixture> = lines.iter().map(|line| parse_fixture(line)).collect();
    let proofs = FixtureProofs::from_fixtures(&fixtures);
    assert_eq!(proofs.broken, [""; 0]);
    let pairs = proof_pairs(&spec_rows(&[row]));
    let mut matching_pairs = pairs.iter().filter(|pair| pair.code == code && pair.owner == Some(owner));
    proofs.objection(matching_pairs.next().expect("the rule names the row"))
}

/// Source of a test that names the row J-052.
const TEST: &str = "#[test]\nfn a() {\n    // J-052\n}\n";

#[test]
fn an_id_in_a_test_that_runs_counts() {
    let main = ("crates/a/tests/it/main.rs", "mod b;\n");
    assert!(PlantedRepository::new("counts", &[main, ("crates/a/tests/it/b.rs", TEST)]).is_counted("J-052"));
    let page_test = ("studio/tests/a.test.ts", "test(\"a page (J-052)\", async () => {});\n");
    assert!(PlantedRepository::new("page", &[("crates/a/src/lib.rs", ""), page_test]).is_counted("J-052"));
    let unit = format!("fn f() {{}}\n\n#[cfg(test)]\nmod tests {{\n{TEST}}}\n");
    assert!(PlantedRepository::new("unit", &[("crates/a/src/lib.rs", &unit)]).is_counted("J-052"));
}

#[test]
fn an_id_outside_a_test_does_not_count() {
    for (number, text) in [
        "//! J-052\n#[test]\nfn a() {}\n",
        "// J-052\nfn helper() {}\n\n#[test]\nfn a() {}\n",
        "fn helper() {\n    // J-052\n}\n\n#[test]\nfn a() {}\n",
        "#[test]\nfn a() {}\n// J-052\n",
        "#[test]\nfn a() {\n    let text = \"// J-052\";\n}\n",
        "#[test]\n#[ignore]\nfn a() {\n    // J-052\n}\n",
        "#[cfg(any())]\nmod off {\n    #[test]\n    fn a() {\n        // J-052\n    }\n}\n",
    ]
    .into_iter()
    .enumerate()
    {
        let repository =
            PlantedRepository::new(&format!("outside-{number}"), &[("crates/a/tests/it/main.rs", text)]);
        assert!(!repository.is_counted("J-052"), "{text}");
    }
}

#[test]
fn an_id_in_a_file_nobody_reads_does_not_count() {
    let line = r#"{"spec":["J-052"],"input":"x","events":[],"strict":[]}"#;
    let with_dialect = line.replace("{\"spec\"", "{\"dialect\":\"jsonseq\",\"spec\"");
    for (number, (path, text)) in [
        ("crates/a/tests/it/forgotten.rs", TEST),
        ("crates/a/src/forgotten.rs", TEST),
        ("crates/b/tests/it/main.rs", TEST),
        ("crates/a/examples/b.rs", TEST),
        ("fixtures/lines.jsonl", line),
        ("fixtures/notes.json", &with_dialect),
        ("elsewhere/lines.jsonl", &with_dialect),
        ("fixtures/unknown.jsonl", &line.replace("{\"spec\"", "{\"dialect\":\"klingon\",\"spec\"")),
    ]
    .into_iter()
    .enumerate()
    {
        let main = ("crates/a/tests/it/main.rs", "#[test]\nfn a() {}\n");
        let repository = PlantedRepository::new(
            &format!("unread-{number}"),
            &[main, ("crates/a/src/lib.rs", ""), (path, text)],
        );
        assert!(!repository.is_counted("J-052"), "{path}");
    }
    // The same fixture counts in its own folder, and the same source in a library with tests that run.
    assert!(PlantedRepository::new("read", &[("fixtures/lines.jsonl", &with_dialect)]).is_counted("J-052"));
    let lib = [("crates/a/src/lib.rs", TEST), ("crates/a/Cargo.toml", "[lib]\ntest = false\n")];
    assert!(PlantedRepository::new("lib", &lib[..1]).is_counted("J-052"));
    assert!(!PlantedRepository::new("no-lib", &lib).is_counted("J-052"));
}

#[test]
fn a_fixture_that_asserts_nothing_of_its_row_does_not_count() {
    let reply = r#""input":"<thinking><phase id=\"1\"><title>t</title>a</phase></thinking>""#;
    let strict = r#""strict":["final_missing","serp_block_missing"]"#;
    // The objection to the fixture must contain the subject of its row.
    for (number, (row, assertion, row_subject)) in [
        // The row is about output, and no event is compared.
        ("T-014", strict, "what comes out"),
        ("J-040", strict, "what comes out"),
        ("X-012", r#""findings":[]"#, "what comes out"),
        // The row is about findings, and only events are compared.
        ("T-031", r#""events":[]"#, "findings"),
        // Metadata is not the subject of this row.
        ("T-014", r#""truncated":false"#, "what comes out"),
    ]
    .into_iter()
    .enumerate()
    {
        let line = format!(r#"{{"spec":["{row}"],"dialect":"thinkingml",{reply},{assertion}}}"#);
        let objections = objections_to_unasserted_rows(&parse_fixture(&line), &spec_rows(&[row]));
        assert!(objections.len() == 1 && objections[0].contains(row_subject), "{line}: {objections:?}");
        let repository =
            PlantedRepository::new(&format!("silent-{number}"), &[("fixtures/lines.jsonl", &line)]);
        assert!(!repository.is_counted(row), "{line}");
    }
    let empty_line = format!(r#"{{"spec":["T-014"],"dialect":"thinkingml",{reply}}}"#);
    assert!(!PlantedRepository::new("nothing", &[("fixtures/lines.jsonl", &empty_line)]).is_counted("T-014"));
    let asserting_line = format!(r#"{{"spec":["J-056"],"dialect":"thinkingml",{reply},"truncated":false}}"#);
    let objections = objections_to_unasserted_rows(&parse_fixture(&asserting_line), &spec_rows(&["J-056"]));
    assert_eq!(objections, [""; 0]);
}

#[test]
fn a_code_that_shows_another_rows_finding_proves_nothing() {
    let fixture_line = |text: &str| {
        let input =
            format!("<thinking><phase id=\\\"1\\\"><title>t</title></phase></thinking><final>{text}</final>");
        format!(
            r#"{{"spec":["T-029"],"dialect":"thinkingml","input":"{input}","strict_at_least":["unexpected_tag"],"unlisted":"planted"}}"#
        )
    };
    // The row is about a tag in code; a tag in text is a finding of another row.
    let (tag_in_text, tag_in_code) = (fixture_line("a<b>c"), fixture_line("`a<b>c`"));
    let objection = proof_objection("thinkingml", "unexpected_tag", "T-029", &[&tag_in_text]);
    assert_eq!(objection.as_deref(), Some("findings of this code are on T-020, none on this row"));
    assert_eq!(proof_objection("thinkingml", "unexpected_tag", "T-029", &[&tag_in_text, &tag_in_code]), None);
    // A finding of the same code in another rule table.
    let objection = proof_objection(
        "jsonseq",
        "parsing_error_marker",
        "J-055",
        &[
            r#"{"spec":["J-055"],"dialect":"plain","input":"<<ParsingError>>","findings":["1:1 parsing_error_marker J-055 repaired"],"fallback_reason":"parsing_error"}"#,
        ],
    );
    assert_eq!(objection.as_deref(), Some("no fixture reads with a finding of this code"));
}

#[test]
fn a_fixture_that_does_not_need_the_finding_proves_nothing() {
    let line = |assertion: &str| {
        format!(
            r#"{{"spec":["X-012"],"dialect":"plain","input":"It is\n<think>2 + 2</think> 4.",{assertion},"unlisted":"planted"}}"#
        )
    };
    for assertion in [r#""truncated":false"#, r#""strict_none_of":["think_unclosed"]"#] {
        let objection = proof_objection("plain", "think_in_answer", "X-012", &[&line(assertion)]);
        assert_eq!(
            objection.as_deref(),
            Some("1 fixtures read with the finding, none fails without it"),
            "{assertion}"
        );
    }
    let listing_line = line(r#""findings":["2:1 think_in_answer X-012 repaired"]"#);
    assert_eq!(proof_objection("plain", "think_in_answer", "X-012", &[&listing_line]), None);
    assert!(proof_objection("plain", "think_in_answer", "X-012", &[]).is_some());
}

#[test]
fn a_row_that_expects_no_finding_needs_a_complete_list() {
    let row = &spec_rows(&["T-052"])[0];
    let line = |assertion: &str| {
        parse_fixture(&format!(r#"{{"spec":["T-052"],"dialect":"plain","input":"a",{assertion}}}"#))
    };
    assert!(objection_to_row_without_finding(row, &[line(r#""strict":[],"lenient":[]"#)]).is_some());
    assert!(objection_to_row_without_finding(row, &[line(r#""findings":["1:1 a T-052"]"#)]).is_some());
    assert!(objection_to_row_without_finding(row, &[]).is_some());
    assert!(objection_to_row_without_finding(row, &[line(r#""findings":["1:1 a T-041"]"#)]).is_none());
}

#[test]
fn rows_in_scope_without_a_test_are_missed() {
    // Filament rows have no column of codes; they are required as soon as the scope names them.
    let scope = PlantedRepository::new("scope", &[("docs/spec/scope.txt", "F-23*\n!F-231\n")]);
    let scope = SpecScope::read(&scope.0).expect("a scope");
    let mut rows = table::read_rows(&crate::repository_root()).expect("the tables are readable");
    rows.retain(|row| scope.contains(&row.id));
    let empty = PlantedRepository::new("empty", &[("crates/a/src/lib.rs", "// F-230\n")]);
    let row_places = scan::read_places(&empty.0, &rows).expect("the tree is readable");
    let gaps: Vec<&str> = find_gaps(&rows, &row_places).iter().map(|row| row.id.as_str()).collect();
    assert_eq!(gaps, ["F-230", "F-232", "F-233", "F-234", "F-235", "F-236", "F-237"]);
}

#[test]
fn pairs_come_from_the_catalogue_and_from_the_tables() {
    let codes_of_row = |row: &str| -> Vec<String> {
        proof_pairs(&spec_rows(&[row])).iter().map(ToString::to_string).collect()
    };
    // Row without a column of codes.
    assert!(codes_of_row("X-013").contains(&"X-013 `structure_late` (plain)".to_owned()));
    // Code that the table requires and no rule names for the row.
    assert!(codes_of_row("P-037").contains(&"P-037 `field_missing`".to_owned()));
    // One pair for each rule table.
    assert!(codes_of_row("J-055").len() > 1);
}
