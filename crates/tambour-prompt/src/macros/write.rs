//! Writer that turns the nodes of a text with macros into a Jinja template.

mod condition;
mod expression;

use std::collections::HashSet;

use super::args::{ends_raw, quote_literal, trim_body};
use super::node::{KnownMacro, MacroNode};
use super::parse::{MAX_NODES, ParsedText};
use super::table::{self, MacroTarget};
use super::{MacroWarning, MigrationCounts};
use crate::jinja::{is_context_name, is_filter_name, is_function_name};
use tambour::finding::clip;
use tambour::span::Place;

/// Writes the nodes of `parsed_text` as Jinja. Returns the template, warnings and counts.
pub(super) fn write(
    source: &str,
    parsed_text: ParsedText<'_>,
) -> (String, Vec<MacroWarning>, MigrationCounts) {
    let mut changed_names = HashSet::new();
    let is_inner = false;
    collect_changed_names(&parsed_text.nodes, is_inner, &mut changed_names);
    let mut writer = JinjaWriter {
        source,
        ignores_jinja: parsed_text.ignores_jinja,
        out: String::with_capacity(source.len() + source.len() / 2),
        pending_pieces: Vec::new(),
        jinja_names: parsed_text.jinja_names,
        changed_names,
        set_names: HashSet::new(),
        statement_depth: 0,
        warnings: Vec::new(),
        warning_place: Place::START,
        counts: MigrationCounts::default(),
    };
    let is_protected = false;
    writer.write_nodes(parsed_text.nodes, is_protected);
    if let Some(at) = parsed_text.limit_offset {
        let message =
            format!("the text has more than {MAX_NODES} macros and escapes, and stays as it was written");
        writer.warn("macro_limit", "", at, message);
    }
    let tag_follows = false;
    writer.flush(tag_follows);
    (writer.out, writer.warnings, writer.counts)
}

