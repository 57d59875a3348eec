//! Chinese addresses, such as `北京市朝阳区建国路88号` and `阳光小区3栋501室`.

use std::ops::Range;

use super::super::folded_text::{FoldedText, is_alnum, is_digit};
use super::is_han;

/// Maximum number of characters examined before a road or an estate.
const MAX_REACH: usize = 24;

/// Returns whether a character ends the name of an administrative division, with which an address starts.
fn is_division(c: char) -> bool {
    matches!(c, '省' | '市' | '区' | '县' | '镇' | '乡' | '州')
}

/// Finds roads and housing estates with a number.
pub(super) fn find(text: &FoldedText<'_>, found: &mut dyn FnMut(Range<usize>)) {
    let chars = text.chars();
    let mut at = 0;
    while at < chars.len() {
        let road = road_start(text, at).and_then(|start| Some((start, house_end(text, at + 1)?)));
        let estate = || estate_start(text, at).and_then(|start| Some((start, building_end(text, at)?)));
        match road.or_else(estate) {
            Some((name_start, end)) => {
                let end = rooms_end(text, end);
                found(text.byte_range(address_start(text, name_start)..end));
                at = end;
            }
            None => at += 1,
        }
    }
}

/// Index of the start of a road name whose last character is at `at`.
fn road_start(text: &FoldedText<'_>, at: usize) -> Option<usize> {
    let last = text.char_at(at)?;
    let before = text.char_before(at);
    if !matches!(last, '路' | '街' | '道' | '巷' | '弄' | '同' | '村') || !is_han(before) {
        return None;
    }
    let has_division = || first_division(text, at).is_some();
    let is_one_char_name = !is_han(at.checked_sub(1).and_then(|index| text.char_before(index)));
    // Many common words end in the same characters, such as `电路` (circuit) and `知道` (know).
    let is_road = match (before?, last) {
        (
            '电' | '线' | '铁' | '思' | '回' | '走' | '套' | '网' | '问' | '之' | '道' | '带' | '退' | '让',
            '路',
        ) => false,
        // A motorway has a number but no houses; with a place before it, it may be the name of a road.
        ('公', '路') => has_division(),
        // `一路` in `坐一路` (take line one) is a bus line.
        (c, '路') if is_one_char_name => !is_numeral(c),
        (_, '路') => true,
        ('逛' | '上' | '扫' | '临' | '沿', '街') => false,
        (_, '街') => true,
        ('大', '道') => !is_one_char_name,
        (
            '国' | '省' | '县' | '乡' | '跑' | '频' | '轨' | '赛' | '通' | '管' | '渠' | '隧' | '知' | '报',
            '道',
        ) => false,
        (_, '道' | '村') => has_division(),
        (_, '巷' | '弄') => true,
        (c, '同') => c == '胡' && !is_one_char_name,
        _ => false,
    };
    is_road.then(|| name_start(text, at))
}

/// Probable start of the name that ends before `at`. It has up to five characters, none of which is a word
/// that introduces a place, such as `在` (at).
fn name_start(text: &FoldedText<'_>, at: usize) -> usize {
    const MAX_NAME_LEN: usize = 5;
    let from = run_start(text, at).max(at.saturating_sub(MAX_NAME_LEN));
    let is_introducing = |c: &char| {
        matches!(c, '在' | '去' | '到' | '住' | '是' | '于' | '从' | '往' | '的' | '了' | '寄' | '至')
    };
    from + text.chars()[from..at].iter().rposition(is_introducing).map_or(0, |last| last + 1)
}

/// Start of the unbroken Chinese text that ends before `at`, at most [`MAX_REACH`] characters back.
fn run_start(text: &FoldedText<'_>, at: usize) -> usize {
    let mut start = at;
    while at - start < MAX_REACH && is_han(text.char_before(start)) {
        start -= 1;
    }
    start
}

/// Index of the character that ends the name of the first division before `at`.
fn first_division(text: &FoldedText<'_>, at: usize) -> Option<usize> {
    let from = run_start(text, at);
    // At least two characters of the name precede it.
    (from..at).find(|&index| is_division(text.chars()[index]) && index >= from + 2)
}

/// Start of the address whose road or estate name starts at `name_start`.
fn address_start(text: &FoldedText<'_>, name_start: usize) -> usize {
    first_division(text, name_start).map_or(name_start, |division| (division - 2).min(name_start))
}

