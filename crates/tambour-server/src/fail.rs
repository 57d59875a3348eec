//! Fail points: places where a crash must lose and repeat nothing. Tests arm them; otherwise they cost one load.

use std::sync::OnceLock;

static HOOK: OnceLock<fn(&'static str)> = OnceLock::new();

/// Calls `hook` at each fail point of this process from now on, with the point's name.
pub fn arm(hook: fn(&'static str)) {
    let _ = HOOK.set(hook);
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
