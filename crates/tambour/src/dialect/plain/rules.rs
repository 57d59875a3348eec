//! The rules of plain replies.

use crate::finding::rules;

rules! {
    PARSING_ERROR_MARKER = "parsing_error_marker" ["J-055"] Must "The model did not declare that it failed.",
        broken "<<ParsingError>>", correct "The answer is 4.";
    THINK_UNOPENED = "think_unopened" ["X-012"] Must "`</think>` closes a `<think>`.",
        broken "The answer is 4.</think> Yes.", correct "<think>2 + 2</think>The answer is 4.";
    THINK_UNCLOSED = "think_unclosed" ["X-012"] Must "`<think>` is closed.",
        broken "<think>2 + 2", correct "<think>2 + 2</think>4";
    THINK_IN_ANSWER = "think_in_answer" ["X-012"] Should "Reasoning stands before the answer.",
        broken "It is <think>2 + 2</think> 4.", correct "<think>2 + 2</think>It is 4.";
    STRUCTURE_LATE = "structure_late" ["X-013"] Should "A structured reply begins with its structure.",
        broken "four hundred characters of prose, then <thinking><phase id=\"1\">...",
        correct "<thinking><phase id=\"1\">...";
}