fn is_numeral(c: char) -> bool {
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

/// Index after the number at `at`: digits, as in `88`, `88-2` and `88A`, or Chinese numerals.
fn number_end(text: &FoldedText<'_>, at: usize) -> Option<usize> {
    const MAX_NUMBER_LEN: usize = 8;
    let chars = &text.chars()[at.min(text.chars().len())..];
    let chars = &chars[..chars.len().min(MAX_NUMBER_LEN + 1)];
    let is_digit = |c: &char| c.is_ascii_digit();
    let length = match chars.first()? {
        c if c.is_ascii_digit() => {
            let mut length = chars.iter().take_while(|c| is_digit(c)).count();
            if matches!(chars.get(length), Some('-' | '之')) && chars.get(length + 1).is_some_and(is_digit) {
                length += 1 + chars[length + 1..].iter().take_while(|c| is_digit(c)).count();
            }
            length + usize::from(chars.get(length).is_some_and(char::is_ascii_alphabetic))
        }
        &c if is_numeral(c) => chars.iter().take_while(|c| is_numeral(**c)).count(),
        _ => return None,
    };
    (length <= MAX_NUMBER_LEN).then_some(at + length)
}

/// Index after the blanks at `at`, at most two.
fn skip_blanks(text: &FoldedText<'_>, mut at: usize) -> usize {
    let from = at;
    while at - from < 2 && text.char_at(at) == Some(' ') {
        at += 1;
    }
    at
}

/// Index after the house number that follows a road at `at`. A side or a section of the road may precede the
/// number: `东`, `二段`.
fn house_end(text: &FoldedText<'_>, at: usize) -> Option<usize> {
    let house_number_end = |at: usize| {
        let end = skip_blanks(text, number_end(text, skip_blanks(text, at))?);
        let unit = text.char_at(end)?;
        let after = text.char_at(end + 1);
        // `2号线`, `5号公路`, `1号机`: the number belongs to something else.
        let is_other_thing = unit == '号'
            && matches!(after, Some('线' | '公' | '码' | '桥' | '航' | '机' | '车' | '选' | '球'));
        (matches!(unit, '号' | '號' | '弄' | '栋' | '幢') && !is_other_thing).then_some(end + 1)
    };
    let side_end = at + usize::from(matches!(text.char_at(at), Some('东' | '西' | '南' | '北' | '中')));
    let section_number_end = number_end(text, side_end).unwrap_or(side_end);
    let has_section = text.char_at(section_number_end) == Some('段');
    let section_end = if has_section { section_number_end + 1 } else { side_end };
    house_number_end(at).or_else(|| house_number_end(section_end))
}

/// Start of the name of a housing estate before the number at `at`.
fn estate_start(text: &FoldedText<'_>, at: usize) -> Option<usize> {
    if !is_digit(text.char_at(at)) || is_alnum(text.char_before(at)) {
        return None;
    }
    let mut end = at;
    while at - end < 2 && text.char_before(end) == Some(' ') {
        end -= 1;
    }
    is_han(text.char_before(end)).then(|| name_start(text, end))
}

/// Index after the building at `at`: `3栋` or `5号楼` of an estate, or any building that a unit or a room
/// follows.
fn building_end(text: &FoldedText<'_>, at: usize) -> Option<usize> {
    const ESTATES: &[&str] =
        &["小区", "公寓", "花园", "家园", "新村", "宿舍", "嘉园", "名苑", "家属院", "大院"];
    let end = part_end(text, at, &["号楼", "栋", "幢", "座", "单元"])?;
    // Enough characters for the longest of the words and two blanks.
    let from = at.saturating_sub(6);
    let before: String = text.chars()[from..at].iter().collect();
    let is_estate = ESTATES.iter().any(|word| before.trim_end().ends_with(word));
    let room = part_end(text, end, &["单元", "室", "户", "房", "号"]);
    // `3室2厅` is the floor plan of a flat.
    let is_floor_plan = room
        .is_some_and(|room| text.char_before(room) == Some('室') && part_end(text, room, &["厅"]).is_some());
    (is_estate || (room.is_some() && !is_floor_plan)).then_some(end)
}

/// Index after a number and one of `units` at `at`, with blanks around the number.
fn part_end(text: &FoldedText<'_>, at: usize, units: &[&str]) -> Option<usize> {
    let end = skip_blanks(text, number_end(text, skip_blanks(text, at))?);
    let following = text.chars().get(end..)?;
    let unit =
        units.iter().find(|unit| unit.chars().eq(following.iter().copied().take(unit.chars().count())))?;
    Some(end + unit.chars().count())
}

/// Index after the parts of an address, at most six, that follow a house at `at`: `3栋2单元501室`.
fn rooms_end(text: &FoldedText<'_>, mut at: usize) -> usize {
    const PARTS: &[&str] = &["号楼", "单元", "栋", "幢", "座", "楼", "层", "室", "户", "房", "弄", "号"];
    for _ in 0..6 {
        let Some(end) = part_end(text, at, PARTS) else { break };
        at = end;
    }
    at
}
