//! Number and texts of the deltas of a reply.

use tambour::event::EventCollector;
use tambour::{Event, InputEnd, Options, Pipeline};

/// Reads a reply in pieces; returns the texts of its deltas, of phases and answer.
fn deltas(dialect: &str, options: &Options, pieces: &[&str]) -> Vec<String> {
    let mut sink = EventCollector::default();
    let mut pipeline = Pipeline::new(dialect, options).expect("the dialect exists");
    pieces.iter().for_each(|piece| pipeline.push(piece.as_bytes(), &mut sink));
    pipeline.finish(&InputEnd::stop(), &mut sink);
    let texts = sink.events.into_iter().filter_map(|event| match event {
        Event::PhaseDelta { text, .. } | Event::FinalDelta { text } => Some(text.into_owned()),
        _ => None,
    });
    texts.collect()
}

#[test]
fn white_space_goes_out_with_the_text_behind_it() {
    // R-22, J-046: a delta for each piece; white space at the end of one begins the next.
    for (dialect, before, after) in [
        ("plain", "a", ""),
        ("plain", "<think>a</think>a", ""),
        ("plain", "<think>a", "</think>a"),
        ("thinkingml", "<final>\na", "</final>"),
    ] {
        let pieces = [&[before], &["word "; 100][..], &[after]].concat();
        let texts = deltas(dialect, &Options::default(), &pieces);
        let text = format!("a{}", "word ".repeat(100));
        assert!(texts.concat().contains(text.trim_end()), "{dialect}: {texts:?}");
        assert_eq!(texts.iter().filter(|text| text.contains("word")).count(), 100, "{dialect}");
        assert!(texts.len() <= 102, "{dialect}: {} deltas", texts.len());
        assert!(texts.contains(&" word".to_owned()), "{dialect}: {texts:?}");
    }
}

#[test]
fn white_space_and_text_are_one_delta_up_to_the_limit() {
    // J-039, R-22
    let mut options = Options::default();
    options.limits.delta = 8;
    for (pieces, expected) in [
        (&["a", "  ", "bcdefg", "h"][..], &["a", "  bcdefg", "h"][..]),
        (&["a", "  ", "bcdefgh"], &["a", "  bcdefg", "h"]),
        (&["a", "  ", "bcdefé"], &["a", "  bcdef", "é"]),
        (&["a", "        ", "b"], &["a", "        ", "b"]),
        (&["a", "         ", "b"], &["a", "        ", " ", "b"]),
        (&["x", " b ", " ", "\n", "c"], &["x", " b", "  \nc"]),
    ] {
        assert_eq!(deltas("plain", &options, pieces), expected, "{pieces:?}");
    }
}

#[test]
fn text_in_pieces_costs_no_allocation() {
    // neither text nor the white space put before it allocates.
    struct NullSink;
    impl tambour::event::Sink for NullSink {
        fn event(&mut self, _: Event<'_>) {}
        fn finding(&mut self, _: tambour::Finding) {}
    }
    for (dialect, before) in [("plain", "<think>a</think>a word "), ("thinkingml", "<final>\na word ")] {
        let mut pipeline = Pipeline::new(dialect, &Options::default()).expect("the dialect exists");
        pipeline.push(before.as_bytes(), &mut NullSink);
        let mut push_pieces = || {
            for _ in 0..1000 {
                for piece in [&b"word "[..], b" other", b"\n\n"] {
                    pipeline.push(piece, &mut NullSink);
                }
            }
        };
        // First pass, in which the buffers grow.
        push_pieces();
        let cost = allocation_counter::measure(push_pieces);
        assert_eq!(cost.count_total, 0, "{dialect}");
    }
}
