//! Addon of the package `@tambour/core` for Node: passes calls on to `tambour_engine`. Errors have the JSON text of
//! the engine as their message.

use std::time::Instant;

use napi::bindgen_prelude::{Function, Result};
use napi_derive::napi;
use tambour_engine::{Answer, Chunk};

/// Allocator of the addon: JSON values are many small allocations.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Object of the engine.
#[napi]
pub struct Session(tambour_engine::Session);

#[napi]
impl Session {
    /// Creates an object of a kind.
    #[napi(factory)]
    pub fn open(kind: String, arguments: String) -> Result<Session> {
        tambour_engine::Session::open(&kind, &arguments).map(Session).map_err(napi::Error::from_reason)
    }

    /// Creates an object that belongs to this one.
    #[napi]
    pub fn open_next(&mut self, kind: String, arguments: String) -> Result<Session> {
        self.0.open_next(&kind, &arguments).map(Session).map_err(napi::Error::from_reason)
    }

    /// Reads the next text of a reply.
    #[napi]
    pub fn push_text(&mut self, text: String) -> Result<String> {
        throw(self.0.push(Chunk::Text(&text)))
    }

    /// Reads the next bytes of a reply.
    #[napi]
    pub fn push_bytes(&mut self, bytes: &[u8]) -> Result<String> {
        throw(self.0.push(Chunk::Bytes(bytes)))
    }

    /// Calls a method.
    #[napi]
    pub fn call(&mut self, method: String, arguments: String) -> Result<String> {
        throw(self.0.call(&method, &arguments))
    }

    /// Lets the object go early; the garbage collector does it otherwise.
    #[napi]
    pub fn close(&mut self) {
        self.0.close();
    }
}

/// Calls a function.
#[napi]
pub fn call(name: String, arguments: String, input: &[u8]) -> Result<String> {
    throw(tambour_engine::call(&name, &arguments, input))
}

/// Renders a prompt; `count` counts the tokens of a text, and returns a negative number if it fails.
#[napi]
pub fn render_prompt(
    arguments: String,
    input: &[u8],
    count: Option<Function<'_, String, i64>>,
) -> Result<String> {
    let count_text = |text: &str| -> Option<usize> {
        let count = count.as_ref()?.call(text.to_owned()).ok()?;
        usize::try_from(count).ok()
    };
    let count_text = count.is_some().then_some(&count_text as &dyn Fn(&str) -> Option<usize>);
    throw(tambour_engine::render_prompt(&arguments, input, now, count_text))
}

/// Version of the package.
#[napi]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

/// Milliseconds since the first call.
fn now() -> f64 {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_secs_f64() * 1000.0
}

fn throw(answer: Answer) -> Result<String> {
    answer.map_err(napi::Error::from_reason)
}
