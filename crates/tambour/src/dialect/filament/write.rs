//! Writer of events as Filament that passes the strict check.

use serde_json::Value;

use super::code_filter::STOPS_AT_AMPERSAND;
use super::options::FilamentOptions;
use super::tags::{ElementKind, TagTable};
use crate::event::{
    AsideKind, Choice, Details, Event, Extension, Media, OwnElement, StateUpdate, StatusItem, ToolCall,
    UiComponent,
};
use crate::lex::code::{CodeContext, CodeTracker};
use crate::lex::entity::encode;
use crate::lex::space::{is_space, trim};
use crate::state::operations_from_event;

/// Writes the events of one reply, with the names of the default structure.
pub(super) fn write(events: &[Event<'_>]) -> String {
    write_with(events, &TagTable::new(&FilamentOptions::default()))
}

/// Like [`write()`], with the names of the structure in `tags`.
pub(super) fn write_with(events: &[Event<'_>], tags: &TagTable) -> String {
    // Allocated at once, with room for tags: a growing string is briefly held twice.
    let estimate_size = |event: &Event<'_>| match event {
        Event::FinalDelta { text } | Event::PhaseDelta { text, .. } | Event::Aside { text, .. } => {
            text.len() + 16
        }
        _ => 0,
    };
    let mut out = String::new();
    out.reserve_exact(events.iter().map(estimate_size).sum::<usize>() + 256);
    let mut writer = FilamentWriter {
        tags,
        out,
        thought_start: None,
        content_start: None,
        pending: Vec::new(),
        late_thoughts: String::new(),
        code: CodeTracker::default(),
        kept_elements: Vec::new(),
    };
    events.iter().for_each(|event| writer.write_event(event));
    writer.finish()
}

/// State of [`write_with`].
struct FilamentWriter<'a> {
    tags: &'a TagTable,
    /// Elements before the content, and the content itself.
    out: String,
    /// Start of the text of the thought that is open in `out`.
    thought_start: Option<usize>,
    /// Offsets in `out` of the tag of the content and of the text after that tag.
    content_start: Option<(usize, usize)>,
    /// Comments and elements inside the content that wait for its next text.
    pending: Vec<ContentInsertion>,
    /// Thoughts after the content.
    late_thoughts: String,
    /// Code structure of the content.
    code: CodeTracker,
    /// Elements whose place is decided at the end, with their indexes in the structure.
    kept_elements: Vec<(usize, String)>,
}

/// Markup that is inserted into the content.
enum ContentInsertion {
    /// A comment.
    Comment(String),
    /// A `details` element.
    Details(String),
}

