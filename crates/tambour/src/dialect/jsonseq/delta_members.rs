//! Findings on a delta whose text was streamed while it arrived: the other members of its object.

use super::event::{contract_fields, is_acceptable_id, is_envelope_field};
use super::line::EventLine;
use super::order::EventOrder;
use super::rules;
use crate::finding::clip;
use crate::repair::json::MemberPlaces;

/// Reports the members of the delta `name` that were not emitted. `is_over` is set if the object exceeded the
/// limits.
pub(super) fn report_unsent(
    name: &str,
    line: &EventLine,
    members: &MemberPlaces,
    is_over: bool,
    order: &mut EventOrder,
) {
    let at = line.event_start;
    if is_over {
        let message = "an event with more text or values than `limits.hold` and `limits.items`";
        order.reports.add(rules::LIMIT_EXCEEDED, at, message, "what was sent of it is kept");
    } else if !line.is_framed
        && members.object_members(&[]).any(|member| contract_fields(name).contains(&member.key.as_str()))
    {
        order.reports.add(
            rules::DATA_FLAT,
            at,
            "the fields are beside `event`, not in `data`",
            "read all the same",
        );
    }
    let expected = |key: &str| contract_fields(name).contains(&key) || is_envelope_field(key);
    for member in members.iter() {
        let (key, level, extent) = (member.key.as_str(), member.level, member.extent);
        let parent = members.parent(member).map(|member| (member.key.as_str(), member.level));
        let field = match (parent, key) {
            (None, _) if line.is_framed => expected(key),
            (None, "data") => member.has_object(),
            (None, "event") => true,
            (None, _) => expected(key),
            (Some(("data", 1)), _) if !line.is_framed => level == 2 && expected(key),
            // Nested inside a member that is left out.
            _ => continue,
        };
        // A second `text` in the same object already has a finding as a duplicate key.
        if key == "text" && extent.0.offset != line.text_at && (is_over || level != line.text_depth) {
            let repair = "left out, the first one was sent";
            order.reports.add_at(
                rules::FIELD_EXTRA,
                "J-051",
                extent,
                "the delta has a second `text`",
                repair,
            );
        } else if key == "id" && field && line.id.as_ref().is_some_and(|id| !is_acceptable_id(id)) {
            order.reports.add_at(rules::FIELD_TYPE, "J-009", extent, "`id` has the wrong type", "left out");
        } else if !field {
            let clipped_key = clip(key, 40);
            let message = format!("`{name}` has the unknown field `{clipped_key}`");
            order.reports.add_at(rules::FIELD_EXTRA, "J-051", extent, message, "left out");
        }
    }
    if !line.has_text {
        order.report_empty_delta(name, at, "the text of a delta is empty");
    }
}
