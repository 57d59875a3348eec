//! Checks of style values against their grammar (F-104), by a whitelist of declarations.

/// A declaration, as written, with the decision about it.
pub(super) enum StyleDeclaration<'a> {
    Allowed(&'a str),
    /// Allowed without its `!important`.
    AllowedUnimportant(&'a str),
    Forbidden(&'a str),
}

/// Splits a style into its declarations; text that is not an allowed declaration is `Forbidden`.
pub(super) fn parse_declarations(style: &str) -> impl Iterator<Item = StyleDeclaration<'_>> {
    style.split(';').map(str::trim).filter(|part| !part.is_empty()).map(|part| {
        let (text, is_important) = match part.split_once('!') {
            Some((text, word)) if word.trim().eq_ignore_ascii_case("important") => (text.trim_end(), true),
            _ => (part, false),
        };
        match text.split_once(':') {
            Some((name, value)) if is_allowed(name.trim_end(), value.trim()) && is_important => {
                StyleDeclaration::AllowedUnimportant(text)
            }
            Some((name, value)) if is_allowed(name.trim_end(), value.trim()) => {
                StyleDeclaration::Allowed(text)
            }
            _ => StyleDeclaration::Forbidden(part),
        }
    })
}

/// Maximum length of a value in bytes: enough for two colours and a few words.
const MAX_VALUE_LEN: usize = 128;

fn is_allowed(name: &str, value: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"#.,%()/+- \t".contains(&byte);
    if value.is_empty() || value.len() > MAX_VALUE_LEN || !value.bytes().all(is_plain) {
        return false;
    }
    let value = value.to_ascii_lowercase();
    match name.to_ascii_lowercase().as_str() {
        "color" | "background-color" => is_colour(&value),
        "font-weight" => is_weight(&value),
        "font-style" => is_font_style(&value),
        "text-decoration" => is_decoration(&value),
        _ => false,
    }
}

fn is_weight(value: &str) -> bool {
    matches!(value, "normal" | "bold" | "bolder" | "lighter")
        || parse_number(value).is_some_and(|weight| (1.0..=1000.0).contains(&weight))
}

fn is_font_style(value: &str) -> bool {
    match value.split_once([' ', '\t']) {
        None => matches!(value, "normal" | "italic" | "oblique"),
        Some((word, angle)) => {
            let degrees = angle.trim().strip_suffix("deg").and_then(parse_number);
            word == "oblique" && degrees.is_some_and(|degrees| (-90.0..=90.0).contains(&degrees))
        }
    }
}

/// Returns whether a value consists of lines, a line style and a colour, in any order, each at most once.
fn is_decoration(value: &str) -> bool {
    let mut kinds: Vec<&str> = Vec::new();
    for word in split_words(value) {
        let kind = match word {
            "underline" | "overline" | "line-through" | "none" => word,
            "solid" | "double" | "dotted" | "dashed" | "wavy" => "style",
            _ if is_colour(word) => "colour",
            _ => return false,
        };
        if kinds.contains(&kind) {
            return false;
        }
        kinds.push(kind);
    }
    // `none` excludes other lines.
    let lines = kinds.iter().filter(|kind| !matches!(**kind, "style" | "colour")).count();
    !kinds.is_empty() && (lines < 2 || !kinds.contains(&"none"))
}

/// Returns the words of a value, separated by blanks outside of parentheses.
fn split_words(value: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_i32;
    let parts = value.split(move |c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth <= 0 && (c == ' ' || c == '\t')
    });
    parts.filter(|word| !word.is_empty())
}

/// Returns whether a word in lower case is a colour.
fn is_colour(value: &str) -> bool {
    if let Some(digits) = value.strip_prefix('#') {
        return matches!(digits.len(), 3 | 4 | 6 | 8) && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    }
    let Some((name, after_bracket)) = value.split_once('(') else { return is_colour_name(value) };
    let Some(arguments) = after_bracket.strip_suffix(')') else { return false };
    let has_hue = match name {
        "rgb" | "rgba" => false,
        "hsl" | "hsla" => true,
        _ => return false,
    };
    if arguments.contains(['(', ')']) {
        return false;
    }
    if arguments.contains(',') {
        has_comma_arguments(arguments, has_hue)
    } else {
        has_space_arguments(arguments, has_hue)
    }
}

/// Returns whether `arguments` fit a colour such as `rgb(1, 2, 3, 0.5)`. `has_hue` is true if the first
/// argument must be a hue.
fn has_comma_arguments(arguments: &str, has_hue: bool) -> bool {
    let parts: Vec<&str> = arguments.split(',').map(str::trim).collect();
    let [first, second, third, alpha @ ..] = parts.as_slice() else { return false };
    let is_valid = if has_hue {
        is_hue(first) && is_percentage(second) && is_percentage(third)
    } else {
        [first, second, third].iter().all(|part| parse_number(part).is_some())
            || [first, second, third].iter().all(|part| is_percentage(part))
    };
    is_valid && alpha.len() < 2 && alpha.iter().all(|alpha| is_amount(alpha))
}

