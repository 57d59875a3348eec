//! Meanings of tags: those of the structure, by the kind they are read as, and those of earlier and later
//! versions.

use std::borrow::Cow;

use super::options::FilamentOptions;
use crate::lex::marks;
use crate::lex::markup::{Names, Slip, Tag};
use crate::protocol::Registry;
use crate::structure::{Body, Element, Expected, Known as Found, Misfit, Written};

/// Kind that an element is read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Thought,
    Content,
    Update,
    Call,
    Status,
    Details,
    Choice,
    Component,
    Media,
    /// A custom tag of the caller.
    Own,
}

use Kind::*;

/// The reply tags (F-100).
const KINDS: [(&str, Kind); 9] = [
    ("thought", Thought),
    ("content", Content),
    ("variable_update", Update),
    ("tool_call", Call),
    ("status_bar", Status),
    ("details", Details),
    ("choice", Choice),
    ("ui_component", Component),
    ("media", Media),
];

/// Another name of the thought in a structure.
const THINK: &str = "think";

/// Form in which an element is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// The current form.
    Current,
    /// A newer or another name, with the same body or a JSON one.
    Newer,
    /// `<state_update>`: operations, JSON Patch, or one path and value.
    StateUpdate,
    /// `<update>`: one path and value.
    OneUpdate,
    /// `<UpdateVariable>`: commands.
    Commands,
    /// `<JSONPatch>` without an `<UpdateVariable>` around it.
    Patch,
    /// `<xx>`: a list of options.
    List,
    /// A status bar under an earlier name.
    OldStatus,
    /// A status bar in HTML.
    Html,
}

/// Names of other versions, with their kinds and forms.
const OTHERS: &[(&str, Kind, Form)] = &[
    ("think", Thought, Form::Newer),
    ("thought", Thought, Form::Newer),
    ("reply", Content, Form::Newer),
    ("state_update", Update, Form::StateUpdate),
    ("update", Update, Form::OneUpdate),
    ("UpdateVariable", Update, Form::Commands),
    ("JSONPatch", Update, Form::Patch),
    ("json_patch", Update, Form::Patch),
    ("xx", Choice, Form::List),
    ("StatusBlock", Status, Form::OldStatus),
    ("StatusBar", Status, Form::OldStatus),
];

/// Names of elements around a whole reply, which mean nothing.
const ENVELOPES: &[&str] = &["filament_output"];

/// HTML elements that a status bar may consist of.
const HTML_BLOCKS: &[&str] = &["div", "table", "section", "aside"];

/// The elements that a reply may have.
#[derive(Clone, Debug)]
pub(super) struct Tags {
    expected: Expected,
    kinds: Vec<Kind>,
    /// Set if the structure was given, so that text before all tags may be thinking (F-201).
    given: bool,
    /// Index of a thought that the structure lacks: whatever it allows, thinking is never shown to the reader
    /// (F-101).
    unasked: Option<usize>,
}

/// An element of the structure that a tag means.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// Index in the structure.
    pub(super) at: usize,
    pub(super) kind: Kind,
    pub(super) form: Form,
    pub(super) written: Written,
}

/// Meaning of a tag.
#[derive(Clone, Copy, Debug)]
pub(super) enum Meaning {
    Known(Known),
    /// A reasoning mark that is not a reply tag: a thought.
    Reasoning(Known),
    Envelope,
    /// A reply tag that the structure lacks.
    Inactive,
    Unknown,
}

impl Tags {
    pub(super) fn new(own: &FilamentOptions) -> Tags {
        let mut expected = own.structure.clone().unwrap_or_else(core);
        let kind = |element: &Element| {
            let role = if element.role() == THINK { "thought" } else { element.role() };
            KINDS.iter().find(|(name, _)| *name == role).map_or(Own, |(_, kind)| *kind)
        };
        let mut kinds: Vec<Kind> = expected.elements.iter().map(kind).collect();
        if !kinds.contains(&Content)
            && let Some(first) = (0..kinds.len()).find(|&at| {
                let Element { mandatory, body, .. } = &expected.elements[at];
                kinds[at] == Own && *mandatory && matches!(body, Body::Text | Body::Markup)
            })
        {
            // Some element must hold text for the user.
            kinds[first] = Content;
        }
        let unasked = (!kinds.contains(&Thought)).then_some(kinds.len());
        if unasked.is_some() {
            expected.elements.push(thought());
            kinds.push(Thought);
        }
        Tags { expected, kinds, given: own.structure.is_some(), unasked }
    }

    /// Returns all names, for a tolerant lexer.
    pub(super) fn names(&self) -> Names {
        Names::new(self.words())
    }

