//! The expected structure of ThinkingML, as data.

use std::sync::LazyLock;

use crate::structure::{ElementBody, ElementMisfit, ExpectedElement, ExpectedStructure, NameSpelling};

/// One of the six elements, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThinkingMlElement {
    Think,
    Serp,
    Thinking,
    Phase,
    Title,
    Final,
}

impl ThinkingMlElement {
    /// Returns the tag name of the element.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            ThinkingMlElement::Think => "think",
            ThinkingMlElement::Serp => "serp",
            ThinkingMlElement::Thinking => "thinking",
            ThinkingMlElement::Phase => "phase",
            ThinkingMlElement::Title => "title",
            ThinkingMlElement::Final => "final",
        }
    }

    /// Returns whether the element belongs at the top level.
    pub(super) fn is_top(self) -> bool {
        !matches!(self, ThinkingMlElement::Phase | ThinkingMlElement::Title)
    }

    /// Returns whether the element begins the structure for good: it is at the top level and mandatory.
    pub(super) fn begins_structure(self) -> bool {
        self.is_top() && EXPECTED.get(self.as_str()).is_some_and(|element| element.is_mandatory)
    }
}

const ALL_ELEMENTS: [ThinkingMlElement; 6] = [
    ThinkingMlElement::Think,
    ThinkingMlElement::Serp,
    ThinkingMlElement::Thinking,
    ThinkingMlElement::Phase,
    ThinkingMlElement::Title,
    ThinkingMlElement::Final,
];

/// Structure that a reply must have.
static EXPECTED: LazyLock<ExpectedStructure> = LazyLock::new(|| {
    use ThinkingMlElement::{Final, Phase, Serp, Think, Thinking, Title};
    let single_element = |name: ThinkingMlElement| ExpectedElement {
        is_repeatable: false,
        ..ExpectedElement::new(name.as_str())
    };
    let after = |names: &[ThinkingMlElement]| names.iter().map(|name| name.as_str().into()).collect();
    let within = |name: ThinkingMlElement| vec![name.as_str().into()];
    ExpectedStructure::new(vec![
        single_element(Think),
        ExpectedElement { predecessors: after(&[Think]), ..single_element(Serp) },
        ExpectedElement {
            is_mandatory: true,
            body: ElementBody::Markup,
            predecessors: after(&[Think, Serp]),
            ..single_element(Thinking)
        },
        ExpectedElement {
            is_mandatory: true,
            is_repeatable: true,
            body: ElementBody::Markup,
            parents: within(Thinking),
            ..single_element(Phase)
        },
        ExpectedElement { is_mandatory: true, parents: within(Phase), ..single_element(Title) },
        ExpectedElement {
            is_mandatory: true,
            predecessors: after(&[Think, Serp, Thinking]),
            ..single_element(Final)
        },
    ])
});

/// The top-level elements that have begun.
#[derive(Default)]
pub(super) struct SeenElements {
    /// Names in order of appearance.
    names: Vec<ThinkingMlElement>,
    /// Set once a mandatory element has begun.
    has_structure: bool,
}

impl SeenElements {
    /// Returns whether the element has begun.
    pub(super) fn has(&self, name: ThinkingMlElement) -> bool {
        self.names.contains(&name)
    }

    /// Returns whether no other element has begun.
    pub(super) fn has_only(&self, name: ThinkingMlElement) -> bool {
        self.names.iter().all(|other| *other == name)
    }

    /// Returns whether the structure has begun.
    #[inline]
    pub(super) fn has_structure(&self) -> bool {
        self.has_structure
    }

    /// Records the beginning of an element.
    pub(super) fn add(&mut self, name: ThinkingMlElement) {
        if !self.has(name) {
            self.names.push(name);
            self.has_structure |= name.begins_structure();
        }
    }

    /// Removes an optional element that turned out to be text.
    pub(super) fn remove(&mut self, name: ThinkingMlElement) {
        self.names.retain(|other| *other != name);
    }

    /// Returns what is wrong with an element that begins now: it comes twice or too late. `None` if it fits.
    pub(super) fn misfit(&self, name: ThinkingMlElement) -> Option<ElementMisfit<'static>> {
        let previous: Vec<&'static str> = self.names.iter().map(|name| name.as_str()).collect();
        EXPECTED.find_misfit(name.as_str(), &previous)
    }
}

/// Finds the element that a tag name means, and whether the name is spelled exactly (T-021).
pub(super) fn find_element(name: &str) -> Option<(ThinkingMlElement, bool)> {
    let entry = EXPECTED.find_element(name)?;
    let element = ALL_ELEMENTS.into_iter().find(|candidate| candidate.as_str() == entry.element.name)?;
    Some((element, entry.spelling == NameSpelling::Exact))
}