/// Returns whether `arguments` fit a colour such as `rgb(1 2 3 / 50%)`. `has_hue` is true if the first
/// argument must be a hue. Each argument may be `none`.
fn has_space_arguments(arguments: &str, has_hue: bool) -> bool {
    let (colour, alpha) = match arguments.split_once('/') {
        None => (arguments, None),
        Some((colour, alpha)) => (colour, Some(alpha.trim())),
    };
    let parts: Vec<&str> = colour.split_ascii_whitespace().collect();
    let [first, second, third] = parts.as_slice() else { return false };
    let is_first_valid = if has_hue { is_hue(first) || *first == "none" } else { is_amount_or_none(first) };
    is_first_valid
        && is_amount_or_none(second)
        && is_amount_or_none(third)
        && alpha.is_none_or(is_amount_or_none)
}

fn is_amount_or_none(text: &str) -> bool {
    text == "none" || is_amount(text)
}

/// Returns whether a text is a number or a percentage.
fn is_amount(text: &str) -> bool {
    parse_number(text).is_some() || is_percentage(text)
}

fn is_percentage(text: &str) -> bool {
    text.strip_suffix('%').and_then(parse_number).is_some()
}

fn is_hue(text: &str) -> bool {
    let units = ["deg", "grad", "rad", "turn"];
    let angle = units.iter().find_map(|unit| text.strip_suffix(unit));
    parse_number(angle.unwrap_or(text)).is_some()
}

/// Parses a CSS number without an exponent, of at most 12 characters (digits and the dot) after its sign.
fn parse_number(text: &str) -> Option<f64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (integer, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if fraction.is_empty()
        || !is_all_digits(integer)
        || !is_all_digits(fraction)
        || digits.is_empty()
        || digits.len() > 12
    {
        return None;
    }
    text.strip_prefix('+').unwrap_or(text).parse().ok()
}

/// Returns whether a word in lower case is a colour name of CSS.
fn is_colour_name(word: &str) -> bool {
    COLOUR_NAMES.binary_search(&word).is_ok()
}

/// Colour names in alphabetical order.
const COLOUR_NAMES: &[&str] = &[
    "aliceblue",
    "antiquewhite",
    "aqua",
    "aquamarine",
    "azure",
    "beige",
    "bisque",
    "black",
    "blanchedalmond",
    "blue",
    "blueviolet",
    "brown",
    "burlywood",
    "cadetblue",
    "chartreuse",
    "chocolate",
    "coral",
    "cornflowerblue",
    "cornsilk",
    "crimson",
    "currentcolor",
    "cyan",
    "darkblue",
    "darkcyan",
    "darkgoldenrod",
    "darkgray",
    "darkgreen",
    "darkgrey",
    "darkkhaki",
    "darkmagenta",
    "darkolivegreen",
    "darkorange",
    "darkorchid",
    "darkred",
    "darksalmon",
    "darkseagreen",
    "darkslateblue",
    "darkslategray",
    "darkslategrey",
    "darkturquoise",
    "darkviolet",
    "deeppink",
    "deepskyblue",
    "dimgray",
    "dimgrey",
    "dodgerblue",
    "firebrick",
    "floralwhite",
    "forestgreen",
    "fuchsia",
    "gainsboro",
    "ghostwhite",
    "gold",
    "goldenrod",
    "gray",
    "green",
    "greenyellow",
    "grey",
    "honeydew",
    "hotpink",
    "indianred",
    "indigo",
    "ivory",
    "khaki",
    "lavender",
    "lavenderblush",
    "lawngreen",
    "lemonchiffon",
    "lightblue",
    "lightcoral",
    "lightcyan",
    "lightgoldenrodyellow",
    "lightgray",
    "lightgreen",
    "lightgrey",
    "lightpink",
    "lightsalmon",
    "lightseagreen",
    "lightskyblue",
    "lightslategray",
    "lightslategrey",
    "lightsteelblue",
    "lightyellow",
    "lime",
    "limegreen",
    "linen",
    "magenta",
    "maroon",
    "mediumaquamarine",
    "mediumblue",
    "mediumorchid",
    "mediumpurple",
    "mediumseagreen",
    "mediumslateblue",
    "mediumspringgreen",
    "mediumturquoise",
    "mediumvioletred",
    "midnightblue",
    "mintcream",
    "mistyrose",
    "moccasin",
    "navajowhite",
    "navy",
    "oldlace",
    "olive",
    "olivedrab",
    "orange",
    "orangered",
    "orchid",
    "palegoldenrod",
    "palegreen",
    "paleturquoise",
    "palevioletred",
    "papayawhip",
    "peachpuff",
    "peru",
    "pink",
    "plum",
    "powderblue",
    "purple",
    "rebeccapurple",
    "red",
    "rosybrown",
    "royalblue",
    "saddlebrown",
    "salmon",
    "sandybrown",
    "seagreen",
    "seashell",
    "sienna",
    "silver",
    "skyblue",
    "slateblue",
    "slategray",
    "slategrey",
    "snow",
    "springgreen",
    "steelblue",
    "tan",
    "teal",
    "thistle",
    "tomato",
    "transparent",
    "turquoise",
    "violet",
    "wheat",
    "white",
    "whitesmoke",
    "yellow",
    "yellowgreen",
];
