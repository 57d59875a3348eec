//! Dialogues: requests of the machine, and its results.

mod actions;
mod failures;
mod interrupted;
mod prompts;
mod rounds;
mod typed;
mod useless;

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
pub(super) struct Talk<'a> {
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
    pub(super) interrupted: bool,
}

/// Reaction of the model to one call.
#[derive(Clone, Debug)]
pub(super) enum Model {
    Says(String),
    /// Text of a reply that ends because of its length.
    Cut(String),
    Fails,
}

impl<'a> Talk<'a> {
    pub(super) fn new(text: &str) -> Talk<'a> {
        Talk::with(text, Map::new())
    }

    pub(super) fn with(text: &str, variables: Map<String, Value>) -> Talk<'a> {
        let loaded = load(text, &Limits::default());
        let script = loaded.script.unwrap_or_else(|| panic!("{:?}\n{text}", loaded.problems));
        let dialogue = Dialogue::start(&script, None, variables).expect("it has a session");
        Talk {
            script,
            files: TemplateFiles::default(),
            settings: DialogueSettings::default(),
            hooks: &(),
            dialogue,
            calls: Vec::new(),
            events: Vec::new(),
            interrupted: false,
        }
    }

    pub(super) fn env(&self) -> DialogueEnv<'_> {
        let Talk { script, files, settings, hooks, .. } = self;
        DialogueEnv { script, templates: files, now: NOW, settings, hooks: *hooks }
    }

    fn change<T>(&mut self, change: impl FnOnce(&mut Dialogue, &DialogueEnv<'_>) -> T) -> T {
        let mut dialogue = self.dialogue.clone();
        let changed = change(&mut dialogue, &self.env());
        self.dialogue = dialogue;
        if self.interrupted {
            let saved = serde_json::to_string(&self.dialogue).expect("it is data");
            self.dialogue = serde_json::from_str(&saved).expect("it was saved");
        }
        changed
    }

    pub(super) fn next(&mut self) -> DialogueRequest {
        self.change(Dialogue::next)
    }

    /// Passes the user's input and lets the model answer until the dialogue waits.
    pub(super) fn input(&mut self, text: Option<&str>, model: &[Model]) -> DialogueTurn {
        self.change(|dialogue, env| dialogue.input(text, env)).expect("it waits for the user");
        self.run(model)
    }

    pub(super) fn answer(&mut self, call_id: &str, value: Value, model: &[Model]) -> DialogueTurn {
        self.change(|dialogue, env| dialogue.answer(call_id, value, env)).expect("it waits for the client");
        self.run(model)
    }

    /// Continues until the dialogue waits; fails unless all replies of the model are used.
    pub(super) fn run(&mut self, model: &[Model]) -> DialogueTurn {
        let mut model = model.iter();
        loop {
            match self.next() {
                DialogueRequest::Call(call) => {
                    let reply =
                        model.next().unwrap_or_else(|| panic!("one more call: {}", call.messages[0].content));
                    self.calls.push((*call).clone());
                    self.replied(&call, reply);
                }
                DialogueRequest::Event(event) => self.events.push(*event),
                _ => break,
            }
        }
        assert_eq!(model.next().map(|left| format!("{left:?}")), None, "a reply was not asked for");
        self.dialogue.turn(&self.script)
    }

    fn replied(&mut self, call: &ModelCall, reply: &Model) {
        match reply {
            Model::Fails => self.change(|dialogue, env| {
                let failure = Failure::new("upstream_failed", "gone", true);
                dialogue.fail(failure, env);
            }),
            Model::Says(text) | Model::Cut(text) => {
                let cut = matches!(reply, Model::Cut(_));
                let end = if cut { InputEnd::Finished(FinishReason::Length) } else { InputEnd::stop() };
                let reply = read(call, text, &end);
                self.change(|dialogue, env| drop(dialogue.reply(call, &reply, env)));
            }
        }
    }

    pub(super) fn prompt(&self) -> &str {
        &self.calls.last().expect("there was a call").messages[0].content
    }
}

pub(super) fn read(call: &ModelCall, text: &str, end: &InputEnd) -> ModelReply {
    let mut reader = call.reader(&Options::default());
    let mut sink = EventCollector::default();
    reader.push(text, &mut sink);
    reader.finish(end, &mut sink).expect("it did not fail")
}

/// Builds an answer of `ai_say`.
pub(super) fn said(level: u32, questions: bool, expressed: bool, exit: bool, message: &str) -> Model {
    let answer = json!({
        "assessment": {
            "understanding_level": level, "has_questions": questions, "expressed_understanding": expressed, "reasoning": "r",
        },
        "response": { "咨询师": message },
        "should_exit": exit,
        "exit_reason": "原因",
    });
    Model::Says(answer.to_string())
}

/// Builds an answer that continues the action.
pub(super) fn more(message: &str) -> Model {
    said(30, true, false, false, message)
}

/// Builds an answer that reports understanding.
pub(super) fn enough(message: &str) -> Model {
    said(90, false, true, true, message)
}

/// Builds an answer of `ai_ask`.
pub(super) fn asked(value: &Value, usable: bool, message: &str) -> Model {
    Model::Says(json!({ "value": value, "usable": usable, "response": { "咨询师": message } }).to_string())
}

/// Builds a script of one step with these actions, each in flow style.
pub(super) fn actions(actions: &[&str]) -> String {
    let actions: String = actions.iter().map(|action| format!("              - {action}\n")).collect();
    format!(
        "sessions:\n  - session: s\n    declare: [{{var: 用户名, value: 小明}}, {{var: age, value: 30}}]\n    phases:\n      \
         - phase: p\n        steps:\n          - topic: t\n            actions:\n{actions}"
    )
}

pub(super) fn variable(talk: &Talk<'_>, name: &str) -> Value {
    talk.dialogue.variables().get(name).cloned().unwrap_or(json!("<none>"))
}
