//! Table of the rules of search queries. The examples are the JSON of the queries.

use crate::finding::rules;

rules! {
    SERP_QUERIES_JSON = "serp_queries_json" ["T-044"] Must
        "the queries are valid JSON",
        broken r#"["a","#,
        correct r#"["a"]"#;
    SERP_QUERIES_NOT_ARRAY = "serp_queries_not_array" ["T-044"] Must
        "the queries are an array",
        broken r#"{"q":1}"#,
        correct r#"["q"]"#;
    SERP_QUERY_NOT_STRING = "serp_query_not_string" ["T-044", "J-003"] Must
        "each query is a string",
        broken r#"["a",3]"#,
        correct r#"["a","3"]"#;
    SERP_QUERIES_TOO_MANY = "serp_queries_too_many" ["T-045", "J-004", "J-064"] Must
        "there are at most 5 queries",
        broken r#"["a","b","c","d","e","f"]"#,
        correct r#"["a","b","c"]"#;
    SERP_QUERIES_DUPLICATE = "serp_queries_duplicate" ["T-046", "J-004", "J-064"] Must
        "the queries are unique, white space at their ends aside",
        broken r#"["a","a "]"#,
        correct r#"["a","b"]"#;
    SERP_QUERIES_CASE = "serp_queries_case" ["T-046", "J-004"] Should
        "queries differ by more than upper and lower case",
        broken r#"["Squat form","squat form"]"#,
        correct r#"["Squat form","squat depth"]"#;
    SERP_QUERY_TOO_LONG = "serp_query_too_long" ["T-047", "J-004"] Must
        "a query has at most 80 characters",
        broken r#"["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"]"#,
        correct r#"["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"]"#;
    SERP_QUERY_SENSITIVE = "serp_query_sensitive" ["T-048", "J-004", "J-064"] Must
        "a query holds no e-mail, phone number, IP address, postal address or the like",
        broken r#"["mail a@b.com"]"#,
        correct r#"["how to write mail"]"#;
    SERP_QUERIES_MANY = "serp_queries_many" ["T-049", "J-005"] Info
        "one to three queries are usual",
        broken r#"["a","b","c","d"]"#,
        correct r#"["a","b","c"]"#;
    SERP_QUERIES_EMPTY = "serp_queries_empty" ["T-050"] Info
        "only greetings and messages that cannot be understood have no queries",
        broken "[]",
        correct r#"["a"]"#;
    SERP_QUERY_EMPTY = "serp_query_empty" ["T-051"] Must
        "a query is not blank",
        broken r#"["","a"]"#,
        correct r#"["a"]"#;
}
