//! Sensitive-data detectors (T-048, R-11, X-008): texts they find, and texts they pass.

use std::ops::Range;

use proptest::prelude::*;
use tambour::privacy::{Detector, DetectorSet, FoldedText};

/// Text, kind, and the text generalised.
const SENSITIVE: &[(&str, &str, &str)] = &[
    // E-mail.
    ("mail a@b.com", "email", "mail [email]"),
    ("联系我zhang.san+work@example.com.cn谢谢", "email", "联系我[email]谢谢"),
    ("发到 user_01@mail.example.org。", "email", "发到 [email]。"),
    ("ＡＢＣ＠ｅｘａｍｐｌｅ．ｃｏｍ 的邮箱", "email", "[email] 的邮箱"),
    ("<first.last@sub.domain.io>", "email", "<[email]>"),
    ("is bob@example.com, carol@example.net ok", "email", "is [email], [email] ok"),
    // Mobile phones of mainland China.
    ("13800138000", "phone", "[phone]"),
    ("我的手机号是13912345678请回电", "phone", "我的手机号是[phone]请回电"),
    ("138 0013 8000", "phone", "[phone]"),
    ("电话：138-0013-8000", "phone", "电话：[phone]"),
    ("tel13800138000", "phone", "tel[phone]"),
    ("１３８００１３８０００", "phone", "[phone]"),
    ("１３８－００１３－８０００ 归属地", "phone", "[phone] 归属地"),
    ("86 138 0013 8000", "phone", "[phone]"),
    ("+86 138 0013 8000", "phone", "[phone]"),
    ("+8613800138000", "phone", "[phone]"),
    ("8613800138000", "phone", "[phone]"),
    ("0086-13800138000", "phone", "[phone]"),
    ("(+86)13800138000", "phone", "([phone]"),
    ("13800138000，15912345678", "phone", "[phone]，[phone]"),
    ("1380\u{200B}0138000", "phone", "[phone]"),
    // Landlines of mainland China.
    ("010-12345678", "phone", "[phone]"),
    ("(010) 8888 6666", "phone", "[phone]"),
    ("（０１０）８８８８６６６６", "phone", "[phone]"),
    ("0755-8888888", "phone", "[phone]"),
    ("0755 8888 8888", "phone", "[phone]"),
    ("021-55556666-801", "phone", "[phone]"),
    ("02155556666", "phone", "[phone]"),
    ("057188886666", "phone", "[phone]"),
    ("座机 88886666", "phone", "座机 [phone]"),
    // North America.
    ("(415) 555-0123", "phone", "[phone]"),
    ("415-555-0123", "phone", "[phone]"),
    ("123-456-7890", "phone", "[phone]"),
    ("415.555.0123", "phone", "[phone]"),
    ("415 555 0123", "phone", "[phone]"),
    ("call 4155550123 now", "phone", "call [phone] now"),
    ("1-415-555-0123", "phone", "[phone]"),
    ("1 (415) 555-0123", "phone", "[phone]"),
    ("+1 415 555 0123", "phone", "[phone]"),
    ("+1.415.555.0123", "phone", "[phone]"),
    ("+14155550123", "phone", "[phone]"),
    ("tel: 555-0123", "phone", "tel: [phone]"),
    // Other countries.
    ("+44 20 7946 0958", "phone", "[phone]"),
    ("+44 (0)20 7946 0958", "phone", "[phone]"),
    ("+442079460958", "phone", "[phone]"),
    ("0044 20 7946 0958", "phone", "[phone]"),
    ("020 7946 0958", "phone", "[phone]"),
    ("07700 900123", "phone", "[phone]"),
    ("01632 960001", "phone", "[phone]"),
    ("+33 6 12 34 56 78", "phone", "[phone]"),
    ("+49 30 901820", "phone", "[phone]"),
    ("+81-90-1234-5678", "phone", "[phone]"),
    ("+852 9123 4567", "phone", "[phone]"),
    ("+7 912 345-67-89", "phone", "[phone]"),
    // IP addresses.
    ("192.168.1.5", "ip", "[ip]"),
    ("10.15.7.1 ping", "ip", "[ip] ping"),
    ("访问192.168.1.5失败", "ip", "访问[ip]失败"),
    ("http://192.168.1.5:8080/x", "ip", "http://[ip]:8080/x"),
    ("8.8.8.8, 1.1.1.1.", "ip", "[ip], [ip]."),
    ("203.0.113.0/24", "ip", "[ip]/24"),
    ("１９２．１６８．１．５", "ip", "[ip]"),
    ("2001:db8::1", "ip", "[ip]"),
    ("地址2001:0db8:85a3:0000:0000:8a2e:0370:7334。", "ip", "地址[ip]。"),
    ("fe80::1", "ip", "[ip]"),
    ("[2001:db8::8a2e:370:7334]:443", "ip", "[[ip]]:443"),
    ("ping ::1", "ip", "ping [ip]"),
    ("::ffff:192.168.1.5", "ip", "[ip]"),
    ("IP:10.0.0.1", "ip", "IP:[ip]"),
    // Chinese addresses.
    ("北京市朝阳区建国路88号", "address", "[address]"),
    ("我住在北京市朝阳区建国路88号附近", "address", "我住在[address]附近"),
    ("建国路８８号", "address", "[address]"),
    ("上海市徐汇区淮海中路1000弄5号楼301室", "address", "[address]"),
    ("广州市天河区天河北路233号中信广场", "address", "[address]中信广场"),
    ("长安街一号", "address", "[address]"),
    ("浙江省杭州市西湖区文三路 478 号", "address", "[address]"),
    ("深圳市南山区科技大道10号", "address", "[address]"),
    ("东交民巷15号", "address", "[address]"),
    ("南锣鼓巷胡同12号", "address", "[address]"),
    ("我去建国路88号", "address", "我去[address]"),
    ("人民南路四段27号", "address", "[address]"),
    ("中山东路二段12号", "address", "[address]"),
    ("阳光小区3栋2单元501室", "address", "[address]"),
    ("幸福家园12号楼", "address", "[address]"),
    ("天津市和平区南京道12号", "address", "[address]"),
    // English addresses.
    ("221 Baker Street", "address", "[address]"),
    ("地址：221 Baker Street", "address", "地址：[address]"),
    ("221 Baker Street附近", "address", "[address]附近"),
    ("221B Baker Street, London", "address", "[address], London"),
    ("221 baker street", "address", "[address]"),
    ("221b baker street london", "address", "[address] london"),
    ("I live at 1600 Pennsylvania Avenue NW", "address", "I live at [address] NW"),
    ("10 Downing St.", "address", "[address]."),
    ("350 5th Ave, New York", "address", "[address], New York"),
    ("742 Evergreen Terrace", "address", "[address]"),
    ("12 St. John's Road", "address", "[address]"),
    ("45 N. Main Blvd", "address", "[address]"),
    ("4 Privet Drive", "address", "[address]"),
    ("P.O. Box 1234", "address", "[address]"),
    // Identity numbers and cards, with their check digit.
    ("11010519491231002X", "national_id", "[national_id]"),
    ("身份证11010519491231002x丢了", "national_id", "身份证[national_id]丢了"),
    ("440308199901010012 查询", "national_id", "[national_id] 查询"),
    ("4111 1111 1111 1111", "bank_card", "[bank_card]"),
    ("卡号4111111111111111", "bank_card", "卡号[bank_card]"),
    ("5500-0000-0000-0004", "bank_card", "[bank_card]"),
    ("3782 822463 10005", "bank_card", "[bank_card]"),
    ("６２２８４８０４０２５６４８９００１８", "bank_card", "[bank_card]"),
    // Access keys.
    ("sk-abcDEF1234567890abcDEF", "access_key", "[access_key]"),
    ("my key sk-proj-Ab12Cd34Ef56Gh78Ij90 leaked", "access_key", "my key [access_key] leaked"),
    ("AKIAIOSFODNN7EXAMPLE", "access_key", "[access_key]"),
    ("ghp_16C7e42F292c6912E7710c838347Ae178B4a", "access_key", "[access_key]"),
    ("Authorization: Bearer abcdef0123456789abcdef", "access_key", "Authorization: Bearer [access_key]"),
    ("api_key=a1b2c3d4e5f6a7b8c9", "access_key", "api_key=[access_key]"),
    ("-----BEGIN RSA PRIVATE KEY----- MIIE", "access_key", "[access_key] MIIE"),
];

