//! Errors of tool calls, with texts in Chinese and English for the model and for readers of events. The codes
//! are the same in both languages.

use tambour::event::ToolError;
use tambour::options::Language;
use tambour::texts::format_count;

use super::guard::WebhookRefusal;

/// Reason why a call has no result.
#[derive(Clone, Debug)]
#[cfg_attr(
    not(feature = "mcp"),
    expect(dead_code, reason = "only servers with the feature `mcp` call tools of MCP servers")
)]
pub(crate) enum CallError {
    /// There is no tool of this name.
    NoTool(String),
    /// The caller may not use the tool of this name.
    Forbidden(String),
    /// The arguments violate the schema: message, and JSON pointer to the value.
    Arguments(String, String),
    /// Another call of the same reply must not run.
    OtherRefused,
    /// The user denied another call of the same reply.
    OtherDenied,
    /// An earlier call of the same reply failed.
    EarlierFailed,
    /// The message ended before the call began.
    MessageEnded,
    /// The server stopped before the call began.
    ServerStopped,
    /// The tool has no executor.
    NoExecutor,
    /// The user denied the call, perhaps with a reason.
    Denied(Option<String>),
    /// The user did not confirm the call within this many milliseconds.
    Unconfirmed(u64),
    /// The client gave no result within this many milliseconds.
    NoResult(u64),
    /// The message was cancelled while the call ran.
    Cancelled,
    /// The server stopped while the call ran.
    Interrupted,
    /// The URL of the webhook must not be called.
    Host(WebhookRefusal),
    /// The address of the webhook's host must not be called.
    Address(WebhookRefusal),
    /// The environment has no secret in the variable of this name.
    NoSecret(String),
    /// The webhook did not respond within this many milliseconds.
    Timeout(u64),
    /// The webhook responded with this error status and text.
    Status(u16, String),
    /// The webhook's response exceeds this many bytes.
    TooLarge(usize),
    /// The webhook cannot be reached.
    Unreachable,
    /// The server cannot create an HTTP client for webhooks.
    NoClient,
    /// The connection to the webhook broke.
    ConnectionBroken,
    /// The MCP server of this name cannot be reached.
    ServerDown(String),
    /// The MCP server did not respond within this many milliseconds.
    ServerTimeout(u64),
    /// The connection to the MCP server broke.
    ServerBroken,
    /// The MCP server refused the call, with this text.
    ServerRefused(String),
    /// The tool failed on the MCP server, with this text.
    ToolFailed(String),
    /// The MCP server's response exceeds this many bytes.
    ResultTooLarge(usize),
}

use CallError::*;

