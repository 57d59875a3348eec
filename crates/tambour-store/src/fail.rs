//! Fail points: named places at which tests simulate a crash or a system error, to show that nothing is lost
//! or done twice. An unarmed point costs one atomic load.

use std::io;
use std::sync::OnceLock;

static HOOK: OnceLock<fn(&'static str)> = OnceLock::new();
static FAULTS: OnceLock<fn(&'static str) -> io::Result<()>> = OnceLock::new();

/// Registers `hook`, which every fail point of this process calls with its name from now on. Only the first
/// hook counts.
pub fn arm(hook: fn(&'static str)) {
    let _ = HOOK.set(hook);
}

/// Registers `hook`, which may replace the result of a system call at each fault point with its own error.
/// Only the first hook counts.
pub fn arm_faults(hook: fn(&'static str) -> io::Result<()>) {
    let _ = FAULTS.set(hook);
}

/// Returns `true` if a hook is registered.
pub fn is_armed() -> bool {
    HOOK.get().is_some()
}

/// Marks a place where a test may crash the process.
pub fn point(name: &'static str) {
    if let Some(hook) = HOOK.get() {
        hook(name);
    }
}

/// Marks a system call that a test may make fail.
pub fn fault(name: &'static str) -> io::Result<()> {
    FAULTS.get().map_or(Ok(()), |hook| hook(name))
}
