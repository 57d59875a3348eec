//! Meanings of tags: those of the structure, and those of earlier and later versions, which have other names
//! or forms.

use std::borrow::Cow;

use super::options::FilamentOptions;
use crate::lex::marks;
use crate::lex::markup::{MarkupTag, TagFault, TagNames};
use crate::protocol::ProtocolRegistry;
use crate::structure::{
    ElementBody, ElementMatch, ElementMisfit, ExpectedElement, ExpectedStructure, NameSpelling,
};

/// Kind that an element is read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ElementKind {
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
    Custom,
}

use ElementKind::*;

/// The reply tags (F-100).
const REPLY_TAGS: [(&str, ElementKind); 9] = [
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

/// Name that a structure may give the thought instead of `thought`.
const THINK_ALIAS: &str = "think";

/// Form in which an element is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ElementForm {
    /// The current form.
    Current,
    /// Another name of the same element, with the current body or a JSON body.
    OtherName,
    /// `<state_update>`: operations, JSON Patch, or one path and value.
    StateUpdate,
    /// `<update>`: one path and value.
    SingleUpdate,
    /// `<UpdateVariable>`: commands.
    Commands,
    /// `<JSONPatch>` or `<json_patch>`, without an `<UpdateVariable>` around it.
    Patch,
    /// The tag that is literally called `xx`, of earlier versions: a list of options.
    List,
    /// A status bar under an earlier name.
    OldStatus,
    /// A status bar in HTML.
    Html,
}

/// Names of other versions, with their kinds and forms.
const OTHER_NAMES: &[(&str, ElementKind, ElementForm)] = &[
    ("think", Thought, ElementForm::OtherName),
    ("thought", Thought, ElementForm::OtherName),
    ("reply", Content, ElementForm::OtherName),
    ("state_update", Update, ElementForm::StateUpdate),
    ("update", Update, ElementForm::SingleUpdate),
    ("UpdateVariable", Update, ElementForm::Commands),
    ("JSONPatch", Update, ElementForm::Patch),
    ("json_patch", Update, ElementForm::Patch),
    ("xx", Choice, ElementForm::List),
    ("StatusBlock", Status, ElementForm::OldStatus),
    ("StatusBar", Status, ElementForm::OldStatus),
];

/// Names of elements around a whole reply; their tags are left out.
const ENVELOPE_NAMES: &[&str] = &["filament_output"];

/// HTML elements that a status bar may consist of.
const HTML_BLOCKS: &[&str] = &["div", "table", "section", "aside"];

/// The elements that a reply may have. An element is identified by its index in the structure.
#[derive(Clone, Debug)]
pub(super) struct TagTable {
    expected: ExpectedStructure,
    /// Kind of each element, by index.
    kinds: Vec<ElementKind>,
    /// Set if the structure is configured, so that text before all tags may be thinking (F-201).
    is_structure_given: bool,
    /// Index of the thought that was added because the structure has none: thinking is never shown as content
    /// (F-101).
    added_thought: Option<usize>,
}

/// An element of the structure that a tag means.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownElement {
    /// Index in the structure.
    pub(super) index: usize,
    pub(super) kind: ElementKind,
    pub(super) form: ElementForm,
    pub(super) spelling: NameSpelling,
}

/// Meaning of a tag.
#[derive(Clone, Copy, Debug)]
pub(super) enum TagMeaning {
    /// An element of the structure.
    Known(KnownElement),
    /// A reasoning mark that is not a reply tag: a thought.
    Reasoning(KnownElement),
    /// An element around the whole reply.
    Envelope,
    /// A reply tag, or another name of one, that the structure does not have.
    Inactive,
    /// Any other tag.
    Unknown,
}

impl TagTable {
    pub(super) fn new(options: &FilamentOptions) -> TagTable {
        let mut expected = options.structure.clone().unwrap_or_else(unordered_structure);
        let kind_of = |element: &ExpectedElement| {
            let role = if element.role() == THINK_ALIAS { "thought" } else { element.role() };
            REPLY_TAGS.iter().find(|(name, _)| *name == role).map_or(Custom, |(_, kind)| *kind)
        };
        let mut kinds: Vec<ElementKind> = expected.elements.iter().map(kind_of).collect();
        if !kinds.contains(&Content)
            && let Some(text_element) = (0..kinds.len()).find(|&index| {
                let ExpectedElement { is_mandatory, body, .. } = &expected.elements[index];
                kinds[index] == Custom
                    && *is_mandatory
                    && matches!(body, ElementBody::Text | ElementBody::Markup)
            })
        {
            // Some element must hold the text for the user: the first mandatory element of text.
            kinds[text_element] = Content;
        }
        let added_thought = (!kinds.contains(&Thought)).then_some(kinds.len());
        if added_thought.is_some() {
            expected.elements.push(default_thought());
            kinds.push(Thought);
        }
        TagTable { expected, kinds, is_structure_given: options.structure.is_some(), added_thought }
    }

