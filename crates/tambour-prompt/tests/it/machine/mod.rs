//! Dialogues: requests of the machine, and its results.

mod actions;
mod failures;
mod interrupted;
mod prompts;
mod rounds;
mod silent_replies;
mod typed;

use serde_json::{Map, Value, json};
use tambour::event::{EventCollector, Extension, Failure, FinishReason};
use tambour::limits::Limits;
use tambour::{InputEnd, Options};
use tambour_prompt::dialogue::{
    Dialogue, DialogueEnv, DialogueRequest, DialogueSettings, DialogueTurn, Hooks, ModelCall, ModelReply,
};
use tambour_prompt::script::{Script, load};
use tambour_prompt::template::TemplateFiles;

/// Time of the tests in milliseconds: 2025-01-20T10:30:00Z.
pub(super) const NOW: i64 = 1_737_369_000_000;

/// A dialogue with a scripted model.
pub(super) struct TestDialogue<'a> {
    pub(super) script: Script,
    pub(super) files: TemplateFiles,
    pub(super) settings: DialogueSettings,
    pub(super) hooks: &'a dyn Hooks,
    pub(super) dialogue: Dialogue,
    /// Calls made so far.
    pub(super) calls: Vec<ModelCall>,
    /// Events sent so far.
    pub(super) events: Vec<Extension>,
    /// Saves and restores the dialogue at every step.
    pub(super) saves_each_step: bool,
}

/// Reaction of the model to one call.
#[derive(Clone, Debug)]
pub(super) enum ModelReaction {
    Reply(String),
    /// Text of a reply that ends because of its length.
    CutReply(String),
    Failure,
}

impl<'a> TestDialogue<'a> {
    pub(super) fn new(text: &str) -> TestDialogue<'a> {
        TestDialogue::with_variables(text, Map::new())
    }

    pub(super) fn with_variables(text: &str, variables: Map<String, Value>) -> TestDialogue<'a> {
        let loaded = load(text, &Limits::default());
        let script = loaded.script.unwrap_or_else(|| panic!("{:?}\n{text}", loaded.problems));
        let dialogue = Dialogue::start(&script, None, variables).expect("it has a session");
        TestDialogue {
            script,
            files: TemplateFiles::default(),
            settings: DialogueSettings::default(),
            hooks: &(),
            dialogue,
            calls: Vec::new(),
            events: Vec::new(),
            saves_each_step: false,
        }
    }

    pub(super) fn env(&self) -> DialogueEnv<'_> {
        let TestDialogue { script, files, settings, hooks, .. } = self;
        DialogueEnv { script, templates: files, now: NOW, settings, hooks: *hooks }
    }

    fn change<T>(&mut self, change: impl FnOnce(&mut Dialogue, &DialogueEnv<'_>) -> T) -> T {
        let mut dialogue = self.dialogue.clone();
        let result = change(&mut dialogue, &self.env());
        self.dialogue = dialogue;
        if self.saves_each_step {
            let saved = serde_json::to_string(&self.dialogue).expect("it is data");
            self.dialogue = serde_json::from_str(&saved).expect("it was saved");
        }
        result
    }

    pub(super) fn next(&mut self) -> DialogueRequest {
        self.change(Dialogue::next)
    }

    /// Passes the user's input and lets the model answer until the dialogue waits.
    pub(super) fn input(&mut self, text: Option<&str>, model: &[ModelReaction]) -> DialogueTurn {
        self.change(|dialogue, env| dialogue.input(text, env)).expect("it waits for the user");
        self.run(model)
    }

    pub(super) fn answer(&mut self, call_id: &str, value: Value, model: &[ModelReaction]) -> DialogueTurn {
        self.change(|dialogue, env| dialogue.answer(call_id, value, env)).expect("it waits for the client");
        self.run(model)
    }

    /// Continues until the dialogue waits; fails unless all replies of the model are used.
    pub(super) fn run(&mut self, model: &[ModelReaction]) -> DialogueTurn {
        let mut model = model.iter();
        loop {
            match self.next() {
                DialogueRequest::Call(call) => {
                    let reply =
                        model.next().unwrap_or_else(|| panic!("one more call: {}", call.messages[0].content));
                    self.calls.push((*call).clone());
                    self.pass_reply(&call, reply);
                }
                DialogueRequest::Event(event) => self.events.push(*event),
                _ => break,
            }
        }
        assert_eq!(
            model.next().map(|spare_reply| format!("{spare_reply:?}")),
            None,
            "a reply was not asked for"
        );
        self.dialogue.turn(&self.script)
    }

    fn pass_reply(&mut self, call: &ModelCall, reply: &ModelReaction) {
        match reply {
            ModelReaction::Failure => self.change(|dialogue, env| {
                let failure = Failure::new("upstream_failed", "gone", true);
                dialogue.fail(failure, env);
            }),
            ModelReaction::Reply(text) | ModelReaction::CutReply(text) => {
                let is_cut = matches!(reply, ModelReaction::CutReply(_));
                let end = if is_cut { InputEnd::Finished(FinishReason::Length) } else { InputEnd::stop() };
                let reply = read_reply(call, text, &end);
                self.change(|dialogue, env| drop(dialogue.reply(call, &reply, env)));
            }
        }
    }

    pub(super) fn prompt(&self) -> &str {
        &self.calls.last().expect("there was a call").messages[0].content
    }
}

pub(super) fn read_reply(call: &ModelCall, text: &str, end: &InputEnd) -> ModelReply {
    let mut reader = call.reader(&Options::default());
    let mut sink = EventCollector::default();
    reader.push(text, &mut sink);
    reader.finish(end, &mut sink).expect("it did not fail")
}

/// An answer of `ai_say`.
pub(super) fn assessed_reply(
    level: u32,
    has_questions: bool,
    has_expressed: bool,
    should_exit: bool,
    message: &str,
) -> ModelReaction {
    let answer = json!({
        "assessment": {
            "understanding_level": level, "has_questions": has_questions, "expressed_understanding": has_expressed, "reasoning": "r",
        },
        "response": { "咨询师": message },
        "should_exit": should_exit,
        "exit_reason": "原因",
    });
    ModelReaction::Reply(answer.to_string())
}

/// Builds an answer that continues the action.
pub(super) fn continuing_reply(message: &str) -> ModelReaction {
    assessed_reply(30, true, false, false, message)
}

/// Builds an answer that reports understanding.
pub(super) fn understood_reply(message: &str) -> ModelReaction {
    assessed_reply(90, false, true, true, message)
}

/// An answer of `ai_ask`.
pub(super) fn ask_reply(value: &Value, usable: bool, message: &str) -> ModelReaction {
    ModelReaction::Reply(
        json!({ "value": value, "usable": usable, "response": { "咨询师": message } }).to_string(),
    )
}

/// Builds a script of one step with these actions, each in flow style.
pub(super) fn script_with_actions(actions: &[&str]) -> String {
    let actions: String = actions.iter().map(|action| format!("              - {action}\n")).collect();
    format!(
        "sessions:\n  - session: s\n    declare: [{{var: 用户名, value: 小明}}, {{var: age, value: 30}}]\n    phases:\n      \
         - phase: p\n        steps:\n          - topic: t\n            actions:\n{actions}"
    )
}

pub(super) fn variable(talk: &TestDialogue<'_>, name: &str) -> Value {
    talk.dialogue.variables().get(name).cloned().unwrap_or(json!("<none>"))
}
