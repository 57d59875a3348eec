//! `tambour run`: runs a dialogue in the terminal.

mod screen;
mod script_tests;

use std::fs::File;
use std::io::{self, BufRead, Write};
use std::path::{Component, Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow};
use serde_json::{Map, Value, json};
use tambour::event::{Extension, Failure, FinishReason};
use tambour::options::{Language, Texts};
use tambour::{Event, Finding, InputEnd, Options, Sink};
use tambour_prompt::dialogue::script_test::{
    ExpectedTurn, ScriptTest, TestAnswer, TestFailure, TestReply, TestTurn,
};
use tambour_prompt::dialogue::{
    Dialogue, DialogueEnv, DialogueRequest, DialogueSettings, DialogueStatus, DialogueTurn, ModelCall,
    ModelReply, ReplyKind,
};
use tambour_prompt::script::Script;
use tambour_prompt::template::TemplateFiles;
use tambour_server::Config;
use tambour_server::upstream::{Message, ModelRequest, ReplyItem, Upstream};

use crate::script::{TemplateArgs, problem_line, read_script};
use crate::{CommandOutcome, input, output};
use screen::DialogueScreen;

/// Run a dialogue of a script in the terminal
#[derive(clap::Args)]
#[command(after_help = "Example:\n  \
    printf 'sessions: [{session: s, phases: []}]' >/tmp/s.yaml; tambour run /tmp/s.yaml\n\n\
    The model speaks first, or with --user-first you do; each line is what you say, and `= ` asks for the answer to a form. `/info` shows where the dialogue \
    stands and how much was understood, `/quit` ends it. Exit code 1: the dialogue failed.\n\n\
    `--test` runs tests of scripts without a model, as `--save-test` and the studio write them. Exit code 1: a test differs, or a script cannot run.")]
pub(crate) struct RunCommand {
    /// Script; with --test, default: the script of each test
    #[arg(required_unless_present = "tests")]
    script: Option<PathBuf>,
    /// Session of the script; default: the first
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// First step or action, as a path in the script such as `sessions[0].phases[1].steps[0]`
    #[arg(long, value_name = "PATH")]
    start: Option<String>,
    /// Run these tests: repeat their inputs with their recorded replies, and compare positions and decisions
    #[arg(long = "test", value_name = "FILE", num_args = 1.., conflicts_with_all = ["session", "start", "upstream", "variables", "user_first", "transcript", "save_test"])]
    tests: Vec<PathBuf>,
    /// Format of test results
    #[arg(long, value_enum, default_value_t = script_tests::TestReportFormat::Pretty, requires = "tests")]
    format: script_tests::TestReportFormat,
    /// Also write test results to this file, as JUnit XML
    #[arg(long, value_name = "FILE", requires = "tests")]
    junit: Option<PathBuf>,
    /// Write the run to this file as a test, YAML
    #[arg(long, value_name = "FILE")]
    save_test: Option<PathBuf>,
    /// Source of replies: the base URL of a chat completions service, `replay:FILE`, or
    /// KIND=WHERE as for `serve`; default: from `tambour.toml` and TAMBOUR_*
    #[arg(long, value_name = "URL|replay:FILE")]
    upstream: Option<String>,
    /// Model to ask the upstream for
    #[arg(long, value_name = "NAME", requires = "upstream")]
    model: Option<String>,
    /// Set a variable, overriding the value in the script; may be repeated
    #[arg(long = "variable", value_name = "NAME=VALUE", value_parser = parse_variable)]
    variables: Vec<(String, Value)>,
    /// Let the user begin instead of the model
    #[arg(long)]
    user_first: bool,
    /// Write each turn to this file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    transcript: Option<PathBuf>,
    #[command(flatten)]
    templates: TemplateArgs,
}

/// Parses `NAME=VALUE`; a value that is JSON is read as JSON.
fn parse_variable(text: &str) -> Result<(String, Value), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), parse_value(value))),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

