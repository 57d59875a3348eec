//! Dates and times: formatted by patterns of moment.js (`LT`, `LL`, `dddd`, `YYYY-MM-DD HH:mm`, `[literal]`),
//! parsed, and durations in words.

use std::fmt::Write;

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, Zoned};

/// Language of month names, weekdays and durations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Locale {
    /// English.
    #[default]
    En,
    /// Chinese.
    Zh,
}

impl Locale {
    /// Returns the locale of a language tag such as `zh-CN`; English for every other language.
    #[must_use]
    pub fn from_tag(tag: &str) -> Locale {
        match tag.get(..2) {
            Some(language) if language.eq_ignore_ascii_case("zh") => Locale::Zh,
            _ => Locale::En,
        }
    }
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS_ZH: [&str; 12] =
    ["一月", "二月", "三月", "四月", "五月", "六月", "七月", "八月", "九月", "十月", "十一月", "十二月"];
const DAYS_ZH: [&str; 7] = ["日", "一", "二", "三", "四", "五", "六"];

/// All tokens of patterns. A token comes before any shorter token that it begins with.
const TOKENS: &[&str] = &[
    "YYYY", "YY", "Y", "Qo", "Q", "MMMM", "MMM", "MM", "Mo", "M", "DDDD", "DDDo", "DDD", "DD", "Do", "D",
    "dddd", "ddd", "dd", "do", "d", "E", "e", "GGGG", "GG", "gggg", "gg", "WW", "Wo", "W", "ww", "wo", "w",
    "HH", "H", "hh", "h", "kk", "k", "mm", "m", "ss", "s", "SSS", "SS", "S", "A", "a", "ZZ", "Z", "X", "x",
    "LTS", "LT", "LLLL", "LLL", "LL", "L", "llll", "lll", "ll", "l",
];

/// Formats `time` by a moment.js pattern. Characters that are no token, and text in `[` `]`, are copied.
#[must_use]
pub fn format(time: &Zoned, pattern: &str, locale: Locale) -> String {
    let mut out = String::with_capacity(pattern.len() * 2);
    let mut remaining = pattern;
    while let Some(c) = remaining.chars().next() {
        let literal = remaining.strip_prefix('[').and_then(|content| content.split_once(']'));
        if let Some((literal, after_literal)) = literal {
            out.push_str(literal);
            remaining = after_literal;
        } else if let Some(token) = TOKENS.iter().find(|token| remaining.starts_with(**token)) {
            write_token(&mut out, time, token, locale);
            remaining = &remaining[token.len()..];
        } else {
            out.push(c);
            remaining = &remaining[c.len_utf8()..];
        }
    }
    out
}

/// Returns the pattern that a long form abbreviates.
fn long_form(token: &str, locale: Locale) -> Option<&'static str> {
    Some(match (token, locale) {
        ("LT", Locale::En) => "h:mm A",
        ("LTS", Locale::En) => "h:mm:ss A",
        ("L", Locale::En) => "MM/DD/YYYY",
        ("l", Locale::En) => "M/D/YYYY",
        ("LL", Locale::En) => "MMMM D, YYYY",
        ("ll", Locale::En) => "MMM D, YYYY",
        ("LLL", Locale::En) => "MMMM D, YYYY h:mm A",
        ("lll", Locale::En) => "MMM D, YYYY h:mm A",
        ("LLLL", Locale::En) => "dddd, MMMM D, YYYY h:mm A",
        ("llll", Locale::En) => "ddd, MMM D, YYYY h:mm A",
        ("LT", Locale::Zh) => "HH:mm",
        ("LTS", Locale::Zh) => "HH:mm:ss",
        ("L", Locale::Zh) => "YYYY/MM/DD",
        ("l", Locale::Zh) => "YYYY/M/D",
        ("LL" | "ll", Locale::Zh) => "YYYY年M月D日",
        ("LLL", Locale::Zh) => "YYYY年M月D日Ah点mm分",
        ("LLLL", Locale::Zh) => "YYYY年M月D日ddddAh点mm分",
        ("lll", Locale::Zh) => "YYYY年M月D日 HH:mm",
        ("llll", Locale::Zh) => "YYYY年M月D日dddd HH:mm",
        _ => return None,
    })
}

