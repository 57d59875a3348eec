//! Street addresses in the usual Chinese and English forms. The name of a place alone is none.

use std::ops::Range;

use super::Detector;
use super::text::{Text, alnum, digit};

/// A road, or a housing estate, with a number.
pub(super) struct Address;

impl Detector for Address {
    fn kind(&self) -> &'static str {
        "address"
    }

    fn find(&self, text: &Text<'_>, found: &mut dyn FnMut(Range<usize>)) {
        chinese(text, found);
        english(text, found);
    }
}

/// Most characters that are looked at before a road or after a number.
const REACH: usize = 24;

fn han(c: Option<char>) -> bool {
    c.is_some_and(|c| ('\u{4E00}'..='\u{9FFF}').contains(&c) || ('\u{3400}'..='\u{4DBF}').contains(&c))
}

/// Divisions of the country: a name that holds one is the start of an address.
fn division(c: char) -> bool {
    matches!(c, '省' | '市' | '区' | '县' | '镇' | '乡' | '州')
}

fn chinese(text: &Text<'_>, found: &mut dyn FnMut(Range<usize>)) {
    let chars = text.chars();
    let mut at = 0;
    while at < chars.len() {
        let road = road(text, at).and_then(|name| Some((name, house(text, at + 1)?)));
        let estate = || estate(text, at).and_then(|name| Some((name, building(text, at)?)));
        match road.or_else(estate) {
            Some((name, end)) => {
                let end = rooms(text, end);
                found(text.bytes(start(text, name)..end));
                at = end;
            }
            None => at += 1,
        }
    }
}

/// Index at which the name of the road begins whose last character is at `at`.
fn road(text: &Text<'_>, at: usize) -> Option<usize> {
    let last = text.at(at)?;
    let before = text.before(at);
    if !matches!(last, '路' | '街' | '道' | '巷' | '弄' | '同' | '村') || !han(before) {
        return None;
    }
    let divided = || divisions(text, at).is_some();
    let one = !han(at.checked_sub(1).and_then(|index| text.before(index)));
    let is_road = match (before?, last) {
        (
            '电' | '线' | '铁' | '思' | '回' | '走' | '套' | '网' | '问' | '之' | '道' | '带' | '退' | '让',
            '路',
        ) => false,
        // A motorway has a number and no houses; a road may be called one where a place is named.
        ('公', '路') => divided(),
        // `坐一路`: the line of a bus.
        (c, '路') if one => !numeral(c),
        (_, '路') => true,
        ('逛' | '上' | '扫' | '临' | '沿', '街') => false,
        (_, '街') => true,
        ('大', '道') => !one,
        (
            '国' | '省' | '县' | '乡' | '跑' | '频' | '轨' | '赛' | '通' | '管' | '渠' | '隧' | '知' | '报',
            '道',
        ) => false,
        (_, '道' | '村') => divided(),
        (_, '巷' | '弄') => true,
        (c, '同') => c == '胡' && !one,
        _ => false,
    };
    is_road.then(|| name(text, at))
}

/// Index at which the name that ends at `at` probably begins: up to five characters, none of which leads to a place.
fn name(text: &Text<'_>, at: usize) -> usize {
    const LONGEST: usize = 5;
    let from = run(text, at).max(at.saturating_sub(LONGEST));
    let leads = |c: &char| {
        matches!(c, '在' | '去' | '到' | '住' | '是' | '于' | '从' | '往' | '的' | '了' | '寄' | '至')
    };
    from + text.chars()[from..at].iter().rposition(leads).map_or(0, |last| last + 1)
}

/// Index at which the unbroken Chinese text begins that `at` ends, or the reach of this search.
fn run(text: &Text<'_>, at: usize) -> usize {
    let mut start = at;
    while at - start < REACH && han(text.before(start)) {
        start -= 1;
    }
    start
}

/// Index of the first division named in the text before `at`.
fn divisions(text: &Text<'_>, at: usize) -> Option<usize> {
    let from = run(text, at);
    // Two characters of a name stand before it.
    (from..at).find(|&index| division(text.chars()[index]) && index >= from + 2)
}

/// Index at which the address begins whose road or estate has the name at `name`.
fn start(text: &Text<'_>, name: usize) -> usize {
    divisions(text, name).map_or(name, |first| (first - 2).min(name))
}

