//! Fail points: named places at which tests simulate a crash or a system error, to show that nothing is lost
//! or done twice. An unarmed point costs one atomic load.

use std::io;
use std::sync::OnceLock;

/// Called at each fail point, where it may end the process.
static POINT_HOOK: OnceLock<fn(&'static str)> = OnceLock::new();
/// Called at each fault point. Its error replaces the result of the system call.
static FAULT_HOOK: OnceLock<fn(&'static str) -> io::Result<()>> = OnceLock::new();

/// Registers `hook`, which every fail point of this process calls with its name from now on. Only the first
/// hook counts.
pub fn arm(hook: fn(&'static str)) {
    let _ = POINT_HOOK.set(hook);
}

/// Registers `hook`, which may replace the result of a system call at each fault point with its own error.
/// Only the first hook counts.
pub fn arm_faults(hook: fn(&'static str) -> io::Result<()>) {
    let _ = FAULT_HOOK.set(hook);
}

/// Returns `true` if [`arm`] has registered a hook.
pub fn is_armed() -> bool {
    POINT_HOOK.get().is_some()
}

/// Marks a place where a test may crash the process.
pub fn point(name: &'static str) {
    if let Some(hook) = POINT_HOOK.get() {
        hook(name);
    }
}

/// Marks a system call that a test may make fail.
///
/// # Errors
/// The hook registered with [`arm_faults`] returns an error.
pub fn fault(name: &'static str) -> io::Result<()> {
    FAULT_HOOK.get().map_or(Ok(()), |hook| hook(name))
}
