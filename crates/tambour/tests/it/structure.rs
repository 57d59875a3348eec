//! The expected structure as data (F-200).

use serde_json::{Value, json};
use tambour::structure::{ElementBody, ElementMisfit, ExpectedElement, ExpectedStructure, NameSpelling};

fn filament_structure() -> ExpectedStructure {
    ExpectedStructure::from_json(&json!({
        "mandatory": ["content"],
        "optional": ["thought", "variable_update", "choice"],
        "dependency": {"variable_update": "content", "content": ["thought"]},
    }))
    .expect("a structure")
}

#[test]
fn a_structure_is_read_from_its_file_form() {
    // F-200
    let expected = filament_structure();
    let content = expected.get("content").expect("it is listed");
    assert_eq!(
        (content.is_mandatory, content.is_repeatable, &*content.predecessors),
        (true, false, &["thought".into()][..])
    );
    let choice = expected.get("choice").expect("it is listed");
    assert_eq!((choice.is_mandatory, choice.is_repeatable, choice.body), (false, true, ElementBody::Text));
    assert_eq!(expected.find_misfit("content", &["thought"]), None);
    assert_eq!(expected.find_misfit("content", &["thought", "content"]), Some(ElementMisfit::Duplicate));
    assert_eq!(expected.find_misfit("thought", &["content"]), Some(ElementMisfit::Late("content")));
    assert_eq!(expected.find_misfit("unheard", &["content"]), None);
    assert_eq!(expected.missing_elements(&["thought", "choice"]).count(), 1);
    assert_eq!(expected.missing_elements(&["content"]).count(), 0);
    assert_eq!(
        ExpectedStructure::from_json(&json!({})).expect("nothing is expected"),
        ExpectedStructure::default()
    );
}

#[test]
fn what_is_no_structure_says_why() {
    let cases: [(Value, &str); 9] = [
        (json!([]), "an expected structure must be an object"),
        (
            json!({"must": []}),
            "unknown key of an expected structure `must`; known: mandatory, optional, dependency",
        ),
        (json!({"mandatory": [1]}), "`mandatory` must contain names of tags, not 1"),
        (json!({"optional": ["a b"]}), "`optional` must contain names of tags, not \"a b\""),
        (json!({"mandatory": ["a"], "optional": ["a"]}), "`a` is listed twice"),
        (json!({"dependency": ["a"]}), "`dependency` must be an object"),
        (json!({"mandatory": ["a"], "dependency": {"a": "b"}}), "unknown tag in `dependency` `b`; known: a"),
        (json!({"mandatory": ["a"], "dependency": {"b": "a"}}), "unknown tag in `dependency` `b`; known: a"),
        (
            json!({"mandatory": ["a", "b", "c"], "dependency": {"a": "b", "b": "c", "c": "a"}}),
            "`a` must follow itself",
        ),
    ];
    for (value, message) in cases {
        let error = ExpectedStructure::from_json(&value).expect_err("it is none").to_string();
        assert!(error.starts_with(message), "{value}: {error}");
    }
}

#[test]
fn names_are_known_as_they_are_written() {
    // F-205, T-021: letter case and aliases; a typo only for a mandatory element, and only if it is unambiguous.
    let mut expected = filament_structure();
    expected.elements[0].aliases.push("reply".into());
    assert_eq!(
        expected.names().collect::<Vec<_>>(),
        ["content", "reply", "thought", "variable_update", "choice"]
    );
    let find = |name: &str| expected.find_similar(name).map(|found| (&*found.element.name, found.spelling));
    assert_eq!(find("content"), Some(("content", NameSpelling::Exact)));
    assert_eq!(find("Content"), Some(("content", NameSpelling::LetterCase)));
    assert_eq!(find("REPLY"), Some(("content", NameSpelling::Alias)));
    for name in ["contnt", "contenet", "conetnt", "Contend"] {
        assert_eq!(find(name), Some(("content", NameSpelling::Typo)), "{name}");
        assert_eq!(expected.find_element(name), None, "{name}");
    }
    for name in ["thougt", "conten_t_", "c", "contents_", "cotnetn"] {
        assert_eq!(find(name), None, "{name}");
    }
    let mandatory = |name: &'static str| ExpectedElement { is_mandatory: true, ..ExpectedElement::new(name) };
    let ambiguous = ExpectedStructure::new(vec![mandatory("part"), mandatory("port")]);
    assert_eq!(ambiguous.find_similar("pert"), None);
}
