//! Prints a reply as it arrives, and its faults.

use tambour::event::{Event, Sink};
use tambour::{Finding, InputEnd, Options, Pipeline};

#[derive(Default)]
struct Printer(Vec<Finding>);

impl Sink for Printer {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::PhaseStart { title, .. } => {
                println!("thinks: {title}");
            }
            Event::FinalDelta { text } => print!("{text}"),
            Event::FinalEnd => println!(),
            _ => {}
        }
    }
    fn finding(&mut self, finding: Finding) {
        self.0.push(finding);
    }
}

fn main() -> Result<(), tambour::Error> {
    // Chunks of a reply, as they arrive.
    let reply = [r#"<thinking><phase id="1"><title>Sum</title>"#, "2 + 2</phase><final>It is", " 4.</final>"];
    let mut printer = Printer::default();
    let options = Options::default();
    let mut pipeline = Pipeline::new("thinkingml", &options)?;
    for chunk in reply {
        pipeline.push(chunk.as_bytes(), &mut printer);
    }
    pipeline.finish(&InputEnd::stop(), &mut printer);
    for found in printer.0 {
        println!("{}:{} {}", found.line, found.column, found.message);
    }
    Ok(())
}
