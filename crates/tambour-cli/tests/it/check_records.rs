//! `tambour check` on files of records: several jobs, compressed files, and broken ones.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;

use flate2::Compression;
use flate2::write::GzEncoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use serde_json::{Value, json};

use super::{RunOutput, VALID_REPLY, broken_reply, new_folder, run, run_in, tambour_command, write_file};

/// Number of records of [`records`].
const RECORD_COUNT: usize = 900;

/// Records of several sizes, among them broken replies and lines that are no records.
fn records() -> String {
    let mut text = String::new();
    for index in 0..RECORD_COUNT {
        // Replies of very different sizes are done out of order.
        let reply = match index % 7 {
            0 => broken_reply(),
            3 => VALID_REPLY.replace("# Hi", &format!("# Hi\n\n{}", "word ".repeat(index * 7))),
            _ => VALID_REPLY.to_owned(),
        };
        match index % 50 {
            9 => text.push_str("{\"id\": \"cut\", \"reply\": \"<ser\n"),
            19 => text.push_str("\n{\"other\": 1}\n"),
            _ => text.push_str(&format!("{}\n", json!({ "id": format!("r{index}"), "reply": reply }))),
        }
    }
    text
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).expect("memory can be written");
    encoder.finish().expect("memory can be written")
}

fn zstd(content: &[u8]) -> Vec<u8> {
    compress_to_vec(content, CompressionLevel::Fastest)
}

fn check(file: &str, more: &[&str]) -> RunOutput {
    let arguments = ["check", "--contract", "thinkingml", "--field", "reply", file];
    run(&[&arguments, more].concat(), "")
}

#[test]
fn every_number_of_jobs_gives_the_same_output() {
    let folder = new_folder("check-jobs");
    let file = write_file(&folder, "records.jsonl", records());
    for format in ["json", "pretty", "junit", "sarif"] {
        let alone = check(&file, &["--format", format, "--summary", "--jobs", "1"]);
        assert_eq!(alone.code, Some(2), "{}", alone.stderr);
        for jobs in ["2", "3", "16"] {
            let ran = check(&file, &["--format", format, "--summary", "--jobs", jobs]);
            assert!(ran.stdout == alone.stdout, "{format}, {jobs} jobs");
            assert_eq!((ran.stderr, ran.code), (alone.stderr.clone(), alone.code), "{format}, {jobs} jobs");
        }
    }
    let ran = check(&file, &["--format", "json"]);
    let lines = ran.json_lines();
    assert_eq!(lines.len(), RECORD_COUNT - 2 * RECORD_COUNT / 50);
    let numbers: Vec<u64> = lines.iter().filter_map(|line| line["record"].as_u64()).collect();
    assert!(numbers.is_sorted() && numbers.len() == lines.len());
    assert!(ran.stderr.contains("record 10: not JSON"), "{}", ran.stderr);
    for jobs in ["0", "1000", "x"] {
        assert_eq!(check(&file, &["--jobs", jobs]).code, Some(2), "{jobs}");
    }
    assert_eq!(run(&["check", "--jobs", "2", "-"], "").code, Some(2));
}

