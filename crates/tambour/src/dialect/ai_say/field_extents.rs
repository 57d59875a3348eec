//! Places of an answer's fields.

use crate::repair::json::{DuplicateKey, MemberPlace, MemberPlaces};
use crate::span::{Extent, Place};

/// Extents of the fields of one answer.
#[derive(Debug, Default)]
pub(super) struct FieldExtents {
    /// Members of the value that is or contains the answer.
    members: MemberPlaces,
    /// Extent of that value.
    outer: Extent,
    /// The key around the answer, if it is nested in a wrapper object.
    wrapper_key: Option<String>,
    /// Extent of the string that contains the answer; fields inside it have no places.
    string_extent: Option<Extent>,
    /// Names of fields of the answer that are nested in its assessment.
    lifted_fields: Vec<&'static str>,
    /// Byte ranges of members that findings on duplicate keys already report as left out.
    duplicate_ranges: Vec<(usize, usize)>,
}

impl FieldExtents {
    pub(super) fn new(members: MemberPlaces, outer: Extent) -> FieldExtents {
        FieldExtents { members, outer, ..FieldExtents::default() }
    }

    /// Marks the answer as the value of the only key; `is_string` is set if it is written as a string.
    pub(super) fn set_wrapper(&mut self, is_string: bool) {
        let Some(member) = self.members.object_members(&[]).next() else { return };
        if is_string {
            self.string_extent = Some(member.extent);
        } else {
            self.wrapper_key = Some(member.key.clone());
        }
    }

    /// Records the members that findings on these duplicates report as left out: the second member with a key
    /// if its offset is in `late_offsets`, else the first.
    pub(super) fn add_duplicates(&mut self, duplicates: &[DuplicateKey], late_offsets: &[usize]) {
        let dropped_extent = |duplicate: &DuplicateKey| {
            let is_first_kept = late_offsets.contains(&duplicate.second.place.offset);
            let dropped = if is_first_kept { duplicate.second } else { duplicate.first };
            (dropped.place.offset, dropped.end)
        };
        self.duplicate_ranges.extend(duplicates.iter().map(dropped_extent));
    }

    /// Returns true if a finding already says that the member is left out as a duplicate.
    pub(super) fn is_reported_duplicate(&self, member: &MemberPlace) -> bool {
        self.duplicate_ranges.iter().any(|(from, to)| (*from..*to).contains(&member.extent.place.offset))
    }

    /// Records that a field of the answer is nested in its assessment.
    pub(super) fn lift(&mut self, name: &'static str) {
        self.lifted_fields.push(name);
    }

    /// Returns the extent of the key that starts at a place; empty if it was not recorded.
    pub(super) fn key_extent(&self, at: Place) -> Extent {
        let member = self.members.iter().find(|member| member.extent.place.offset == at.offset);
        Extent { place: at, end: member.map_or(at.offset, |member| member.key_end) }
    }

    /// Returns the extent of the answer with the object around it, if any.
    pub(super) fn outer_extent(&self) -> Extent {
        self.outer
    }

    /// Returns the extent of the answer, or of the string that contains it.
    pub(super) fn answer_extent(&self) -> Extent {
        self.string_extent.unwrap_or(self.outer)
    }

    /// Returns the field with this path of keys, if its place is known.
    pub(super) fn get(&self, path: &[&str]) -> Option<&MemberPlace> {
        self.members.find(&self.resolve_path(path)?)
    }

    /// Returns the extent of the field with this path, or of the closest member around it.
    pub(super) fn nearest_extent(&self, path: &[&str]) -> Extent {
        let extent = |length| self.members.extent(&self.resolve_path(&path[..length])?);
        (1..=path.len()).rev().find_map(extent).unwrap_or(self.answer_extent())
    }

    /// Translates a path in the answer to a path in the value around the answer; `None` if the answer is a
    /// string.
    fn resolve_path<'a>(&'a self, path: &[&'a str]) -> Option<Vec<&'a str>> {
        let is_lifted = path.first().is_some_and(|first| self.lifted_fields.contains(first));
        let outer_keys = self.wrapper_key.as_deref().into_iter().chain(is_lifted.then_some("assessment"));
        self.string_extent.is_none().then(|| outer_keys.chain(path.iter().copied()).collect())
    }

    /// Returns the fields of the object at this path whose places are known.
    pub(super) fn fields_at(&self, path: &[&str]) -> Vec<&MemberPlace> {
        let members_of = |path: &[&str]| {
            self.resolve_path(path).map_or(Vec::new(), |path| self.members.object_members(&path).collect())
        };
        let mut members: Vec<&MemberPlace> = members_of(path);
        if path.is_empty() && !self.lifted_fields.is_empty() {
            let is_lifted = |member: &&MemberPlace| self.lifted_fields.iter().any(|name| *name == member.key);
            members.extend(members_of(&["assessment"]).into_iter().filter(is_lifted));
        }
        members
    }

    /// Returns the members nested in another one, in source order.
    pub(super) fn members_within<'a>(
        &'a self,
        member: &'a MemberPlace,
    ) -> impl Iterator<Item = &'a MemberPlace> {
        let from = member.extent.place.offset;
        self.members.iter().filter(move |inner| {
            member.contains(inner.extent.place.offset) && inner.extent.place.offset > from
        })
    }

    /// Returns the numbers of the non-empty objects that are the value of a member, or items of lists there,
    /// for [`FieldExtents::inner_member`].
    pub(super) fn objects<'a>(&'a self, member: &'a MemberPlace) -> impl Iterator<Item = usize> + use<'a> {
        self.members.child_objects(member)
    }

    /// Returns the member under this key of the object with this number, the last one if there are several.
    pub(super) fn inner_member(&self, object: usize, key: &str) -> Option<&MemberPlace> {
        self.members.find_in_object(object, key)
    }

    /// Returns the innermost member around an offset.
    pub(super) fn innermost_at(&self, offset: usize) -> Option<&MemberPlace> {
        self.members.iter().rfind(|member| member.contains(offset))
    }

    /// Returns the offset after the first key of the value, which is the key around a nested answer.
    pub(super) fn wrapper_key_end(&self) -> usize {
        self.members.object_members(&[]).next().map_or(self.outer.end, |member| member.key_end)
    }
}
