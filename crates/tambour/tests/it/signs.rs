//! What stands in a short piece of text.

use tambour::lex::signs::Signs;

fn slowly(text: &str) -> Signs {
    let bits = |of: fn(u8) -> bool| {
        text.bytes().enumerate().fold(0, |bits, (at, byte)| bits | u64::from(of(byte)) << at)
    };
    Signs {
        lines: bits(|byte| byte == b'\n'),
        marks: bits(|byte| matches!(byte, b'<' | b'[' | b'`' | 0xE2)),
        ascii: text.is_ascii(),
    }
}

#[test]
fn finds_each_sign_at_each_place() {
    for sign in ["<", "[", "◁", "\n", "`", "é", "好", "😀", "a"] {
        for len in sign.len()..=Signs::MOST {
            for at in 0..=len - sign.len() {
                let text = format!("{}{sign}{}", "x".repeat(at), ".".repeat(len - sign.len() - at));
                let signs = Signs::of(&text).expect("it is short");
                assert_eq!(signs, slowly(&text), "{text}");
                assert_eq!(signs.ticks(text.as_bytes()), u64::from(sign == "`") << at, "{text}");
            }
        }
    }
    assert_eq!(Signs::of(""), Some(slowly("")));
    assert_eq!(Signs::of(&"x".repeat(Signs::MOST + 1)), None);
}
