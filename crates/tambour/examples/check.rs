//! Checks a recorded reply against a contract, as a test in CI does; exits with 1 if the reply breaks a rule.
//!
//! ```console
//! $ cargo run -q -p tambour --example check -- thinkingml examples/replies/squat-depth.txt
//! ```

use std::process::ExitCode;

use tambour::verdict::Contract;
use tambour::{Options, Profile, Severity};

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(contract), Some(path)) = (arguments.next(), arguments.next()) else {
        return Err("usage: check CONTRACT FILE".into());
    };
    let mut options = Options::default();
    options.profile = Profile::Strict;
    let verdict = Contract::from_name(&contract)?.check(&std::fs::read(path)?, &options);
    for finding in &verdict.findings {
        println!(
            "{}:{} {} {}: {}",
            finding.line, finding.column, finding.rule, finding.code, finding.message
        );
    }
    let has_errors = verdict.findings.iter().any(|finding| finding.severity == Severity::Error);
    Ok(ExitCode::from(u8::from(has_errors)))
}