/// Parses a value that the user typed: as JSON if valid, else as a string.
fn parse_value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

pub(crate) fn run(args: &RunCommand) -> Result<CommandOutcome> {
    let path = match &args.script {
        Some(path) if args.tests.is_empty() => path,
        _ => return script_tests::run(args),
    };
    let files = args.templates.template_files()?;
    let language: Language = args.templates.language.into();
    let (script, problems) = read_script(path, &files, language)?;
    let name = input::display_name(Some(path));
    for problem in &problems {
        output::print_error(&problem_line(&name, problem));
    }
    let Some(script) = script else { return Ok(CommandOutcome::Failed) };
    let variables: Map<String, Value> = args.variables.iter().cloned().collect();
    let session = args.session.as_deref();
    let dialogue = match &args.start {
        Some(place) => Dialogue::start_at(&script, session, place, variables.clone())?,
        None => Dialogue::start(&script, session, variables.clone())?,
    };
    let mut test = ScriptTest::default();
    (test.session, test.start, test.variables) = (args.session.clone(), args.start.clone(), variables);
    test.language = Some(language);
    if let Some(file) = &args.save_test {
        test.script = Some(relative_script_path(path, file));
    }
    let mut settings = DialogueSettings::default();
    settings.texts = Texts::from_language(language);
    let mut options = Options::default();
    options.texts = settings.texts.clone();
    let transcript = match &args.transcript {
        Some(path) => Some(File::create(path).with_context(|| format!("cannot write {}", path.display()))?),
        None => None,
    };
    let upstream = open_upstream(args)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("the runtime cannot be started")?;
    let mut run = TerminalRun {
        test,
        current_turn: TestTurn::default(),
        script,
        files,
        settings,
        options,
        upstream,
        dialogue,
        transcript,
        screen: DialogueScreen::new(language),
    };
    let outcome = runtime.block_on(run.run_turns(args.user_first))?;
    if let Some(file) = &args.save_test {
        if run.test.turns.is_empty() {
            let file = file.display();
            output::print_error(&format!(
                "{file} is not written: the run had no turn, and a test without one cannot fail"
            ));
            return Ok(outcome);
        }
        std::fs::write(file, run.test.print()).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(outcome)
}

/// Path of a script relative to the folder of the test file `file`.
fn relative_script_path(script: &Path, file: &Path) -> String {
    let absolute_folder = |path: &Path| {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        std::fs::canonicalize(parent.unwrap_or(Path::new("."))).ok()
    };
    let relative = match (absolute_folder(script), absolute_folder(file), script.file_name()) {
        (Some(script_folder), Some(file_folder), Some(name)) => {
            relative_path(&file_folder, &script_folder).join(name)
        }
        _ => script.to_owned(),
    };
    relative.to_string_lossy().into_owned()
}

/// Relative path from one folder to another. Both paths must be absolute and free of symbolic links.
fn relative_path(from: &Path, to: &Path) -> PathBuf {
    let shared_count = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    if shared_count == 0 {
        // Folders on different drives have no relative path.
        return to.to_owned();
    }
    let parent_steps = from.components().skip(shared_count).map(|_| Component::ParentDir);
    parent_steps.chain(to.components().skip(shared_count)).collect()
}

/// Opens the upstream given in the arguments, or else the default of the server's configuration.
fn open_upstream(args: &RunCommand) -> Result<std::sync::Arc<Upstream>> {
    let mut config = match &args.upstream {
        None => Config::load(None, crate::serve::read_environment()?.into_iter())?,
        Some(_) => Config::default(),
    };
    if let Some(upstream) = &args.upstream {
        let upstream = match upstream.split_once(':') {
            Some(("http" | "https", _)) => format!("openai={upstream}"),
            Some(("replay", file)) => format!("replay={file}"),
            _ => upstream.clone(),
        };
        config.add_upstream(&upstream, args.model.clone()).map_err(|error| anyhow!("--upstream: {error}"))?;
    }
    Ok(config.open_default_upstream()?)
}

/// Dialogue that runs in the terminal.
struct TerminalRun {
    /// Test recorded from the run so far.
    test: ScriptTest,
    /// Record of the current turn, for the test.
    current_turn: TestTurn,
    script: Script,
    files: TemplateFiles,
    settings: DialogueSettings,
    options: Options,
    upstream: std::sync::Arc<Upstream>,
    dialogue: Dialogue,
    transcript: Option<File>,
    screen: DialogueScreen,
}

impl TerminalRun {
    /// Runs turns until the dialogue is over or the input ends.
    async fn run_turns(&mut self, mut user_first: bool) -> Result<CommandOutcome> {
        let mut lines = io::stdin().lock().lines();
        let mut user_text: Option<String> = None;
        if !user_first {
            self.update_dialogue(|dialogue, env| dialogue.input(None, env))
                .map_err(|refusal| anyhow!("{}", refusal.code()))?;
        }
        loop {
            // If the user begins the dialogue, a line is read before the first turn runs.
            let user_begins_now = std::mem::take(&mut user_first);
            let turn = if user_begins_now {
                self.dialogue.turn(&self.script)
            } else {
                self.run_turn(user_text.take()).await?
            };
            match turn.status {
                DialogueStatus::Completed => {
                    self.screen.print_end(&turn)?;
                    return Ok(CommandOutcome::Success);
                }
                DialogueStatus::Failed => return Ok(CommandOutcome::Failed),
                _ => {}
            }
            if turn.continues && turn.success && !user_begins_now {
                self.update_dialogue(|dialogue, env| drop(dialogue.input(None, env)));
                continue;
            }
            // Id of the request that the user answers in place of a client; `None` if a message is awaited.
            let awaited_call = match self.update_dialogue(Dialogue::next) {
                DialogueRequest::Answer { call_id } => Some(call_id),
                _ => None,
            };
            loop {
                self.screen.print_prompt(awaited_call.is_some())?;
                let Some(line) = lines.next().transpose().context("cannot read standard input")? else {
                    output::print_error("the input ended before the dialogue was over");
                    return Ok(if turn.success { CommandOutcome::Success } else { CommandOutcome::Failed });
                };
                match (line.trim(), &awaited_call) {
                    ("/quit", _) => return Ok(CommandOutcome::Success),
                    ("/info", _) => {
                        self.screen.print_position(&self.dialogue.turn(&self.script), &self.dialogue)?
                    }
                    (line, Some(call_id)) => {
                        let value = if line.is_empty() { Value::Null } else { parse_value(line) };
                        self.current_turn.answer = Some(TestAnswer { value: value.clone() });
                        self.update_dialogue(|dialogue, env| drop(dialogue.answer(call_id, value, env)));
                        user_text = Some(line.to_owned());
                        break;
                    }
                    (line, None) => {
                        self.update_dialogue(|dialogue, env| drop(dialogue.input(Some(line), env)));
                        self.current_turn.text = Some(line.to_owned()).filter(|line| !line.is_empty());
                        user_text = Some(line.to_owned());
                        break;
                    }
                }
            }
        }
    }

    /// Environment of the dialogue, with the present time.
    fn environment(&self) -> DialogueEnv<'_> {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX);
        DialogueEnv {
            script: &self.script,
            templates: &self.files,
            now,
            settings: &self.settings,
            hooks: &(),
        }
    }

    /// Applies a change to the dialogue. `change` works on a copy, since the environment borrows `self`.
    fn update_dialogue<T>(&mut self, change: impl FnOnce(&mut Dialogue, &DialogueEnv<'_>) -> T) -> T {
        let mut dialogue = self.dialogue.clone();
        let result = change(&mut dialogue, &self.environment());
        self.dialogue = dialogue;
        result
    }

    /// Calls the model and prints requests to the client until the dialogue waits for input or ends.
    async fn run_turn(&mut self, user_text: Option<String>) -> Result<DialogueTurn> {
        let mut calls: Vec<Value> = Vec::new();
        let mut events: Vec<Extension> = Vec::new();
        loop {
            match self.update_dialogue(Dialogue::next) {
                DialogueRequest::Call(call) => calls.push(self.call_model(&call).await?),
                DialogueRequest::Event(event) => {
                    self.screen.print_request(&event)?;
                    events.push(*event);
                }
                _ => break,
            }
        }
        let turn = self.dialogue.turn(&self.script);
        let mut test_turn = std::mem::take(&mut self.current_turn);
        test_turn.expect = ExpectedTurn::from_turn(&turn);
        // The message follows from the recorded reply, so the test need not compare it.
        test_turn.expect.ai_message = None;
        self.test.turns.push(test_turn);
        for notice in &turn.notices {
            output::print_error(&notice.message);
        }
        if let Some(failure) = &turn.error {
            let retry_hint =
                if turn.status == DialogueStatus::Failed { "" } else { "; an empty line asks again" };
            output::print_error(&format!("{}: {}{retry_hint}", failure.code, failure.message));
        }
        if let Some(file) = &mut self.transcript {
            let line = json!({ "said": user_text, "turn": turn, "calls": calls, "events": events });
            writeln!(file, "{line}").context("cannot write the transcript")?;
        }
        Ok(turn)
    }

    /// Calls the model and prints its message as it arrives. Returns the record of the call for the transcript.
    async fn call_model(&mut self, call: &ModelCall) -> Result<Value> {
        for warning in &call.warnings {
            // Further rounds and attempts use the same template, so its warnings are printed once.
            if call.round == 1 && call.attempt == 0 {
                output::print_error(&format!("{}: {}", call.template_id, warning.message));
            }
        }
        let start_time = Instant::now();
        let ModelAnswer { reply, held_text, raw_reply, finish, usage } = self.ask_model(call).await?;
        let mut record = json!({
            "kind": call.kind.name(),
            "path": call.path,
            "round": call.round,
            "attempt": call.attempt,
            "template_id": call.template_id,
            "template_hash": call.template_hash,
            "prompt": call.messages,
            "raw": raw_reply,
            "usage": usage,
            "elapsed_ms": u64::try_from(start_time.elapsed().as_millis()).unwrap_or(u64::MAX),
        });
        match reply {
            Ok(mut reply) => {
                // A reply with printed text counts as delivered, since the text cannot be taken back.
                reply.is_delivered = self.screen.is_writing();
                self.current_turn.replies.push(TestReply {
                    finish_reason: finish.filter(|reason| *reason != FinishReason::Stop),
                    delivered: reply.is_delivered && reply.unreadable_reason.is_some(),
                    ..TestReply::from_text(raw_reply)
                });
                let result = self.update_dialogue(|dialogue, env| dialogue.reply(call, &reply, env));
                if !result.asked_again && result.failure.is_none() && !held_text.is_empty() {
                    self.screen.print_text(&held_text)?;
                }
                self.screen.end_message()?;
                record["findings"] = json!(reply.findings);
                record["exit_decision"] = json!(result.exit_decision);
                record["assigned"] = json!(result.assigned);
                if let Some(failure) = result.failure {
                    record["error"] = json!(failure);
                }
            }
            Err(failure) => {
                let error = TestFailure { code: failure.code.to_string(), message: failure.message.clone() };
                self.current_turn.replies.push(TestReply { error: Some(error), ..TestReply::default() });
                self.screen.end_message()?;
                record["error"] = json!(failure);
                self.update_dialogue(|dialogue, env| dialogue.fail(failure, env));
            }
        }
        Ok(record)
    }

    /// Asks the upstream and reads its reply to the end.
    async fn ask_model(&mut self, call: &ModelCall) -> Result<ModelAnswer> {
        let messages = call.messages.iter();
        let messages = messages.map(|message| Message::new(&message.role, message.content.clone()));
        let mut request = ModelRequest {
            messages: messages.collect(),
            dialect: call.kind.name().to_owned(),
            round: matches!(call.kind, ReplyKind::Say { .. }).then_some((call.round, self.options.texts.language)),
            temperature: Some(call.temperature),
            max_tokens: Some(call.max_tokens),
            response_format: call.schema(&self.options).map(|schema| {
                json!({"type": "json_schema", "json_schema": {"name": "reply", "strict": true, "schema": schema}})
            }),
            ..ModelRequest::default()
        };
        let mut reader = call.reader(&self.options);
        let (mut raw_reply, mut usage) = (String::new(), Value::Null);
        let stream = match self.upstream.open(&request).await {
            // A service that refuses schemas gets the request without one: the prompt describes the format too.
            Err(failure) if !failure.retryable && request.response_format.is_some() => {
                request.response_format = None;
                self.upstream.open(&request).await
            }
            stream => stream,
        };
        let mut reply = match stream {
            Ok(reply) => reply,
            Err(failure) => {
                return Ok(ModelAnswer {
                    reply: Err(failure),
                    held_text: String::new(),
                    raw_reply,
                    finish: None,
                    usage,
                });
            }
        };
        let mut printer = MessagePrinter { screen: &mut self.screen, held_text: None, error: None };
        let mut items = Vec::new();
        loop {
            reply.next(&mut items).await;
            for item in items.drain(..) {
                match item {
                    ReplyItem::Text(text) => {
                        raw_reply.push_str(&text);
                        reader.push(&text, &mut printer);
                    }
                    ReplyItem::Reasoning(text) => reader.push_reasoning(&text, &mut printer),
                    // A round offers no tools.
                    ReplyItem::Call(_) => {}
                    ReplyItem::Usage(call_usage) => usage = call_usage,
                    ReplyItem::End(end) => {
                        // If nothing is printed yet, text at the end may be the fallback instead of an
                        // answer. It is held back, since the dialogue may ask again.
                        printer.held_text = (!printer.screen.is_writing()).then(String::new);
                        let reply = reader.finish(&end, &mut printer);
                        let finish = match end {
                            InputEnd::Finished(reason) | InputEnd::Incomplete(reason) => Some(reason),
                            // A reply without a finish reason counts as truncated.
                            InputEnd::WithoutReason => Some(FinishReason::Length),
                            _ => None,
                        };
                        let held_text = printer.held_text.unwrap_or_default();
                        return match printer.error {
                            Some(error) => Err(error.into()),
                            None => Ok(ModelAnswer { reply, held_text, raw_reply, finish, usage }),
                        };
                    }
                }
            }
        }
    }
}

/// Result of one model call.
struct ModelAnswer {
    reply: Result<ModelReply, Failure>,
    /// Text of the message that is not printed yet.
    held_text: String,
    /// Reply as received.
    raw_reply: String,
    /// Finish reason, `Length` if the reply ended without one; `None` after a failure.
    finish: Option<FinishReason>,
    /// Token counts of the service; null if it sent none.
    usage: Value,
}

/// Sink that prints the text of the message.
struct MessagePrinter<'a> {
    screen: &'a mut DialogueScreen,
    /// Buffer for held text; `None` while text is printed immediately.
    held_text: Option<String>,
    /// First error of printing.
    error: Option<io::Error>,
}

impl Sink for MessagePrinter<'_> {
    fn event(&mut self, event: Event<'_>) {
        let Event::FinalDelta { text } = event else { return };
        match &mut self.held_text {
            Some(held_text) => held_text.push_str(&text),
            None => {
                if let Err(error) = self.screen.print_text(&text) {
                    self.error.get_or_insert(error);
                }
            }
        }
    }

    fn finding(&mut self, _: Finding) {}
}
