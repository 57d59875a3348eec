//! WebAssembly modules of the package `@tambour/core`: pass calls on to `tambour_engine`. Errors are thrown as the
//! JSON text of the engine.

use tambour_engine::Chunk;
use wasm_bindgen::prelude::wasm_bindgen;

/// Object of the engine.
#[wasm_bindgen]
pub struct Session(tambour_engine::Session);

#[wasm_bindgen]
impl Session {
    /// Creates an object of a kind.
    pub fn open(kind: &str, arguments: &str) -> Result<Session, String> {
        tambour_engine::Session::open(kind, arguments).map(Session)
    }

    /// Creates an object that belongs to this one.
    #[wasm_bindgen(js_name = openNext)]
    pub fn open_next(&mut self, kind: &str, arguments: &str) -> Result<Session, String> {
        self.0.open_next(kind, arguments).map(Session)
    }

    /// Reads the next text of a reply.
    #[wasm_bindgen(js_name = pushText)]
    pub fn push_text(&mut self, text: &str) -> Result<String, String> {
        self.0.push(Chunk::Text(text))
    }

    /// Reads the next bytes of a reply.
    #[wasm_bindgen(js_name = pushBytes)]
    pub fn push_bytes(&mut self, bytes: &[u8]) -> Result<String, String> {
        self.0.push(Chunk::Bytes(bytes))
    }

    /// Calls a method.
    pub fn call(&mut self, method: &str, arguments: &str) -> Result<String, String> {
        self.0.call(method, arguments)
    }

    /// Lets the object go early; the garbage collector does it otherwise.
    pub fn close(&mut self) {
        self.0.close();
    }
}

/// Calls a function.
#[wasm_bindgen]
pub fn call(name: &str, arguments: &str, input: &[u8]) -> Result<String, String> {
    tambour_engine::call(name, arguments, input)
}

/// Renders a prompt; `count` counts the tokens of a text, and returns a negative number if it fails.
#[cfg(feature = "prompts")]
#[wasm_bindgen(js_name = renderPrompt)]
pub fn render_prompt(
    arguments: &str,
    input: &[u8],
    count: Option<js_sys::Function>,
) -> Result<String, String> {
    let count_text = |text: &str| -> Option<usize> {
        let count = count.as_ref()?.call1(&wasm_bindgen::JsValue::NULL, &text.into()).ok()?.as_f64()?;
        (count >= 0.0).then_some(count as usize)
    };
    let count_text = count.is_some().then_some(&count_text as &dyn Fn(&str) -> Option<usize>);
    tambour_engine::render_prompt(arguments, input, js_sys::Date::now, count_text)
}

/// Version of the package.
#[wasm_bindgen]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}