    /// Returns the names for a tolerant lexer.
    pub(super) fn names(&self) -> TagNames {
        TagNames::new(self.all_names())
    }

    /// Iterates over all names: those of the structure, and other names of its elements.
    pub(super) fn all_names(&self) -> impl Iterator<Item = &str> {
        let other_names =
            OTHER_NAMES.iter().filter(|(_, kind, _)| self.kinds.contains(kind)).map(|(name, ..)| *name);
        self.expected.names().chain(other_names)
    }

    /// Returns the element with an index.
    pub(super) fn element(&self, index: usize) -> &ExpectedElement {
        &self.expected.elements[index]
    }

    /// Returns the kind of the element with an index.
    pub(super) fn kind(&self, index: usize) -> ElementKind {
        self.kinds.get(index).copied().unwrap_or(Content)
    }

    /// Returns the index of the element with a name.
    pub(super) fn index_of(&self, name: &str) -> Option<usize> {
        self.expected.elements.iter().position(|element| element.name == name)
    }

    /// Returns whether the element `index` must follow the element `predecessor`.
    pub(super) fn must_follow(&self, index: usize, predecessor: usize) -> bool {
        self.expected.must_follow(&self.element(index).name, &self.element(predecessor).name)
    }

    /// Returns the index of the first element of the structure with a kind.
    pub(super) fn first_of_kind(&self, kind: ElementKind) -> Option<usize> {
        self.any_of_kind(kind).filter(|index| !self.is_added_thought(*index))
    }

    /// Like [`Self::first_of_kind`], but includes the added thought of a structure that has none.
    pub(super) fn any_of_kind(&self, kind: ElementKind) -> Option<usize> {
        self.kinds.iter().position(|known_kind| *known_kind == kind)
    }

    /// Returns whether an element is the added thought, which the structure does not have.
    pub(super) fn is_added_thought(&self, index: usize) -> bool {
        self.added_thought == Some(index)
    }

    /// Returns the meaning of a tag.
    pub(super) fn meaning(&self, tag: &MarkupTag<'_>) -> TagMeaning {
        let name = tag.name;
        if let Some(ElementMatch { element, spelling }) = self.expected.find_element(name) {
            return TagMeaning::Known(self.known_element(element, ElementForm::Current, spelling));
        }
        if let Some((_, kind, form)) = OTHER_NAMES.iter().find(|(other, ..)| other.eq_ignore_ascii_case(name))
        {
            let known_element = self
                .any_of_kind(*kind)
                .map(|index| self.known_element(self.element(index), *form, NameSpelling::Alias));
            return known_element.map_or(TagMeaning::Inactive, TagMeaning::Known);
        }
        if let Some(ElementMatch { element, spelling }) = self.expected.find_similar(name) {
            return TagMeaning::Known(self.known_element(element, ElementForm::Current, spelling));
        }
        let is_closing = false;
        if marks::parse_tag_mark(name, is_closing).is_some()
            && let Some(index) = self.any_of_kind(Thought)
        {
            return TagMeaning::Reasoning(self.known_element(
                self.element(index),
                ElementForm::OtherName,
                NameSpelling::Alias,
            ));
        }
        if ENVELOPE_NAMES.contains(&name) {
            return TagMeaning::Envelope;
        }
        let is_reply_tag = REPLY_TAGS.iter().any(|(reply_tag, _)| reply_tag.eq_ignore_ascii_case(name));
        if is_reply_tag { TagMeaning::Inactive } else { TagMeaning::Unknown }
    }

    /// Returns the HTML status bar that a tag begins, recognized by its class or id; `None` for other tags
    /// (F-140).
    pub(super) fn html_status_bar(&self, tag: &MarkupTag<'_>) -> Option<KnownElement> {
        let is_block = HTML_BLOCKS.iter().any(|name| name.eq_ignore_ascii_case(tag.name));
        let has_bar_name = || {
            tag.attributes().any(|attribute| {
                let value = attribute.value.unwrap_or_default().to_ascii_lowercase();
                matches!(attribute.name, "class" | "id")
                    && (value.contains("status") || value.contains("状态"))
            })
        };
        let index = self.first_of_kind(Status)?;
        (is_block && has_bar_name()).then(|| KnownElement {
            form: ElementForm::Html,
            ..self.known_element(self.element(index), ElementForm::Html, NameSpelling::Alias)
        })
    }