fn numeral(c: char) -> bool {
    matches!(
        c,
        '一' | '二'
            | '三'
            | '四'
            | '五'
            | '六'
            | '七'
            | '八'
            | '九'
            | '十'
            | '百'
            | '千'
            | '零'
            | '〇'
            | '两'
    )
}

/// Index after the number at `at`: digits, `88-2`, a letter, or Chinese numerals.
fn count(text: &Text<'_>, at: usize) -> Option<usize> {
    const LONGEST: usize = 8;
    let chars = &text.chars()[at.min(text.chars().len())..];
    let chars = &chars[..chars.len().min(LONGEST + 1)];
    let arabic = |c: &char| c.is_ascii_digit();
    let length = match chars.first()? {
        c if c.is_ascii_digit() => {
            let mut length = chars.iter().take_while(|c| arabic(c)).count();
            if matches!(chars.get(length), Some('-' | '之')) && chars.get(length + 1).is_some_and(arabic) {
                length += 1 + chars[length + 1..].iter().take_while(|c| arabic(c)).count();
            }
            length + usize::from(chars.get(length).is_some_and(char::is_ascii_alphabetic))
        }
        &c if numeral(c) => chars.iter().take_while(|c| numeral(**c)).count(),
        _ => return None,
    };
    (length <= LONGEST).then_some(at + length)
}

fn blanks(text: &Text<'_>, mut at: usize) -> usize {
    let from = at;
    while at - from < 2 && text.at(at) == Some(' ') {
        at += 1;
    }
    at
}

/// Index after the house number that follows a road at `at`, perhaps with a section: `二段`, `东`.
fn house(text: &Text<'_>, at: usize) -> Option<usize> {
    let number = |at: usize| {
        let end = blanks(text, count(text, blanks(text, at))?);
        let sign = text.at(end)?;
        let after = text.at(end + 1);
        // `2号线`, `5号公路`, `1号机`: something else has the number.
        let other = sign == '号'
            && matches!(after, Some('线' | '公' | '码' | '桥' | '航' | '机' | '车' | '选' | '球'));
        (matches!(sign, '号' | '號' | '弄' | '栋' | '幢') && !other).then_some(end + 1)
    };
    let side = at + usize::from(matches!(text.at(at), Some('东' | '西' | '南' | '北' | '中')));
    let section = count(text, side).unwrap_or(side);
    let section = if text.at(section) == Some('段') { section + 1 } else { side };
    number(at).or_else(|| number(section))
}

/// Index at which the name of a housing estate begins that ends before `at`.
fn estate(text: &Text<'_>, at: usize) -> Option<usize> {
    if !(digit(text.at(at)) && !alnum(text.before(at))) {
        return None;
    }
    let mut end = at;
    while at - end < 2 && text.before(end) == Some(' ') {
        end -= 1;
    }
    han(text.before(end)).then(|| name(text, end))
}

/// Index after the building at `at`: `3栋`, `5号楼` of an estate, or any building with a unit or a room.
fn building(text: &Text<'_>, at: usize) -> Option<usize> {
    const ESTATES: &[&str] =
        &["小区", "公寓", "花园", "家园", "新村", "宿舍", "嘉园", "名苑", "家属院", "大院"];
    let end = part(text, at, &["号楼", "栋", "幢", "座", "单元"])?;
    let from = at.saturating_sub(6);
    let before: String = text.chars()[from..at].iter().collect();
    let named = ESTATES.iter().any(|word| before.trim_end().ends_with(word));
    let room = part(text, end, &["单元", "室", "户", "房", "号"]);
    // `3室2厅` is the plan of a flat.
    let plan =
        room.is_some_and(|room| text.before(room) == Some('室') && part(text, room, &["厅"]).is_some());
    (named || (room.is_some() && !plan)).then_some(end)
}

/// Index after a number and one of `signs` at `at`.
fn part(text: &Text<'_>, at: usize, signs: &[&str]) -> Option<usize> {
    let end = blanks(text, count(text, blanks(text, at))?);
    let rest = text.chars().get(end..)?;
    let sign = signs
        .iter()
        .find(|sign| sign.chars().zip(rest).filter(|(a, b)| a == *b).count() == sign.chars().count())?;
    Some(end + sign.chars().count())
}

