//! The expected structure of ThinkingML, as data.

use std::sync::LazyLock;

use crate::structure::{Body, Element, Expected, Written};

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

/// The structure.
pub(super) fn expected() -> &'static Expected {
    &EXPECTED
}

/// The element a tag name means, and whether it is spelled exactly so (T-021).
pub(super) fn find(name: &str) -> Option<(Name, bool)> {
    let known = EXPECTED.find(name)?;
    let found = NAMES.into_iter().find(|candidate| candidate.text() == known.element.name)?;
    Some((found, known.written == Written::Exact))
}
