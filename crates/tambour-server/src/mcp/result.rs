//! Results and errors of MCP calls, converted to those of tool calls, which the model reads.

use std::error::Error;

use rmcp::ServiceError;
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock, ResourceContents};
use rmcp::transport::streamable_http_client::StreamableHttpError;
use serde_json::{Value, json};

use crate::tools::CallError;

/// Maximum number of characters of a server's error text.
const MAX_ERROR_CHARS: usize = 2000;

/// Converts the response to a call.
///
/// # Errors
/// The server asks for more input, the tool failed, or the result is longer than `max_bytes` as JSON.
pub(super) fn call_result(response: CallToolResponse, max_bytes: usize) -> Result<Value, CallError> {
    let CallToolResponse::Complete(result) = response else {
        return Err(CallError::ServerRefused(
            "it asks for more input, and only complete results are supported".to_owned(),
        ));
    };
    let is_error = result.is_error == Some(true);
    let value = result_value(result);
    if is_error {
        let value_text = match value {
            Value::String(text) => text,
            other => other.to_string(),
        };
        return Err(CallError::ToolFailed(clip_error(&value_text)));
    }
    if value.to_string().len() > max_bytes {
        return Err(CallError::ResultTooLarge(max_bytes));
    }
    Ok(value)
}

/// Returns the structured content if there is one. Otherwise returns the content: `null` without blocks, the
/// text of a single text block, or a list of the blocks.
fn result_value(result: CallToolResult) -> Value {
    if let Some(structured_content) = result.structured_content {
        return structured_content;
    }
    let mut blocks = result.content.into_iter();
    match (blocks.next(), blocks.len()) {
        (None, _) => Value::Null,
        (Some(ContentBlock::Text(text)), 0) => {
            // Text that is a JSON list or object is parsed; other JSON (`007`, `true`) stays text.
            let json = serde_json::from_str(&text.text)
                .ok()
                .filter(|value: &Value| value.is_object() || value.is_array());
            json.unwrap_or(Value::String(text.text))
        }
        (Some(first), _) => std::iter::once(first).chain(blocks).map(block_json).collect(),
    }
}

/// Converts a block to JSON. Binary data is left out, since the model reads text: `left_out` has its size.
fn block_json(block: ContentBlock) -> Value {
    match block {
        ContentBlock::Text(text) => json!({"type": "text", "text": text.text}),
        ContentBlock::Image(image) => {
            json!({"type": "image", "mime_type": image.mime_type, "left_out": decoded_size(&image.data)})
        }
        ContentBlock::Audio(audio) => {
            json!({"type": "audio", "mime_type": audio.mime_type, "left_out": decoded_size(&audio.data)})
        }
        ContentBlock::ResourceLink(link) => {
            json!({"type": "resource_link", "uri": link.uri, "name": link.name})
        }
        ContentBlock::Resource(embedded_resource) => match embedded_resource.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                json!({"type": "resource", "uri": uri, "text": text})
            }
            ResourceContents::BlobResourceContents { uri, blob, .. } => {
                json!({"type": "resource", "uri": uri, "left_out": decoded_size(&blob)})
            }
            _ => json!({"type": "resource"}),
        },
        _ => json!({"type": "other"}),
    }
}

/// Formats the approximate size of data in base64, of which four characters are three bytes.
fn decoded_size(base64: &str) -> String {
    format!("{} bytes", base64.len() / 4 * 3)
}

/// Converts an error of the MCP client into the reason why a call of `server` has no result. `max_bytes` is
/// the size limit, which the error for a result that is too large names.
pub(super) fn call_error(error: &ServiceError, server: &str, max_bytes: usize) -> CallError {
    match error {
        ServiceError::McpError(error) => CallError::ServerRefused(clip_error(&error.message)),
        ServiceError::UnexpectedResponse => {
            CallError::ServerRefused("its answer is not a response to a tool call".to_owned())
        }
        ServiceError::TransportSend(transport_error) => {
            let mut cause: Option<&(dyn Error + 'static)> = Some(transport_error.error.as_ref());
            while let Some(error) = cause {
                if let Some(http_error) = error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
                    match http_error {
                        StreamableHttpError::ResponseBodyTooLarge { .. } => {
                            return CallError::ResultTooLarge(max_bytes);
                        }
                        StreamableHttpError::HttpStatus(status) => {
                            return CallError::ServerRefused(format!("HTTP {}", status.status));
                        }
                        StreamableHttpError::AuthRequired(_) | StreamableHttpError::InsufficientScope(_) => {
                            return CallError::ServerRefused("it refused the key".to_owned());
                        }
                        StreamableHttpError::UnexpectedServerResponse(body) => {
                            return CallError::ServerRefused(clip_error(body));
                        }
                        // The call was never received.
                        StreamableHttpError::Client(error) if error.is_connect() => {
                            return CallError::ServerDown(server.to_owned());
                        }
                        _ => {}
                    }
                }
                cause = error.source();
            }
            CallError::ServerBroken
        }
        _ => CallError::ServerBroken,
    }
}

fn clip_error(text: &str) -> String {
    text.trim().chars().take(MAX_ERROR_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use rmcp::model::{CallToolResult, ContentBlock};
    use serde_json::json;

    use super::call_result;

    fn text(text: &str) -> ContentBlock {
        ContentBlock::text(text)
    }

    #[test]
    fn a_result_is_structured_content_text_or_a_list_of_blocks() {
        let ok = |blocks| call_result(CallToolResult::success(blocks).into(), 1000).unwrap();
        assert_eq!(ok(vec![]), json!(null));
        assert_eq!(ok(vec![text("007")]), json!("007"));
        assert_eq!(ok(vec![text("{\"a\": [1]}")]), json!({"a": [1]}));
        assert_eq!(
            ok(vec![text("a"), ContentBlock::image("AAAA", "image/png")]),
            json!([{"type": "text", "text": "a"}, {"type": "image", "mime_type": "image/png", "left_out": "3 bytes"}])
        );
        let structured_content = CallToolResult::structured(json!({"n": 1}));
        assert_eq!(call_result(structured_content.into(), 1000).unwrap(), json!({"n": 1}));
        let long_result = call_result(CallToolResult::success(vec![text(&"x".repeat(1000))]).into(), 1000);
        assert_eq!(long_result.unwrap_err().code(), "answer_too_large");
        let error_result = call_result(CallToolResult::error(vec![text("no such file")]).into(), 1000);
        assert_eq!(error_result.unwrap_err().code(), "tool_failed");
    }
}
