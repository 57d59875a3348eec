//! Expected structure of a reply in markup (F-200): its elements, their content, nesting, number and order.
//! An [`ExpectedStructure`] is plain data: that of a dialect, or one that a user wrote.
//!
//! ```
//! use serde_json::json;
//! use tambour::structure::{ExpectedStructure, ElementMisfit};
//!
//! let expected = ExpectedStructure::from_json(&json!({
//!     "mandatory": ["content"], "optional": ["thought", "status"], "dependency": {"status": "content"},
//! }))?;
//! assert_eq!(expected.find_misfit("content", &["status"]), Some(ElementMisfit::Late("status")));
//! assert_eq!(expected.missing_elements(&["thought"]).map(|element| &*element.name).collect::<Vec<_>>(), ["content"]);
//! # Ok::<(), tambour::Error>(())
//! ```

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::lex::markup::is_name;

/// Name of an element.
pub type ElementName = Cow<'static, str>;

/// Elements of a reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExpectedStructure {
    /// All elements; siblings in the order in which they should come.
    pub elements: Vec<ExpectedElement>,
}

/// An element of an expected structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedElement {
    /// Tag name.
    pub name: ElementName,
    /// Alternative names, matched in any letter case.
    pub aliases: Vec<ElementName>,
    /// Allowed parent elements; empty at the top level.
    pub parents: Vec<ElementName>,
    /// Content it holds.
    pub body: ElementBody,
    /// True if it must occur (in each parent).
    pub is_mandatory: bool,
    /// True if it may occur more than once (in each parent).
    pub is_repeatable: bool,
    /// Elements of the same parent that must precede it if they occur.
    pub predecessors: Vec<ElementName>,
    /// Name of the dialect's element that it is read as, such as `content`; `None` stands for its own name.
    pub role: Option<ElementName>,
}

/// Content of an element.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ElementBody {
    /// Text; tags in it are literal.
    #[default]
    Text,
    /// Text and elements.
    Markup,
    /// One JSON value.
    Json,
    /// Nothing.
    Empty,
}

/// An element that a tag name refers to.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElementMatch<'a> {
    /// The element.
    pub element: &'a ExpectedElement,
    /// Spelling by which it was recognised.
    pub spelling: NameSpelling,
}

/// Spelling of an element's name.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NameSpelling {
    /// The exact name.
    Exact,
    /// The name in another letter case.
    LetterCase,
    /// One of its aliases.
    Alias,
    /// One letter wrong, missing or surplus, or two adjacent ones swapped (F-205).
    Typo,
}

/// Reason why an element may not begin at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementMisfit<'a> {
    /// The element has occurred already and may not repeat.
    Duplicate,
    /// The element must precede the named one, which has occurred already.
    Late(&'a str),
}

impl ExpectedElement {
    /// Creates an optional, repeatable text element at the top level.
    #[must_use]
    pub fn new(name: impl Into<ElementName>) -> ExpectedElement {
        ExpectedElement {
            name: name.into(),
            aliases: Vec::new(),
            parents: Vec::new(),
            body: ElementBody::Text,
            is_mandatory: false,
            is_repeatable: true,
            predecessors: Vec::new(),
            role: None,
        }
    }

    /// Name of the dialect's element that it is read as.
    #[must_use]
    pub fn role(&self) -> &str {
        self.role.as_ref().unwrap_or(&self.name)
    }

