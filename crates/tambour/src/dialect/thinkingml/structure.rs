//! The expected structure of ThinkingML, as data.

use std::sync::LazyLock;

use crate::structure::{Element, Expected};

/// The six elements.
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

    /// Whether it stands at the top level.
    pub(super) fn is_top(self) -> bool {
        !matches!(self, Name::Phase | Name::Title)
    }
}

const NAMES: [Name; 6] = [Name::Think, Name::Serp, Name::Thinking, Name::Phase, Name::Title, Name::Final];

static EXPECTED: LazyLock<Expected> = LazyLock::new(|| {
    let element = |name: Name, within: Option<Name>, mandatory, repeated, after: &[Name]| Element {
        name: name.text().into(),
        within: within.map(|name| name.text().into()),
        mandatory,
        repeated,
        after: after.iter().map(|name| name.text().into()).collect(),
    };
    use Name::{Final, Phase, Serp, Think, Thinking, Title};
    Expected {
        elements: vec![
            element(Think, None, false, false, &[]),
            element(Serp, None, false, false, &[Think]),
            element(Thinking, None, true, false, &[Think, Serp]),
            element(Phase, Some(Thinking), true, true, &[]),
            element(Title, Some(Phase), true, false, &[]),
            element(Final, None, true, false, &[Think, Serp, Thinking]),
        ],
    }
});

/// The structure.
pub(super) fn expected() -> &'static Expected {
    &EXPECTED
}

/// The element a tag name means, and whether it is spelled exactly so (T-021).
pub(super) fn find(name: &str) -> Option<(Name, bool)> {
    let known = EXPECTED.find(name)?;
    let found = NAMES.into_iter().find(|candidate| candidate.text() == known.element.name)?;
    Some((found, known.exact))
}
