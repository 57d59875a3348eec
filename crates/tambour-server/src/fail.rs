//! Fail points: places where a crash, or a system that refuses, must lose and repeat nothing. Tests arm them; otherwise they cost one load.

use std::io;
use std::sync::OnceLock;

static HOOK: OnceLock<fn(&'static str)> = OnceLock::new();
static FAULTS: OnceLock<fn(&'static str) -> io::Result<()>> = OnceLock::new();

/// Calls `hook` at each fail point of this process from now on, with the point's name.
pub fn arm(hook: fn(&'static str)) {
    let _ = HOOK.set(hook);
}

/// Asks `hook` at each place where the system may refuse something, from now on: its error is taken for the system's.
pub fn arm_faults(hook: fn(&'static str) -> io::Result<()>) {
    let _ = FAULTS.set(hook);
}

/// Whether there is somebody who listens.
pub(crate) fn is_armed() -> bool {
    HOOK.get().is_some()
}

/// A fail point.
pub(crate) fn point(name: &'static str) {
    if let Some(hook) = HOOK.get() {
        hook(name);
    }
}

/// A place where the system may refuse something.
pub(crate) fn fault(name: &'static str) -> io::Result<()> {
    FAULTS.get().map_or(Ok(()), |hook| hook(name))
}
