//! Where the fields of an answer stand.

use crate::repair::json::{Duplicate, Member, Members, Stand};
use crate::span::Place;

/// The places of one answer.
#[derive(Debug, Default)]
pub(super) struct Stands {
    members: Members,
    at: Place,
    end: usize,
    /// The key around the answer, if it stands in an object of its own.
    outer: Option<String>,
    /// Where the answer stands as a string: nothing in it has a place of its own.
    text: Option<Stand>,
    /// Fields of the answer that stand in its assessment.
    lifted: Vec<&'static str>,
    /// What findings on keys that stand twice cover.
    twice: Vec<(usize, usize)>,
}

impl Stands {
    pub(super) fn new(members: Members, at: Place, end: usize) -> Stands {
        Stands { members, at, end, ..Stands::default() }
    }

    /// The answer is the value of the only key, as an object or as a string.
    pub(super) fn wrapped(&mut self, string: bool) {
        let Some(member) = self.members.of(&[]).next() else { return };
        if string {
            self.text = Some(member.stand);
        } else {
            self.outer = Some(member.key.clone());
        }
    }

    /// A finding tells that the value of one of two keys is left out.
    pub(super) fn told(&mut self, duplicates: &[Duplicate], kept: &[usize]) {
        let gone = |one: &Duplicate| {
            let (place, end) = if kept.contains(&one.again.0.offset) { one.again } else { one.first };
            (place.offset, end)
        };
        self.twice.extend(duplicates.iter().map(gone));
    }

    /// Whether a member is left out for another one with its key.
    pub(super) fn is_told(&self, member: &Member) -> bool {
        self.twice.iter().any(|(from, to)| (*from..*to).contains(&member.stand.0.offset))
    }

    /// A field of the answer stands in its assessment.
    pub(super) fn lift(&mut self, name: &'static str) {
        self.lifted.push(name);
    }

    /// The key that stands at a place.
    pub(super) fn key(&self, at: Place) -> Stand {
        let member = self.members.iter().find(|member| member.stand.0.offset == at.offset);
        (at, member.map_or(at.offset, |member| member.key_end))
    }

    /// All of the answer, with what is around it.
    pub(super) fn all(&self) -> Stand {
        (self.at, self.end)
    }

    /// What the answer stands in.
    pub(super) fn whole(&self) -> Stand {
        self.text.unwrap_or((self.at, self.end))
    }

    /// The field with this path of keys, if its place is known.
    pub(super) fn get(&self, path: &[&str]) -> Option<&Member> {
        self.members.find(&self.path(path)?)
    }

    /// Where that field stands, or what it is in.
    pub(super) fn near(&self, path: &[&str]) -> Stand {
        let place = |length| self.members.get(&self.path(&path[..length])?);
        (1..=path.len()).rev().find_map(place).unwrap_or(self.whole())
    }

    /// The path of keys in the value; there is none in a string.
    fn path<'a>(&'a self, path: &[&'a str]) -> Option<Vec<&'a str>> {
        let outer = self.outer.as_deref().into_iter();
        let lifted = path.first().is_some_and(|first| self.lifted.contains(first));
        let outer = outer.chain(lifted.then_some("assessment"));
        self.text.is_none().then(|| outer.chain(path.iter().copied()).collect())
    }

    /// The fields of the object with this path, as far as their places are known.
    pub(super) fn of(&self, path: &[&str]) -> Vec<&Member> {
        let of = |path: &[&str]| self.path(path).map_or(Vec::new(), |path| self.members.of(&path).collect());
        let mut members: Vec<&Member> = of(path);
        if path.is_empty() && !self.lifted.is_empty() {
            let lifted = |member: &&Member| self.lifted.iter().any(|name| *name == member.key);
            members.extend(of(&["assessment"]).into_iter().filter(lifted));
        }
        members
    }

    /// The members that stand in another one, in the order of their keys.
    pub(super) fn within<'a>(&'a self, member: &'a Member) -> impl Iterator<Item = &'a Member> {
        let from = member.stand.0.offset;
        self.members
            .iter()
            .filter(move |inner| member.holds(inner.stand.0.offset) && inner.stand.0.offset > from)
    }

    /// The objects that have members and are the value of a member, or stand in lists there.
    pub(super) fn objects<'a>(&'a self, member: &'a Member) -> impl Iterator<Item = usize> + use<'a> {
        self.members.objects(member)
    }

    /// The member of an object under this key; of several the last.
    pub(super) fn inner(&self, object: usize, key: &str) -> Option<&Member> {
        self.members.inner(object, key)
    }

    /// The innermost member around an offset.
    pub(super) fn around(&self, offset: usize) -> Option<&Member> {
        self.members.iter().rfind(|member| member.holds(offset))
    }

    /// The offset after the key around the answer.
    pub(super) fn outer_end(&self) -> usize {
        self.members.of(&[]).next().map_or(self.end, |member| member.key_end)
    }
}