/// Writes the value of one token.
fn write_token(out: &mut String, time: &Zoned, token: &str, locale: Locale) {
    if let Some(pattern) = long_form(token, locale) {
        // No long form refers to itself, so the recursion ends.
        out.push_str(&format(time, pattern, locale));
        return;
    }
    let is_chinese = locale == Locale::Zh;
    let weekday = usize::from(time.weekday().to_sunday_zero_offset().unsigned_abs());
    let month = usize::from(time.month().unsigned_abs()) - 1;
    let hour = time.hour();
    let hour12 = if hour % 12 == 0 { 12 } else { hour % 12 };
    let hour24 = if hour == 0 { 24 } else { hour };
    let milliseconds = time.subsec_nanosecond() / 1_000_000;
    let iso = time.date().iso_week_date();
    let (week_year, week) = locale_week(time.date(), locale);
    let result = match token {
        "YYYY" => write!(out, "{:04}", time.year()),
        "YY" => write!(out, "{:02}", time.year().rem_euclid(100)),
        "Y" => write!(out, "{}", time.year()),
        "Q" => write!(out, "{}", month / 3 + 1),
        "Qo" => write_ordinal(out, month as i64 / 3 + 1, "季度", is_chinese),
        "MMMM" if is_chinese => write!(out, "{}", MONTHS_ZH[month]),
        "MMMM" => write!(out, "{}", MONTHS[month]),
        "MMM" if is_chinese => write!(out, "{}月", month + 1),
        "MMM" => write!(out, "{}", &MONTHS[month][..3]),
        "MM" => write!(out, "{:02}", month + 1),
        "M" => write!(out, "{}", month + 1),
        "Mo" => write_ordinal(out, month as i64 + 1, "月", is_chinese),
        "DDDD" => write!(out, "{:03}", time.day_of_year()),
        "DDD" => write!(out, "{}", time.day_of_year()),
        "DDDo" => write_ordinal(out, time.day_of_year().into(), "日", is_chinese),
        "DD" => write!(out, "{:02}", time.day()),
        "D" => write!(out, "{}", time.day()),
        "Do" => write_ordinal(out, time.day().into(), "日", is_chinese),
        "dddd" if is_chinese => write!(out, "星期{}", DAYS_ZH[weekday]),
        "ddd" if is_chinese => write!(out, "周{}", DAYS_ZH[weekday]),
        "dd" if is_chinese => write!(out, "{}", DAYS_ZH[weekday]),
        "dddd" => write!(out, "{}", DAYS[weekday]),
        "ddd" => write!(out, "{}", &DAYS[weekday][..3]),
        "dd" => write!(out, "{}", &DAYS[weekday][..2]),
        "do" => write_ordinal(out, weekday as i64, "日", is_chinese),
        "d" => write!(out, "{weekday}"),
        "E" => write!(out, "{}", time.weekday().to_monday_one_offset()),
        // Day of the week from 0. In Chinese the week begins on Monday, else on Sunday.
        "e" => write!(out, "{}", if is_chinese { (weekday + 6) % 7 } else { weekday }),
        "GGGG" => write!(out, "{:04}", iso.year()),
        "GG" => write!(out, "{:02}", iso.year().rem_euclid(100)),
        "WW" => write!(out, "{:02}", iso.week()),
        "W" => write!(out, "{}", iso.week()),
        "Wo" => write_ordinal(out, iso.week().into(), "周", is_chinese),
        "gggg" => write!(out, "{week_year:04}"),
        "gg" => write!(out, "{:02}", week_year.rem_euclid(100)),
        "ww" => write!(out, "{week:02}"),
        "w" => write!(out, "{week}"),
        "wo" => write_ordinal(out, week.into(), "周", is_chinese),
        "HH" => write!(out, "{hour:02}"),
        "H" => write!(out, "{hour}"),
        "hh" => write!(out, "{hour12:02}"),
        "h" => write!(out, "{hour12}"),
        "kk" => write!(out, "{hour24:02}"),
        "k" => write!(out, "{hour24}"),
        "mm" => write!(out, "{:02}", time.minute()),
        "m" => write!(out, "{}", time.minute()),
        "ss" => write!(out, "{:02}", time.second()),
        "s" => write!(out, "{}", time.second()),
        "SSS" => write!(out, "{milliseconds:03}"),
        "SS" => write!(out, "{:02}", milliseconds / 10),
        "S" => write!(out, "{}", milliseconds / 100),
        "A" if is_chinese => write!(out, "{}", part_of_day(hour, time.minute())),
        "a" if is_chinese => write!(out, "{}", part_of_day(hour, time.minute())),
        "A" => write!(out, "{}", if hour < 12 { "AM" } else { "PM" }),
        "a" => write!(out, "{}", if hour < 12 { "am" } else { "pm" }),
        "Z" | "ZZ" => {
            let minutes = time.offset().seconds() / 60;
            let sign = if minutes < 0 { '-' } else { '+' };
            let colon = if token == "Z" { ":" } else { "" };
            write!(out, "{sign}{:02}{colon}{:02}", minutes.abs() / 60, minutes.abs() % 60)
        }
        "X" => write!(out, "{}", time.timestamp().as_second()),
        "x" => write!(out, "{}", time.timestamp().as_millisecond()),
        // Not reached: every token has an arm.
        token => write!(out, "{token}"),
    };
    debug_assert!(result.is_ok(), "a string takes everything");
}