impl FilamentWriter<'_> {
    /// Writes text of a thought; adjacent thoughts are joined.
    fn write_thought(&mut self, text: &str) {
        let Some(name) = self.tag_name(ElementKind::Thought) else { return };
        if self.thought_start.is_none() {
            self.out.push_str(&format!("<{name}>\n"));
            self.thought_start = Some(self.out.len());
        }
        self.out.push_str(text);
    }

    /// Closes the open thought, if there is one, and escapes tags in it.
    fn end_thought(&mut self) {
        if let Some(start) = self.thought_start.take() {
            let name = self.tag_name(ElementKind::Thought).unwrap_or_default();
            self.out.truncate(self.out.trim_end().len());
            let start = start.min(self.out.len());
            if let Some(escaped) = self.escape_draft_tags(&self.out[start..]) {
                self.out.replace_range(start.., &escaped);
            }
            self.out.push_str(&format!("\n</{name}>\n"));
        }
    }

    /// Writes an event, or keeps it until its place is known.
    fn write_event(&mut self, event: &Event<'_>) {
        match event {
            Event::PhaseStart { .. } if self.thought_start.is_some() => self.out.push_str("\n\n"),
            Event::PhaseDelta { text, .. } => self.write_thought(text),
            Event::FinalDelta { text } => self.write_text(text),
            Event::Aside { kind: AsideKind::Comment, text } => {
                self.pending.push(ContentInsertion::Comment(safe_comment(text)));
            }
            Event::Aside { text, .. } => self.late_thoughts.push_str(text),
            Event::Extension(extension) => self.write_extension(extension),
            _ => {}
        }
    }

    /// Writes text of the content, after the elements before it.
    fn write_text(&mut self, text: &str) {
        let Some(name) = self.tag_name(ElementKind::Content) else { return };
        let mut rest = text;
        if self.content_start.is_none() {
            self.end_thought();
            let start = self.out.len();
            self.out.push_str(&format!("<{name}>\n"));
            self.content_start = Some((start, self.out.len()));
            for insertion in std::mem::take(&mut self.pending) {
                let (ContentInsertion::Comment(markup) | ContentInsertion::Details(markup)) = insertion;
                self.out.push_str(&format!("{}\n", markup.trim_end()));
            }
        }
        if !self.pending.is_empty() {
            // If the text begins with a line break, the insertions come after it, on a separate line.
            let blank_len = text.len() - text.trim_start_matches(is_space).len();
            let line_start = text[..blank_len].find('\n').map_or(0, |end| end + 1);
            self.append_text(&text[..line_start]);
            rest = &text[line_start..];
            self.code.end_line_start();
            // In code an insertion would be text, so the insertions wait for the end of the code.
            if self.code.context() == CodeContext::Text {
                for insertion in std::mem::take(&mut self.pending) {
                    let (ContentInsertion::Comment(markup) | ContentInsertion::Details(markup)) = insertion;
                    self.out.push_str(markup.trim_end());
                }
            }
        }
        self.append_text(rest);
    }

    /// Appends text to the content.
    fn append_text(&mut self, text: &str) {
        self.code.skim(text, STOPS_AT_AMPERSAND);
        self.out.push_str(text);
    }

    /// Writes an extension event as an element.
    fn write_extension(&mut self, extension: &Extension) {
        let (kind, attributes, body) = match extension {
            Extension::StateUpdate(update) => (ElementKind::Update, String::new(), self.update_body(update)),
            Extension::StatusBar(status_bar) => {
                (ElementKind::Status, String::new(), items_body(&status_bar.items))
            }
            Extension::Details(Details { summary, text }) => {
                let summary = if summary.is_empty() {
                    String::new()
                } else {
                    format!("<summary>{summary}</summary>\n")
                };
                let body = summary + text;
                let Some(name) = self.tag_name(ElementKind::Details) else { return };
                let markup = format!("<{name}>\n{}\n</{name}>\n", trim(&body));
                return self.pending.push(ContentInsertion::Details(markup));
            }
            Extension::Choice(choice) => (ElementKind::Choice, String::new(), self.choice_body(choice)),
            Extension::UiComponent(UiComponent { view, props, fallback_text }) => {
                let fallback =
                    fallback_text.as_ref().map(|text| format!(" fallback=\"{}\"", escape_attribute(text)));
                let attributes = format!(" view=\"{view}\"{}", fallback.unwrap_or_default());
                (ElementKind::Component, attributes, safe_json(props))
            }
            Extension::Media(Media { kind, src, alt }) => {
                let Some(name) = self.tag_name(ElementKind::Media) else { return };
                let text = format!(
                    "<{name} type=\"{kind}\" src=\"{}\" alt=\"{}\" />\n",
                    escape_attribute(src),
                    escape_attribute(alt)
                );
                return self.write_element(ElementKind::Media, text);
            }
            Extension::ToolCall(ToolCall { name, args, .. }) => {
                (ElementKind::Call, format!(" name=\"{}\"", escape_attribute(name)), safe_json(args))
            }
            Extension::Element(OwnElement { name, attributes, text, value }) => {
                let markup: String = attributes
                    .iter()
                    .map(|(name, value)| format!(" {name}=\"{}\"", escape_attribute(value)))
                    .collect();
                let body = value.as_ref().map_or_else(|| text.clone(), safe_json);
                let text = format!("<{name}{markup}>\n{body}\n</{name}>\n");
                return self.write_element_at(self.tags.index_of(name).unwrap_or_default(), text);
            }
            _ => return,
        };
        if let Some(name) = self.tag_name(kind) {
            let text = format!("<{name}{attributes}>\n{}\n</{name}>\n", trim(&body));
            self.write_element(kind, text);
        }
    }

    /// Returns the body of a `variable_update`.
    fn update_body(&self, update: &StateUpdate) -> String {
        // Operations that can never be applied are left out.
        let lines: Vec<String> = operations_from_event(update)
            .iter()
            .filter(|operation| operation.refusal().is_none())
            .map(|operation| {
                let mut list = vec![Value::from(operation.op()), Value::from(operation.path())];
                list.extend(operation.value().cloned());
                format!("  {}", safe_json(&Value::Array(list)))
            })
            .collect();
        let analysis = match update.analysis.is_empty() {
            true => String::new(),
            false => format!("<analysis>{}</analysis>\n", self.escape_tags(&update.analysis, &["analysis"])),
        };
        match lines.is_empty() {
            true => format!("{analysis}[]"),
            false => format!("{analysis}[\n{}\n]", lines.join(",\n")),
        }
    }

    /// Returns the body of a `choice`.
    fn choice_body(&self, choice: &Choice) -> String {
        let escape = |text: &str| self.escape_tags(text, &["prompt", "option"]);
        let options: String = choice
            .options
            .iter()
            .map(|option| {
                format!("<option id=\"{}\">{}</option>\n", escape_attribute(&option.id), escape(&option.text))
            })
            .collect();
        format!("<prompt>{}</prompt>\n<options>\n{options}</options>", escape(&choice.prompt))
    }

    /// Escapes the tags, also incomplete ones, of the structure and of `inner_names` in text of a block.
    fn escape_tags(&self, text: &str, inner_names: &[&str]) -> String {
        let names: Vec<&str> = inner_names.iter().copied().chain(self.tags.all_names()).collect();
        let mut out = String::with_capacity(text.len());
        for (at, c) in text.char_indices() {
            let text_after = || text[at + c.len_utf8()..].trim_start_matches(['/', '／', ' ', '\t', '\n']);
            let follows_bracket = |name: &&str| {
                text_after().get(..name.len()).is_some_and(|word| word.eq_ignore_ascii_case(name))
            };
            if matches!(c, '<' | '＜') && names.iter().any(follows_bracket) {
                out.push_str("&lt;");
            } else {
                out.push(c);
            }
        }
        out
    }

    /// Escapes the tags of the structure in text of a thought, except in code, so that no block in it acts
    /// . Returns `None` if nothing changes.
    fn escape_draft_tags(&self, text: &str) -> Option<String> {
        let names: Vec<&str> = self.tags.all_names().collect();
        // `code` is the code structure up to the offset `read_end`.
        let (mut code, mut read_end, mut copied_end) = (CodeTracker::default(), 0, 0);
        let mut out = String::new();
        for (at, bracket) in text.match_indices(['<', '＜']) {
            let text_after = text[at + bracket.len()..].trim_start_matches(['/', '／', ' ', '\t']);
            if !names
                .iter()
                .any(|name| text_after.get(..name.len()).is_some_and(|word| word.eq_ignore_ascii_case(name)))
            {
                continue;
            }
            code.skim(&text[read_end..at], STOPS_AT_AMPERSAND);
            read_end = at;
            code.end_line_start();
            let line = &text[at..at + text[at..].find('\n').unwrap_or(text.len() - at)];
            let is_code = match code.context() {
                CodeContext::Text => false,
                CodeContext::Fence => true,
                // A backtick on the rest of the line may close the open span.
                CodeContext::Undecided(_) => line.contains('`'),
            };
            if !is_code {
                out.push_str(&text[copied_end..at]);
                out.push_str("&lt;");
                copied_end = at + bracket.len();
            }
        }
        (copied_end > 0).then(|| out + &text[copied_end..])
    }

    /// Returns the name of the first element with a kind.
    fn tag_name(&self, kind: ElementKind) -> Option<String> {
        self.tags.first_of_kind(kind).map(|index| self.tags.element(index).name.clone().into_owned())
    }

    /// Writes the markup of an element with a kind, if the structure has one.
    fn write_element(&mut self, kind: ElementKind, markup: String) {
        if let Some(index) = self.tags.first_of_kind(kind) {
            self.write_element_at(index, markup);
        }
    }

    /// Writes the markup of the element with an index at the current place, if it may come before the
    /// content; otherwise keeps it until its place is decided at the end.
    fn write_element_at(&mut self, index: usize, markup: String) {
        let follows_content = self
            .tags
            .first_of_kind(ElementKind::Content)
            .is_some_and(|content| self.tags.must_follow(index, content));
        // Calls come at the end of a reply, even if the content is the fallback.
        let is_late = follows_content || self.tags.first_of_kind(ElementKind::Call) == Some(index);
        if self.content_start.is_none() && !is_late {
            self.end_thought();
            self.out.push_str(&markup);
        } else {
            self.kept_elements.push((index, markup));
        }
    }

    /// Places the elements that were kept, and returns the text.
    fn finish(mut self) -> String {
        self.end_thought();
        let wrap = |name: Option<String>, text: &str| match name {
            Some(name) if !text.trim().is_empty() => format!("<{name}>\n{text}\n</{name}>\n"),
            _ => String::new(),
        };
        let escaped_thoughts = self
            .escape_draft_tags(trim(&self.late_thoughts))
            .unwrap_or_else(|| trim(&self.late_thoughts).to_owned());
        let mut markup_after = wrap(self.tag_name(ElementKind::Thought), &escaped_thoughts);
        let (mut comments, mut details) = (String::new(), String::new());
        for insertion in std::mem::take(&mut self.pending) {
            match insertion {
                ContentInsertion::Comment(text) => comments += &format!("{text}\n"),
                ContentInsertion::Details(text) => details += &text,
            }
        }
        let name = self.tag_name(ElementKind::Content).unwrap_or_default();
        if let Some((_, start)) = self.content_start {
            // At the beginning of the content nothing is code.
            self.out.insert_str(start, &comments);
            self.out.push_str(&format!("\n</{name}>\n"));
        }
        markup_after.push_str(&details);
        let mut markup_before = String::new();
        for (index, markup) in &self.kept_elements {
            let precedes_content = self
                .tags
                .first_of_kind(ElementKind::Content)
                .is_some_and(|content| self.tags.must_follow(content, *index));
            if precedes_content { markup_before.push_str(markup) } else { markup_after.push_str(markup) }
        }
        let start = self.content_start.map_or(self.out.len(), |(start, _)| start);
        self.out.insert_str(start, &markup_before);
        self.out.push_str(&markup_after);
        self.out
    }
}

