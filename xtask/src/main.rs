//! Developer commands.

mod peers;

fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("peers") => peers::run(&arguments[1..]),
        _ => {
            eprintln!("usage: cargo xtask peers [--verbose]");
            std::process::ExitCode::from(2)
        }
    }
}
