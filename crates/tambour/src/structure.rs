//! The expected structure of a reply in markup (F-200): which elements there are, where they stand, how often,
//! and in which order. It is data; a dialect, or a user's own tag contract, is one value of this type.

use std::borrow::Cow;

/// The elements of a reply, in the order in which they should come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// All elements; those of one parent in their order.
    pub elements: Vec<Element>,
}

/// One element of an expected structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    /// Tag name.
    pub name: Cow<'static, str>,
    /// Element it stands directly in; `None` at the top level.
    pub within: Option<Cow<'static, str>>,
    /// Whether it must occur (in each parent).
    pub mandatory: bool,
    /// Whether it may occur more than once (in each parent).
    pub repeated: bool,
    /// Elements of the same parent that must come before it when they occur.
    pub after: Vec<Cow<'static, str>>,
}

/// How a tag name was understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known<'a> {
    /// The element.
    pub element: &'a Element,
    /// Whether the name was written exactly so; otherwise only its case differs.
    pub exact: bool,
}

/// What is wrong with an element at the place where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit<'a> {
    /// It has occurred already and may not be repeated.
    Duplicate,
    /// The named element, which has to come before it, came after it or is still to come.
    Late(&'a str),
}

impl Expected {
    /// A structure of top-level elements: what must occur, what may, and which follows which.
    pub fn flat(
        mandatory: impl IntoIterator<Item = String>,
        optional: impl IntoIterator<Item = String>,
        dependency: &[(String, String)],
    ) -> Expected {
        let element = |name: String, mandatory| Element {
            after: dependency.iter().filter(|(tag, _)| *tag == name).map(|(_, a)| a.clone().into()).collect(),
            name: name.into(),
            within: None,
            mandatory,
            repeated: !mandatory,
        };
        let elements = mandatory
            .into_iter()
            .map(|name| element(name, true))
            .chain(optional.into_iter().map(|name| element(name, false)));
        Expected { elements: elements.collect() }
    }

    /// The element of that name; exact spelling first, then ignoring ASCII case.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Known<'_>> {
        let exact = self.elements.iter().find(|element| element.name == name);
        let folded = || self.elements.iter().find(|element| element.name.eq_ignore_ascii_case(name));
        match exact {
            Some(element) => Some(Known { element, exact: true }),
            None => folded().map(|element| Known { element, exact: false }),
        }
    }

    /// Checks an element that begins after the elements in `seen` (names, in order of appearance).
    #[must_use]
    pub fn misfit<'a>(&'a self, name: &str, seen: &[&'a str]) -> Option<Misfit<'a>> {
        let element = self.elements.iter().find(|element| element.name == name)?;
        if !element.repeated && seen.contains(&name) {
            return Some(Misfit::Duplicate);
        }
        // It is late when something that must follow it has begun already.
        seen.iter()
            .find(|&&earlier| {
                self.elements.iter().any(|e| e.name == earlier && e.after.iter().any(|after| after == name))
            })
            .map(|earlier| Misfit::Late(earlier))
    }

    /// The mandatory elements at the top level that `seen` lacks.
    pub fn missing<'a>(&'a self, seen: &'a [&str]) -> impl Iterator<Item = &'a Element> {
        self.elements.iter().filter(|e| e.mandatory && e.within.is_none() && !seen.contains(&e.name.as_ref()))
    }
}