    /// Parses an element as written in a structure file: its name, or an object of `name`, `role`, `body` (`text`,
    /// `markup`, `json`, `empty`) and `aliases`.
    ///
    /// # Errors
    /// The value has another form, or a name is one that no tag can have.
    pub fn from_json(value: &Value) -> Result<ExpectedElement> {
        const KEYS: [&str; 4] = ["name", "role", "body", "aliases"];
        let Value::Object(fields) = value else {
            return Ok(ExpectedElement::new(parse_tag_name(Some(value), "a tag")?));
        };
        if let Some(key) = fields.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(Error::unknown("key of a tag", key, KEYS));
        }
        let mut element = ExpectedElement::new(parse_tag_name(fields.get("name"), "name")?);
        element.aliases =
            parse_tag_names(fields.get("aliases"), "aliases")?.into_iter().map(Cow::Owned).collect();
        if let Some(role) = fields.get("role").filter(|role| !role.is_null()) {
            element.role = Some(Cow::Owned(parse_tag_name(Some(role), "role")?));
        }
        if let Some(body) = fields.get("body").filter(|body| !body.is_null()) {
            let known_body = BODY_NAMES.iter().find(|(word, _)| body.as_str() == Some(word));
            let word = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
            let unknown_body =
                || Error::unknown("`body` of a tag", &word, BODY_NAMES.iter().map(|(word, _)| *word));
            element.body = known_body.ok_or_else(unknown_body)?.1;
        }
        Ok(element)
    }

    /// Element as written in a structure file.
    fn to_json(&self) -> Value {
        let ExpectedElement { name, aliases, body, role, .. } = self;
        if aliases.is_empty() && role.is_none() && *body == ElementBody::Text {
            return Value::from(&**name);
        }
        let mut fields = serde_json::Map::from_iter([("name".to_owned(), Value::from(&**name))]);
        if let Some(role) = role {
            fields.insert("role".to_owned(), Value::from(&**role));
        }
        if let Some((word, _)) =
            BODY_NAMES.iter().find(|(_, known_body)| known_body == body && *known_body != ElementBody::Text)
        {
            fields.insert("body".to_owned(), Value::from(*word));
        }
        if !aliases.is_empty() {
            fields.insert("aliases".to_owned(), aliases.iter().map(|alias| Value::from(&**alias)).collect());
        }
        Value::Object(fields)
    }
}

/// Words for bodies in a structure file.
const BODY_NAMES: [(&str, ElementBody); 4] = [
    ("text", ElementBody::Text),
    ("markup", ElementBody::Markup),
    ("json", ElementBody::Json),
    ("empty", ElementBody::Empty),
];

impl ExpectedStructure {
    /// Creates a structure of `elements`.
    #[must_use]
    pub fn new(elements: Vec<ExpectedElement>) -> ExpectedStructure {
        ExpectedStructure { elements }
    }

