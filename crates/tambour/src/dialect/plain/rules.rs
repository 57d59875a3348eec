//! Table of the rules of plain replies.

use crate::dialect::marker;
use crate::finding::rules;

rules! {
    PARSING_ERROR_MARKER = marker::DECLARATION ["J-055"], correct "The answer is 4.";
    PARSING_ERROR_FORM = marker::FORM ["R-72"], correct "The answer is 4.";
    ANSWER_MISSING = "answer_missing" ["R-08"] Must "A reply has an answer.",
        broken "<think>2 + 2</think>", correct "<think>2 + 2</think>4";
    THINK_MISMATCHED = "think_mismatched" ["R-69"] Must "Reasoning is closed by the mark that opened it.",
        broken "<think>2 + 2</thinking>4", correct "<think>2 + 2</think>4";
    THINK_SELF_CLOSING = "think_self_closing" ["X-012"] Should "`<think>` does not close itself.",
        broken "<think/>The answer is 4.", correct "The answer is 4.";
    THINK_ATTRIBUTES = "think_attributes" ["R-69"] Info "Marks of reasoning have no attributes.",
        broken "<think>2 + 2</think effort=\"high\">4", correct "<think>2 + 2</think>4";
    THINK_UNOPENED = "think_unopened" ["X-012"] Must "`</think>` closes a `<think>`.",
        broken "The answer is 4.</think> Yes.", correct "<think>2 + 2</think>The answer is 4.";
    THINK_UNCLOSED = "think_unclosed" ["X-012"] Must "`<think>` is closed.",
        broken "<think>2 + 2", correct "<think>2 + 2</think>4";
    THINK_IN_ANSWER = "think_in_answer" ["X-012"] Should "Reasoning comes before the answer.",
        broken "It is four.\n<think>2 + 2</think>\nYes.", correct "<think>2 + 2</think>It is four.";
    THINK_IN_MARKUP = "think_in_markup" ["X-012"] Should "Reasoning is not inside markup.",
        broken "It is <b</think>>4</b>.", correct "<think>2 + 2</think>It is <b>4</b>.";
    CONTROL_MARK = "control_mark" ["R-92"] Info "Template marks are not part of the text.",
        broken "The answer is 4.<|im_end|>", correct "The answer is 4.";
    ROLE_WORD = "role_word" ["R-92"] Info "A reply does not name its role in front of its reasoning.",
        broken "assistant\n<think>2 + 2</think>4", correct "<think>2 + 2</think>4";
    STRUCTURE_LATE = "structure_late" ["X-013"] Should "A structured reply begins with its structure.",
        with ["dialect=auto"],
        broken concat!(
            "I was asked for a plan, so I will first say a few words about what makes a plan good, and only then begin. ",
            "A good plan names its goal, the time there is, what is at hand, and the first small step that can be done today. ",
            "It leaves room for a bad day, and it says when to look at it again and what to change then. ",
            "With all of that said, here is mine.\n<thinking><phase id=\"1\"><title>Goal</title></phase></thinking>\n",
            "<final>\nStart today.\n</final>"
        ),
        correct "Start today.";
}

/// Rules about `<<ParsingError>>`, the failure marker, with which the model declares that it could not reply.
pub(super) const MARKER_RULES: marker::MarkerRules =
    marker::MarkerRules { declaration: PARSING_ERROR_MARKER, form: PARSING_ERROR_FORM };
