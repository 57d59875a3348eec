//! Copies the stderr of an MCP program to the server's own log, bounded.

use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt};

/// Maximum length of a logged line in bytes; the rest of the line is dropped.
const MAX_LINE_BYTES: usize = 1000;
/// Maximum number of lines logged per minute.
const MAX_LINES_PER_MINUTE: u32 = 100;
const MINUTE: Duration = Duration::from_secs(60);

/// Logs the lines of the program of the MCP server `name`. Reads all output, including what is not logged, so
/// that the program never blocks on a full pipe.
pub(super) async fn log_stderr(name: String, mut stderr: impl AsyncRead + Unpin) {
    let mut lines = LineSplitter::default();
    let mut buffer = vec![0; 4 << 10];
    let (mut window_start, mut line_count) = (Instant::now(), 0);
    while let Ok(length @ 1..) = stderr.read(&mut buffer).await {
        lines.push(&buffer[..length], |line| {
            if window_start.elapsed() >= MINUTE {
                (window_start, line_count) = (Instant::now(), 0);
            }
            line_count += 1;
            match line_count {
                ..=MAX_LINES_PER_MINUTE => {
                    tracing::info!(mcp = name, said = line, "the program of the MCP server")
                }
                _ if line_count == MAX_LINES_PER_MINUTE + 1 => {
                    tracing::warn!(
                        mcp = name,
                        "the program of the MCP server writes too many lines; dropping the rest of this \
                         minute"
                    );
                }
                _ => {}
            }
        });
    }
}

/// Splits output into lines of bounded length.
#[derive(Default)]
struct LineSplitter {
    /// Beginning of the line that is not complete yet, at most `MAX_LINE_BYTES`.
    line: Vec<u8>,
}

impl LineSplitter {
    /// Adds bytes and passes each completed line to `on_line`. Empty lines are left out, and a last line
    /// without a line break is never passed on.
    fn push(&mut self, mut bytes: &[u8], mut on_line: impl FnMut(&str)) {
        while let Some(at) = memchr::memchr(b'\n', bytes) {
            self.push_part(&bytes[..at]);
            let text = String::from_utf8_lossy(&self.line);
            // Control characters could change the terminal that shows the log.
            let text: String =
                text.trim_end().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            if !text.is_empty() {
                on_line(&text);
            }
            self.line.clear();
            bytes = &bytes[at + 1..];
        }
        self.push_part(bytes);
    }

    fn push_part(&mut self, bytes: &[u8]) {
        let free_bytes = MAX_LINE_BYTES.saturating_sub(self.line.len());
        self.line.extend_from_slice(&bytes[..bytes.len().min(free_bytes)]);
    }
}

#[cfg(test)]
mod tests {
    use super::{LineSplitter, MAX_LINE_BYTES};

    #[test]
    fn lines_are_cut_to_length_and_lose_control_characters() {
        let (mut splitter, mut lines) = (LineSplitter::default(), Vec::new());
        for piece in ["a", "b\r\nc\x1b[31m\n\n", &"x".repeat(MAX_LINE_BYTES), "more\nlast"] {
            splitter.push(piece.as_bytes(), |line| lines.push(line.to_owned()));
        }
        assert_eq!(lines, ["ab", "c [31m", &"x".repeat(MAX_LINE_BYTES)]);
        assert_eq!(splitter.line, b"last");
    }
}