/// Index after the parts of an address that follow a house at `at`: `3栋2单元501室`.
fn rooms(text: &Text<'_>, mut at: usize) -> usize {
    const PARTS: &[&str] = &["号楼", "单元", "栋", "幢", "座", "楼", "层", "室", "户", "房", "弄", "号"];
    for _ in 0..6 {
        let Some(end) = part(text, at, PARTS) else { break };
        at = end;
    }
    at
}

/// A word of a Latin text.
struct Word {
    start: usize,
    end: usize,
    /// In lower case.
    text: String,
    capital: bool,
    /// Whether only blanks (and the dot of an abbreviation) stand between it and the word before it.
    joined: bool,
}

fn words(text: &Text<'_>) -> Vec<Word> {
    let chars = text.chars();
    let mut words: Vec<Word> = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        if !chars[at].is_ascii_alphanumeric() {
            at += 1;
            continue;
        }
        let start = at;
        while at < chars.len() && (chars[at].is_ascii_alphanumeric() || chars[at] == '\'') {
            at += 1;
        }
        let joined = words.last().is_some_and(|last| {
            let between = &chars[last.end..start];
            let blank =
                between.strip_prefix(&['.']).filter(|_| last.end - last.start <= 4).unwrap_or(between);
            !blank.is_empty() && blank.len() <= 3 && blank.iter().all(|&c| c == ' ')
        });
        let text = chars[start..at].iter().collect::<String>().to_ascii_lowercase();
        words.push(Word { start, end: at, text, capital: chars[start].is_ascii_uppercase(), joined });
    }
    words
}

/// What a street may be called in any spelling, and what only a name in capitals is.
const STREETS: &[&str] = &["street", "st", "road", "rd", "avenue", "ave", "boulevard", "blvd", "lane", "ln"];
const NAMED_STREETS: &[&str] = &[
    "drive", "dr", "court", "ct", "place", "pl", "square", "sq", "terrace", "way", "close", "crescent",
    "parkway", "pkwy", "circle", "row", "mews", "gardens", "highway", "hwy", "walk", "alley", "trail",
];

/// Words before a number that make it something else than a house.
const NUMBERED: &[&str] = &[
    "route",
    "highway",
    "hwy",
    "interstate",
    "top",
    "chapter",
    "episode",
    "season",
    "level",
    "part",
    "vol",
    "volume",
    "version",
    "page",
    "lesson",
    "stage",
    "game",
    "best",
];

/// Words that are no name of a street: after them the number counts something.
const COUNTED: &[&str] = &[
    "best",
    "top",
    "good",
    "great",
    "easy",
    "simple",
    "hard",
    "new",
    "old",
    "big",
    "small",
    "long",
    "short",
    "famous",
    "popular",
    "cheap",
    "free",
    "minute",
    "minutes",
    "min",
    "mins",
    "hour",
    "hours",
    "day",
    "days",
    "week",
    "weeks",
    "month",
    "months",
    "year",
    "years",
    "mile",
    "miles",
    "km",
    "m",
    "meter",
    "meters",
    "metre",
    "metres",
    "foot",
    "feet",
    "ft",
    "kg",
    "lb",
    "lbs",
    "gb",
    "tb",
    "set",
    "sets",
    "rep",
    "reps",
    "ways",
    "way",
    "lane",
    "lanes",
    "wheel",
    "wheels",
    "door",
    "tips",
    "ideas",
    "types",
    "kinds",
    "of",
    "the",
    "a",
    "an",
    "on",
    "and",
    "or",
    "in",
    "for",
    "to",
    "from",
    "with",
    "per",
    "percent",
    "people",
    "person",
    "players",
    "more",
    "most",
    "first",
    "off",
    "all",
    "common",
    "other",
    "different",
    "ultimate",
    "amazing",
    "things",
    "rules",
    "is",
    "are",
    "was",
    "at",
    "by",
    "bike",
    "bicycle",
    "level",
    "point",
    "points",
    "star",
    "speed",
    "piece",
    "flash",
    "mph",
    "kmh",
    "inch",
    "inches",
    "bedroom",
    "room",
    "workout",
    "workouts",
    "exercises",
    "major",
    "must",
    "unique",
];

