//! Hostile files are refused in bounded time and memory (F-013).

use serde_json::json;
use tambour::limits::ImportLimits;
use tambour_prompt::card::{import_file, normalize::normalize_entry};

use super::{png_chunk, png_file, read_bytes, v2_card, zip_file};

/// Reads a file; returns the most bytes allocated at a time, and the result.
fn measure_read(bytes: &[u8]) -> (u64, Result<(), String>) {
    let mut result = Ok(());
    let info = allocation_counter::measure(|| result = read_bytes(bytes).map(|_| ()));
    (info.bytes_max, result)
}

#[test]
fn sizes_are_checked_before_anything_is_made_of_them() {
    let mut lying_chunk = b"\x89PNG\r\n\x1a\n\xff\xff\xff\xfftEXtchara\0".to_vec();
    lying_chunk.extend([b'A'; 100]);
    let bomb = miniz_oxide::deflate::compress_to_vec(&vec![b' '; 64 << 20], 9);
    let mut packed = zip_file(&[(b"card.json", &bomb, Some(1000))]);
    for at in 0..packed.len() - 4 {
        match &packed[at..at + 4] {
            b"PK\x03\x04" => packed[at + 8] = 8,
            b"PK\x01\x02" => packed[at + 10] = 8,
            _ => {}
        }
    }
    let deep = format!("{}{}", "[".repeat(1 << 20), "]".repeat(1 << 20));
    let deep_card = format!("{{\"name\":\"x\",\"description\":{deep}}}");
    let many_values = format!("[{}1]", "1,".repeat(2 << 20));
    let names: Vec<(Vec<u8>, &[u8], Option<u32>)> =
        (0..5000).map(|at| (format!("f{at}").into_bytes(), b"".as_slice(), None)).collect();
    let names: Vec<(&[u8], &[u8], Option<u32>)> =
        names.iter().map(|(name, content, declared_size)| (&**name, *content, *declared_size)).collect();
    let chunks = [b"\x89PNG\r\n\x1a\n".to_vec(), png_chunk(b"teXt", b"").repeat(20_000)].concat();
    let hostile = [
        ("a chunk that lies about its size", lying_chunk),
        ("a bomb in an archive", packed),
        ("an archive that says it is huge", zip_file(&[(b"card.json", b"{}", Some(u32::MAX))])),
        ("other files that are huge", zip_file(&[(b"card.json", b"{}", None), (b"a", b"", Some(u32::MAX))])),
        ("many files", zip_file(&names)),
        ("two of a name", zip_file(&[(b"card.json", b"{}", None), (b"card.json", b"{}", None)])),
        ("a path out", zip_file(&[(b"../card.json", b"{}", None)])),
        ("a path from the root", zip_file(&[(b"/etc/x", b"{}", None), (b"card.json", b"{}", None)])),
        ("a backslash", zip_file(&[(b"a\\b", b"{}", None), (b"card.json", b"{}", None)])),
        ("a drive", zip_file(&[(b"C:x", b"{}", None), (b"card.json", b"{}", None)])),
        ("deep JSON", deep.clone().into_bytes()),
        ("a deep card", deep_card.into_bytes()),
        ("deep JSON in a picture", png_file(&[("chara", &deep)])),
        ("many values", many_values.into_bytes()),
        ("many chunks", chunks),
        ("a number that is no number", b"{\"name\":\"x\",\"first_mes\":1e999999}".to_vec()),
        ("text that is none", b"{\"name\":\"\xff\"}".to_vec()),
        ("nothing", Vec::new()),
        ("an end and nothing else", b"PK\x05\x06".to_vec()),
    ];
    for (label, bytes) in hostile {
        let (memory, result) = measure_read(&bytes);
        // F-013
        let error = result.expect_err(label);
        assert!(error.starts_with("case.json: "), "{label}: {error}");
        assert!(memory < 40 << 20, "{label}: {memory} bytes");
    }
    let mut limits = ImportLimits::default();
    limits.file = 10;
    assert!(import_file("a.json", b"{\"name\":\"12345\"}", &limits).is_err());
    let book = json!({"entries": vec![json!({"keys": [], "content": ""}); 20_001]});
    assert!(read_bytes(book.to_string().as_bytes()).expect_err("too many").contains("20001 entries"));
}

