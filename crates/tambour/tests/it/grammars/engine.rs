//! Recognisers of texts by grammars.

use std::sync::Arc;

use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::{ApproximateTokEnv, InferenceCapabilities, TokEnv};
use llguidance::{Matcher, ParserFactory};

/// Judgement of an engine on a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    /// The text is a complete reply.
    Complete,
    /// The text begins a reply and needs more.
    Unfinished,
    /// No reply goes on with the byte at this offset.
    Refused(usize),
}

/// llguidance with a grammar in Lark, one token for each byte.
pub(super) struct LarkEngine {
    matcher: Matcher,
}

impl LarkEngine {
    /// Compiles a grammar.
    pub(super) fn new(lark: &str) -> LarkEngine {
        let env: TokEnv = Arc::new(ApproximateTokEnv::single_byte());
        let mut factory =
            ParserFactory::new(&env, InferenceCapabilities::default(), &[]).expect("an empty list of slices");
        factory.quiet();
        let parser = factory.create_parser(TopLevelGrammar::from_lark(lark.to_owned()));
        let matcher = Matcher::new(parser);
        assert!(!matcher.is_error(), "{}\n{lark}", matcher.get_error().unwrap_or_default());
        LarkEngine { matcher }
    }

    /// Judges a text.
    pub(super) fn judge(&mut self, text: &str) -> Judgement {
        self.matcher.reset().expect("no error so far");
        let tokens: Vec<u32> = text.bytes().map(u32::from).collect();
        let read = self.matcher.try_consume_tokens(&tokens).expect("the engine reads on");
        if read < tokens.len() {
            return Judgement::Refused(read);
        }
        match self.matcher.is_accepting().expect("the engine reads on") {
            true => Judgement::Complete,
            false => Judgement::Unfinished,
        }
    }
}
