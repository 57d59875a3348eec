//! Terminal output of a dialogue: its messages, and dimmed status lines.

use std::io::{self, IsTerminal, Write};

use tambour::event::Extension;
use tambour::options::Language;
use tambour_prompt::dialogue::{Dialogue, DialogueTurn};

use crate::output;

/// Printer of a dialogue on standard output.
pub(super) struct DialogueScreen {
    language: Language,
    is_coloured: bool,
    /// True if a person is at the terminal and gets prompts.
    is_interactive: bool,
    /// True from the first printed text of a message to its end.
    is_writing: bool,
}

impl DialogueScreen {
    pub(super) fn new(language: Language) -> DialogueScreen {
        let stdout = io::stdout();
        DialogueScreen {
            language,
            is_coloured: output::is_coloured(&stdout),
            is_interactive: stdout.is_terminal() && io::stdin().is_terminal(),
            is_writing: false,
        }
    }

    /// Prints the next text of a message.
    pub(super) fn print_text(&mut self, text: &str) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        self.is_writing = true;
        let printable: String =
            text.chars().map(|c| if c == '\n' { c } else { output::visible_char(c) }).collect();
        stdout.write_all(printable.as_bytes())?;
        stdout.flush()
    }

    /// Returns `true` if text of a message is printed and the message has not ended.
    pub(super) fn is_writing(&self) -> bool {
        self.is_writing
    }

    /// Ends the current message, if there is one.
    pub(super) fn end_message(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.is_writing) {
            let mut stdout = io::stdout().lock();
            writeln!(stdout)?;
            stdout.flush()?;
        }
        Ok(())
    }

    /// Prints a request of the dialogue to the client.
    pub(super) fn print_request(&mut self, event: &Extension) -> io::Result<()> {
        let data = event.data();
        let fields = data.as_object().into_iter().flatten().filter(|(name, _)| *name != "call_id");
        self.print_dimmed(&format!("[{}]", event.name()))?;
        for (name, value) in fields {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            self.print_dimmed(&format!("  {name}: {text}"))?;
        }
        Ok(())
    }

    /// Prints the prompt before an input line (`> `, or `= ` for the answer to a form) if a person is at the
    /// terminal.
    pub(super) fn print_prompt(&self, is_form: bool) -> io::Result<()> {
        if !self.is_interactive {
            return Ok(());
        }
        let mut stdout = io::stdout().lock();
        write!(stdout, "{}", if is_form { "= " } else { "> " })?;
        stdout.flush()
    }

    /// Prints the position, round, understanding and variables of the dialogue.
    pub(super) fn print_position(&self, turn: &DialogueTurn, dialogue: &Dialogue) -> io::Result<()> {
        let (round_label, level_label, no_level) = match self.language {
            Language::Zh => ("轮次", "理解度", "（无）"),
            Language::En => ("round", "understanding", "(none)"),
        };
        if let Some(position) = &turn.position {
            self.print_dimmed(&format!(
                "{} / {} / {} ({})",
                position.session, position.phase, position.topic, position.action_type
            ))?;
        }
        if let Some(metadata) = &turn.metadata {
            let max_suffix = metadata.max_rounds.map_or_else(String::new, |max| format!("/{max}"));
            self.print_dimmed(&format!("{round_label} {}{max_suffix}", metadata.current_round))?;
            let assessed_level =
                metadata.assessment.as_ref().map(|assessment| assessment["understanding_level"].to_string());
            self.print_dimmed(&format!("{level_label} {}", assessed_level.as_deref().unwrap_or(no_level)))?;
            if let Some(decision) = &metadata.exit_decision {
                self.print_dimmed(&decision.reason)?;
            }
        }
        let variables = serde_json::Value::Object(dialogue.variables());
        self.print_dimmed(&variables.to_string())
    }

    /// Prints the end of the dialogue.
    pub(super) fn print_end(&self, turn: &DialogueTurn) -> io::Result<()> {
        let decision = turn.metadata.as_ref().and_then(|metadata| metadata.exit_decision.as_ref());
        let end_text = match self.language {
            Language::Zh => "对话结束",
            Language::En => "the dialogue is over",
        };
        match decision {
            Some(decision) => self.print_dimmed(&format!("[{end_text}: {}]", decision.reason)),
            None => self.print_dimmed(&format!("[{end_text}]")),
        }
    }

    /// Prints a dimmed status line, which is not part of the dialogue.
    fn print_dimmed(&self, text: &str) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        let text: String = text.chars().map(output::visible_char).collect();
        if self.is_coloured { writeln!(stdout, "\x1b[2m{text}\x1b[0m") } else { writeln!(stdout, "{text}") }
    }
}
