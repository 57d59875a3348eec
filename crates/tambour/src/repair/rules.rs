//! Rules of JSON repairs: stable codes, specification rows, and an example of each.

use crate::finding::{Doubt, Rule, RuleLevel};

macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $level:ident, [$($row:literal),+], $title:literal,
        $(with [$($with:literal),+],)? $broken:literal => $correct:literal;)+) => {
        $($(#[$doc])* pub static $name: Rule = Rule {
            code: $code,
            rows: &[$($row),+],
            level: RuleLevel::$level,
            title: $title,
            with: &[$($($with),+)?],
            broken: $broken,
            correct: $correct,
        };)+

        /// All rules of this table.
        pub static ALL: &[&Rule] = &[$(&$name),+];
    };
}

rules! {
    /// Comma before a closing bracket.
    TRAILING_COMMA = "json_trailing_comma", Must, ["P-026", "R-33", "S-053"],
        "No comma before a closing bracket.", "[1,2,]" => "[1,2]";
    /// Comma without an item before it.
    EXTRA_COMMA = "json_extra_comma", Must, ["P-026", "R-33", "S-053"],
        "One comma between two items, none before the first.", "[,1,,2]" => "[1,2]";
    /// Two items without a comma between them.
    MISSING_COMMA = "json_missing_comma", Must, ["P-026", "R-33", "S-053"],
        "Items are separated by commas.", "[1 2]" => "[1,2]";
    /// Key without a colon.
    MISSING_COLON = "json_missing_colon", Must, ["P-026", "R-33", "S-053"],
        "There is a colon between key and value.", "{\"a\" 1}" => "{\"a\":1}";
    /// Surplus colon.
    EXTRA_COLON = "json_extra_colon", Must, ["P-026", "R-33", "S-053"],
        "One colon after a key, none elsewhere.", "{\"a\"::1}" => "{\"a\":1}";
    /// Key without a value.
    MISSING_VALUE = "json_missing_value", Must, ["P-026", "R-33", "S-053"],
        "Every key has a value.", "{\"a\":}" => "{\"a\":null}";
    /// Quote other than `"`.
    QUOTE = "json_quote", Must, ["P-026", "R-33", "S-053"],
        "Strings are in double quotes.", "{'a':'b'}" => "{\"a\":\"b\"}";
    /// String without its opening or closing quote.
    MISSING_QUOTE = "json_missing_quote", Must, ["P-026", "R-33", "S-053"],
        "A string ends with the quote it began with.", "{\"a\":\"b" => "{\"a\":\"b\"}";
    /// Unescaped quote inside a string.
    INNER_QUOTE = "json_inner_quote", Must, ["P-026", "R-33", "S-053"],
        "A quote inside a string is escaped.", "[\"a \"b\" c\"]" => "[\"a \\\"b\\\" c\"]";
    /// Key without quotes.
    UNQUOTED_KEY = "json_unquoted_key", Must, ["P-026", "R-33", "S-053"],
        "Keys are in double quotes.", "{a:1}" => "{\"a\":1}";
    /// String without quotes.
    UNQUOTED_VALUE = "json_unquoted_value", Must, ["P-026", "R-33", "S-053"],
        "Texts are in double quotes.", "{\"a\":b c}" => "{\"a\":\"b c\"}";
    /// Comment.
    COMMENT = "json_comment", Must, ["P-026", "R-33", "S-053"],
        "JSON has no comments.", "[1 // one\n]" => "[1]";
    /// Unescaped line break or control character inside a string.
    RAW_CONTROL = "json_raw_control", Must, ["P-026", "R-33", "S-053"],
        "Line breaks and control characters inside strings are escaped.", "[\"a\nb\"]" => "[\"a\\nb\"]";
    /// Escape sequence unknown to JSON.
    ESCAPE = "json_escape", Must, ["P-026", "R-33", "S-053"],
        "Only the escapes of JSON are used, surrogates in pairs.", "[\"it\\'s\"]" => "[\"it's\"]";
    /// Text escaped as a whole.
    ESCAPED_TEXT = "json_escaped_text", Must, ["P-026", "R-33", "S-053"],
        "Quotes around strings are not escaped.", "{\\\"a\\\":1}" => "{\"a\":1}";
    /// Literal in the spelling of another language.
    LITERAL = "json_literal", Must, ["P-026", "R-33", "S-053"],
        "The literals are `true`, `false` and `null`.", "[True,None]" => "[true,null]";
    /// Number format unknown to JSON.
    NUMBER = "json_number", Must, ["P-026", "R-33", "S-053"],
        "Numbers are written as in RFC 8259 and fit a double.", "[.5,+1]" => "[0.5,1]";
    /// Full-width or other non-ASCII punctuation.
    PUNCTUATION = "json_punctuation", Must, ["P-026", "R-33", "S-053"],
        "Brackets, commas and colons are ASCII.", "［1，2］" => "[1,2]";
    /// White space unknown to JSON.
    SPACE = "json_space", Must, ["P-026", "R-33", "S-053"],
        "There are only spaces, tabs and line breaks between tokens.", "[\u{a0}1]" => "[1]";
    /// Missing bracket.
    MISSING_BRACKET = "json_missing_bracket", Must, ["P-026", "R-33", "S-053"],
        "Every bracket is closed.", "[[1,2]" => "[[1,2]]";
    /// Surplus or wrong bracket.
    EXTRA_BRACKET = "json_extra_bracket", Must, ["P-026", "R-33", "S-053"],
        "Every closing bracket has an opening one.", "[1}]" => "[1]";
    /// Several strings joined by `+`.
    CONCATENATION = "json_concatenation", Must, ["P-026", "R-33", "S-053"],
        "A string is written in one piece.", "[\"a\" + \"b\"]" => "[\"ab\"]";
    /// `...` in place of omitted items.
    ELLIPSIS = "json_ellipsis", Must, ["P-026", "R-33", "S-053"],
        "Nothing is left out.", "[1,2,...]" => "[1,2]";
    /// Function call around a value.
    WRAPPER = "json_wrapper", Must, ["P-026", "R-33", "S-053"],
        "Values are not wrapped in a call.", "{\"a\":ObjectId(\"1\")}" => "{\"a\":\"1\"}";
    /// Words between items that are neither key nor value.
    STRAY_TEXT = "json_stray_text", Must, ["P-026", "R-33", "S-053"],
        "There are only keys, values and punctuation between brackets.",
        "{\"a\":1, NOTE \"b\":2}" => "{\"a\":1,\"b\":2}";
    /// Several values in place of one.
    SEVERAL_VALUES = "json_several_values", Must, ["R-33"],
        "A JSON text is one value.", "{\"a\":1}\n{\"a\":2}" => "[{\"a\":1},{\"a\":2}]";
    /// Text before or after the value.
    TEXT_AROUND = "json_text_around", Should, ["S-053", "R-32"],
        "There is nothing before or after the value.", "Sure! {\"a\":1}" => "{\"a\":1}";
    /// No value at all.
    NO_VALUE = "json_no_value", Must, ["R-32"],
        "The text holds a JSON value.", "\n" => "{}\n";
    /// Key that occurs twice in one object.
    DUPLICATE_KEY = "duplicate_key", Must, ["P-030", "R-35", "R-82"],
        "A key occurs once in an object.", "{\"a\":1,\"a\":2}" => "{\"a\":2}";
    /// Nesting or size beyond the limits.
    LIMIT_EXCEEDED = "limit_exceeded", Must, ["X-007"],
        "A reply stays inside the limits of depth, size and count.",
        with ["limits.depth=3"], "[[[[1]]]]" => "[[[1]]]";
}

/// Codes of rules whose repairs preserve the meaning of a value: they change only its spelling, and there is
/// one reading (P-026, R-81). Repairs by other rules are guesses. Exceptions are stated where a repair is
/// reported.
static MEANING_PRESERVING: &[&str] = &[
    TRAILING_COMMA.code,
    QUOTE.code,
    UNQUOTED_KEY.code,
    COMMENT.code,
    RAW_CONTROL.code,
    LITERAL.code,
    PUNCTUATION.code,
    SPACE.code,
];

/// Doubt that a repair by this rule casts on the value; `None` if the repair preserves the meaning.
pub(crate) fn repair_doubt(rule: &Rule) -> Option<Doubt> {
    (!MEANING_PRESERVING.contains(&rule.code)).then_some(Doubt::Guess)
}