    fn known_element(
        &self,
        element: &ExpectedElement,
        form: ElementForm,
        spelling: NameSpelling,
    ) -> KnownElement {
        let index = self
            .expected
            .elements
            .iter()
            .position(|candidate| candidate.name == element.name)
            .unwrap_or_default();
        KnownElement { index, kind: self.kinds[index], form, spelling }
    }

    /// Returns whether text before all tags is thinking (F-201); with `is_mandatory_only` only if the thought
    /// is mandatory.
    pub(super) fn has_thinking_head(&self, is_mandatory_only: bool) -> bool {
        self.is_structure_given
            && self.first_of_kind(Thought).is_some_and(|index| {
                let thought = self.element(index);
                thought.predecessors.is_empty() && (thought.is_mandatory || !is_mandatory_only)
            })
    }

    /// Returns the fault in the position of the element `index`, which begins after the elements `earlier`;
    /// `None` if it fits.
    pub(super) fn misfit<'a>(&'a self, index: usize, earlier: &[usize]) -> Option<ElementMisfit<'a>> {
        let earlier_names: Vec<&str> =
            earlier.iter().map(|&earlier_index| &*self.expected.elements[earlier_index].name).collect();
        self.expected.find_misfit(&self.expected.elements[index].name, &earlier_names)
    }

    /// Returns the indexes of the mandatory elements that are not among the `present` ones.
    pub(super) fn missing(&self, present: &[usize]) -> Vec<usize> {
        let is_missing =
            |&index: &usize| self.expected.elements[index].is_mandatory && !present.contains(&index);
        (0..self.kinds.len()).filter(is_missing).collect()
    }
}

/// Returns the default structure: the content, and every other reply tag, without an order.
fn unordered_structure() -> ExpectedStructure {
    let registry = ProtocolRegistry::builtin();
    let mut expected = registry.expected_structure(registry.iter().map(|protocol| &*protocol.id)).0;
    expected.elements.iter_mut().for_each(|element| element.predecessors.clear());
    expected
}

/// Returns a thought for structures that have none.
fn default_thought() -> ExpectedElement {
    let ExpectedStructure { mut elements, .. } = unordered_structure();
    let index = elements.iter().position(|element| element.role() == "thought").unwrap_or_default();
    ExpectedElement { is_mandatory: false, ..elements.swap_remove(index) }
}

/// Describes the faults in how a tag is written.
pub(super) fn describe_faults(tag: &MarkupTag<'_>, spelling: NameSpelling) -> Vec<&'static str> {
    let describe = |fault: TagFault| match fault {
        TagFault::Blanks => "spaces inside it",
        TagFault::Case => "wrong letter case",
        TagFault::FullWidth => "a full-width character",
        TagFault::MissingBracket => "no closing bracket",
    };
    // A wrong letter case is described once, by `spelling`.
    let mut faults: Vec<&str> =
        tag.faults.iter().filter(|fault| *fault != TagFault::Case).map(describe).collect();
    match spelling {
        NameSpelling::LetterCase => faults.push("wrong letter case"),
        NameSpelling::Typo => faults.push("a wrong letter"),
        NameSpelling::Exact | NameSpelling::Alias => {}
    }
    faults
}

/// Returns the attributes of a tag: names in lower case, and decoded values. Only the first attribute of each
/// name is kept.
pub(super) fn attributes(tag: &MarkupTag<'_>) -> Vec<(String, String)> {
    let mut attributes: Vec<(String, String)> = Vec::new();
    for (name, value) in all_attributes(tag) {
        if !attributes.iter().any(|(known_name, _)| *known_name == name) {
            attributes.push((name, value));
        }
    }
    attributes
}

/// Iterates over all attributes of a tag, repeated names included: names in lower case, and decoded values.
fn all_attributes(tag: &MarkupTag<'_>) -> impl Iterator<Item = (String, String)> {
    tag.attributes().map(|attribute| {
        let value =
            attribute.value.map_or(Cow::Borrowed(""), |value| crate::lex::entity::decode(value).into());
        (attribute.name.to_ascii_lowercase(), value.into_owned())
    })
}

/// Returns whether a tag has the attribute `name` more than once, with different values.
pub(super) fn contradicts_itself(tag: &MarkupTag<'_>, name: &str) -> bool {
    let mut values = all_attributes(tag).filter(|(key, _)| key == name).map(|(_, value)| value);
    values.next().is_some_and(|first| values.any(|value| value != first))
}