/// Returns a comment whose text cannot end it early.
fn safe_comment(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '-' && escaped.ends_with('-') {
            escaped.push(' ');
        }
        escaped.push(c);
    }
    // An open tag, or an open quote in one, would continue after the comment, so brackets that may begin such
    // a tag are escaped.
    let has_quote = escaped.find('<').is_some_and(|bracket| escaped[bracket..].contains(['"', '\'']));
    let open_start = if has_quote { 0 } else { escaped.rfind('>').map_or(0, |bracket| bracket + 1) };
    let escaped_end = escaped[open_start..].replace(['<', '＜'], "&lt;");
    escaped.replace_range(open_start.., &escaped_end);
    // A final dash must not join the `-->`.
    let space = if escaped.ends_with('-') { " " } else { "" };
    format!("<!-- {escaped}{space} -->")
}

/// Escapes the value of an attribute in double quotes. Line breaks become blanks.
fn escape_attribute(text: &str) -> String {
    encode(text).replace('"', "&quot;").replace(['\n', '\r'], " ")
}

/// Writes JSON without `</`, so that no closing tag can be read in it.
fn safe_json(value: &Value) -> String {
    value.to_string().replace("</", "<\\/")
}

/// Returns the items of a status bar as tags.
fn items_body(items: &[StatusItem]) -> String {
    let write_item = |StatusItem { name, text, items }: &StatusItem| {
        if name.is_empty() {
            return text.clone();
        }
        // JSON keys may hold characters that a tag cannot. Blanks inside a name stay, since such names are
        // read as they are.
        let mut name = trim(name).replace(|c: char| !(c.is_alphanumeric() || "_-.: ".contains(c)), "_");
        if !name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            name.insert(0, '_');
        }
        // Text without a name belongs to the enclosing item.
        let unnamed_items = items.iter().filter(|item| item.name.is_empty()).map(|item| item.text.as_str());
        let text: Vec<&str> =
            std::iter::once(text.as_str()).chain(unnamed_items).filter(|text| !text.is_empty()).collect();
        let named_items: Vec<StatusItem> =
            items.iter().filter(|item| !item.name.is_empty()).cloned().collect();
        match named_items.is_empty() {
            true => format!("<{name}>{}</{name}>", text.join("\n")),
            false => format!("<{name}>{}\n{}\n</{name}>", text.join("\n"), items_body(&named_items)),
        }
    };
    // Text without a name is read as one item after the others.
    let (unnamed_items, named_items): (Vec<_>, Vec<_>) = items.iter().partition(|item| item.name.is_empty());
    named_items.into_iter().chain(unnamed_items).map(write_item).collect::<Vec<_>>().join("\n")
}
