//! Where the members of a value stand: from a key to the next one beside or above it.

use super::event::{JsonEvent, KeyPlace};
use super::keys::Buffers;
use crate::span::Place;

/// A first place, and the offset after the last one.
pub type Stand = (Place, usize);

/// The members of an object, and of the objects in it, down to a depth.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Members {
    list: Vec<Member>,
    /// Members beyond [`MOST`], and with longer keys than [`LONG`].
    more: Option<Stand>,
    /// Open brackets.
    path: Vec<Step>,
    /// Members that have no end yet, the outermost first.
    open: Vec<usize>,
    /// Objects so far.
    objects: usize,
    depth: usize,
    buffers: Buffers,
}

/// Members whose places are kept.
const MOST: usize = 256;

/// Bytes of their keys.
const LONG: usize = 1 << 10;

/// One of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    pub(crate) key: String,
    /// Offset after its key.
    pub(crate) key_end: usize,
    /// The object it is in: 0 for the first one.
    object: usize,
    /// The member it is in, and the first object in its own value.
    parent: Option<usize>,
    child: Option<usize>,
    /// Open brackets around it.
    pub(crate) level: usize,
    pub(crate) stand: Stand,
}

impl Member {
    /// Whether this offset lies in it.
    pub(crate) fn holds(&self, offset: usize) -> bool {
        self.stand.0.offset <= offset && offset < self.stand.1
    }

    /// Whether an object stands in its value.
    pub(crate) fn has_object(&self) -> bool {
        self.child.is_some()
    }
}

/// An open object, or a list.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    object: Option<usize>,
    /// The member under way, where it is kept.
    member: Option<usize>,
}

impl Members {
    /// Members with at most `depth` keys above and including their own.
    pub(super) fn to(depth: usize) -> Members {
        Members { depth, ..Members::default() }
    }

    /// Those of the value that is over; those of the next one follow.
    pub(super) fn take(&mut self) -> Members {
        let depth = self.depth;
        std::mem::replace(self, Members::to(depth))
    }

    /// Keeps its members in what those of another value were kept in.
    pub(super) fn reuse(&mut self, mut other: Members) {
        if self.list.is_empty() && self.path.is_empty() {
            other.clear();
            *self = Members { depth: self.depth, ..other };
        }
    }

    /// Forgets all.
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
            // A caller with no end of its own gives it later.
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
        // What is under way beside it, and below that, ends here.
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

    /// What has no end yet ends at this offset.
    pub(crate) fn ended(&mut self, end: usize) {
        for last in self.open.drain(..) {
            self.list[last].stand.1 = end;
        }
        if let Some((_, last)) = &mut self.more {
            *last = end;
        }
    }

    /// Where the member with this path of keys stands; of several with one key the last. Lists do not count: what a member
    /// holds are the members of the first object in it.
    pub(crate) fn get(&self, path: &[&str]) -> Option<Stand> {
        let above = path.split_last().and_then(|(_, above)| self.object(above));
        self.find(path).map(|member| member.stand).or(self.more.filter(|_| above.is_some()))
    }

    /// The member with this path of keys, if its place was kept.
    pub(crate) fn find(&self, path: &[&str]) -> Option<&Member> {
        let (key, above) = path.split_last()?;
        self.inner(self.object(above)?, key)
    }

    /// The members of the object with this path, as far as their places were kept.
    pub(crate) fn of(&self, path: &[&str]) -> impl Iterator<Item = &Member> {
        let object = self.object(path);
        self.list.iter().filter(move |member| Some(member.object) == object)
    }

    /// All whose places were kept, in the order of their keys.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Member> {
        self.list.iter()
    }

    /// The member that a member is in.
    pub(crate) fn parent(&self, member: &Member) -> Option<&Member> {
        Some(&self.list[member.parent?])
    }

    /// The objects that have members and are the value of a member, or stand in lists there. Where places are missing it is
    /// the first one.
    pub(crate) fn objects<'a>(&'a self, member: &'a Member) -> impl Iterator<Item = usize> + use<'a> {
        let inner = move |one: &&Member| self.parent(one).is_some_and(|parent| std::ptr::eq(parent, member));
        let mut last = None;
        let all = self.list.iter().filter(inner).map(|one| one.object);
        let most = if self.more.is_some() { 1 } else { usize::MAX };
        all.filter(move |object| last.replace(*object) != Some(*object)).take(most)
    }

    /// The member of an object under this key; of several the last.
    pub(crate) fn inner(&self, object: usize, key: &str) -> Option<&Member> {
        self.list.iter().rfind(|member| member.object == object && member.key == key)
    }

    /// The object with this path.
    fn object(&self, path: &[&str]) -> Option<usize> {
        if path.is_empty() { Some(0) } else { self.find(path)?.child }
    }
}
