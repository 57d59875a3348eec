//! Terminal output of a dialogue.

use std::io::{self, IsTerminal, Write};

use tambour::event::Extension;
use tambour::options::Language;
use tambour_prompt::dialogue::{Dialogue, Turn};

use crate::output;

pub(super) struct Screen {
    language: Language,
    coloured: bool,
    /// True if a person is at the terminal and gets prompts.
    interactive: bool,
    /// True if a message is being written.
    writing: bool,
}

impl Screen {
    pub(super) fn new(language: Language) -> Screen {
        let stdout = io::stdout();
        Screen {
            language,
            coloured: output::coloured(&stdout),
            interactive: stdout.is_terminal() && io::stdin().is_terminal(),
            writing: false,
        }
    }

    /// Prints the next text of a message.
    pub(super) fn text(&mut self, text: &str) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        self.writing = true;
        let shown: String = text.chars().map(|c| if c == '\n' { c } else { output::visible(c) }).collect();
        stdout.write_all(shown.as_bytes())?;
        stdout.flush()
    }

    /// Returns whether a message is being written.
    pub(super) fn is_writing(&self) -> bool {
        self.writing
    }

    /// Ends the current message, if there is one.
    pub(super) fn ends_message(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.writing) {
            let mut stdout = io::stdout().lock();
            writeln!(stdout)?;
            stdout.flush()?;
        }
        Ok(())
    }

    /// Prints a request of the dialogue to the client.
    pub(super) fn request(&mut self, event: &Extension) -> io::Result<()> {
        let data = event.data();
        let fields = data.as_object().into_iter().flatten().filter(|(name, _)| *name != "call_id");
        self.dim(&format!("[{}]", event.name()))?;
        for (name, value) in fields {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            self.dim(&format!("  {name}: {text}"))?;
        }
        Ok(())
    }

    /// Prints the prompt for a line.
    pub(super) fn prompt(&self, answer: bool) -> io::Result<()> {
        if !self.interactive {
            return Ok(());
        }
        let mut stdout = io::stdout().lock();
        write!(stdout, "{}", if answer { "= " } else { "> " })?;
        stdout.flush()
    }

    /// Prints the position of the dialogue.
    pub(super) fn info(&self, turn: &Turn, dialogue: &Dialogue) -> io::Result<()> {
        let (round, level, none) = match self.language {
            Language::Zh => ("轮次", "理解度", "（无）"),
            Language::En => ("round", "understanding", "(none)"),
        };
        if let Some(position) = &turn.position {
            self.dim(&format!(
                "{} / {} / {} ({})",
                position.session, position.phase, position.topic, position.action_type
            ))?;
        }
        if let Some(metadata) = &turn.metadata {
            let most = metadata.max_rounds.map_or_else(String::new, |most| format!("/{most}"));
            self.dim(&format!("{round} {}{most}", metadata.current_round))?;
            let assessed = metadata.assessment.as_ref().map(|found| found["understanding_level"].to_string());
            self.dim(&format!("{level} {}", assessed.as_deref().unwrap_or(none)))?;
            if let Some(decision) = &metadata.exit_decision {
                self.dim(&decision.reason)?;
            }
        }
        let variables = serde_json::Value::Object(dialogue.variables());
        self.dim(&variables.to_string())
    }

    /// Prints the end of the dialogue.
    pub(super) fn over(&self, turn: &Turn) -> io::Result<()> {
        let decision = turn.metadata.as_ref().and_then(|metadata| metadata.exit_decision.as_ref());
        let over = match self.language {
            Language::Zh => "对话结束",
            Language::En => "the dialogue is over",
        };
        match decision {
            Some(decision) => self.dim(&format!("[{over}: {}]", decision.reason)),
            None => self.dim(&format!("[{over}]")),
        }
    }

    /// Prints a dimmed line that is no part of the dialogue.
    fn dim(&self, text: &str) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        let text: String = text.chars().map(output::visible).collect();
        if self.coloured { writeln!(stdout, "\x1b[2m{text}\x1b[0m") } else { writeln!(stdout, "{text}") }
    }
}