/// Texts without sensitive data.
const HARMLESS: &[&str] = &[
    "",
    "5x5 80kg",
    "5×5 80kg 深蹲",
    "3-4 餐",
    "每周3-4练",
    "2026-11-21",
    "2026/11/21 12:30:45",
    "20261121",
    "2024-2025-2026 年计划",
    "1999 2008 2024",
    "12:30:45",
    "12:30-13:30",
    "16:8 fasting",
    "16:8 轻断食",
    "4:3:2:1 比例",
    "1000000",
    "1,000,000,000 users",
    "12345678",
    "100000000000",
    "$4155550123",
    "¥13800138000",
    "13800138000.50",
    "12999元",
    "iPhone 15 Pro 256GB",
    "RTX 4090 24GB",
    "ThinkPad X1 Carbon Gen 11 20HQ",
    "SN13800138000X",
    "10 percent rule",
    "80/20 rule",
    "GB 50016-2014",
    "GB/T 7714-2015",
    "ISO 9001",
    "ISO 9001:2015",
    "RFC 9457",
    "ISBN 7111213826",
    "978-7-111-21382-6",
    "3.14159265358979323846",
    "3.14159265358",
    "2.7182818284590452",
    "圆周率3.1415926535",
    "2147483647 overflow",
    "1700000000 unix time",
    "1700000000000",
    "Python 3.11.7",
    "version 1.2.3",
    "v1.2.3.4",
    "version 1.2.3.4",
    "版本1.2.3.4",
    "section 8.1.2.4",
    "2020 Sebastian Dröge",
    "Chrome 120.0.6099.109",
    "1.2.3.4.5",
    "256.1.1.1",
    "192.168.1",
    "01.02.03.04",
    "lodash@4.17.21",
    "@username on medium",
    "a @ b . com",
    "git@github.com:owner/repo.git",
    "std::vector",
    "a::b",
    "abc::def",
    "00:1A:2B:3C:4D:5E",
    "1-2-3-4-5",
    "3 x 12 reps, 60 s rest",
    "100 200 300 400",
    "3-5组 8-12次",
    "220V 50Hz",
    "38.5℃ 发烧",
    "39.9042, 116.4074",
    "120/80 血压",
    "95588",
    "12306 抢票",
    "+10 defense",
    "+1000000 followers",
    "C++ 11",
    "2^64 = 18446744073709551616",
    "1234 5678 9012 3456",
    "4111 1111 1111 1112",
    "11010519491231002A",
    "123456789012345678",
    "12800138000",
    "+3312345678901234",
    // Places and roads without a number.
    "北京市朝阳区",
    "北京",
    "上海南京路步行街",
    "建国路",
    "地铁2号线",
    "建国路地铁1号线",
    "88路公交车",
    "坐一路2号车",
    "国道318号",
    "318国道",
    "频道8号",
    "跑道3号",
    "电路2号",
    "思路1号",
    "高速公路2号出口",
    "深圳3室2厅装修",
    "1号楼3室2厅装修",
    "5号逛街",
    "第3号台风路径",
    "村上春树1Q84",
    "街舞3招",
    "100 street workout ideas",
    "5 road bikes",
    "5 best road bikes",
    "route 66 road trip",
    "7 day road trip",
    "10 best street foods in Bangkok",
    "30 minute street dance",
    "Top 10 Main Street shops",
    "24 hour drive",
    "4 wheel drive cars",
    "1 tb hard drive",
    "3 easy ways",
    "2 way street",
    "3 lane road",
    "10 wall street movies",
    "Baker Street",
    "at 12:30 Main Street closes",
    "street 221",
    "20 minute walk",
    "20 Minute Walk",
    "500 m sprint on the road",
    // Words that resemble keys.
    "sk-learn",
    "sk-incare-routine-for-beginners",
    "bearer of bad news",
    "API key best practices",
    "key: deadlift-2024-program-guide",
    "eyJ",
    "三分化训练计划怎么安排",
    "how to reset password",
    "squat form for beginners",
];

