//! Sentences about a tag: text after a tag that continues a sentence in which the tag is a word, such as
//! `<final> holds the answer`. A tag in such a sentence opens nothing.

use super::prose::ProseLine;

/// Words after a tag that continue a sentence about it. So does any other verb in the third person.
const SENTENCE_WORDS: &[&str] = &[
    "and",
    "are",
    "block",
    "blocks",
    "can",
    "could",
    "element",
    "elements",
    "field",
    "is",
    "isn't",
    "mark",
    "marker",
    "may",
    "means",
    "might",
    "must",
    "or",
    "part",
    "section",
    "shall",
    "should",
    "tag",
    "tags",
    "token",
    "vs",
    "was",
    "were",
    "will",
    "would",
    // In other languages.
    "ist",
    "sind",
    "steht",
    "dient",
    "bedeutet",
    "enthält",
    "und",
    "oder",
    "es",
    "son",
    "significa",
    "contiene",
    "sirve",
    "est",
    "sont",
    "contient",
    "sert",
    "signifie",
    "indica",
    "это",
    "содержит",
    "означает",
];

/// Words that look like verbs in the third person but are not.
const NON_VERBS: &[&str] = &[
    "across",
    "afterwards",
    "alas",
    "always",
    "besides",
    "business",
    "class",
    "focus",
    "guess",
    "guys",
    "less",
    "lots",
    "miss",
    "nevertheless",
    "news",
    "nonetheless",
    "numbers",
    "ours",
    "pass",
    "perhaps",
    "plus",
    "pros",
    "regardless",
    "steps",
    "thanks",
    "theirs",
    "things",
    "this",
    "thus",
    "towards",
    "unless",
    "users",
    "versus",
    "whereas",
    "yours",
];

/// Minimum length in bytes of an unlisted verb in the third person.
const MIN_VERB_LEN: usize = 4;

/// Maximum length in bytes of white space between a tag and the rest of a sentence about it.
pub const MAX_BLANK: usize = 64;

/// Maximum length in bytes of a word that may continue a sentence about a tag; the end of a longer one is not
/// awaited.
const MAX_WORD_LEN: usize = 24;

/// Words of Chinese, Japanese and Korean that continue a sentence about a tag, with or without a blank.
const CJK_SENTENCE_WORDS: &[&str] = &[
    "标签",
    "标记",
    "元素",
    "字段",
    "表示",
    "代表",
    "用于",
    "用来",
    "之间",
    "里面",
    "里放",
    "里写",
    "中放",
    "包住",
    "是",
    "和",
    "与",
    "或",
    "タグ",
    "マーク",
    "は",
    "태그",
];

/// Characters after `是` or `は` that do not continue a sentence about the tag: the two form another word, or
/// the first is a whole answer ("yes.").
const CJK_NON_SENTENCE_CHARS: &[char] =
    &['的', '啊', '吗', '呀', '否', '不', '吧', '呢', '，', '。', '！', ',', '.', '!', 'い'];

/// Punctuation that continues a sentence about a tag.
const SENTENCE_SIGNS: &[char] = &[',', ')', '/', '?', ':', '–', '—', '，', '、', '）', '？', '：'];

/// Returns whether the text directly after a tag continues a sentence about it; `None` until more text
/// decides. `is_end` is true if no more text follows.
#[must_use]
pub fn continues_sentence(after: &str, is_end: bool) -> Option<bool> {
    let text = after.trim_start_matches([' ', '\t']);
    let blank_len = after.len() - text.len();
    if blank_len > MAX_BLANK {
        return Some(false);
    }
    let Some(first) = text.chars().next() else { return is_end.then_some(false) };
    if SENTENCE_SIGNS.contains(&first) {
        return Some(true);
    }
    if let Some(word) = CJK_SENTENCE_WORDS.iter().find(|word| text.starts_with(**word)) {
        let next_char = text[word.len()..].chars().next();
        return match (*word, next_char) {
            ("是" | "は", None) => is_end.then_some(false),
            ("是" | "は", Some(c)) => Some(!CJK_NON_SENTENCE_CHARS.contains(&c)),
            _ => Some(true),
        };
    }
    if !is_end && CJK_SENTENCE_WORDS.iter().any(|word| word.starts_with(text)) {
        return None;
    }
    if blank_len == 0 || !first.is_lowercase() {
        return Some(false);
    }
    let word = text.split(|c: char| !c.is_alphabetic() && c != '\'').next().unwrap_or_default();
    if word.len() > MAX_WORD_LEN {
        return Some(false);
    }
    // The word may continue in the next text.
    if word.len() == text.len() && !is_end {
        return None;
    }
    let is_verb = word.ends_with('s')
        && !word.contains('\'')
        && word.len() >= MIN_VERB_LEN
        && !NON_VERBS.contains(&word);
    Some(SENTENCE_WORDS.contains(&word) || is_verb)
}

