//! Rules of operations as a model writes them. Examples are lists of operations.

use crate::finding::rules;

rules! {
    OPERATION_CASE = "operation_case" ["F-111"] Should
        "names of operations are in upper case",
        broken r#"[["set","a",1]]"#,
        correct r#"[["SET","a",1]]"#;
    OPERATION_UNKNOWN = "operation_unknown" ["F-111"] Must
        "an operation is SET, ADD, SUB, MUL, DIV, PUSH, POP or DELETE",
        broken r#"[["INSERT","a",1]]"#,
        correct r#"[["PUSH","a",1]]"#;
    OPERATION_ARITY = "operation_arity" ["F-111"] Must
        "POP and DELETE have a path, the others a path and a value",
        broken r#"[["SET","a"]]"#,
        correct r#"[["SET","a",1],["DELETE","a"]]"#;
    OPERATION_MALFORMED = "operation_malformed" ["F-235"] Must
        "an operation is a list of its name, a path, and perhaps a value",
        broken r#"[{"SET":{"a":1}}]"#,
        correct r#"[["SET","a",1]]"#;
    OPERATION_TYPE_MISMATCH = "operation_type_mismatch" ["F-235"] Must
        "ADD, SUB, MUL and DIV have a number",
        broken r#"[["ADD","a","1"]]"#,
        correct r#"[["ADD","a",1]]"#;
    NUMBER_OUT_OF_RANGE = "number_out_of_range" ["R-81"] Must
        "a number can be kept exactly",
        broken r#"[["SET","a",12345678901234567890123]]"#,
        correct r#"[["SET","a","12345678901234567890123"]]"#;
    PATH_INVALID = "path_invalid" ["F-117"] Must
        "a path consists of keys, and of indexes in closed brackets",
        broken r#"[["SET","a..b",1]]"#,
        correct r#"[["SET","a[0].b",1]]"#;
}
