//! Reads a reply from standard input as it arrives and prints its thinking, dimmed, and its answer.
//!
//! ```console
//! $ printf '<think>2 + 2</think>It is 4.' | cargo run -q -p tambour --example stream
//! ```

use std::io::{self, Read, Write};

use tambour::{Event, InputEnd, Options, Pipeline};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut stdout = io::stdout().lock();
    let mut write_error = None;
    let mut sink = |event: Event<'_>| {
        let written = match event {
            Event::PhaseStart { id, title } => writeln!(stdout, "\x1b[2m{id}. {title}"),
            Event::PhaseDelta { text, .. } => write!(stdout, "{text}"),
            Event::ThinkingEnd => writeln!(stdout, "\x1b[0m"),
            Event::FinalDelta { text } => write!(stdout, "{text}"),
            Event::FinalEnd => writeln!(stdout),
            _ => Ok(()),
        };
        write_error = write_error.take().or_else(|| written.and_then(|()| stdout.flush()).err());
    };
    let mut pipeline = Pipeline::new("auto", &Options::default())?;
    let mut input = io::stdin().lock();
    let mut buffer = [0; 4096];
    loop {
        match input.read(&mut buffer)? {
            0 => break,
            len => pipeline.push(&buffer[..len], &mut sink),
        }
    }
    pipeline.finish(&InputEnd::stop(), &mut sink);
    match write_error {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}
