//! Places of an answer's fields.

use crate::repair::json::{Duplicate, Member, Members, Stand};
use crate::span::Place;

/// Extents of the fields of one answer.
#[derive(Debug, Default)]
pub(super) struct Stands {
    members: Members,
    at: Place,
    end: usize,
    /// The key around the answer, if it is nested in a wrapper object.
    outer: Option<String>,
    /// Extent of the string that contains the answer; fields inside it have no places.
    text: Option<Stand>,
    /// Fields of the answer that are nested in its assessment.
    lifted: Vec<&'static str>,
    /// Ranges covered by findings on duplicate keys.
    twice: Vec<(usize, usize)>,
}

impl Stands {
    pub(super) fn new(members: Members, at: Place, end: usize) -> Stands {
        Stands { members, at, end, ..Stands::default() }
    }

    /// Marks the answer as the value of the only key, as an object or as a string.
    pub(super) fn wrapped(&mut self, string: bool) {
        let Some(member) = self.members.of(&[]).next() else { return };
        if string {
            self.text = Some(member.stand);
        } else {
            self.outer = Some(member.key.clone());
        }
    }

    /// Records that findings on these duplicates say which value is left out.
    pub(super) fn told(&mut self, duplicates: &[Duplicate], kept: &[usize]) {
        let gone = |one: &Duplicate| {
            let (place, end) = if kept.contains(&one.again.0.offset) { one.again } else { one.first };
            (place.offset, end)
        };
        self.twice.extend(duplicates.iter().map(gone));
    }

    /// Returns true if a finding already says that the member is left out as a duplicate.
    pub(super) fn is_told(&self, member: &Member) -> bool {
        self.twice.iter().any(|(from, to)| (*from..*to).contains(&member.stand.0.offset))
    }

    /// Records that a field of the answer is nested in its assessment.
    pub(super) fn lift(&mut self, name: &'static str) {
        self.lifted.push(name);
    }

    /// Returns the extent of the key at a place.
    pub(super) fn key(&self, at: Place) -> Stand {
        let member = self.members.iter().find(|member| member.stand.0.offset == at.offset);
        (at, member.map_or(at.offset, |member| member.key_end))
    }

    /// Returns the extent of the answer with its wrapper.
    pub(super) fn all(&self) -> Stand {
        (self.at, self.end)
    }

    /// Returns the extent of the answer, or of the string that contains it.
    pub(super) fn whole(&self) -> Stand {
        self.text.unwrap_or((self.at, self.end))
    }

    /// Returns the field with this path of keys, if its place is known.
    pub(super) fn get(&self, path: &[&str]) -> Option<&Member> {
        self.members.find(&self.path(path)?)
    }

    /// Returns the extent of that field, or of the closest member around it.
    pub(super) fn near(&self, path: &[&str]) -> Stand {
        let place = |length| self.members.get(&self.path(&path[..length])?);
        (1..=path.len()).rev().find_map(place).unwrap_or(self.whole())
    }

    /// Translates a path in the answer to one in the value; there is none inside a string.
    fn path<'a>(&'a self, path: &[&'a str]) -> Option<Vec<&'a str>> {
        let outer = self.outer.as_deref().into_iter();
        let lifted = path.first().is_some_and(|first| self.lifted.contains(first));
        let outer = outer.chain(lifted.then_some("assessment"));
        self.text.is_none().then(|| outer.chain(path.iter().copied()).collect())
    }

    /// Returns the fields of the object at this path whose places are known.
    pub(super) fn of(&self, path: &[&str]) -> Vec<&Member> {
        let of = |path: &[&str]| self.path(path).map_or(Vec::new(), |path| self.members.of(&path).collect());
        let mut members: Vec<&Member> = of(path);
        if path.is_empty() && !self.lifted.is_empty() {
            let lifted = |member: &&Member| self.lifted.iter().any(|name| *name == member.key);
            members.extend(of(&["assessment"]).into_iter().filter(lifted));
        }
        members
    }

    /// Returns the members nested in another one, in source order.
    pub(super) fn within<'a>(&'a self, member: &'a Member) -> impl Iterator<Item = &'a Member> {
        let from = member.stand.0.offset;
        self.members
            .iter()
            .filter(move |inner| member.holds(inner.stand.0.offset) && inner.stand.0.offset > from)
    }

    /// Returns the non-empty objects that are the value of a member, or items of lists there.
    pub(super) fn objects<'a>(&'a self, member: &'a Member) -> impl Iterator<Item = usize> + use<'a> {
        self.members.objects(member)
    }

    /// Returns the member of an object under this key, the last one if there are several.
    pub(super) fn inner(&self, object: usize, key: &str) -> Option<&Member> {
        self.members.inner(object, key)
    }

    /// Returns the innermost member around an offset.
    pub(super) fn around(&self, offset: usize) -> Option<&Member> {
        self.members.iter().rfind(|member| member.holds(offset))
    }

    /// Returns the offset after the key around the answer.
    pub(super) fn outer_end(&self) -> usize {
        self.members.of(&[]).next().map_or(self.end, |member| member.key_end)
    }
}
