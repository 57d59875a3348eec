//! Decorators: lines `@@name value` at the beginning of a lorebook entry's content, which are settings and
//! not text.

use std::collections::HashSet;

use super::super::lore::{EntryPosition, LoreEntry};
use super::fields::{CardFields, split_commas};
use super::model::read_role;

/// Priority that makes an entry the first to be dropped when the budget is short.
const LOWEST_PRIORITY: i64 = -1000;

/// Removes the decorators from the content of an entry and applies them. Of decorators with the same name,
/// the first counts; `@@@name` is a fallback that applies if the decorator above it is unknown or invalid.
pub(super) fn apply_decorators(entry: &mut LoreEntry, fields: &CardFields<'_>) {
    if !entry.content.trim_start().starts_with("@@") {
        return;
    }
    let content = std::mem::take(&mut entry.content);
    let mut remaining = content.as_str();
    let mut applied_names = HashSet::new();
    // True if the previous decorator, or an earlier one with its name, was applied. Fallbacks below it are
    // then skipped.
    let mut is_previous_applied = false;
    loop {
        let (line, remainder) = remaining.split_once('\n').unwrap_or((remaining, ""));
        let line = line.trim();
        if let Some(decorator) = line.strip_prefix("@@") {
            let (is_fallback, decorator) = match decorator.strip_prefix('@') {
                Some(decorator) => (true, decorator),
                None => (false, decorator),
            };
            let (name, value) = decorator.split_once(char::is_whitespace).unwrap_or((decorator, ""));
            if !(is_fallback && is_previous_applied) {
                is_previous_applied =
                    applied_names.contains(name) || apply_decorator(entry, name, value.trim(), fields);
                if is_previous_applied {
                    applied_names.insert(name.to_owned());
                } else {
                    fields.warn("content", &format!("has the unknown or invalid decorator `@@{name}`"));
                }
            }
        } else if !line.is_empty() {
            break;
        }
        remaining = remainder;
        if remaining.is_empty() {
            break;
        }
    }
    entry.content = remaining.trim_start_matches(['\n', '\r']).to_owned();
}

/// Applies one decorator; returns false if its name is unknown or its value invalid.
fn apply_decorator(entry: &mut LoreEntry, name: &str, value: &str, fields: &CardFields<'_>) -> bool {
    let number = value.parse::<u32>().ok();
    let assign = |field: &mut u32| number.map(|number| *field = number).is_some();
    match name {
        "activate" => entry.force = Some(true),
        "dont_activate" => entry.force = Some(false),
        "keep_activate_after_match" => entry.keep_after_match = true,
        "dont_activate_after_match" => entry.once = true,
        "activate_only_after" => return assign(&mut entry.only_after),
        "activate_only_every" => return assign(&mut entry.only_every),
        "depth" | "reverse_depth" => {
            if !assign(&mut entry.depth) {
                return false;
            }
            entry.position = EntryPosition::AtDepth;
            entry.from_start = name == "reverse_depth";
        }
        "scan_depth" => {
            let Some(number) = number else { return false };
            entry.scan_depth = Some(number);
        }
        "is_greeting" => {
            let Some(number) = number else { return false };
            entry.greeting = Some(number);
        }
        "role" => match read_role(&value.into()) {
            Some(role) => entry.role = role,
            None => return false,
        },
        "position" => {
            entry.position = match value {
                "before_desc" => EntryPosition::BeforeChar,
                "after_desc" => EntryPosition::AfterChar,
                "personality" => EntryPosition::Personality,
                "scenario" => EntryPosition::Scenario,
                _ => return false,
            }
        }
        "ignore_on_max_context" => entry.priority = LOWEST_PRIORITY,
        "additional_keys" => entry.additional_keys = split_commas(value),
        "exclude_keys" => entry.exclude_keys = split_commas(value),
        "instruct_depth"
        | "reverse_instruct_depth"
        | "instruct_scan_depth"
        | "is_user_icon"
        | "disable_ui_prompt" => {
            fields.warn(
                "content",
                &format!("has the decorator `@@{name}`, which is kept in the source and has no effect"),
            );
        }
        _ => return false,
    }
    true
}
