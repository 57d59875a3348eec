//! Places of the members of a value: each extends from its key to the next key beside or above it.

use super::event::{JsonEvent, KeyPlace};
use super::keys::Buffers;
use crate::span::Place;

/// Place of the start, and offset of the end.
pub type Stand = (Place, usize);

/// Places of the members of an object, and of nested objects down to a depth.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Members {
    list: Vec<Member>,
    /// Extent of the members beyond [`MOST`] or with keys longer than [`LONG`].
    more: Option<Stand>,
    /// Open brackets.
    path: Vec<Step>,
    /// Members without an end yet, the outermost first.
    open: Vec<usize>,
    /// Number of objects so far.
    objects: usize,
    depth: usize,
    buffers: Buffers,
}

/// Most members recorded.
const MOST: usize = 256;

/// Most bytes of their keys.
const LONG: usize = 1 << 10;

/// A member and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    pub(crate) key: String,
    /// Offset after its key.
    pub(crate) key_end: usize,
    /// Index of the object it is in, from 0.
    object: usize,
    /// Member that contains it, and first object in its own value.
    parent: Option<usize>,
    child: Option<usize>,
    /// Number of open brackets around it.
    pub(crate) level: usize,
    pub(crate) stand: Stand,
}

impl Member {
    /// Returns whether it contains this offset.
    pub(crate) fn holds(&self, offset: usize) -> bool {
        self.stand.0.offset <= offset && offset < self.stand.1
    }

    /// Returns whether its value contains an object.
    pub(crate) fn has_object(&self) -> bool {
        self.child.is_some()
    }
}

/// An open object or list.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    object: Option<usize>,
    /// Current member, if it is recorded.
    member: Option<usize>,
}

impl Members {
    /// Records members with at most `depth` keys in their path.
    pub(super) fn to(depth: usize) -> Members {
        Members { depth, ..Members::default() }
    }

    /// Takes the members of the finished value and prepares for the next one.
    pub(super) fn take(&mut self) -> Members {
        let depth = self.depth;
        std::mem::replace(self, Members::to(depth))
    }

    /// Reuses the buffers of another value's members.
    pub(super) fn reuse(&mut self, mut other: Members) {
        if self.list.is_empty() && self.path.is_empty() {
            other.clear();
            *self = Members { depth: self.depth, ..other };
        }
    }

    /// Removes all members but keeps the buffers.
    fn clear(&mut self) {
        self.buffers.keep(self.list.drain(..).map(|member| member.key));
        self.path.clear();
        self.open.clear();
        (self.more, self.objects) = (None, 0);
    }

    #[inline]
    pub(super) fn see(&mut self, event: &JsonEvent<'_>) {
        match event {
            JsonEvent::ValueStart(_) => self.clear(),
            JsonEvent::ObjectStart => self.open(true),
            JsonEvent::ArrayStart => self.open(false),
            JsonEvent::ObjectEnd | JsonEvent::ArrayEnd => drop(self.path.pop()),
            JsonEvent::Key { text, place, .. } => self.key(text, *place),
            // A caller without an end offset of its own sets it later.
            JsonEvent::ValueEnd(end) if end.offset > 0 => self.ended(end.offset),
            _ => {}
        }
    }

    fn open(&mut self, object: bool) {
        let object = object.then_some(self.objects);
        self.objects += usize::from(object.is_some());
        let above = self.path.iter().rev().find(|step| step.object.is_some());
        if let (Some(child), Some(member)) = (object, above.and_then(|step| step.member)) {
            self.list[member].child.get_or_insert(child);
        }
        self.path.push(Step { object, member: None });
    }

    fn key(&mut self, key: &str, place: KeyPlace<'_>) {
        let keys = self.path.iter().filter(|step| step.object.is_some()).count();
        if keys > self.depth {
            return;
        }
        let (level, at, place) = (self.path.len(), place, place.get());
        // Members on the same level and below end here.
        while let Some(&last) = self.open.last().filter(|last| self.list[**last].level >= level) {
            self.list[last].stand.1 = place.offset;
            self.open.pop();
        }
        let above = self.path[..level - 1].iter().rev();
        let parent = above.filter(|step| step.object.is_some()).find_map(|step| step.member);
        let Some(Step { object: Some(object), member }) = self.path.last_mut() else { return };
        if self.list.len() < MOST && key.len() <= LONG {
            *member = Some(self.list.len());
            self.open.push(self.list.len());
            self.list.push(Member {
                key: self.buffers.fill(key),
                key_end: at.end(),
                object: *object,
                parent,
                child: None,
                level,
                stand: (place, 0),
            });
        } else {
            *member = None;
            self.more.get_or_insert((place, 0));
        }
    }

    /// Ends all open members at this offset.
    pub(crate) fn ended(&mut self, end: usize) {
        for last in self.open.drain(..) {
            self.list[last].stand.1 = end;
        }
        if let Some((_, last)) = &mut self.more {
            *last = end;
        }
    }

    /// Extent of the member with this path of keys; of several with the same key, the last. Lists are
    /// skipped: the members of an item are those of the first object in it.
    pub(crate) fn get(&self, path: &[&str]) -> Option<Stand> {
        let above = path.split_last().and_then(|(_, above)| self.object(above));
        self.find(path).map(|member| member.stand).or(self.more.filter(|_| above.is_some()))
    }

    /// Member with this path of keys, if it is recorded.
    pub(crate) fn find(&self, path: &[&str]) -> Option<&Member> {
        let (key, above) = path.split_last()?;
        self.inner(self.object(above)?, key)
    }

    /// Recorded members of the object with this path.
    pub(crate) fn of(&self, path: &[&str]) -> impl Iterator<Item = &Member> {
        let object = self.object(path);
        self.list.iter().filter(move |member| Some(member.object) == object)
    }

    /// Recorded members, in the order of their keys.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Member> {
        self.list.iter()
    }

    /// Member that contains a member.
    pub(crate) fn parent(&self, member: &Member) -> Option<&Member> {
        Some(&self.list[member.parent?])
    }

    /// Objects with members that are the value of a member or are in lists there; only the first one if
    /// places are missing.
    pub(crate) fn objects<'a>(&'a self, member: &'a Member) -> impl Iterator<Item = usize> + use<'a> {
        let inner = move |one: &&Member| self.parent(one).is_some_and(|parent| std::ptr::eq(parent, member));
        let mut last = None;
        let all = self.list.iter().filter(inner).map(|one| one.object);
        let most = if self.more.is_some() { 1 } else { usize::MAX };
        all.filter(move |object| last.replace(*object) != Some(*object)).take(most)
    }

    /// Member of an object under this key; of several, the last.
    pub(crate) fn inner(&self, object: usize, key: &str) -> Option<&Member> {
        self.list.iter().rfind(|member| member.object == object && member.key == key)
    }

    /// Index of the object with this path.
    fn object(&self, path: &[&str]) -> Option<usize> {
        if path.is_empty() { Some(0) } else { self.find(path)?.child }
    }
}