/// Returns year and week of the locale: in English, weeks begin on Sunday and week 1 contains 1 January; in
/// Chinese they are ISO weeks.
fn locale_week(date: Date, locale: Locale) -> (i16, i8) {
    if locale == Locale::Zh {
        let iso = date.iso_week_date();
        return (iso.year(), iso.week());
    }
    let weekday = |date: Date| i16::from(date.weekday().to_sunday_zero_offset());
    let first_weekday = Date::new(date.year(), 1, 1).map_or(0, weekday);
    let week = (date.day_of_year() - 1 + first_weekday) / 7 + 1;
    let days_in_year = if date.in_leap_year() { 366 } else { 365 };
    let days_left = days_in_year - date.day_of_year();
    // Days after the last Saturday belong to week 1 of the next year.
    if days_left < 6 - weekday(date) {
        return (date.year() + 1, 1);
    }
    (date.year(), i8::try_from(week).unwrap_or(53))
}

/// Writes an ordinal number: `2nd`, or in Chinese the number with `unit`.
fn write_ordinal(out: &mut String, number: i64, unit: &str, is_chinese: bool) -> std::fmt::Result {
    let suffix = match (is_chinese, number % 10, number % 100) {
        (true, ..) => unit,
        (_, 1, tens) if tens != 11 => "st",
        (_, 2, tens) if tens != 12 => "nd",
        (_, 3, tens) if tens != 13 => "rd",
        _ => "th",
    };
    write!(out, "{number}{suffix}")
}

/// Returns the Chinese name of a part of the day.
fn part_of_day(hour: i8, minute: i8) -> &'static str {
    // 11:30 is 1130.
    match i32::from(hour) * 100 + i32::from(minute) {
        ..600 => "凌晨",
        600..900 => "早上",
        900..1130 => "上午",
        1130..1230 => "中午",
        1230..1800 => "下午",
        _ => "晚上",
    }
}

/// Returns the same moment at another offset from UTC. As in moment.js, an offset from -15 to 15 is in hours,
/// any other in minutes. `None` if the offset is too large.
#[must_use]
pub fn with_offset(time: &Zoned, offset: i64) -> Option<Zoned> {
    let minutes = if offset.abs() < 16 { offset * 60 } else { offset };
    let seconds = i32::try_from(minutes.checked_mul(60)?).ok()?;
    let offset = Offset::from_seconds(seconds).ok()?;
    Some(time.with_time_zone(TimeZone::fixed(offset)))
}

