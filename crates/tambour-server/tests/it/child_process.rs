//! Tests in processes of their own: the child is an ignored test of this binary, run by another test. It may die at a fail point, and
//! reports what its client has seen.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

/// Variable with the arguments of a child, as JSON.
const ARGUMENTS: &str = "TAMBOUR_CHILD";
/// Start of the lines in which a child reports.
const REPORT_PREFIX: &str = "SEEN ";
/// Label of the report of a death.
const DEATH: &str = "dies";

/// Command that runs the ignored test `test`, which finds `arguments` in [`child_arguments`].
pub(crate) fn child_command(test: &str, arguments: &Value) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([test, "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env(ARGUMENTS, arguments.to_string());
    command
}

/// Arguments that the parent gave this process.
pub(crate) fn child_arguments() -> Value {
    let arguments = std::env::var(ARGUMENTS).expect("the parent gives arguments");
    serde_json::from_str(&arguments).expect("they are JSON")
}

/// Runs the body of a child on two threads.
pub(crate) fn run_async<T>(body: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(body)
}

/// Runs a child whose test must pass.
pub(crate) fn run_passing_child(test: &str, arguments: &Value) {
    let ran = child_command(test, arguments).output().unwrap();
    let output = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success() && output.contains("1 passed"), "{output}");
}

type PointFilter = Box<dyn Fn(&str) -> bool + Send + Sync>;

/// Fail points that count, and how many of them are left until the death.
static DEATH_POINT: OnceLock<(PointFilter, AtomicU64)> = OnceLock::new();

/// Makes this process abort at the fail point `number`, from 1, of those that `counts` accepts. It dies as if killed: nothing is flushed
/// or closed.
pub(crate) fn die_at(number: u64, counts: impl Fn(&str) -> bool + Send + Sync + 'static) {
    let is_first = DEATH_POINT.set((Box::new(counts), AtomicU64::new(number))).is_ok();
    assert!(is_first, "a process dies once");
    tambour_server::fail::arm(|point| {
        let (counts, left) = DEATH_POINT.get().expect("it is set before the hook");
        if counts(point) && left.fetch_sub(1, Ordering::SeqCst) == 1 {
            print_seen(DEATH, &json!(point));
            std::process::abort();
        }
    });
}

/// Reports at once what the client of this process has seen. The label is one word.
pub(crate) fn print_seen(label: &str, value: &Value) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{REPORT_PREFIX}{label} {value}").unwrap();
    out.flush().unwrap();
}

/// Report of a child.
pub(crate) struct ChildReport {
    /// Things its client has seen, in order, each with its label.
    pub(crate) seen: Vec<(String, Value)>,
    /// Fail point at which it died.
    pub(crate) death: Option<String>,
}

impl ChildReport {
    /// First value with this label.
    pub(crate) fn find(&self, label: &str) -> Option<&Value> {
        self.values(label).next()
    }

    /// All values with this label.
    pub(crate) fn values(&self, label: &str) -> impl Iterator<Item = &Value> {
        self.seen.iter().filter(move |(name, _)| name == label).map(|(_, value)| value)
    }

    /// True if the client came to its end.
    pub(crate) fn has_ended(&self) -> bool {
        self.find("end").is_some()
    }
}

/// Runs a child that may die.
pub(crate) fn run_child(test: &str, arguments: &Value) -> ChildReport {
    let mut child =
        child_command(test, arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let seen = lines.filter_map(|line| {
        let line = line.ok()?;
        let (label, value) = line.strip_prefix(REPORT_PREFIX)?.split_once(' ')?;
        Some((label.to_owned(), serde_json::from_str(value).ok()?))
    });
    let mut seen: Vec<(String, Value)> = seen.collect();
    child.wait().unwrap();
    // Another thread may have reported after the death.
    let death = seen.iter().position(|(label, _)| label == DEATH).map(|at| seen.remove(at).1);
    ChildReport { seen, death: death.and_then(|point| point.as_str().map(str::to_owned)) }
}
