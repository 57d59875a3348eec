//! Findings on the members of `response` other than the message.

use serde_json::Value;

use super::message::{How, Message};
use super::options::NAMED;
use super::rules;
use super::stands::Stands;
use crate::finding::Report;
use crate::finding::clip;
use crate::repair::json::{Member, Stand};

/// Members of one `response`, and the position of its message.
pub(super) struct Beside<'a> {
    pub(super) stands: &'a Stands,
    pub(super) message: &'a Message,
    pub(super) roles: &'a [String],
    /// Set if the reader added the end of the answer.
    pub(super) cut: bool,
}

impl Beside<'_> {
    /// Reports the members under `name` that are not the message.
    pub(super) fn report(&self, name: &str, value: &Value, reports: &mut Vec<Report>) {
        let responses: Vec<&Member> = self
            .stands
            .of(&[])
            .into_iter()
            .filter(|member| member.key == name && !self.stands.is_told(member))
            .collect();
        for response in &responses {
            let joined =
                self.message.is_joined() && self.message.sent().is_some_and(|(at, _)| at == response.stand.0);
            if joined {
                // The entire value is the message.
                continue;
            }
            self.message_key(response, reports);
            // An array without the message is left out as a unit.
            if !value.is_array() || self.has_message(response) {
                self.members(response, value, reports);
            }
        }
        self.lost(reports);
    }

    /// Returns true if the message is inside the member.
    pub(super) fn has_message(&self, member: &Member) -> bool {
        self.message.sent().is_some_and(|(at, _)| member.holds(at.offset))
    }

    /// Reports a message that is under another key than the role.
    fn message_key(&self, response: &Member, reports: &mut Vec<Report>) {
        let Some((at, how)) = self.message.sent() else { return };
        if !response.holds(at.offset) {
            return;
        }
        let own =
            self.stands.around(at.offset).filter(|key| key.stand.0 == at && self.roles.contains(&key.key));
        if let Some(key) = &own
            && self.roles.first() != Some(&key.key)
            && key.key != NAMED
        {
            let message = format!("`{}` is the role in texts of another language", key.key);
            let report = Report::new(rules::ROLE_KEY_UNEXPECTED, at, key.key_end, message);
            reports.push(report.repaired("read as the role"));
        }
        if how == How::Own {
            return;
        }
        let first = self.stands.within(response).find(|member| member.holds(at.offset));
        // If the role key is nested in another key, that key is not used either.
        let own = own.filter(|key| first.is_none_or(|first| first.stand.0 == key.stand.0));
        if let Some(key) = own {
            let report = Report::new(rules::FIELD_TYPE, at, key.stand.1, "the message is a list");
            return reports.push(report.repaired("its texts are taken"));
        }
        let message = "the message stands under another key than the role";
        let key = self.stands.around(at.offset).filter(|key| key.stand.0 == at);
        let (start, end, repair) = match (first, key) {
            (Some(first), Some(key)) => {
                (first.stand.0, key.key_end, "left out: its text is taken as the message")
            }
            // The text has no key of its own, or its key's place was not recorded.
            (Some(Member { stand, .. }), _) => (stand.0, stand.1, "taken as the message, its keys not used"),
            _ => (at, response.stand.1, "taken as the message, the key not used"),
        };
        reports.push(Report::new(rules::ROLE_KEY_UNEXPECTED, start, end, message).repaired(repair));
    }

    fn members(&self, response: &Member, value: &Value, reports: &mut Vec<Report>) {
        let mut past = 0;
        for member in self.stands.within(response) {
            let (at, end) = member.stand;
            if self.message.is_joined() && self.has_message(member) {
                past = end;
                continue;
            }
            if at.offset < past || self.has_message(member) || self.stands.is_told(member) {
                continue;
            }
            past = end;
            if !self.is_nothing(member, value.get(&member.key)) {
                let name = clip(&member.key, 40);
                let message = match self.message.sent() {
                    Some(_) => format!("`response` holds `{name}` beside the message"),
                    None => format!("`response` holds `{name}` and no message"),
                };
                reports.push(Report::new(rules::ROLE_KEY_UNEXPECTED, at, end, message).repaired("left out"));
            }
        }
    }

    /// Returns true if nothing is left out: a message without text, or a partial key at the point of
    /// truncation.
    fn is_nothing(&self, member: &Member, value: Option<&Value>) -> bool {
        match value {
            None | Some(Value::String(_) | Value::Null) if self.roles.contains(&member.key) => {
                !self.message.lost().contains(&member.stand.0)
            }
            Some(Value::Null) => self.cut && self.roles.iter().any(|role| role.starts_with(&member.key)),
            _ => false,
        }
    }

    /// Reports texts that share a member with the message and have no place of their own.
    fn lost(&self, reports: &mut Vec<Report>) {
        let mut last: Option<Stand> = None;
        for at in self.message.lost() {
            let around = self.stands.around(at.offset).filter(|member| self.has_message(member));
            let Some((at, end)) = around.map(|member| member.stand) else { continue };
            if last.replace((at, end)) != Some((at, end)) {
                let message = "`response` holds a text beside the message";
                reports.push(Report::new(rules::ROLE_KEY_UNEXPECTED, at, end, message).repaired("not sent"));
            }
        }
    }
}
