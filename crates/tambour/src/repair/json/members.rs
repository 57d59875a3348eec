//! Places of the members of a value. Each extends from its key to the next key of the same or of an outer
//! object.

use super::event::{JsonEvent, TokenPlace};
use super::keys::KeyBuffers;
use crate::span::Extent;

/// Places of the members of an object and of the objects nested in it, down to a depth.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemberPlaces {
    /// Recorded members, in the order of their keys.
    list: Vec<MemberPlace>,
    /// Extent that covers all members that are not recorded because there are more than [`MAX_MEMBERS`] or
    /// their keys are longer than [`MAX_KEY_LEN`].
    unrecorded_extent: Option<Extent>,
    /// Open objects and lists, the outermost first.
    levels: Vec<OpenLevel>,
    /// Indexes in `list` of members without an end yet, the outermost first.
    open_members: Vec<usize>,
    /// Number of objects so far.
    object_count: usize,
    /// Maximum number of keys in the path of a recorded member.
    depth: usize,
    buffers: KeyBuffers,
}

/// Maximum number of members recorded.
const MAX_MEMBERS: usize = 256;

/// Maximum length in bytes of the key of a recorded member.
const MAX_KEY_LEN: usize = 1 << 10;

/// A member and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct MemberPlace {
    pub(crate) key: String,
    /// Byte offset after its key.
    pub(crate) key_end: usize,
    /// Index of the object that the member is in; objects are counted from 0 in the order of their starts.
    object: usize,
    /// Index in [`MemberPlaces::list`] of the member whose value contains this member.
    parent: Option<usize>,
    /// Index of the first object in the value of the member.
    child_object: Option<usize>,
    /// Number of open brackets around the member.
    pub(crate) level: usize,
    /// Extent of key and value; its end is 0 while it is not known.
    pub(crate) extent: Extent,
}

impl MemberPlace {
    /// Extent of the key alone.
    pub(crate) fn key_extent(&self) -> Extent {
        Extent { place: self.extent.place, end: self.key_end }
    }

    /// Returns whether the member contains this byte offset.
    pub(crate) fn contains(&self, offset: usize) -> bool {
        self.extent.place.offset <= offset && offset < self.extent.end
    }

    /// Returns whether the value of the member contains an object.
    pub(crate) fn has_object(&self) -> bool {
        self.child_object.is_some()
    }
}

/// An open object or list.
#[derive(Clone, Copy, Debug, PartialEq)]
struct OpenLevel {
    /// Index of the object; `None` for a list.
    object: Option<usize>,
    /// Index of the current member, if it is recorded.
    member: Option<usize>,
}

impl MemberPlaces {
    /// Creates an empty record of members with at most `depth` keys in their path.
    pub(super) fn with_depth(depth: usize) -> MemberPlaces {
        MemberPlaces { depth, ..MemberPlaces::default() }
    }

    /// Takes the members of the finished value and prepares for the next one.
    pub(super) fn take(&mut self) -> MemberPlaces {
        let depth = self.depth;
        std::mem::replace(self, MemberPlaces::with_depth(depth))
    }

    /// Reuses the buffers of another value's members, unless members are recorded already.
    pub(super) fn recycle(&mut self, mut other: MemberPlaces) {
        if self.list.is_empty() && self.levels.is_empty() {
            other.clear();
            *self = MemberPlaces { depth: self.depth, ..other };
        }
    }

    /// Removes all members but keeps the buffers.
    fn clear(&mut self) {
        self.buffers.recycle(self.list.drain(..).map(|member| member.key));
        self.levels.clear();
        self.open_members.clear();
        (self.unrecorded_extent, self.object_count) = (None, 0);
    }

    /// Reads the next event.
    #[inline]
    pub(super) fn push_event(&mut self, event: &JsonEvent<'_>) {
        match event {
            JsonEvent::ValueStart(_) => self.clear(),
            JsonEvent::ObjectStart => self.open_level(true),
            JsonEvent::ArrayStart => self.open_level(false),
            JsonEvent::ObjectEnd | JsonEvent::ArrayEnd => drop(self.levels.pop()),
            JsonEvent::Key { text, place, .. } => self.push_key(text, *place),
            // An offset of 0 means that the caller sets the end later.
            JsonEvent::ValueEnd(end) if end.offset > 0 => self.end_members(end.offset),
            _ => {}
        }
    }