/// Words after a street that make it an adjective: `road bikes`.
const THINGS: &[&str] = &[
    "bike",
    "bikes",
    "bicycle",
    "bicycles",
    "trip",
    "trips",
    "workout",
    "workouts",
    "food",
    "foods",
    "race",
    "races",
    "racing",
    "runner",
    "runners",
    "running",
    "run",
    "runs",
    "cycling",
    "cyclist",
    "cyclists",
    "fighter",
    "art",
    "style",
    "styles",
    "wear",
    "photography",
    "photographer",
    "photographers",
    "test",
    "tests",
    "map",
    "maps",
    "sign",
    "signs",
    "rage",
    "safety",
    "legal",
    "market",
    "markets",
    "parade",
    "dance",
    "dancing",
    "dancer",
    "dancers",
    "party",
    "fashion",
    "car",
    "cars",
    "performance",
    "hockey",
    "movie",
    "movies",
    "film",
    "films",
    "song",
    "songs",
    "album",
    "remaster",
    "journal",
    "closures",
    "works",
    "construction",
    "lights",
    "lighting",
    "cleaning",
    "smart",
    "wise",
    "level",
    "team",
    "gang",
    "cred",
    "tacos",
    "vendor",
    "vendors",
    "tires",
    "tyres",
    "shoes",
    "surface",
    "network",
    "design",
    "width",
    "markings",
    "rules",
    "bets",
    "crash",
    "tips",
    "strategy",
    "traders",
    "banks",
    "basketball",
    "soccer",
    "football",
    "skating",
    "skateboarding",
    "magic",
    "games",
    "game",
    "ideas",
    "departure",
];

fn english(text: &Text<'_>, found: &mut dyn FnMut(Range<usize>)) {
    const NAME: usize = 4;
    let words = words(text);
    let mut at = 0;
    while at < words.len() {
        let first = &words[at];
        if let Some(end) = post_box(&words[at..]) {
            found(text.bytes(first.start..words[at + end].end));
            at += end + 1;
            continue;
        }
        at += 1;
        let sign = text.before(first.start);
        if !house_number(&first.text) || matches!(sign, Some('$' | '#' | '.' | ':' | '_' | '£' | '€' | '/'))
        {
            continue;
        }
        if first.joined && at >= 2 && NUMBERED.contains(&words[at - 2].text.as_str()) {
            continue;
        }
        // `at` is the first word of the name; the kind of street is the second or a later one.
        for index in at..words.len().min(at + NAME + 1) {
            let word = &words[index];
            if !word.joined {
                break;
            }
            let name = &words[at..index];
            let kind = word.text.as_str();
            let capitals =
                word.capital && name.iter().all(|word| word.capital || digit(word.text.chars().next()));
            let street = STREETS.contains(&kind) || (capitals && NAMED_STREETS.contains(&kind));
            if street && !name.is_empty() {
                let thing = words.get(index + 1).filter(|next| next.joined);
                if !thing.is_some_and(|next| THINGS.contains(&next.text.as_str())) {
                    found(text.bytes(first.start..word.end));
                }
                break;
            }
            if COUNTED.contains(&kind) || !name_word(&word.text) {
                break;
            }
        }
    }
}

/// `221`, `221b`.
fn house_number(word: &str) -> bool {
    let digits = word.strip_suffix(|c: char| c.is_ascii_alphabetic()).unwrap_or(word);
    (1..=5).contains(&digits.len())
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && !digits.starts_with('0')
}

/// A word of letters, or a number such as `5th`.
fn name_word(word: &str) -> bool {
    let letters = word.trim_start_matches(|c: char| c.is_ascii_digit());
    letters.len() == word.len() || matches!(letters, "st" | "nd" | "rd" | "th")
}

/// Number of words after the first in `PO Box 12`, `P.O. Box 12`.
fn post_box(words: &[Word]) -> Option<usize> {
    let texts: Vec<&str> = words.iter().take(4).map(|word| word.text.as_str()).collect();
    let number = |word: &&str| word.bytes().all(|byte| byte.is_ascii_digit());
    match texts[..] {
        ["po", "box", number_word, ..] if number(&number_word) => Some(2),
        ["p", "o", "box", number_word] if number(&number_word) => Some(3),
        _ => None,
    }
}