impl CallError {
    /// Returns the stable code, the same in both languages.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            NoTool(_) => "tool_unknown",
            Forbidden(_) => "tool_forbidden",
            Arguments(..) => "tool_args_invalid",
            OtherRefused | OtherDenied | EarlierFailed | MessageEnded | ServerStopped | NoExecutor => {
                "not_run"
            }
            Denied(_) => "denied",
            Unconfirmed(_) => "confirmation_timeout",
            NoResult(_) | Timeout(_) | ServerTimeout(_) => "timeout",
            Cancelled => "cancelled",
            Interrupted => "unknown",
            Host(_) => "host_not_allowed",
            Address(_) => "address_not_allowed",
            NoSecret(_) => "secret_missing",
            Status(..) => "http_status",
            TooLarge(_) | ResultTooLarge(_) => "answer_too_large",
            Unreachable | NoClient | ServerDown(_) => "unreachable",
            ConnectionBroken | ServerBroken => "broken_answer",
            ServerRefused(_) => "server_refused",
            ToolFailed(_) => "tool_failed",
        }
    }

    /// Returns the error as the result of the call.
    pub(crate) fn error(&self, language: Language) -> ToolError {
        ToolError { code: self.code().into(), message: self.text(language) }
    }

    /// Returns the explanation in a language.
    pub(crate) fn text(&self, language: Language) -> String {
        match language {
            Language::Zh => self.zh(),
            Language::En => self.en(),
        }
    }

    /// Returns the explanation in English.
    fn en(&self) -> String {
        match self {
            NoTool(name) => format!("there is no tool `{name}`"),
            Forbidden(name) => format!("this caller may not call `{name}`"),
            Arguments(message, place) => format!("{message} at `{place}` of the arguments"),
            OtherRefused => "not run, because another call of the plan must not run".to_owned(),
            OtherDenied => "not run, because another call of the plan was not allowed".to_owned(),
            EarlierFailed => "not run, because an earlier call of the plan failed".to_owned(),
            MessageEnded => "the message ended before the call began".to_owned(),
            ServerStopped => "the server stopped before the call began".to_owned(),
            NoExecutor => "the tool has no executor".to_owned(),
            Denied(None) => "the user did not allow the call".to_owned(),
            Denied(Some(reason)) => format!("the user did not allow the call: {reason}"),
            Unconfirmed(ms) => format!("nobody allowed the call within {ms} ms"),
            NoResult(ms) => format!("the client gave no result within {ms} ms"),
            Cancelled => "cancelled while the call ran; whether it took effect is not known".to_owned(),
            Interrupted => {
                "the server stopped while the call ran; whether it took effect is not known".to_owned()
            }
            Host(refusal) | Address(refusal) => refusal.to_string(),
            NoSecret(name) => format!("the server's environment has no secret `{name}`"),
            Timeout(ms) => {
                format!("the webhook did not answer within {ms} ms; whether it took effect is not known")
            }
            Status(status, body) if body.is_empty() => format!("the webhook answered {status}"),
            Status(status, body) => format!("the webhook answered {status}: {body}"),
            TooLarge(max_bytes) => {
                format!("the webhook answered more than {}", format_count(*max_bytes, "byte"))
            }
            Unreachable => "the webhook cannot be reached".to_owned(),
            NoClient => "the server cannot call webhooks".to_owned(),
            ConnectionBroken => {
                "the connection to the webhook broke; whether it took effect is not known".to_owned()
            }
            ServerDown(name) => format!("the MCP server `{name}` cannot be reached; the call was not sent"),
            ServerTimeout(ms) => {
                format!("the MCP server did not answer within {ms} ms; whether it took effect is not known")
            }
            ServerBroken => {
                "the connection to the MCP server broke; whether it took effect is not known".to_owned()
            }
            ServerRefused(body) => format!("the MCP server did not take the call: {body}"),
            ToolFailed(body) if body.is_empty() => "the tool failed, and did not say why".to_owned(),
            ToolFailed(body) => format!("the tool failed: {body}"),
            ResultTooLarge(max_bytes) => {
                format!("the MCP server answered more than {}", format_count(*max_bytes, "byte"))
            }
        }
    }

    /// Returns the explanation in Chinese.
    fn zh(&self) -> String {
        match self {
            NoTool(name) => format!("没有工具 `{name}`"),
            Forbidden(name) => format!("当前调用方无权调用 `{name}`"),
            Arguments(message, place) => format!("参数 `{place}` 不符合要求：{message}"),
            OtherRefused => "计划中的另一个调用不能执行，因此没有执行".to_owned(),
            OtherDenied => "计划中的另一个调用未获允许，因此没有执行".to_owned(),
            EarlierFailed => "计划中它之前的一个调用失败，因此没有执行".to_owned(),
            MessageEnded => "消息在它执行之前已经结束，没有执行".to_owned(),
            ServerStopped => "服务器在它执行之前停止，没有执行".to_owned(),
            NoExecutor => "没有执行者能运行这个工具".to_owned(),
            Denied(None) => "用户不允许执行".to_owned(),
            Denied(Some(reason)) => format!("用户不允许执行：{reason}"),
            Unconfirmed(ms) => format!("{ms} 毫秒内没有人允许执行"),
            NoResult(ms) => format!("客户端在 {ms} 毫秒内没有给出结果"),
            Cancelled => "执行过程中被取消，不清楚是否已经生效".to_owned(),
            Interrupted => "服务器在调用执行过程中停止，不清楚是否已经生效".to_owned(),
            Host(refusal) | Address(refusal) => refusal.chinese(),
            NoSecret(name) => format!("服务器的环境变量中没有密钥 `{name}`"),
            Timeout(ms) => format!("webhook 在 {ms} 毫秒内没有答复，不清楚是否已经生效"),
            Status(status, body) if body.is_empty() => format!("webhook 返回状态 {status}"),
            Status(status, body) => format!("webhook 返回状态 {status}：{body}"),
            TooLarge(max_bytes) => format!("webhook 的答复超过 {max_bytes} 字节"),
            Unreachable => "无法连接 webhook".to_owned(),
            NoClient => "服务器无法调用 webhook".to_owned(),
            ConnectionBroken => "与 webhook 的连接中断，不清楚是否已经生效".to_owned(),
            ServerDown(name) => format!("无法连接 MCP 服务器 `{name}`，调用没有发出"),
            ServerTimeout(ms) => format!("MCP 服务器在 {ms} 毫秒内没有答复，不清楚是否已经生效"),
            ServerBroken => "与 MCP 服务器的连接中断，不清楚是否已经生效".to_owned(),
            ServerRefused(body) => format!("MCP 服务器没有接受调用：{body}"),
            ToolFailed(body) if body.is_empty() => "工具执行失败，没有说明原因".to_owned(),
            ToolFailed(body) => format!("工具执行失败：{body}"),
            ResultTooLarge(max_bytes) => format!("MCP 服务器的答复超过 {max_bytes} 字节"),
        }
    }
}