#[test]
fn finds_sensitive_data_and_names_its_kind() {
    let privacy = DetectorSet::default();
    let mut mismatches = Vec::new();
    for (text, kind, general) in SENSITIVE {
        let found = privacy.scan(text);
        if found.first().map(|found| found.kind) != Some(*kind) || privacy.generalise(text) != *general {
            mismatches.push(format!("{text}: {found:?}, {}", privacy.generalise(text)));
        }
    }
    assert!(mismatches.is_empty(), "{}", mismatches.join("\n")); // T-048, R-11
}

#[test]
fn leaves_numbers_names_and_places_alone() {
    let privacy = DetectorSet::default();
    let mismatches: Vec<String> = HARMLESS
        .iter()
        .filter(|text| !privacy.scan(text).is_empty())
        .map(|text| format!("{text}: {:?}", privacy.scan(text)))
        .collect();
    assert!(mismatches.is_empty(), "{}", mismatches.join("\n"));
}

#[test]
fn generalised_text_holds_nothing_sensitive() {
    let privacy = DetectorSet::default();
    for (text, _, _) in SENSITIVE {
        let general = privacy.generalise(text);
        assert!(privacy.scan(&general).is_empty(), "{general}");
    }
}

#[test]
fn takes_detectors_of_the_user() {
    struct ProjectDetector;
    impl Detector for ProjectDetector {
        fn kind(&self) -> &'static str {
            "project"
        }
        fn find(&self, text: &FoldedText<'_>, report: &mut dyn FnMut(Range<usize>)) {
            text.raw().match_indices("Falcon").for_each(|(at, name)| report(at..at + name.len()));
            report(0..10_000); // No range of the text.
        }
    }
    let privacy = DetectorSet::default().with_detector(ProjectDetector);
    assert_eq!(privacy.generalise("ask Falcon at a@b.com"), "ask [project] at [email]");
    assert!(DetectorSet::empty().scan("a@b.com").is_empty());
}

