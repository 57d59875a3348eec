//! Findings on the members of `response` other than the message.

use serde_json::Value;

use super::field_extents::FieldExtents;
use super::message::{AnswerMessage, MessageKeyKind};
use super::{SPEC_ROLE, rules};
use crate::finding::FindingReport;
use crate::finding::clip;
use crate::repair::json::MemberPlace;
use crate::span::Extent;

/// Members of one `response`, and the position of its message.
pub(super) struct ResponseMembers<'a> {
    /// Places of the answer's fields.
    pub(super) places: &'a FieldExtents,
    pub(super) message: &'a AnswerMessage,
    /// Keys of the message, preferred first.
    pub(super) roles: &'a [String],
    /// Set if the reader added the end of the answer.
    pub(super) is_truncated: bool,
}

impl ResponseMembers<'_> {
    /// Reports the members that are not the message, of the response with this name and value.
    pub(super) fn report(&self, name: &str, value: &Value, reports: &mut Vec<FindingReport>) {
        let responses: Vec<&MemberPlace> = self
            .places
            .fields_at(&[])
            .into_iter()
            .filter(|member| member.key == name && !self.places.is_reported_duplicate(member))
            .collect();
        for response in &responses {
            let is_joined = self.message.is_joined()
                && self.message.sent_key().is_some_and(|(at, _)| at == response.extent.place);
            if is_joined {
                // The entire value is the message.
                continue;
            }
            self.report_message_key(response, reports);
            // An array without the message is left out as a unit.
            if !value.is_array() || self.has_message(response) {
                self.report_members(response, value, reports);
            }
        }
        self.report_lost(reports);
    }

    /// Returns true if the message is inside the member.
    pub(super) fn has_message(&self, member: &MemberPlace) -> bool {
        self.message.sent_key().is_some_and(|(at, _)| member.contains(at.offset))
    }

    /// Reports a message that is under a key other than the role.
    fn report_message_key(&self, response: &MemberPlace, reports: &mut Vec<FindingReport>) {
        let Some((at, kind)) = self.message.sent_key() else { return };
        if !response.contains(at.offset) {
            return;
        }
        let sent_member = self
            .places
            .innermost_at(at.offset)
            .filter(|key| key.extent.place == at && self.roles.contains(&key.key));
        if let Some(key) = &sent_member
            && self.roles.first() != Some(&key.key)
            && key.key != SPEC_ROLE
        {
            let message = format!("`{}` is the role in texts of another language", key.key);
            let report = FindingReport::new(rules::ROLE_KEY_UNEXPECTED, at, key.key_end, message);
            reports.push(report.with_repair("read as the role"));
        }
        if kind == MessageKeyKind::RoleOrResponse {
            return;
        }
        let outermost = self.places.members_within(response).find(|member| member.contains(at.offset));
        // A role key nested in another key does not count as a role key.
        let is_outermost =
            |key: &&MemberPlace| outermost.is_none_or(|member| member.extent.place == key.extent.place);
        let sent_member = sent_member.filter(is_outermost);
        if let Some(key) = sent_member {
            let report = FindingReport::new(rules::FIELD_TYPE, at, key.extent.end, "the message is a list");
            return reports.push(report.with_repair("its texts are taken"));
        }
        let message = "the message is under a key other than the role";
        let key = self.places.innermost_at(at.offset).filter(|key| key.extent.place == at);
        let (start, end, repair) = match (outermost, key) {
            (Some(outermost), Some(key)) => {
                (outermost.extent.place, key.key_end, "left out: its text is taken as the message")
            }
            // The text is not under a key, or the place of its key was not recorded.
            (Some(MemberPlace { extent, .. }), _) => {
                (extent.place, extent.end, "taken as the message, its keys not used")
            }
            _ => (at, response.extent.end, "taken as the message, the key not used"),
        };
        reports.push(FindingReport::new(rules::ROLE_KEY_UNEXPECTED, start, end, message).with_repair(repair));
    }

    /// Reports each member of the response that is not the message, does not contain it and is not inside a
    /// reported member.
    fn report_members(&self, response: &MemberPlace, value: &Value, reports: &mut Vec<FindingReport>) {
        // Offset after the last member that was handled with everything in it.
        let mut covered_end = 0;
        for member in self.places.members_within(response) {
            let Extent { place: at, end } = member.extent;
            if self.message.is_joined() && self.has_message(member) {
                covered_end = end;
                continue;
            }
            if at.offset < covered_end
                || self.has_message(member)
                || self.places.is_reported_duplicate(member)
            {
                continue;
            }
            covered_end = end;
            if !self.is_ignorable(member, value.get(&member.key)) {
                let name = clip(&member.key, 40);
                let message = match self.message.sent_key() {
                    Some(_) => format!("`response` holds `{name}` beside the message"),
                    None => format!("`response` holds `{name}` and no message"),
                };
                reports.push(
                    FindingReport::new(rules::ROLE_KEY_UNEXPECTED, at, end, message).with_repair("left out"),
                );
            }
        }
    }

    /// Returns true if leaving the member out loses nothing: a role without text, or a partial role key at
    /// the point of truncation.
    fn is_ignorable(&self, member: &MemberPlace, value: Option<&Value>) -> bool {
        match value {
            None | Some(Value::String(_) | Value::Null) if self.roles.contains(&member.key) => {
                !self.message.lost_keys().contains(&member.extent.place)
            }
            Some(Value::Null) => {
                self.is_truncated && self.roles.iter().any(|role| role.starts_with(&member.key))
            }
            _ => false,
        }
    }

    /// Reports lost texts that share a member with the message, at that member; each member once.
    fn report_lost(&self, reports: &mut Vec<FindingReport>) {
        let mut last: Option<Extent> = None;
        for at in self.message.lost_keys() {
            let enclosing = self.places.innermost_at(at.offset).filter(|member| self.has_message(member));
            let Some(extent) = enclosing.map(|member| member.extent) else { continue };
            if last.replace(extent) != Some(extent) {
                let message = "`response` holds a text beside the message";
                let report =
                    FindingReport::new(rules::ROLE_KEY_UNEXPECTED, extent.place, extent.end, message);
                reports.push(report.with_repair("not sent"));
            }
        }
    }
}
