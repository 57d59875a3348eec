//! Masks of the signs in a short piece of text.

use tambour::lex::scan::SignMasks;

fn scan_bytewise(text: &str) -> SignMasks {
    let bits = |is_sign: fn(u8) -> bool| {
        text.bytes().enumerate().fold(0, |bits, (at, byte)| bits | u64::from(is_sign(byte)) << at)
    };
    SignMasks {
        line_feeds: bits(|byte| byte == b'\n'),
        marks: bits(|byte| matches!(byte, b'<' | b'[' | b'`' | 0xE2)),
        continuations: bits(|byte| (byte as i8) < -64),
    }
}

#[test]
fn finds_each_sign_at_each_place() {
    for sign in ["<", "[", "◁", "\n", "`", "é", "好", "😀", "a"] {
        for len in sign.len()..=SignMasks::MAX_LEN {
            for at in 0..=len - sign.len() {
                let text = format!("{}{sign}{}", "x".repeat(at), ".".repeat(len - sign.len() - at));
                let signs = SignMasks::scan(&text).expect("it is short");
                assert_eq!(signs, scan_bytewise(&text), "{text}");
                assert_eq!(signs.backtick_mask(text.as_bytes()), u64::from(sign == "`") << at, "{text}");
            }
        }
    }
    assert_eq!(SignMasks::scan(""), Some(scan_bytewise("")));
    assert_eq!(SignMasks::scan(&"x".repeat(SignMasks::MAX_LEN + 1)), None);
}