/// Collects the names of variables that a call changes anywhere in the text. Such a variable must not be set
/// by a `set` statement, which would hide its value. `is_inner` is set for nodes inside macros other than
/// conditions, because `setvar` becomes a call there, too.
fn collect_changed_names(nodes: &[MacroNode<'_>], is_inner: bool, names: &mut HashSet<String>) {
    for node in nodes {
        match node {
            MacroNode::Macro(known_macro) => {
                let target = known_macro.rule.target;
                let changes_variable = match target {
                    MacroTarget::Call(call) => {
                        matches!(call, "st_add" | "st_inc" | "st_dec" | "st_delete" | "st_set_key")
                    }
                    MacroTarget::Set => is_inner,
                    _ => false,
                };
                let changed_name = match target {
                    MacroTarget::Short => known_macro
                        .args
                        .first()
                        .and_then(|nodes| literal_text(nodes))
                        .map(|text| expression::short_name(text.trim_start()).to_owned()),
                    _ if changes_variable => known_macro.args.first().and_then(|nodes| literal_text(nodes)),
                    _ => None,
                };
                names.extend(changed_name);
                let is_argument_inner = true;
                known_macro.args.iter().for_each(|arg| collect_changed_names(arg, is_argument_inner, names));
                if let Some(body) = &known_macro.body {
                    collect_changed_names(body, is_inner || target != MacroTarget::If, names);
                }
            }
            MacroNode::Unknown { inner_nodes, .. } => {
                let is_content_inner = true;
                collect_changed_names(inner_nodes, is_content_inner, names);
            }
            _ => {}
        }
    }
}

/// Returns the text of nodes that consist only of text; `None` for others.
fn literal_text(nodes: &[MacroNode<'_>]) -> Option<String> {
    nodes.iter().try_fold(String::new(), |all, node| match node {
        MacroNode::Text(text) => Some(all + text),
        _ => None,
    })
}

/// Writer of a migrated text.
struct JinjaWriter<'s> {
    source: &'s str,
    /// True if Jinja in the text is treated as plain text.
    ignores_jinja: bool,
    out: String,
    /// Text that is not written yet. The flag is true for a piece that must be hidden from the template
    /// engine.
    pending_pieces: Vec<(String, bool)>,
    /// Names in Jinja statements of the text that set variables.
    jinja_names: HashSet<&'s str>,
    /// Names of variables that calls change.
    changed_names: HashSet<String>,
    /// Variables that earlier `set` statements have set outside of other statements.
    set_names: HashSet<String>,
    /// Number of statements around the current place.
    statement_depth: usize,
    warnings: Vec<MacroWarning>,
    /// Position of the last warning.
    warning_place: Place,
    counts: MigrationCounts,
}

impl<'s> JinjaWriter<'s> {
    /// Adds text to print. If `is_protected` is set, the template engine must not interpret it.
    fn push_text(&mut self, text: &str, is_protected: bool) {
        match self.pending_pieces.last_mut() {
            Some((last, is_last_protected)) if *is_last_protected == is_protected => last.push_str(text),
            _ => self.pending_pieces.push((text.to_owned(), is_protected)),
        }
    }

    /// Adds text to print that the template engine must not interpret.
    fn push_protected(&mut self, text: &str) {
        let is_protected = true;
        self.push_text(text, is_protected);
    }

    /// Writes a tag after the pending text.
    fn write_tag(&mut self, tag: &str) {
        let tag_follows = true;
        self.flush(tag_follows);
        self.out.push_str(tag);
    }

    /// Writes an expression as an output tag.
    fn write_output(&mut self, expression: &str) {
        self.write_tag(&format!("{{{{ {expression} }}}}"));
    }

    /// Writes the pending text. Pieces that the engine would interpret, or that a second migration would
    /// change, go into raw blocks. `tag_follows` is set if a tag is written next.
    fn flush(&mut self, tag_follows: bool) {
        let mut text = String::new();
        let mut protected_ranges: Vec<(usize, usize)> = Vec::new();
        for (piece, is_protected) in std::mem::take(&mut self.pending_pieces) {
            if is_protected {
                protected_ranges.push((text.len(), text.len() + piece.len()));
            }
            text.push_str(&piece);
        }
        let bytes = text.as_bytes();
        let mut at = 0;
        while let Some(found) = bytes.get(at..).and_then(|unread| memchr::memchr2(b'{', b'\\', unread)) {
            let start = at + found;
            let next_byte = bytes.get(start + 1);
            let end = match (bytes[start], next_byte) {
                // An escape of a macro.
                (b'\\', Some(b'{' | b'}')) => start + 2,
                // Opening delimiters of Jinja, or braces of a macro.
                (b'{', Some(b'{' | b'%' | b'#')) => {
                    let braces_end = start + bytes[start..].iter().take_while(|byte| **byte == b'{').count();
                    braces_end + usize::from(matches!(bytes.get(braces_end), Some(b'%' | b'#')))
                }
                // A character that would join with the braces of the next tag.
                (b'{' | b'\\', None) if tag_follows => start + 1,
                _ => {
                    at = start + 1;
                    continue;
                }
            };
            protected_ranges.push((start, end));
            at = end;
        }
        protected_ranges.sort_unstable();
        let mut copied_end = 0;
        let mut ranges = protected_ranges.into_iter().peekable();
        while let Some((start, mut end)) = ranges.next() {
            while let Some((_, range_end)) = ranges.next_if(|(next_start, _)| *next_start <= end) {
                end = end.max(range_end);
            }
            // Right before the raw tag, these characters would join with its braces, so the block includes
            // them.
            let start = copied_end + text[copied_end..start].trim_end_matches(['\\', '{']).len();
            self.out.push_str(&text[copied_end..start]);
            let protected_text = &text[start..end];
            if ends_raw(protected_text) {
                self.out.push_str(&format!("{{{{ {} }}}}", quote_literal(protected_text, '"')));
            } else {
                self.out.push_str(&format!("{{% raw %}}{protected_text}{{% endraw %}}"));
            }
            copied_end = end;
        }
        self.out.push_str(&text[copied_end..]);
    }

    /// Counts a translated macro.
    fn count_rule(&mut self, row: &'static str) {
        self.counts.translated += 1;
        *self.counts.rules.entry(row).or_default() += 1;
    }

    /// Adds a warning at a byte offset of the source, unless there are too many.
    fn warn(&mut self, code: &'static str, name: &str, at: usize, message: String) {
        if self.warnings.len() >= super::MAX_WARNINGS {
            return;
        }
        // Warnings come in order, except for macros that turn out to be unknown.
        if at < self.warning_place.offset {
            self.warning_place = Place::START;
        }
        self.warning_place.advance(&self.source[self.warning_place.offset..at]);
        let place = self.warning_place;
        let name = clip(name, 60).into_owned();
        self.warnings.push(MacroWarning { code, name, line: place.line, column: place.column, message });
    }

    /// Counts a macro that stays as text, and warns.
    fn report_unknown(&mut self, name: &str, at: usize) {
        self.counts.left += 1;
        let message = match self.find_unknown_filter(at) {
            Some(filter) => {
                let name = clip(name, 60);
                format!("unknown filter `{}`; `{{{{ {name} | … }}}}` stays as text", clip(filter, 60))
            }
            None => format!("unknown macro `{}`; it stays as text", clip(name, 60)),
        };
        self.warn("macro_unknown", name, at, message);
    }

    /// Returns the first unknown filter in text that looks like a Jinja output.
    fn find_unknown_filter(&self, at: usize) -> Option<&'s str> {
        let content = self.source[at..].strip_prefix("{{").filter(|_| !self.ignores_jinja)?;
        let content = &content[..content.find("}}")?];
        let mut filters = content.split('|').skip(1).map(|part| {
            let part = part.trim_start();
            let end = part.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(part.len());
            &part[..end]
        });
        filters.find(|name| !name.is_empty() && !is_filter_name(name))
    }

    /// Writes nodes in a text position. If `is_protected` is set, the template engine must not interpret
    /// their text.
    fn write_nodes(&mut self, nodes: Vec<MacroNode<'s>>, is_protected: bool) {
        for node in nodes {
            match node {
                MacroNode::Text(text) => self.push_text(&text, is_protected),
                MacroNode::Unparsed(text) => self.push_protected(text),
                MacroNode::Jinja(source, _) | MacroNode::Verbatim(source) => self.write_tag(source),
                MacroNode::BareName { name, source } if self.is_engine_name(name) => {
                    self.report_engine_name(name, source);
                    self.push_protected(source);
                }
                MacroNode::BareName { name, source } => match self.bare_expression(name, source) {
                    Some(expression) => self.write_output(&expression),
                    None => self.write_tag(source),
                },
                MacroNode::Unknown { name, at, inner_nodes } => {
                    self.report_unknown(&name, at);
                    self.push_protected("{{");
                    let is_protected = true;
                    self.write_nodes(inner_nodes, is_protected);
                    self.push_protected("}}");
                }
                MacroNode::Macro(known_macro) => self.write_macro(*known_macro),
            }
        }
    }

    /// Returns true if the engine would give a bare name a meaning although Jinja in the text is treated as
    /// plain text.
    fn is_engine_name(&self, name: &str) -> bool {
        self.ignores_jinja && (is_context_name(name) || is_function_name(name))
    }

    /// Reports a name of the engine that is left as text. `source` is its tag, a slice of the text.
    fn report_engine_name(&mut self, name: &str, source: &'s str) {
        let at = (source.as_ptr() as usize).saturating_sub(self.source.as_ptr() as usize);
        self.report_unknown(name, if at < self.source.len() { at } else { 0 });
    }

    /// Returns the expression for a bare name; `None` if it is a Jinja variable, which is left unchanged.
    fn bare_expression(&mut self, name: &str, source: &str) -> Option<String> {
        if self.jinja_names.contains(name) || is_context_name(name) || is_function_name(name) {
            return None;
        }
        self.count_rule("M-062");
        if self.set_names.contains(name) {
            return Some(name.to_owned());
        }
        // The tag has no blanks: it is the name and four braces.
        let is_simple = source.len() == name.len() + 4;
        let quoted_name = quote_literal(name, '\'');
        Some(match is_simple {
            true => format!("st_bare({quoted_name})"),
            false => format!("st_bare({quoted_name}, {})", quote_literal(source, '\'')),
        })
    }

    /// Writes a macro in a text position.
    fn write_macro(&mut self, mut known_macro: KnownMacro<'s>) {
        let row = known_macro.rule.row;
        match known_macro.rule.target {
            MacroTarget::If => self.write_condition(known_macro),
            MacroTarget::Else => {
                // An `else` outside of a condition prints nothing.
                self.count_rule(row);
                self.warn(
                    "macro_unknown",
                    "else",
                    known_macro.offset,
                    "`else` is outside a condition; it prints nothing".to_owned(),
                );
            }
            MacroTarget::Comment => {
                self.count_rule(row);
                let text = known_macro
                    .args
                    .first()
                    .or(known_macro.body.as_ref())
                    .map(Vec::as_slice)
                    .unwrap_or_default();
                let text = literal_text(text).unwrap_or_default();
                if let Some(side_effects) = self.side_effects(&mut known_macro) {
                    return self.write_output(&side_effects);
                }
                let text: Vec<&str> = text.split_whitespace().collect();
                let text = text.join(" ");
                let is_safe =
                    !text.contains("#}") && !text.contains("{#") && !text.is_empty() && text != "no-op";
                self.write_tag(&if is_safe { format!("{{# {text} #}}") } else { "{# #}".to_owned() });
            }
            MacroTarget::Noop => {
                self.count_rule(row);
                self.write_tag("{# no-op #}");
            }
            MacroTarget::Trim if known_macro.body.is_some() => {
                self.count_rule(row);
                let body = self.take_body(&mut known_macro);
                if known_macro.keeps_white_space {
                    let is_protected = false;
                    return self.write_nodes(body, is_protected);
                }
                self.write_tag("{% filter trim %}");
                self.write_inside(body);
                self.write_tag("{% endfilter %}");
            }
            MacroTarget::Set => self.write_set(known_macro),
            MacroTarget::SetGlobal => {
                let name = known_macro
                    .args
                    .first()
                    .and_then(|name| literal_text(name))
                    .filter(|name| table::is_name(name));
                let Some(name) = name else { return self.write_call(known_macro) };
                self.count_rule(row);
                let value = self.last_argument(&mut known_macro, 1);
                self.write_tag(&format!("{{% set_global {name} = {value} %}}"));
            }
            _ => self.write_call(known_macro),
        }
    }

    /// Writes a macro that is an expression.
    fn write_call(&mut self, mut known_macro: KnownMacro<'s>) {
        if known_macro
            .body
            .as_ref()
            .is_some_and(|body| body.iter().any(|node| matches!(node, MacroNode::Verbatim(_))))
        {
            // A body with statements is captured into a variable first.
            let body = self.take_body(&mut known_macro);
            self.write_tag("{% set _body %}");
            self.write_inside(body);
            self.write_tag("{% endset %}");
            known_macro.args.push(vec![MacroNode::Jinja("", "_body")]);
        }
        match self.macro_expression(known_macro) {
            Ok(expression) => self.write_output(&expression),
            Err((name, at, inner_nodes)) => {
                let is_protected = false;
                self.write_nodes(vec![MacroNode::Unknown { name, at, inner_nodes }], is_protected)
            }
        }
    }

    /// Writes nodes within a statement. Variables set there may not exist afterwards.
    fn write_inside(&mut self, nodes: Vec<MacroNode<'s>>) {
        self.statement_depth += 1;
        let is_protected = false;
        self.write_nodes(nodes, is_protected);
        self.statement_depth -= 1;
    }

    /// Takes the body of a scoped macro, without surrounding white space and indentation unless `#` preserves
    /// them.
    fn take_body(&self, known_macro: &mut KnownMacro<'s>) -> Vec<MacroNode<'s>> {
        let mut body = known_macro.body.take().unwrap_or_default();
        if !known_macro.keeps_white_space {
            trim_body(&mut body);
        }
        body
    }

    /// Writes `setvar`, as a statement where possible.
    fn write_set(&mut self, mut known_macro: KnownMacro<'s>) {
        let name = known_macro.args.first().and_then(|name| literal_text(name));
        let plain_name = name.filter(|name| {
            let is_reserved = is_context_name(name)
                || is_function_name(name)
                || table::find_rule(name).is_some()
                || name.starts_with('_');
            let is_literal =
                matches!(&**name, "true" | "false" | "none" | "True" | "False" | "None" | "loop" | "self");
            let is_keyword =
                matches!(&**name, "and" | "or" | "not" | "in" | "is" | "if" | "else" | "elif" | "recursive");
            let is_free = !is_reserved && !is_literal && !is_keyword;
            table::is_name(name) && is_free && !self.changed_names.contains(name)
        });
        let Some(name) = plain_name else { return self.write_call(known_macro) };
        self.count_rule(known_macro.rule.row);
        let is_scoped = known_macro.body.is_some();
        let value = if is_scoped {
            self.take_body(&mut known_macro)
        } else {
            known_macro.args.pop().unwrap_or_default()
        };
        let has_lines = value.iter().any(|node| match node {
            MacroNode::Text(text) => text.contains('\n'),
            node => matches!(node, MacroNode::Verbatim(_)),
        });
        // A value of several lines, or with statements, becomes the block form of `set`.
        if has_lines {
            self.write_tag(&format!("{{% set {name} %}}"));
            self.write_inside(value);
            self.write_tag("{% endset %}");
        } else {
            let value = match literal_text(&value) {
                Some(text) => quote_literal(&text, '"'),
                None => self.text_expression(value),
            };
            self.write_tag(&format!("{{% set {name} = {value} %}}"));
        }
        if self.statement_depth == 0 {
            self.set_names.insert(name);
        }
    }

    /// Returns an expression whose value is the nodes as text, even if a macro with another value is the only
    /// node.
    fn text_expression(&mut self, nodes: Vec<MacroNode<'s>>) -> String {
        let is_single = nodes.len() == 1;
        let expression = self.join_expression(nodes);
        if is_single { format!("st_text({expression})") } else { expression }
    }

    /// Returns the argument at the index `at`, or the body in its place, as a text expression.
    fn last_argument(&mut self, known_macro: &mut KnownMacro<'s>, at: usize) -> String {
        let nodes = match known_macro.body {
            Some(_) => self.take_body(known_macro),
            None => known_macro.args.get_mut(at).map(std::mem::take).unwrap_or_default(),
        };
        match literal_text(&nodes) {
            Some(text) => quote_literal(&text, '"'),
            None => self.text_expression(nodes),
        }
    }
}