    /// Parses a structure file, which has only top-level elements: `mandatory` and `optional`, lists of names
    /// (or of objects, see [`ExpectedElement::from_json`]), and `dependency`, which maps a name to the name
    /// or names that it must follow. A mandatory element occurs once.
    ///
    /// # Errors
    /// The value has another form, a name is listed twice or is one that no tag can have, a dependency names
    /// an element that is not listed, or dependencies form a cycle.
    pub fn from_json(value: &Value) -> Result<ExpectedStructure> {
        const KEYS: [&str; 3] = ["mandatory", "optional", "dependency"];
        let Value::Object(fields) = value else {
            return Err(Error::invalid(
                "an expected structure must be an object of `mandatory`, `optional` and `dependency`",
            ));
        };
        if let Some(key) = fields.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(Error::unknown("key of an expected structure", key, KEYS));
        }
        let mut elements: Vec<ExpectedElement> = Vec::new();
        for (key, is_mandatory) in [("mandatory", true), ("optional", false)] {
            for item in as_list(fields.get(key)) {
                let invalid_item =
                    || Error::invalid(format!("`{key}` must contain names of tags, not {item}"));
                let element = match item {
                    Value::Object(_) => ExpectedElement::from_json(item)?,
                    item => {
                        ExpectedElement::new(parse_tag_name(Some(item), key).map_err(|_| invalid_item())?)
                    }
                };
                if elements.iter().any(|known_element| known_element.name == element.name) {
                    return Err(Error::invalid(format!("`{}` is listed twice", element.name)));
                }
                elements.push(ExpectedElement { is_mandatory, is_repeatable: !is_mandatory, ..element });
            }
        }
        let dependencies = match fields.get("dependency") {
            None | Some(Value::Null) => BTreeMap::new(),
            Some(Value::Object(entries)) => entries
                .iter()
                .map(|(name, value)| Ok((name.as_str(), parse_tag_names(Some(value), "dependency")?)))
                .collect::<Result<BTreeMap<_, _>>>()?,
            Some(_) => {
                return Err(Error::invalid(
                    "`dependency` must be an object that maps a tag to the tag it must follow",
                ));
            }
        };
        let spelling_of = |name: &str| find_spelling(name, &elements).to_owned();
        // Predecessors of each name, spelled as in the lists of elements.
        let dependencies: BTreeMap<String, Vec<String>> = dependencies
            .into_iter()
            .map(|(name, predecessors)| {
                (spelling_of(name), predecessors.iter().map(|name| spelling_of(name)).collect())
            })
            .collect();
        for name in dependencies.iter().flat_map(|(name, predecessors)| predecessors.iter().chain([name])) {
            if !elements.iter().any(|element| element.name == *name) {
                let known_names: Vec<&str> = elements.iter().map(|element| &*element.name).collect();
                return Err(Error::unknown("tag in `dependency`", name, known_names));
            }
        }
        for element in &mut elements {
            element.predecessors =
                dependencies.get(&*element.name).into_iter().flatten().cloned().map(Cow::Owned).collect();
        }
        let expected = ExpectedStructure::new(elements);
        match expected.elements.iter().find(|element| expected.must_follow(&element.name, &element.name)) {
            Some(element) => Err(Error::invalid(format!("`{}` must follow itself", element.name))),
            None => Ok(expected),
        }
    }

    /// Structure file that [`ExpectedStructure::from_json`] reads.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let elements_json = |mandatory: bool| -> Vec<Value> {
            let listed_elements = self.elements.iter().filter(|element| element.is_mandatory == mandatory);
            listed_elements.map(ExpectedElement::to_json).collect()
        };
        let dependencies =
            self.elements.iter().filter(|element| !element.predecessors.is_empty()).map(|element| {
                let predecessors = element.predecessors.iter().map(|name| Value::from(&**name)).collect();
                (element.name.clone().into_owned(), Value::Array(predecessors))
            });
        let dependency = Value::Object(dependencies.collect());
        serde_json::json!({ "mandatory": elements_json(true), "optional": elements_json(false), "dependency": dependency })
    }

    /// Returns whether `name` must follow `predecessor`, directly or through others.
    #[doc(hidden)]
    #[must_use]
    pub fn must_follow(&self, name: &str, predecessor: &str) -> bool {
        let predecessors_of = |name: &str| self.get(name).map_or(&[][..], |element| &element.predecessors);
        let mut visited: Vec<&str> = Vec::new();
        let mut pending: Vec<&ElementName> = predecessors_of(name).iter().collect();
        while let Some(next) = pending.pop() {
            if !visited.contains(&&**next) {
                visited.push(next);
                pending.extend(predecessors_of(next));
            }
        }
        visited.contains(&predecessor)
    }

    /// Element of exactly that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&ExpectedElement> {
        self.elements.iter().find(|element| element.name == name)
    }

    /// All names and aliases of the elements, for [`TagNames`](crate::lex::markup::TagNames).
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let names_of = |element| {
            let ExpectedElement { name, aliases, .. }: &ExpectedElement = element;
            std::iter::once(name).chain(aliases)
        };
        self.elements.iter().flat_map(names_of).map(|name| &**name)
    }

    /// Element that a tag name refers to: by its exact name, in another letter case, or by an alias.
    #[doc(hidden)]
    #[must_use]
    pub fn find_element(&self, name: &str) -> Option<ElementMatch<'_>> {
        let match_with = |spelling| move |element| ElementMatch { element, spelling };
        let find_folded = || self.elements.iter().find(|element| element.name.eq_ignore_ascii_case(name));
        let has_alias =
            |element: &&ExpectedElement| element.aliases.iter().any(|alias| alias.eq_ignore_ascii_case(name));
        self.get(name)
            .map(match_with(NameSpelling::Exact))
            .or_else(|| find_folded().map(match_with(NameSpelling::LetterCase)))
            .or_else(|| self.elements.iter().find(has_alias).map(match_with(NameSpelling::Alias)))
    }

    /// Like [`ExpectedStructure::find_element`], but also accepts one wrong letter in the name of a mandatory
    /// element, if only one such element matches (F-205).
    #[doc(hidden)]
    #[must_use]
    pub fn find_similar(&self, name: &str) -> Option<ElementMatch<'_>> {
        let is_near = |element: &&ExpectedElement| {
            let has_one_edit = || strsim::osa_distance(&element.name, &name.to_ascii_lowercase()) == 1;
            element.is_mandatory
                && name.len().abs_diff(element.name.len()) <= 1
                && name.len() > 2
                && has_one_edit()
        };
        self.find_element(name).or_else(|| {
            let mut near_elements = self.elements.iter().filter(is_near);
            let element = near_elements.next()?;
            near_elements.next().is_none().then_some(ElementMatch { element, spelling: NameSpelling::Typo })
        })
    }

    /// Returns the reason why the element `name` may not begin after the elements `earlier_names` of the same
    /// parent, in order of appearance. `None` if it may, or if no element has this name.
    #[must_use]
    pub fn find_misfit<'a>(&'a self, name: &str, earlier_names: &[&'a str]) -> Option<ElementMisfit<'a>> {
        if !self.get(name)?.is_repeatable && earlier_names.contains(&name) {
            return Some(ElementMisfit::Duplicate);
        }
        // Late: an element that must follow this one has begun already.
        let must_precede = |earlier_name: &&&str| {
            self.get(earlier_name)
                .is_some_and(|element| element.predecessors.iter().any(|predecessor| predecessor == name))
        };
        earlier_names.iter().find(must_precede).map(|earlier_name| ElementMisfit::Late(earlier_name))
    }

    /// Mandatory elements at the top level that `present_names` lacks.
    pub fn missing_elements<'a>(
        &'a self,
        present_names: &'a [&str],
    ) -> impl Iterator<Item = &'a ExpectedElement> {
        self.elements
            .iter()
            .filter(|element| element.is_mandatory && element.parents.is_empty())
            .filter(|element| !present_names.contains(&element.name.as_ref()))
    }
}