#[test]
fn every_cut_and_every_wrong_byte_is_an_error_or_a_card() {
    let card = v2_card(&json!({"description": "a card", "character_book": {"entries": [{"keys": ["k"], "content": "@@depth 1\nx"}]}})).to_string();
    for whole in [
        card.clone().into_bytes(),
        png_file(&[("chara", &card)]),
        zip_file(&[(b"card.json", card.as_bytes(), None)]),
    ] {
        for at in 0..whole.len() {
            let _ = read_bytes(&whole[..at]);
            let mut damaged = whole.clone();
            damaged[at] ^= 0x41;
            let _ = read_bytes(&damaged);
        }
    }
}

#[test]
fn normal_forms_of_hostile_texts_are_made_in_linear_time() {
    let hostile = [
        "<a>\n".repeat(200_000),
        (0..100_000).map(|at| format!("<a{at}>\n")).collect(),
        "- x\n\ny\n".repeat(100_000),
        (0..500).map(|depth| format!("{}- x\n", " ".repeat(depth * 2))).collect(),
        "{{".repeat(300_000),
        "# a\n".repeat(200_000),
        "a: 1\n".repeat(200_000),
        "**a**: 1\n".repeat(80_000),
        "[".repeat(500_000),
        format!("{{{}", "\"a\":{".repeat(100_000)),
        "<x>".to_owned() + &"- a\n  ".repeat(100_000) + "</x>",
        "> > > ".repeat(100_000),
        "k: |\n".repeat(100_000),
        "\u{e000}1\u{e001}".repeat(1000),
        "x".repeat(2 << 20),
    ];
    for text in hostile {
        let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).count();
        // F-012: every word is preserved
        assert!(letters(&normalize_entry("", &text).render()) >= letters(&text), "{}", &text[..20]);
    }
}

#[test]
fn regular_expressions_of_a_book_are_compiled_within_one_bound() {
    // Different expressions, each too large for any size that is tried.
    let entries: serde_json::Map<String, serde_json::Value> = (0..20_000)
        .map(|at| {
            let key = format!("/((a{{1,900}}){{1,900}}){{1,{}}}/", at % 900 + 1);
            (at.to_string(), json!({"uid": at, "key": [key], "content": "c"}))
        })
        .collect();
    let book = json!({ "entries": entries }).to_string();
    let start = std::time::Instant::now();
    let imported = import_file("b.json", book.as_bytes(), &ImportLimits::default()).unwrap();
    assert!(start.elapsed() < std::time::Duration::from_secs(30), "{:?}", start.elapsed());
    let first = &imported.warnings[0];
    assert!(first.contains("is left out: the regular expression is too large"), "{first}");
    // A smaller budget runs out earlier, and each later key is reported with its entry.
    let mut limits = ImportLimits::default();
    limits.patterns = 4 << 20;
    let warnings = import_file("b.json", book.as_bytes(), &limits).unwrap().warnings;
    let message = "is left out: the regular expressions before it have used up the time for those of a book";
    assert!(warnings[10].contains(message) && warnings[10].contains("entry"), "{}", warnings[10]);
}

#[test]
fn values_of_a_file_take_memory_within_a_bound() {
    let objects = vec![r#"{"a":0}"#; 160_000].join(",");
    let file = format!(r#"{{"name":"x","description":"y","z":[{objects}]}}"#);
    let (bytes, result) = measure_read(file.as_bytes());
    let message = result.unwrap_err();
    assert!(
        message.contains("bytes of memory") && message.contains("send the files one by one"),
        "{message}"
    );
    assert!(bytes < 16 << 20, "{bytes}");
}
