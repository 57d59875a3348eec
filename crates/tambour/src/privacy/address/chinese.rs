//! Chinese addresses, such as `北京市朝阳区建国路88号` and `阳光小区3栋501室`.

use std::ops::Range;

use super::super::text::{Text, alnum, digit};
use super::han;

/// Most characters examined before a road or behind a number.
const REACH: usize = 24;

/// Returns whether a character names an administrative division; a name with one starts an address.
fn division(c: char) -> bool {
    matches!(c, '省' | '市' | '区' | '县' | '镇' | '乡' | '州')
}

/// Finds roads and housing estates with a number.
pub(super) fn find(text: &Text<'_>, found: &mut dyn FnMut(Range<usize>)) {
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

/// Index of the start of a road name whose last character is at `at`.
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
        // A motorway has a number but no houses; with a place before it, it may be the name of a road.
        ('公', '路') => divided(),
        // `坐一路` means a bus line.
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

/// Probable start of the name that ends at `at`: up to five characters, none of which introduces a place.
fn name(text: &Text<'_>, at: usize) -> usize {
    const LONGEST: usize = 5;
    let from = run(text, at).max(at.saturating_sub(LONGEST));
    let leads = |c: &char| {
        matches!(c, '在' | '去' | '到' | '住' | '是' | '于' | '从' | '往' | '的' | '了' | '寄' | '至')
    };
    from + text.chars()[from..at].iter().rposition(leads).map_or(0, |last| last + 1)
}

/// Start of the unbroken Chinese text that ends at `at`, within reach.
fn run(text: &Text<'_>, at: usize) -> usize {
    let mut start = at;
    while at - start < REACH && han(text.before(start)) {
        start -= 1;
    }
    start
}

/// Index of the first division named before `at`.
fn divisions(text: &Text<'_>, at: usize) -> Option<usize> {
    let from = run(text, at);
    // At least two characters of its name precede it.
    (from..at).find(|&index| division(text.chars()[index]) && index >= from + 2)
}

/// Start of the address whose road or estate name starts at `name`.
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

/// Index behind the number at `at`: digits, `88-2`, a letter, or Chinese numerals.
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

/// Index behind the house number that follows a road at `at`, with an optional section: `二段`, `东`.
fn house(text: &Text<'_>, at: usize) -> Option<usize> {
    let number = |at: usize| {
        let end = blanks(text, count(text, blanks(text, at))?);
        let sign = text.at(end)?;
        let after = text.at(end + 1);
        // `2号线`, `5号公路`, `1号机`: the number belongs to something else.
        let other = sign == '号'
            && matches!(after, Some('线' | '公' | '码' | '桥' | '航' | '机' | '车' | '选' | '球'));
        (matches!(sign, '号' | '號' | '弄' | '栋' | '幢') && !other).then_some(end + 1)
    };
    let side = at + usize::from(matches!(text.at(at), Some('东' | '西' | '南' | '北' | '中')));
    let section = count(text, side).unwrap_or(side);
    let section = if text.at(section) == Some('段') { section + 1 } else { side };
    number(at).or_else(|| number(section))
}

/// Start of the name of a housing estate that ends before `at`.
fn estate(text: &Text<'_>, at: usize) -> Option<usize> {
    if !digit(text.at(at)) || alnum(text.before(at)) {
        return None;
    }
    let mut end = at;
    while at - end < 2 && text.before(end) == Some(' ') {
        end -= 1;
    }
    han(text.before(end)).then(|| name(text, end))
}

/// Index behind the building at `at`: `3栋`, `5号楼` of an estate, or any building with a unit or a room.
fn building(text: &Text<'_>, at: usize) -> Option<usize> {
    const ESTATES: &[&str] =
        &["小区", "公寓", "花园", "家园", "新村", "宿舍", "嘉园", "名苑", "家属院", "大院"];
    let end = part(text, at, &["号楼", "栋", "幢", "座", "单元"])?;
    let from = at.saturating_sub(6);
    let before: String = text.chars()[from..at].iter().collect();
    let named = ESTATES.iter().any(|word| before.trim_end().ends_with(word));
    let room = part(text, end, &["单元", "室", "户", "房", "号"]);
    // `3室2厅` is the floor plan of a flat.
    let plan =
        room.is_some_and(|room| text.before(room) == Some('室') && part(text, room, &["厅"]).is_some());
    (named || (room.is_some() && !plan)).then_some(end)
}

/// Index behind a number and one of `signs` at `at`.
fn part(text: &Text<'_>, at: usize, signs: &[&str]) -> Option<usize> {
    let end = blanks(text, count(text, blanks(text, at))?);
    let rest = text.chars().get(end..)?;
    let sign = signs
        .iter()
        .find(|sign| sign.chars().zip(rest).filter(|(a, b)| a == *b).count() == sign.chars().count())?;
    Some(end + sign.chars().count())
}

/// Index behind the parts of an address that follow a house at `at`: `3栋2单元501室`.
fn rooms(text: &Text<'_>, mut at: usize) -> usize {
    const PARTS: &[&str] = &["号楼", "单元", "栋", "幢", "座", "楼", "层", "室", "户", "房", "弄", "号"];
    for _ in 0..6 {
        let Some(end) = part(text, at, PARTS) else { break };
        at = end;
    }
    at
}