/// Parses a time as people write it: RFC 3339, a date, a date with a time, or a time of day on the date of
/// `now`. A text without an offset takes that of `now`, or UTC. `None` if the text is no time.
#[must_use]
pub fn parse(text: &str, now: Option<&Zoned>) -> Option<Zoned> {
    let text = text.trim();
    let zone = || now.map_or(TimeZone::UTC, |now| now.time_zone().clone());
    if let Ok(time) = text.parse::<Timestamp>() {
        let offset =
            jiff::fmt::temporal::Pieces::parse(text).ok().and_then(|pieces| pieces.to_numeric_offset());
        return Some(time.to_zoned(TimeZone::fixed(offset.unwrap_or(Offset::UTC))));
    }
    // A bare time of day does not parse as a date; a date with a time must not be read as a time of day.
    if let Ok(time) = text.parse::<DateTime>() {
        return time.to_zoned(zone()).ok();
    }
    let date = now.map_or_else(|| Date::constant(1970, 1, 1), Zoned::date);
    date.to_datetime(text.parse::<Time>().ok()?).to_zoned(zone()).ok()
}

/// Formats a duration in words with its direction, by the thresholds of moment.js: `in 3 hours` if it is
/// positive, else `3 hours ago`.
#[must_use]
pub fn format_duration(milliseconds: i64, locale: Locale) -> String {
    let round = |value: f64| value.round() as i64;
    let seconds = (milliseconds as f64).abs() / 1000.0;
    let (minutes, hours, days) = (seconds / 60.0, seconds / 3600.0, seconds / 86400.0);
    // The average length of a month, as moment.js computes it: 4,800 months have 146,097 days.
    let months = days * 4800.0 / 146_097.0;
    let years = months / 12.0;
    let is_chinese = locale == Locale::Zh;
    // Picks the first unit whose threshold is above the duration.
    let text = match (round(seconds), round(minutes), round(hours), round(days), round(months), round(years))
    {
        (..45, ..) => {
            if is_chinese {
                "几秒".into()
            } else {
                "a few seconds".to_owned()
            }
        }
        (_, ..2, ..) => {
            if is_chinese {
                "1 分钟".into()
            } else {
                "a minute".into()
            }
        }
        (_, count @ ..45, ..) => {
            if is_chinese {
                format!("{count} 分钟")
            } else {
                format!("{count} minutes")
            }
        }
        (_, _, ..2, ..) => {
            if is_chinese {
                "1 小时".into()
            } else {
                "an hour".into()
            }
        }
        (_, _, count @ ..22, ..) => {
            if is_chinese {
                format!("{count} 小时")
            } else {
                format!("{count} hours")
            }
        }
        (_, _, _, ..2, ..) => {
            if is_chinese {
                "1 天".into()
            } else {
                "a day".into()
            }
        }
        (_, _, _, count @ ..26, ..) => {
            if is_chinese {
                format!("{count} 天")
            } else {
                format!("{count} days")
            }
        }
        (_, _, _, _, ..2, _) => {
            if is_chinese {
                "1 个月".into()
            } else {
                "a month".into()
            }
        }
        (_, _, _, _, count @ ..11, _) => {
            if is_chinese {
                format!("{count} 个月")
            } else {
                format!("{count} months")
            }
        }
        (.., ..2) => {
            if is_chinese {
                "1 年".into()
            } else {
                "a year".into()
            }
        }
        (.., count) => {
            if is_chinese {
                format!("{count} 年")
            } else {
                format!("{count} years")
            }
        }
    };
    match (is_chinese, milliseconds > 0) {
        (true, true) => format!("{text}后"),
        (true, false) => format!("{text}前"),
        (false, true) => format!("in {text}"),
        (false, false) => format!("{text} ago"),
    }
}