    /// Iterates over all names as words.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        let others = OTHERS.iter().filter(|(_, kind, _)| self.kinds.contains(kind)).map(|(name, ..)| *name);
        self.expected.names().chain(others)
    }

    pub(super) fn element(&self, at: usize) -> &Element {
        &self.expected.elements[at]
    }

    pub(super) fn kind(&self, at: usize) -> Kind {
        self.kinds.get(at).copied().unwrap_or(Content)
    }

    /// Returns the index of the element with a name.
    pub(super) fn named(&self, name: &str) -> Option<usize> {
        self.expected.elements.iter().position(|element| element.name == name)
    }

    /// Returns whether an element must follow another one.
    pub(super) fn follows(&self, at: usize, first: usize) -> bool {
        self.expected.follows(&self.element(at).name, &self.element(first).name)
    }

    /// Returns the first element of the structure with a kind.
    pub(super) fn first(&self, kind: Kind) -> Option<usize> {
        self.any(kind).filter(|at| !self.is_unasked(*at))
    }

    /// Like [`first`](Tags::first), but includes a thought that the structure lacks.
    pub(super) fn any(&self, kind: Kind) -> Option<usize> {
        self.kinds.iter().position(|known| *known == kind)
    }

    /// Returns whether an element is not in the structure but read all the same.
    pub(super) fn is_unasked(&self, at: usize) -> bool {
        self.unasked == Some(at)
    }

    /// Returns the meaning of a tag.
    pub(super) fn meaning(&self, tag: &Tag<'_>) -> Meaning {
        let name = tag.name;
        if let Some(Found { element, written }) = self.expected.find(name) {
            return Meaning::Known(self.known(element, Form::Current, written));
        }
        if let Some((_, kind, form)) = OTHERS.iter().find(|(other, ..)| other.eq_ignore_ascii_case(name)) {
            let known = self.any(*kind).map(|at| self.known(self.element(at), *form, Written::Alias));
            return known.map_or(Meaning::Inactive, Meaning::Known);
        }
        if let Some(Found { element, written }) = self.expected.find_near(name) {
            return Meaning::Known(self.known(element, Form::Current, written));
        }
        if marks::of_tag(name, false).is_some()
            && let Some(at) = self.any(Thought)
        {
            return Meaning::Reasoning(self.known(self.element(at), Form::Newer, Written::Alias));
        }
        if ENVELOPES.contains(&name) {
            return Meaning::Envelope;
        }
        let reply = KINDS.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
        if reply { Meaning::Inactive } else { Meaning::Unknown }
    }

    /// Returns the HTML status bar that a tag begins, judged by its class or id (F-140).
    pub(super) fn html_status(&self, tag: &Tag<'_>) -> Option<Known> {
        let block = HTML_BLOCKS.iter().any(|name| name.eq_ignore_ascii_case(tag.name));
        let called = || {
            tag.attributes().any(|attribute| {
                let value = attribute.value.unwrap_or_default().to_ascii_lowercase();
                matches!(attribute.name, "class" | "id")
                    && (value.contains("status") || value.contains("状态"))
            })
        };
        let at = self.first(Status)?;
        (block && called())
            .then(|| Known { form: Form::Html, ..self.known(self.element(at), Form::Html, Written::Alias) })
    }

    fn known(&self, element: &Element, form: Form, written: Written) -> Known {
        let at =
            self.expected.elements.iter().position(|known| known.name == element.name).unwrap_or_default();
        Known { at, kind: self.kinds[at], form, written }
    }

    /// Returns whether text before all tags is thinking (F-201).
    pub(super) fn thinking_head(&self, mandatory: bool) -> bool {
        self.given
            && self.first(Thought).is_some_and(|at| {
                let thought = self.element(at);
                thought.after.is_empty() && (thought.mandatory || !mandatory)
            })
    }

    /// Returns the fault of an element that begins now, if any.
    pub(super) fn misfit<'a>(&'a self, at: usize, seen: &[usize]) -> Option<Misfit<'a>> {
        let seen: Vec<&str> = seen.iter().map(|&at| &*self.expected.elements[at].name).collect();
        self.expected.misfit(&self.expected.elements[at].name, &seen)
    }

    /// Returns the mandatory elements that are missing.
    pub(super) fn missing(&self, seen: &[usize]) -> Vec<usize> {
        let missing = |&at: &usize| self.expected.elements[at].mandatory && !seen.contains(&at);
        (0..self.kinds.len()).filter(missing).collect()
    }
}

/// Returns the default structure: the content, and every other reply tag, without an order.
fn core() -> Expected {
    let registry = Registry::builtin();
    let mut expected = registry.expected(registry.iter().map(|protocol| &*protocol.id)).0;
    expected.elements.iter_mut().for_each(|element| element.after.clear());
    expected
}

/// Returns a thought for structures that have none.
fn thought() -> Element {
    let Expected { mut elements, .. } = core();
    let at = elements.iter().position(|element| element.role() == "thought").unwrap_or_default();
    Element { mandatory: false, ..elements.swap_remove(at) }
}

/// Describes the faults in how a tag is written.
pub(super) fn faults(tag: &Tag<'_>, written: Written) -> Vec<&'static str> {
    let slip = |slip: Slip| match slip {
        Slip::Blanks => "blanks in it",
        Slip::Case => "its letters",
        Slip::FullWidth => "a full-width sign",
        Slip::MissingBracket => "no closing bracket",
    };
    let mut faults: Vec<&str> = tag.slips.iter().filter(|one| *one != Slip::Case).map(slip).collect();
    match written {
        Written::Case => faults.push("its letters"),
        Written::Typo => faults.push("a letter is wrong"),
        Written::Exact | Written::Alias => {}
    }
    faults
}

/// Returns the attributes of a tag with entities decoded; of equal names only the first.
pub(super) fn attributes(tag: &Tag<'_>) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for (name, value) in written_attributes(tag) {
        if !found.iter().any(|(known, _)| *known == name) {
            found.push((name, value));
        }
    }
    found
}

/// Iterates over the attributes of a tag as written, equal names included.
fn written_attributes(tag: &Tag<'_>) -> impl Iterator<Item = (String, String)> {
    tag.attributes().map(|attribute| {
        let value =
            attribute.value.map_or(Cow::Borrowed(""), |value| crate::lex::entity::decode(value).into());
        (attribute.name.to_ascii_lowercase(), value.into_owned())
    })
}

/// Returns whether a tag has an attribute twice with different values.
pub(super) fn contradicts_itself(tag: &Tag<'_>, name: &str) -> bool {
    let mut values = written_attributes(tag).filter(|(known, _)| known == name).map(|(_, value)| value);
    values.next().is_some_and(|first| values.any(|value| value != first))
}
