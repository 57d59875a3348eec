//! The expected structure of ThinkingML, as data.

use std::sync::LazyLock;

use crate::structure::{Body, Element, Expected, Misfit, Written};

/// Name of one of the six elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Think,
    Serp,
    Thinking,
    Phase,
    Title,
    Final,
}

impl Name {
    pub(super) fn text(self) -> &'static str {
        match self {
            Name::Think => "think",
            Name::Serp => "serp",
            Name::Thinking => "thinking",
            Name::Phase => "phase",
            Name::Title => "title",
            Name::Final => "final",
        }
    }

    /// Returns whether the element belongs at the top level.
    pub(super) fn is_top(self) -> bool {
        !matches!(self, Name::Phase | Name::Title)
    }

    /// Returns whether the element begins the structure for good: it is at the top level and mandatory.
    pub(super) fn begins_structure(self) -> bool {
        self.is_top() && EXPECTED.get(self.text()).is_some_and(|element| element.mandatory)
    }
}

const NAMES: [Name; 6] = [Name::Think, Name::Serp, Name::Thinking, Name::Phase, Name::Title, Name::Final];

static EXPECTED: LazyLock<Expected> = LazyLock::new(|| {
    use Name::{Final, Phase, Serp, Think, Thinking, Title};
    let text = |name: Name| Element { repeated: false, ..Element::new(name.text()) };
    let after = |names: &[Name]| names.iter().map(|name| name.text().into()).collect();
    let within = |name: Name| vec![name.text().into()];
    Expected::new(vec![
        text(Think),
        Element { after: after(&[Think]), ..text(Serp) },
        Element { mandatory: true, body: Body::Markup, after: after(&[Think, Serp]), ..text(Thinking) },
        Element {
            mandatory: true,
            repeated: true,
            body: Body::Markup,
            within: within(Thinking),
            ..text(Phase)
        },
        Element { mandatory: true, within: within(Phase), ..text(Title) },
        Element { mandatory: true, after: after(&[Think, Serp, Thinking]), ..text(Final) },
    ])
});

/// The top-level elements that have begun.
#[derive(Default)]
pub(super) struct Seen {
    /// Names in order of appearance.
    names: Vec<Name>,
    /// Set once a mandatory element has begun.
    begun: bool,
}

impl Seen {
    pub(super) fn has(&self, name: Name) -> bool {
        self.names.contains(&name)
    }

    /// Returns whether no other element has begun.
    pub(super) fn only(&self, name: Name) -> bool {
        self.names.iter().all(|seen| *seen == name)
    }

    /// Returns whether the structure has begun.
    #[inline]
    pub(super) fn structure_begun(&self) -> bool {
        self.begun
    }

    /// Records the beginning of an element.
    pub(super) fn add(&mut self, name: Name) {
        if !self.has(name) {
            self.names.push(name);
            self.begun |= name.begins_structure();
        }
    }

    /// Removes an optional element that turned out to be text.
    pub(super) fn forget(&mut self, name: Name) {
        self.names.retain(|seen| *seen != name);
    }

    /// Returns the fault of an element that begins now, if any.
    pub(super) fn misfit(&self, name: Name) -> Option<Misfit<'static>> {
        let seen: Vec<&'static str> = self.names.iter().map(|name| name.text()).collect();
        EXPECTED.misfit(name.text(), &seen)
    }
}

/// Finds the element that a tag name means, and whether the name is spelled exactly (T-021).
pub(super) fn find(name: &str) -> Option<(Name, bool)> {
    let known = EXPECTED.find(name)?;
    let found = NAMES.into_iter().find(|candidate| candidate.text() == known.element.name)?;
    Some((found, known.written == Written::Exact))
}