/// Returns whether a text begins with words that refer back to the tag before it; `None` until more text
/// decides. `is_end` is true if no more text follows.
#[must_use]
pub fn refers_to_tag(text: &str, is_end: bool) -> Option<bool> {
    if TAG_REFERENCES.iter().any(|words| text.starts_with(words)) {
        return Some(true);
    }
    (is_end || !TAG_REFERENCES.iter().any(|words| words.starts_with(text))).then_some(false)
}

/// Words at the start of a text that refer to the tag before it.
const TAG_REFERENCES: &[&str] =
    &["That tag ", "This tag ", "The tag above ", "这个标签", "该标签", "上面的标签", "以上标签"];

/// Returns whether the text directly after a tag begins, after a blank, with a lower-case letter on the same
/// line, so that it starts no sentence.
#[must_use]
pub fn starts_lowercase(after: &str) -> bool {
    let text = after.trim_start_matches([' ', '\t']);
    text.len() < after.len() && text.starts_with(char::is_lowercase)
}

/// Returns whether a sentence in which a tag is a word continues or ends in the text `after` the tag.
#[must_use]
pub fn is_within_sentence(after: &str) -> bool {
    let text = after.trim_start_matches([' ', '\t']);
    after.len() - text.len() <= MAX_BLANK && (starts_lowercase(after) || text.starts_with(CLOSING_SIGNS))
}

/// Punctuation after a closing tag that continues or ends a sentence about it.
const CLOSING_SIGNS: &[char] = &['.', ',', ';', ':', ')', '`', '。', '，', '；', '：', '）', '、'];

/// Returns whether a sentence about a pair of tags, with `content` between them, continues or ends in the
/// text `after` the closing tag; `None` until more text decides. `is_end` is true if no more text follows.
#[must_use]
pub fn closes_sentence(content: &str, after: &str, is_end: bool) -> Option<bool> {
    let text = after.trim_start_matches([' ', '\t']);
    let blank_len = after.len() - text.len();
    let Some(first) = text.chars().next() else { return (is_end || blank_len > MAX_BLANK).then_some(false) };
    let is_chinese = ('\u{3400}'..='\u{9FFF}').contains(&first);
    let mut line = ProseLine::default();
    line.push_text(content);
    let is_continued = blank_len > 0 && first.is_lowercase() || is_chinese && line.is_in_sentence();
    Some(blank_len <= MAX_BLANK && (CLOSING_SIGNS.contains(&first) || is_continued))
}

#[cfg(test)]
mod tests {
    use super::{MAX_BLANK, closes_sentence, continues_sentence, is_within_sentence, starts_lowercase};

    #[test]
    fn the_longest_blank_continues_a_sentence() {
        //
        for (len, is_sentence) in [(MAX_BLANK, true), (MAX_BLANK + 1, false)] {
            let after = " ".repeat(len) + ", and so on";
            assert_eq!(continues_sentence(&after, true), Some(is_sentence), "{len}");
            assert_eq!(closes_sentence(" marks it and ", &after, true), Some(is_sentence), "{len}");
            assert_eq!(is_within_sentence(&after), is_sentence, "{len}");
        }
    }

    #[test]
    fn sentences_about_a_tag_are_distinguished_from_other_text() {
        //
        let texts = [
            " is a tag.",
            " stands for search engine results page.",
            " marks reasoning.",
            ", then comes another",
            "标签用于推理。",
            " 表示思考",
            "是推理标签",
            " and what follows",
            " tags",
        ];
        for text in texts {
            assert_eq!(continues_sentence(text, true), Some(true), "{text:?}");
        }
        let other = [
            "is it?",
            " Is it?",
            "\nis it?",
            " this is hard",
            " let me see",
            "是的，我去",
            " HP 10",
            "用户想知道",
            " users want",
            " perhaps not",
            "...and then",
            " i see",
        ];
        for text in other {
            assert_eq!(continues_sentence(text, true), Some(false), "{text:?}");
        }
        for text in ["", " ", " stand", " i", "标", "是", "用"] {
            assert_eq!(continues_sentence(text, false), None, "{text:?}");
        }
        assert_eq!(closes_sentence(" marks it and ", ", and so on", false), Some(true));
        assert_eq!(closes_sentence(" marks it and ", " ends it", false), Some(true));
        assert_eq!(closes_sentence("标签用于推理，以", "结束", false), Some(true));
        assert_eq!(closes_sentence(" is it so?", "The answer", false), Some(false));
        assert_eq!(closes_sentence(" is it so?", "\nthe answer", false), Some(false));
        assert_eq!((closes_sentence("a", " ", false), closes_sentence("a", " ", true)), (None, Some(false)));
        assert!(
            starts_lowercase(" the tag") && !starts_lowercase(" The tag") && !starts_lowercase("the tag")
        );
    }
}
