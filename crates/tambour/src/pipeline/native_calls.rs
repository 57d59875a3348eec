//! Tool calls that an upstream sends apart from the text of a reply, in its own format. Like calls in the
//! text they act at the end of the reply if complete and valid; otherwise the user gets a notice.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::dialect::{CallIntent, ReplyAction};
use crate::event::Notice;
use crate::finding::{Doubt, clip};
use crate::options::Options;
use crate::repair::json::{self, ValueDoubt};
use crate::texts::Language;
use crate::tool::MAX_REPLY_CHECK_STEPS;

/// A call as received.
struct NativeCallText {
    name: String,
    arguments: String,
}

/// Native calls of one reply, and the options they are checked against.
pub(super) struct NativeCalls {
    calls: Vec<NativeCallText>,
    options: Arc<Options>,
}

/// Reason why a call does not act.
enum NativeCallRefusal {
    /// The reply was truncated.
    Truncated,
    UnknownTool,
    /// The tool does not permit the caller.
    Forbidden,
    /// The arguments are not one complete JSON object.
    InvalidJson,
    /// The arguments are empty, and the tool requires some.
    NoArguments,
    /// A value may not be the one that was meant.
    DoubtfulValue(ValueDoubt),
    /// The arguments do not satisfy the tool's schema; holds the first mismatch.
    InvalidArguments(String),
}

impl NativeCalls {
    pub(super) fn new(options: &Arc<Options>) -> NativeCalls {
        NativeCalls { calls: Vec::new(), options: options.clone() }
    }

    /// Returns whether no call was received.
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Adds a call; `arguments` is JSON text as received.
    pub(super) fn push(&mut self, name: &str, arguments: &str) {
        self.calls.push(NativeCallText { name: name.to_owned(), arguments: arguments.to_owned() });
    }

    /// Ends the reply: returns for each call, in order, its action or the notice that refuses it.
    pub(super) fn finish(&mut self, is_truncated: bool) -> Vec<Result<ReplyAction, Notice>> {
        let calls = std::mem::take(&mut self.calls);
        let mut steps_left = MAX_REPLY_CHECK_STEPS;
        let judge = |NativeCallText { name, arguments }: NativeCallText| match self.judge(
            &name,
            &arguments,
            is_truncated,
            &mut steps_left,
        ) {
            Ok(args) => Ok(ReplyAction::Call(CallIntent { name, args })),
            Err(refusal) => Err(self.notice(&name, &refusal)),
        };
        calls.into_iter().map(judge).collect()
    }

    /// Returns the arguments of a call if it may act. `steps_left` is the number of checking steps left for
    /// all calls of the reply.
    fn judge(
        &self,
        name: &str,
        arguments: &str,
        is_truncated: bool,
        steps_left: &mut u64,
    ) -> Result<Value, NativeCallRefusal> {
        if is_truncated {
            return Err(NativeCallRefusal::Truncated);
        }
        let Options { tools, caller, .. } = &*self.options;
        let tool = tools.as_ref().and_then(|tools| tools.get(name)).ok_or(NativeCallRefusal::UnknownTool)?;
        if !tool.allows_caller(caller.as_deref()) {
            return Err(NativeCallRefusal::Forbidden);
        }
        let args = self.parse_arguments(arguments)?;
        // One mismatch is enough to refuse the call.
        match tool.check_within(&args, 1, steps_left).pop() {
            None => Ok(args),
            Some(_) if arguments.trim().is_empty() => Err(NativeCallRefusal::NoArguments),
            Some(mismatch) => Err(NativeCallRefusal::InvalidArguments(format!(
                "`{}`: {}",
                mismatch.pointer, mismatch.message
            ))),
        }
    }

    /// Parses the arguments: an object that was complete as received, with no doubtful value in it. Blank
    /// text is the empty object.
    fn parse_arguments(&self, arguments: &str) -> Result<Value, NativeCallRefusal> {
        if arguments.trim().is_empty() {
            return Ok(Value::Object(Map::new()));
        }
        let found = json::find(arguments, &self.options.limits);
        let is_complete = !found.is_auto_closed && found.candidate_count == 1;
        let value = found
            .value
            .filter(|value| value.is_object() && is_complete)
            .ok_or(NativeCallRefusal::InvalidJson)?;
        // The empty path is the whole value.
        match found.doubts.find_within(&[]) {
            Some(doubt) => Err(NativeCallRefusal::DoubtfulValue(doubt.clone())),
            None => Ok(value),
        }
    }

    /// Builds the notice about a refused call.
    fn notice(&self, name: &str, refusal: &NativeCallRefusal) -> Notice {
        const MAX_NAME_CHARS: usize = 60;
        let name = clip(name, MAX_NAME_CHARS);
        let is_chinese = self.options.texts.language == Language::Zh;
        let (code, message) = match (refusal, is_chinese) {
            (NativeCallRefusal::Truncated, true) => {
                ("tool_call_cut", format!("工具调用 `{name}` 未完整，没有执行"))
            }
            (NativeCallRefusal::Truncated, false) => {
                ("tool_call_cut", format!("the call of `{name}` was cut and does not run"))
            }
            (NativeCallRefusal::UnknownTool, true) => ("tool_unknown", format!("没有名为 `{name}` 的工具")),
            (NativeCallRefusal::UnknownTool, false) => ("tool_unknown", format!("there is no tool `{name}`")),
            (NativeCallRefusal::Forbidden, true) => {
                ("tool_forbidden", format!("不允许在此调用工具 `{name}`"))
            }
            (NativeCallRefusal::Forbidden, false) => {
                ("tool_forbidden", format!("`{name}` may not be called by this caller"))
            }
            (NativeCallRefusal::InvalidJson, true) => {
                ("tool_args_invalid", format!("工具 `{name}` 的参数不是完整的 JSON 对象"))
            }
            (NativeCallRefusal::InvalidJson, false) => {
                ("tool_args_invalid", format!("the arguments of `{name}` are not a complete JSON object"))
            }
            (NativeCallRefusal::NoArguments, true) => ("args_missing", format!("工具 `{name}` 缺少参数")),
            (NativeCallRefusal::NoArguments, false) => {
                ("args_missing", format!("`{name}` needs arguments, but has none"))
            }
            (NativeCallRefusal::DoubtfulValue(doubt), is_chinese) => {
                let code = match doubt.doubt {
                    Doubt::InexactNumber => "number_out_of_range",
                    Doubt::DuplicateKey => "duplicate_key",
                    _ => "value_guessed",
                };
                let reason = &doubt.message;
                let message = match is_chinese {
                    true => format!("工具 `{name}` 的参数不确定，没有执行：{reason}"),
                    false => format!("`{name}` does not run, its arguments are in doubt: {reason}"),
                };
                (code, message)
            }
            (NativeCallRefusal::InvalidArguments(reason), true) => {
                ("tool_args_invalid", format!("工具 `{name}` 的参数不符合要求：{reason}"))
            }
            (NativeCallRefusal::InvalidArguments(reason), false) => {
                ("tool_args_invalid", format!("the arguments of `{name}` do not fit its schema: {reason}"))
            }
        };
        Notice { code: code.into(), message, reference: Some(name.into_owned()) }
    }
}