#[test]
fn compressed_records_are_those_of_the_file() {
    let folder = new_folder("check-compressed");
    let plain = records();
    let (first, second) = plain.as_bytes().split_at(plain.len() / 2);
    // Empty frames, skippable ones and several ones in a file are all allowed.
    let skippable = [&[0x5A, 0x2A, 0x4D, 0x18, 3, 0, 0, 0], &b"abc"[..]].concat();
    let files = [
        ("one.jsonl", plain.clone().into_bytes()),
        ("two.jsonl.gz", gzip(plain.as_bytes())),
        ("three.ndjson.gz", [gzip(first), gzip(b""), gzip(second)].concat()),
        ("four.jsonl.zst", zstd(plain.as_bytes())),
        ("five.JSONL.ZST", [&skippable[..], &zstd(first), &zstd(b""), &skippable, &zstd(second)].concat()),
        // The content decides, whatever the name says.
        ("six.jsonl", gzip(plain.as_bytes())),
    ];
    let mut outputs = Vec::new();
    for (name, content) in &files {
        let file = write_file(&folder, name, content);
        let ran = check(&file, &["--format", "json"]);
        outputs.push((ran.stdout.replace(&file, ""), ran.code));
        let arguments = ["check", "--contract", "thinkingml", "--field", "reply", "--format", "json", "-"];
        let ran = run(&arguments, content);
        assert_eq!(ran.stdout.replace("\"path\":\"-\"", "\"path\":\"\""), outputs[0].0, "{name}");
    }
    for (output, (name, _)) in outputs.iter().zip(&files) {
        assert!(*output == outputs[0], "{name}");
    }
    // A folder is searched for compressed files too.
    let ran = run_in(&folder, &["check", "--field", "reply", "--format", "json", "."], "");
    assert_eq!(ran.json_lines().len(), files.len() * (RECORD_COUNT - 2 * RECORD_COUNT / 50));
    // Without a field such a file is no reply.
    for name in ["two.jsonl.gz", "five.JSONL.ZST"] {
        let ran = run_in(&folder, &["check", "--contract", "plain", name], "");
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains("compressed; `--field NAME`"), "{}", ran.stderr);
    }
}

#[test]
fn records_before_a_fault_of_the_file_are_checked() {
    let folder = new_folder("check-cut");
    let valid = |count: usize| {
        let line = format!("{}\n", json!({ "reply": VALID_REPLY }));
        line.repeat(count)
    };
    let content = valid(3000);
    let mut wrong_checksum = zstd(content.as_bytes());
    let last = wrong_checksum.len() - 1;
    wrong_checksum[last] ^= 1;
    let (gzipped, zstandard) = (gzip(content.as_bytes()), zstd(content.as_bytes()));
    let files = [
        ("cut.jsonl.gz", gzipped[..gzipped.len() / 2].to_vec(), 0..2999),
        ("cut.jsonl.zst", zstandard[..zstandard.len() - 20].to_vec(), 0..2999),
        ("checksum.jsonl.zst", wrong_checksum, 2999..3001),
        ("garbage.jsonl.gz", [gzip(content.as_bytes()), b"garbage".to_vec()].concat(), 3000..3001),
    ];
    for (name, bytes, counts) in files {
        let file = write_file(&folder, name, bytes);
        let ran = check(&file, &["--format", "json"]);
        assert_eq!(ran.code, Some(2), "{name}");
        assert!(counts.contains(&ran.json_lines().len()), "{name}: {}", ran.json_lines().len());
        assert_eq!(ran.stderr.lines().count(), 1, "{name}: {}", ran.stderr);
        // Further files are checked all the same.
        let next = write_file(&folder, "next.jsonl", valid(2));
        let arguments = ["check", "--contract", "thinkingml", "--field", "reply", "--format", "json"];
        let both = run(&[&arguments[..], &[&file, &next]].concat(), "");
        assert_eq!(both.json_lines().len(), ran.json_lines().len() + 2, "{name}");
        assert_eq!(both.code, Some(2));
    }
}

#[test]
fn records_of_a_pipe_are_checked_as_they_arrive() {
    let arguments = ["check", "--contract", "thinkingml", "--field", "reply", "--format", "json", "-"];
    let mut command = tambour_command(&arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the command starts");
    let mut input = child.stdin.take().expect("standard input is a pipe");
    let mut output = BufReader::new(child.stdout.take().expect("standard output is a pipe"));
    for number in 1..=3 {
        let record = json!({ "id": number.to_string(), "reply": VALID_REPLY });
        writeln!(input, "{record}").expect("the command reads");
        input.flush().expect("the command reads");
        // The answer comes although the input goes on.
        let mut line = String::new();
        output.read_line(&mut line).expect("the command writes");
        let line: Value = serde_json::from_str(&line).expect("a line of the report is JSON");
        assert_eq!((&line["record"], &line["id"]), (&json!(number), &json!(number.to_string())));
    }
    drop(input);
    let mut rest = String::new();
    output.read_to_string(&mut rest).expect("the command writes");
    assert_eq!((rest.as_str(), child.wait().expect("the command ends").code()), ("", Some(0)));
}