    fn open_level(&mut self, is_object: bool) {
        let object = is_object.then_some(self.object_count);
        self.object_count += usize::from(object.is_some());
        let parent_level = self.levels.iter().rev().find(|level| level.object.is_some());
        if let (Some(object_index), Some(member)) = (object, parent_level.and_then(|level| level.member)) {
            self.list[member].child_object.get_or_insert(object_index);
        }
        self.levels.push(OpenLevel { object, member: None });
    }

    fn push_key(&mut self, key: &str, place: TokenPlace<'_>) {
        let path_len = self.levels.iter().filter(|level| level.object.is_some()).count();
        if path_len > self.depth {
            return;
        }
        let (level, key_end, place) = (self.levels.len(), place.end(), place.place());
        // Members on the same level and on inner levels end here.
        while let Some(&last) = self.open_members.last().filter(|last| self.list[**last].level >= level) {
            self.list[last].extent.end = place.offset;
            self.open_members.pop();
        }
        let outer_levels = self.levels[..level - 1].iter().rev();
        let parent = outer_levels.filter(|level| level.object.is_some()).find_map(|level| level.member);
        let Some(OpenLevel { object: Some(object), member }) = self.levels.last_mut() else { return };
        if self.list.len() < MAX_MEMBERS && key.len() <= MAX_KEY_LEN {
            *member = Some(self.list.len());
            self.open_members.push(self.list.len());
            self.list.push(MemberPlace {
                key: self.buffers.fill(key),
                key_end,
                object: *object,
                parent,
                child_object: None,
                level,
                extent: Extent { place, end: 0 },
            });
        } else {
            *member = None;
            self.unrecorded_extent.get_or_insert(Extent { place, end: 0 });
        }
    }

    /// Ends all open members at this byte offset.
    pub(crate) fn end_members(&mut self, end: usize) {
        for index in self.open_members.drain(..) {
            self.list[index].extent.end = end;
        }
        if let Some(unrecorded_extent) = &mut self.unrecorded_extent {
            unrecorded_extent.end = end;
        }
    }

    /// Extent of the member with this path of keys; of several with the same key, the last. A list counts as
    /// the first object in it. A member that is not recorded has the extent of all members not recorded.
    /// `None` if there is no such member, or its object is not recorded either.
    pub(crate) fn extent(&self, path: &[&str]) -> Option<Extent> {
        let parent = path.split_last().and_then(|(_, parent)| self.find_object(parent));
        self.find(path).map(|member| member.extent).or(self.unrecorded_extent.filter(|_| parent.is_some()))
    }

    /// Member with this path of keys, if it is recorded.
    pub(crate) fn find(&self, path: &[&str]) -> Option<&MemberPlace> {
        let (key, parent_path) = path.split_last()?;
        self.find_in_object(self.find_object(parent_path)?, key)
    }

    /// Recorded members of the object at this path.
    pub(crate) fn object_members(&self, path: &[&str]) -> impl Iterator<Item = &MemberPlace> {
        let object = self.find_object(path);
        self.list.iter().filter(move |member| Some(member.object) == object)
    }

    /// Recorded members, in the order of their keys.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &MemberPlace> {
        self.list.iter()
    }

    /// Member whose value contains `member`.
    pub(crate) fn parent(&self, member: &MemberPlace) -> Option<&MemberPlace> {
        Some(&self.list[member.parent?])
    }

    /// Indexes of the objects in the value of `member`: the value itself, or items of lists in it. Objects
    /// without members are left out. If some members are not recorded, there is only the first index.
    pub(crate) fn child_objects<'a>(
        &'a self,
        member: &'a MemberPlace,
    ) -> impl Iterator<Item = usize> + use<'a> {
        let is_child = move |descendant: &&MemberPlace| {
            self.parent(descendant).is_some_and(|parent| std::ptr::eq(parent, member))
        };
        let mut last_object = None;
        let objects = self.list.iter().filter(is_child).map(|descendant| descendant.object);
        let limit = if self.unrecorded_extent.is_some() { 1 } else { usize::MAX };
        objects.filter(move |object| last_object.replace(*object) != Some(*object)).take(limit)
    }

    /// Member under this key in the object with this index; of several, the last.
    pub(crate) fn find_in_object(&self, object: usize, key: &str) -> Option<&MemberPlace> {
        self.list.iter().rfind(|member| member.object == object && member.key == key)
    }

    /// Index of the object at this path.
    fn find_object(&self, path: &[&str]) -> Option<usize> {
        if path.is_empty() { Some(0) } else { self.find(path)?.child_object }
    }
}
