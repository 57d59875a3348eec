//! Answers about formats and code are answers: `auto` keeps them whole (R-91, R-92).

use std::path::{Path, PathBuf};

use tambour::event::EventCollector;
use tambour::{Event, InputEnd, Options, Pipeline, Profile};
use tambour_fixtures::fixtures_folder;
use tambour_fixtures::random::RandomSource;
use tambour_fixtures::words::WordSource;

/// Answer of a reply, its detected dialect, and whether it has no findings.
fn read(text: &str, dialect: &str, profile: Profile) -> (String, &'static str, bool) {
    let mut options = Options::default();
    options.profile = profile;
    let mut pipeline = Pipeline::new(dialect, &options).expect("a dialect");
    let mut sink = EventCollector::default();
    text.as_bytes().chunks(7).for_each(|chunk| pipeline.push(chunk, &mut sink));
    pipeline.finish(&InputEnd::stop(), &mut sink);
    let answer = sink.join_deltas().into_iter().filter_map(|event| match event {
        Event::FinalDelta { text } => Some(text.into_owned()),
        _ => None,
    });
    (answer.collect(), pipeline.dialect(), sink.findings.is_empty())
}

/// Collects the Markdown files below a folder.
fn collect_documents(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect_documents(&path, files);
        } else if path.extension().is_some_and(|kind| kind == "md") {
            files.push(path);
        }
    }
}

/// Splits a document into its sections, each with its heading.
fn sections(text: &str) -> Vec<String> {
    let mut sections = vec![String::new()];
    let mut is_fenced = false;
    for line in text.split_inclusive('\n') {
        is_fenced ^= line.starts_with("```");
        if line.starts_with('#') && !is_fenced {
            sections.push(String::new());
        }
        sections.last_mut().expect("one").push_str(line);
    }
    sections.retain(|section| !section.trim().is_empty());
    sections
}

#[test]
fn every_section_of_the_documents_is_kept_whole() {
    // R-91, R-92
    let root = fixtures_folder().parent().expect("the repository").to_owned();
    let mut files = Vec::new();
    collect_documents(&root.join("docs"), &mut files);
    files.extend(
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| root.join(name)),
    );
    let (mut count, mut complaints) = (0, Vec::new());
    for file in files {
        let text = std::fs::read_to_string(&file).expect("text");
        for section in sections(&text).iter().chain([&text]) {
            count += 1;
            let (answer, dialect, _) = read(section, "auto", Profile::Lenient);
            let trimmed = section.trim_matches([' ', '\t', '\r', '\n']);
            // A section that as a whole is a valid reply of another dialect may be read as such.
            let is_reply = dialect != "plain" && read(section, "auto", Profile::Strict).2;
            if answer != trimmed && !is_reply {
                let start: String = section.chars().take(300).collect();
                let at = answer.bytes().zip(trimmed.bytes()).take_while(|(a, b)| a == b).count();
                let lost_text: String =
                    String::from_utf8_lossy(&trimmed.as_bytes()[at..]).chars().take(120).collect();
                complaints
                    .push(format!("{} as {dialect}:\n{start}\n... not kept: {lost_text:?}", file.display()));
            }
        }
    }
    assert!(count > 200, "{count} sections");
    assert!(complaints.is_empty(), "{} of {count} sections:\n{}", complaints.len(), complaints.join("\n\n"));
}

#[test]
fn answers_about_formats_keep_every_word() {
    // R-91, R-92: formats, code and XML as the text of an answer
    for seed in 0..3000 {
        let mut words = WordSource::new(RandomSource::new(seed));
        let text = words.format_answer();
        for dialect in ["auto", "plain", "toolcall"] {
            let (answer, found, _) = read(&text, dialect, Profile::Lenient);
            let expected_dialect = if dialect == "auto" { "plain" } else { dialect };
            assert_eq!((answer.as_str(), found), (text.trim(), expected_dialect), "seed {seed}");
        }
    }
}
