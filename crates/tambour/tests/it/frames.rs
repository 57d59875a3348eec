//! Frames of Server-Sent Events from upstreams: any line ends, any chunking.

use tambour::lex::sse::SseReader;

/// Reads a text in chunks of `size` bytes; returns name and data of each frame, and whether it was cut.
fn read(text: &str, size: usize, limit: usize) -> Vec<(String, String, bool)> {
    let (mut reader, mut found) = (SseReader::new(limit), Vec::new());
    let mut collect = |frame: tambour::lex::sse::SseFrame<'_>| {
        found.push((
            frame.name.to_owned(),
            String::from_utf8_lossy(frame.data).into_owned(),
            frame.is_truncated,
        ));
    };
    text.as_bytes().chunks(size).for_each(|chunk| reader.push(chunk, &mut collect));
    reader.finish(&mut collect);
    found
}

#[test]
fn frames_are_the_same_under_every_chunking() {
    let frame = |name: &str, data: &str| (name.to_owned(), data.to_owned(), false);
    for end in ["\n", "\r\n", "\r"] {
        let text = ": a comment\n\ndata: one\ndata:two\ndata:  three\n\nevent: named\nid: 7\ndata\n\nevent: lonely\n\n\
            data: the last one, without its blank line"
            .replace('\n', end);
        let expected = [
            frame("", "one\ntwo\n three"),
            frame("named", ""),
            frame("", "the last one, without its blank line"),
        ];
        for size in 1..=text.len() {
            assert_eq!(read(&text, size, 1 << 10), expected, "{end:?}, chunks of {size}");
        }
    }
}

#[test]
fn a_line_feed_belongs_to_the_carriage_return_before_it() {
    // A line feed on its own would end the frame.
    for size in 1..12 {
        assert_eq!(
            read("data: a\r\ndata: b\r\n\r\n", size, 100),
            [(String::new(), "a\nb".to_owned(), false)]
        );
    }
    assert_eq!(read("data: a\r\rdata: b\n\n", 3, 100).len(), 2);
}

#[test]
fn what_is_longer_than_the_limit_is_cut_and_told() {
    let long = "data: 12345678\n\ndata: 1\n\n";
    for size in [1, 3, 100] {
        let found = read(long, size, 14);
        assert_eq!(found[0], (String::new(), "12345678".to_owned(), false), "{size}");
    }
    for size in [1, 3] {
        let found = read(long, size, 10);
        assert_eq!(found[0], (String::new(), "1234".to_owned(), true), "{size}");
        assert_eq!(found[1], (String::new(), "1".to_owned(), false), "{size}");
    }
}
