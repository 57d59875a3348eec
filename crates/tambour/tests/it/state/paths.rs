//! Paths as models write them, and JSON Pointers.

use tambour::state::{StatePath, StateStep};

fn steps(text: &str) -> Vec<StateStep> {
    text.parse::<StatePath>().unwrap_or_else(|error| panic!("{text}: {error}")).steps().to_vec()
}

fn key(text: &str) -> StateStep {
    StateStep::Key(text.to_owned())
}

#[test]
fn keys_are_in_any_script_and_quoted_ones_hold_anything() {
    // F-112
    assert_eq!(steps("纯田真奈.好感度"), [key("纯田真奈"), key("好感度")]);
    assert_eq!(steps("a b.c-d.0"), [key("a b"), key("c-d"), key("0")]);
    assert_eq!(
        steps(r#"bag["a.b"][0][-1].x["\"]\u00e9\\"]"#),
        [key("bag"), key("a.b"), StateStep::Index(0), StateStep::Index(-1), key("x"), key("\"]é\\")]
    );
    assert_eq!(steps(r#"["a.b"].c"#), [key("a.b"), key("c")]);
    assert_eq!(steps("[2].a"), [StateStep::Index(2), key("a")]);
    assert_eq!(steps("name's \"x\""), [key("name's \"x\"")]);
}

#[test]
fn what_is_no_path_is_told_with_its_place() {
    // F-117
    for (text, at) in [
        ("", 0),
        (".a", 0),
        ("a.", 2),
        ("a..b", 2),
        ("a. .b", 2),
        ("a.[0]", 2),
        ("好[", 3),
        ("好[0", 3),
        ("a[]", 2),
        ("a[x]", 2),
        ("a['x']", 2),
        ("a[01]", 2),
        ("a[-0]", 2),
        ("a[1.5]", 2),
        ("a[99999999999999999999]", 2),
        ("a]b", 1),
        ("a[0]b", 4),
        (r#"a["x]"#, 2),
        (r#"a["x""#, 1),
        (r#"a["x"y]"#, 5),
        (r#"a[""]"#, 2),
        (r#"a["好\q"]"#, 7),
    ] {
        let error = text.parse::<StatePath>().expect_err(text);
        assert_eq!(error.offset, at, "{text}: {error}");
        assert!(text.is_char_boundary(error.offset));
        assert!(error.to_string().contains(&format!("at byte {at}")), "{error}");
    }
}

#[test]
fn pointers_keep_dots_and_escapes() {
    // F-141
    let token = |text: &str| StateStep::Token(text.to_owned());
    let path = StatePath::from_pointer("/a.b/c~1d/~0e/0/~01").expect("a pointer");
    assert_eq!(path.steps(), [token("a.b"), token("c/d"), token("~e"), token("0"), token("~1")]);
    assert_eq!(path.to_string(), r#"["a.b"].c/d.~e[0].~1"#);
    for (text, at) in [("", 0), ("a", 0), ("/", 1), ("/a//b", 3), ("/好~2", 4), ("/a/~", 3)] {
        assert_eq!(StatePath::from_pointer(text).expect_err(text).offset, at, "{text}");
    }
}

#[test]
fn paths_are_written_as_they_are_read() {
    for text in ["a", "a.b", "a[0][-1].b", r#"["a.b"].c"#, r#"a["[x]"]"#, "[3]", "名.\"x\""] {
        assert_eq!(text.parse::<StatePath>().expect("a path").to_string(), text);
    }
    assert_eq!(r#"a["b"]"#.parse::<StatePath>().expect("a path").to_string(), "a.b");
    assert!(StatePath::new(vec![]).is_none() && StatePath::new(vec![key("")]).is_none());
    let path = StatePath::new(vec![key("a.\"b"), StateStep::Index(-2)]).expect("a path");
    assert_eq!(path.to_string().parse::<StatePath>().as_ref(), Ok(&path));
}