/// Name of the element that `name` means, as spelled in `elements`; `name` itself if there is none.
fn find_spelling<'a>(name: &'a str, elements: &'a [ExpectedElement]) -> &'a str {
    let exact = elements.iter().find(|element| element.name == name);
    let found = exact.or_else(|| elements.iter().find(|element| is_same_element(&element.name, name)));
    found.map_or(name, |element| &element.name)
}

/// Returns true if two names mean the same element: `think` and `thought` do (R-97).
#[doc(hidden)]
pub fn is_same_element(first: &str, other: &str) -> bool {
    let is_thought = |name: &str| matches!(name, "think" | "thought");
    first == other || is_thought(first) && is_thought(other)
}

/// Items of a list; a single value counts as a list of one.
fn as_list(value: Option<&Value>) -> &[Value] {
    match value {
        None | Some(Value::Null) => &[],
        Some(Value::Array(list)) => list,
        Some(single) => std::slice::from_ref(single),
    }
}

/// Parses tag names: a list of names, or one name. `key` is named in errors.
pub(crate) fn parse_tag_names(value: Option<&Value>, key: &str) -> Result<Vec<String>> {
    as_list(value).iter().map(|value| parse_tag_name(Some(value), key)).collect()
}

/// Parses a valid tag name. `key` is named in errors.
fn parse_tag_name(value: Option<&Value>, key: &str) -> Result<String> {
    let name = value.and_then(Value::as_str).filter(|name| is_name(name));
    let name_error = || match value {
        Some(value) => Error::invalid(format!("`{key}` must contain names of tags, not {value}")),
        None => Error::invalid(format!("`{key}` is missing: expected the name of a tag")),
    };
    name.map(str::to_owned).ok_or_else(name_error)
}