#[test]
fn long_texts_take_linear_time() {
    let privacy = DetectorSet::default();
    let pieces = [
        "1",
        "1 ",
        "12-",
        "+1",
        "a@",
        "a.",
        "1.",
        ":1",
        "路1",
        "市",
        "区路",
        "1 a ",
        "路一号",
        "-----BEGIN ",
        "1 main st ",
    ];
    for piece in pieces {
        let text = piece.repeat(300_000 / piece.len());
        let start = std::time::Instant::now();
        let _ = privacy.scan(&text);
        // Quadratic work on this much text would take minutes.
        assert!(start.elapsed().as_secs() < 10, "{piece}");
    }
}

proptest! {
    #[test]
    fn any_text_can_be_scanned(text in "[0-9a-z@.:+() 路号市区街一二\\-０-９\u{200b}A-Z]{0,60}|\\PC{0,60}") {
        let privacy = DetectorSet::default();
        let mut end = 0;
        for found in privacy.scan(&text) {
            prop_assert!(found.range.start >= end && found.range.end > found.range.start);
            prop_assert!(text.get(found.range.clone()).is_some());
            end = found.range.end;
        }
        let general = privacy.generalise(&text);
        prop_assert!(general == text || !general.is_empty());
    }
}

/// Appends the check digit to an identity number of place, birthday and number.
fn identity_number(digits: &str) -> String {
    let sum = digits.bytes().fold(0, |sum, byte| (sum * 2 + u32::from(byte - b'0')) % 11);
    let check = (12 - sum * 2 % 11) % 11;
    format!("{digits}{}", if check == 10 { "X".to_owned() } else { check.to_string() })
}

#[test]
fn the_birthday_of_an_identity_number_can_be() {
    // T-048, R-11
    let found = |birthday: &str| {
        let number = identity_number(&format!("110105{birthday}002"));
        DetectorSet::default().scan(&number).iter().any(|found| found.kind == "national_id")
    };
    assert_eq!(identity_number("11010519491231002"), "11010519491231002X");
    for birthday in ["18991231", "19490101", "20001031", "20301201"] {
        assert!(found(birthday), "{birthday}");
    }
    for birthday in
        ["17991231", "21000101", "19490001", "19491301", "19491901", "19490100", "19490132", "19490139"]
    {
        assert!(!found(birthday), "{birthday}");
    }
}

/// Detector of one word.
struct WordDetector(&'static str);

impl Detector for WordDetector {
    fn kind(&self) -> &'static str {
        self.0
    }
    fn find(&self, text: &FoldedText<'_>, report: &mut dyn FnMut(Range<usize>)) {
        text.raw().match_indices(self.0).for_each(|(at, word)| report(at..at + word.len()));
    }
}

#[test]
fn what_overlaps_is_named_by_the_first_detector() {
    for (detectors, expected) in
        [(["redwood", "woodland"], "[redwood]"), (["woodland", "redwood"], "[woodland]")]
    {
        let [first, second] = detectors.map(WordDetector);
        let privacy = DetectorSet::empty().with_detector(first).with_detector(second);
        assert_eq!(privacy.generalise("a redwoodland"), format!("a {expected}"));
    }
}
