//! Table of the engine's operators, with the filters of ours that replace them and charge for them.

/// Operators of the engine and the filters that replace them; `None` if the operator always runs in bounded
/// time.
pub const OPERATORS: &[(&str, Option<&str>)] = &[
    ("==", Some("__eq")),
    ("!=", Some("__ne")),
    ("<", Some("__lt")),
    ("<=", Some("__le")),
    (">", Some("__gt")),
    (">=", Some("__ge")),
    ("in", Some("__in")),
    ("not in", Some("__not_in")),
    ("+", Some("__add")),
    ("-", Some("__sub")),
    ("*", Some("__mul")),
    ("/", Some("__div")),
    ("//", Some("__int_div")),
    ("%", Some("__rem")),
    ("**", None),
    ("~", Some("__join")),
    ("[:]", Some("__slice")),
    ("[]", Some("__key")),
    ("{:}", Some("__map_key")),
    ("[.]", Some("__container")),
    ("*()", Some("__splat")),
    ("f()", Some("__passed")),
    (".changed()", Some("__changed")),
    (".cycle()", Some("__cycle")),
    ("and", None),
    ("or", None),
    ("not", None),
    ("-x", None),
    ("if", None),
    ("is", None),
    ("|", None),
    (".", None),
];

/// Methods among the operators: those that go through their arguments, or need one.
pub(super) const METHODS: &[&str] = &[".changed()", ".cycle()"];

/// Returns the filter that replaces an operator.
pub(super) fn filter(operator: &str) -> &'static str {
    OPERATORS
        .iter()
        .find(|(candidate, _)| *candidate == operator)
        .and_then(|(_, filter)| *filter)
        .unwrap_or("__none")
}
