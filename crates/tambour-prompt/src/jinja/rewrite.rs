//! Rewrites the source of a template before minijinja compiles it.
//!
//! Minijinja has no `set_global` statement, does not report the place of a printed missing value or a
//! function call, spells values as Python does when `~` joins them, forgets assignments when a template ends,
//! and does not charge for operators. Small edits between the tokens add all this; offsets in the rewritten
//! source map back to the original.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use super::grammar::{self, TagGrammar};
use super::source::{ExpressionToken, PartKind, TemplatePart, TokenKind, read_part, tokenize};
use super::{functions, marks};
use tambour::error::{Error, Location, Result};

/// Names that templates cannot set (F-024).
const READ_ONLY_NAMES: &[&str] = &["state", "state_desc", "global_state"];

/// Statements that open a scope: later templates do not see assignments inside them.
const SCOPED_STATEMENTS: &[&str] = &["for", "macro", "call", "with"];

/// Maximum number of tokens between two commas of an expression, counted per bracket level. Minijinja parses
/// and drops a chain of operators with one nested call for each.
const MAX_CHAIN_TOKENS: usize = 500;

/// Maximum number of tags and tokens of a template; each takes a few hundred bytes during compilation.
const MAX_PARTS: usize = 100_000;

/// Maximum length of a name in bytes: minijinja hashes a name at each lookup.
const MAX_NAME_BYTES: usize = 1_000;

/// Maximum number of `elif` branches of one `if`: each of them nests one level deeper in minijinja.
const MAX_ELIF: usize = 100;

/// A rewritten source with its mapping to the original.
#[derive(Debug)]
pub(super) struct RewrittenSource {
    pub(super) text: String,
    /// Offsets in the text, ascending, each with its offset in the source. The flag is true if the text from
    /// there on is copied from the source, and false if it was inserted.
    source_map: Vec<(usize, usize, bool)>,
    /// Names that the template sets for later templates.
    pub(super) assigned_names: Vec<String>,
    /// Offset of the first tag that could not be parsed; a template with one is not rendered.
    pub(super) unparsed_offset: Option<usize>,
    /// Number of tags and tokens.
    pub(super) part_count: usize,
}

impl RewrittenSource {
    /// Maps an offset in the rewritten text to the source.
    pub(super) fn source_offset(&self, offset: usize) -> usize {
        let at = self.source_map.partition_point(|(text_offset, ..)| *text_offset <= offset);
        match at.checked_sub(1).map(|at| self.source_map[at]) {
            Some((text_offset, source_offset, true)) => source_offset + (offset - text_offset),
            Some((_, source_offset, false)) => source_offset,
            None => offset,
        }
    }
}

/// Rewrites one expression outside of a prompt, where the functions of this library do not exist; `None` if
/// it cannot be parsed.
pub(super) fn rewrite_expression(source: &str) -> Option<RewrittenSource> {
    let tokens = tokenize(source, 0..source.len());
    Some(apply_edits(source, grammar::parse_edits(source, &tokens, TagGrammar::Expression, None)?))
}

/// Like [`rewrite_expression`], with every comparison turned into a filter.
pub(super) fn rewrite_comparisons(source: &str) -> Option<RewrittenSource> {
    let tokens = tokenize(source, 0..source.len());
    Some(apply_edits(source, grammar::parse_comparisons(source, &tokens)?.0))
}

/// Applies the edits of one expression.
fn apply_edits(source: &str, edits: Vec<grammar::SourceEdit>) -> RewrittenSource {
    let out = RewrittenSource {
        text: String::new(),
        source_map: Vec::new(),
        assigned_names: Vec::new(),
        unparsed_offset: None,
        part_count: 0,
    };
    let (scopes, open_sets, elif_counts) = (Vec::new(), Vec::new(), Vec::new());
    let mut writer = SourceRewriter {
        source,
        out,
        copied_to: 0,
        scopes,
        open_sets,
        has_trims: false,
        macros: HashSet::new(),
        elif_counts,
    };
    writer.apply(edits);
    writer.copy(source.len());
    writer.out
}

/// Returns the names of the macros that a source defines, found by the word `macro` before them. May also
/// return other words.
fn macro_names(source: &str) -> HashSet<&str> {
    let starts = memchr::memmem::find_iter(source.as_bytes(), b"macro ").map(|at| at + "macro ".len());
    let names = starts.map(|at| {
        let name = source[at..].trim_start();
        let end = name.find(|c| !unicode_ident::is_xid_continue(c)).unwrap_or(name.len());
        &name[..end]
    });
    names.collect()
}

/// Rewrites a template source.
///
/// # Errors
/// The template sets a read-only name, exceeds a limit, or has a `set_global` that is not of the form
/// `{% set_global name = value %}`.
pub(super) fn rewrite(source: &str) -> Result<RewrittenSource> {
    let text = String::with_capacity(source.len() + source.len() / 4);
    let mut writer = SourceRewriter {
        source,
        out: RewrittenSource {
            text,
            source_map: Vec::new(),
            assigned_names: Vec::new(),
            unparsed_offset: None,
            part_count: 0,
        },
        copied_to: 0,
        scopes: Vec::new(),
        open_sets: Vec::new(),
        has_trims: source.contains("st_trim"),
        macros: macro_names(source),
        elif_counts: Vec::new(),
    };
    let mut at = 0;
    while at < source.len() {
        let part = read_part(source, at);
        at = part.range.end;
        match part.kind {
            PartKind::Output => writer.rewrite_output(&part)?,
            PartKind::Statement => writer.rewrite_statement(&part)?,
            // Minijinja reads the tokens of an unclosed tag before it reports the missing end, so they are
            // checked against the limits.
            PartKind::Unclosed => drop(writer.read_tokens(&part)?),
            // Migrated `{{noop}}`, beyond which an adjacent `{{trim}}` removes nothing (M-065).
            PartKind::Comment if writer.has_trims && source[part.content.clone()].trim() == "no-op" => {
                writer.replace(part.range.clone(), marks::BARRIER.encode_utf8(&mut [0; 4]));
            }
            _ => {}
        }
    }
    writer.copy(source.len());
    Ok(writer.out)
}

/// Writer of a rewritten source.
struct SourceRewriter<'s> {
    source: &'s str,
    out: RewrittenSource,
    /// Offset in the source up to which it has been copied, replaced or left out.
    copied_to: usize,
    /// Open statements listed in [`SCOPED_STATEMENTS`].
    scopes: Vec<&'s str>,
    /// Names of open `set` blocks; `None` for a block whose name is not kept for later templates.
    open_sets: Vec<Option<&'s str>>,
    /// True if the source may contain `st_trim`.
    has_trims: bool,
    /// Names of the macros that the source defines.
    macros: HashSet<&'s str>,
    /// Number of `elif` branches of each open `if`.
    elif_counts: Vec<usize>,
}

impl<'s> SourceRewriter<'s> {
    /// Copies the source up to `end`.
    fn copy(&mut self, end: usize) {
        if end > self.copied_to {
            self.out.source_map.push((self.out.text.len(), self.copied_to, true));
            self.out.text.push_str(&self.source[self.copied_to..end]);
            self.copied_to = end;
        }
    }

    /// Inserts `text` at an offset of the source.
    fn insert(&mut self, at: usize, text: &str) {
        self.copy(at);
        self.out.source_map.push((self.out.text.len(), at, false));
        self.out.text.push_str(text);
    }

    /// Replaces a range of the source by `text`.
    fn replace(&mut self, range: Range<usize>, text: &str) {
        self.insert(range.start, text);
        self.copied_to = range.end;
    }

    /// Returns the source text of a token.
    fn token_text(&self, token: &ExpressionToken) -> &'s str {
        &self.source[token.range.clone()]
    }

    /// Returns an error at an offset of the source.
    fn error(&self, at: usize, message: &str, code: &'static str) -> Error {
        let location = Location::from_offset(self.source, at);
        Error::malformed(message, Some(location)).with_code(code)
    }

    /// Rewrites `{{ x }}` to `{{ (x)|__out(offset) }}`.
    fn rewrite_output(&mut self, part: &TemplatePart) -> Result<()> {
        let tokens = self.read_tokens(part)?;
        if let Some(mark) = self.find_mark(part, &tokens) {
            // Minijinja compiles nothing for a mark.
            self.out.part_count -= tokens.len() + 1;
            self.replace(part.range.clone(), mark.encode_utf8(&mut [0; 4]));
            return Ok(());
        }
        let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else { return Ok(()) };
        let (start, end) = (first.range.start, last.range.end);
        self.insert(start, "(");
        self.edit_code(part, &tokens, TagGrammar::Expression);
        // `a if b` without `else` intentionally prints nothing when `b` is false.
        let count_word = |word: &str| {
            let is_word = |token: &&ExpressionToken| {
                token.depth == 0 && token.kind == TokenKind::Name && self.token_text(token) == word
            };
            tokens.iter().filter(is_word).count()
        };
        let else_branch = if count_word("if") == 1 && count_word("else") == 0 { " else ''" } else { "" };
        self.insert(end, &format!("{else_branch})|__out({start})"));
        Ok(())
    }

    /// Returns the mark that replaces a tag which only calls `st_trim` or `st_noop`, so that no code runs for
    /// it.
    fn find_mark(&self, part: &TemplatePart, tokens: &[ExpressionToken]) -> Option<char> {
        let [name, open, close] = tokens else { return None };
        let has_white_space_control = part.content != (part.range.start + 2..part.range.end - 2);
        if has_white_space_control
            || self.token_text(open) != "("
            || self.token_text(close) != ")"
            || self.macros.contains(self.token_text(name))
        {
            return None;
        }
        match self.token_text(name) {
            "st_trim" => Some(marks::TRIM),
            "st_noop" => Some(marks::BARRIER),
            _ => None,
        }
    }

    /// Reads the tokens of a tag and checks the limits.
    fn read_tokens(&mut self, part: &TemplatePart) -> Result<Vec<ExpressionToken>> {
        let tokens = tokenize(self.source, part.content.clone());
        self.out.part_count += tokens.len() + 1;
        if self.out.part_count > MAX_PARTS {
            let message = format!("a template may have at most {MAX_PARTS} tags and tokens");
            return Err(self.error(part.range.start, &message, "limit_exceeded"));
        }
        let mut chains: Vec<usize> = Vec::new();
        for token in &tokens {
            if token.kind == TokenKind::Name && token.range.len() > MAX_NAME_BYTES {
                let message = format!("a name may have at most {MAX_NAME_BYTES} bytes");
                return Err(self.error(token.range.start, &message, "limit_exceeded"));
            }
            chains.truncate(token.depth + 1);
            chains.resize(token.depth + 1, 0);
            let chain = &mut chains[token.depth];
            *chain = if self.token_text(token) == "," { 0 } else { *chain + 1 };
            if *chain > MAX_CHAIN_TOKENS {
                let message = format!("an expression may have at most {MAX_CHAIN_TOKENS} parts in a row");
                return Err(self.error(token.range.start, &message, "limit_exceeded"));
            }
        }
        Ok(tokens)
    }

    /// Rewrites `{% … %}`.
    fn rewrite_statement(&mut self, part: &TemplatePart) -> Result<()> {
        let tokens = self.read_tokens(part)?;
        let Some(first) = tokens.first() else { return Ok(()) };
        let keyword = self.token_text(first);
        match keyword {
            "set_global" => return self.rewrite_set_global(part, &tokens),
            "set" => return self.rewrite_set(part, &tokens),
            "endset" => {
                if let Some(Some(name)) = self.open_sets.pop() {
                    self.insert_keep(part, &[name]);
                }
                return Ok(());
            }
            "if" => self.elif_counts.push(0),
            "elif" => {
                let count = self.elif_counts.last_mut().map_or(0, |count| {
                    *count += 1;
                    *count
                });
                if count > MAX_ELIF {
                    let message = format!("an `if` may have at most {MAX_ELIF} `elif`");
                    return Err(self.error(first.range.start, &message, "limit_exceeded"));
                }
            }
            "endif" => drop(self.elif_counts.pop()),
            _ => {}
        }
        if SCOPED_STATEMENTS.contains(&keyword) {
            self.scopes.push(keyword);
        } else if keyword
            .strip_prefix("end")
            .is_some_and(|block_name| self.scopes.last() == Some(&block_name))
        {
            self.scopes.pop();
        }
        let tag_grammar = match keyword {
            "if" | "elif" => TagGrammar::Condition,
            "for" => TagGrammar::Loop,
            "with" => TagGrammar::Assignments,
            "macro" => TagGrammar::Macro,
            "call" => TagGrammar::Call,
            "filter" => TagGrammar::Filters,
            "do" | "autoescape" => TagGrammar::Expression,
            _ => TagGrammar::Empty,
        };
        self.edit_code(part, &tokens[1..], tag_grammar);
        Ok(())
    }

    /// Rewrites `{% set_global name = value %}` to a function call (F-023).
    fn rewrite_set_global(&mut self, part: &TemplatePart, tokens: &[ExpressionToken]) -> Result<()> {
        let message = "expected `{% set_global name = value %}`";
        let [first, name, equals, value, ..] = tokens else {
            return Err(self.error(part.range.start, message, "template_syntax"));
        };
        let name_literal = match name.kind {
            TokenKind::Name => format!("\"{}\"", self.token_text(name)),
            TokenKind::String => self.token_text(name).to_owned(),
            _ => return Err(self.error(name.range.start, message, "template_syntax")),
        };
        if self.token_text(equals) != "=" {
            return Err(self.error(equals.range.start, message, "template_syntax"));
        }
        let at = first.range.start;
        let end = tokens.last().map_or(at, |last| last.range.end);
        self.replace(
            at..value.range.start,
            &format!("do {}set_global.at({at})({name_literal}, (", functions::FUNCTION_PREFIX),
        );
        self.edit_code(part, &tokens[3..], TagGrammar::Expression);
        self.insert(end, "))");
        Ok(())
    }

    /// Rewrites `set` so that its names are kept for later templates (F-027).
    fn rewrite_set(&mut self, part: &TemplatePart, tokens: &[ExpressionToken]) -> Result<()> {
        let equals = tokens.iter().position(|token| token.depth == 0 && self.token_text(token) == "=");
        let mut names = Vec::new();
        let targets = &tokens[1..equals.unwrap_or(tokens.len())];
        for (at, token) in targets.iter().enumerate() {
            // In the block form, filters may follow the name.
            if self.token_text(token) == "|" {
                break;
            }
            let is_field = targets.get(at + 1).is_some_and(|next| self.token_text(next) == ".")
                || at > 0 && self.token_text(&targets[at - 1]) == ".";
            if token.kind != TokenKind::Name {
                continue;
            }
            // `{% set state.hp = 1 %}` would change a read-only name as well.
            if READ_ONLY_NAMES.contains(&self.token_text(token)) && (at == 0 || !is_field) {
                let message = format!("`{}` is read-only", self.token_text(token));
                return Err(self.error(token.range.start, &message, "state_read_only"));
            }
            if !is_field {
                names.push(self.token_text(token));
            }
        }
        let has_several = targets.iter().any(|token| self.token_text(token) == ",");
        // Assignments inside a scoped statement end with it.
        if !self.scopes.is_empty() {
            names.clear();
        }
        match equals {
            Some(equals) => {
                let value = &tokens[equals + 1..];
                if let (Some(first), Some(last)) = (value.first(), value.last()) {
                    self.insert(first.range.start, if has_several { "__flat_row((" } else { "__flat((" });
                    self.edit_code(part, value, TagGrammar::Expressions);
                    self.insert(last.range.end, "))");
                }
                self.insert_keep(part, &names);
            }
            None => {
                self.open_sets.push(names.first().copied());
                let pipe = tokens.iter().position(|token| self.token_text(token) == "|");
                if let Some(pipe) = pipe {
                    self.edit_code(part, &tokens[pipe + 1..], TagGrammar::Filters);
                }
            }
        }
        Ok(())
    }

    /// Adds a tag that keeps the variables of these names for later templates. It takes over the white-space
    /// control at the end of the original tag.
    fn insert_keep(&mut self, part: &TemplatePart, names: &[&str]) {
        if names.is_empty() {
            return;
        }
        self.out.assigned_names.extend(names.iter().map(|name| (*name).to_owned()));
        let (start, end) = (part.content.end, part.range.end);
        let close = &self.source[start..end];
        self.copy(start);
        let pairs: Vec<String> = names.iter().map(|name| format!("\"{name}\", {name}")).collect();
        self.replace(start..end, &format!("%}}{{% do __keep({}) {close}", pairs.join(", ")));
    }

    /// Applies the edits for the code of one tag.
    fn edit_code(&mut self, part: &TemplatePart, tokens: &[ExpressionToken], tag_grammar: TagGrammar) {
        match grammar::parse_edits(self.source, tokens, tag_grammar, Some(&self.macros)) {
            Some(edits) => self.apply(edits),
            // Minijinja reports the error when it compiles the template; if it finds none, the template is
            // refused anyway.
            None => {
                self.out.unparsed_offset.get_or_insert(part.range.start);
            }
        }
    }

    /// Applies edits, which are in the order of the source.
    fn apply(&mut self, edits: Vec<grammar::SourceEdit>) {
        for edit in edits {
            self.copy(edit.start);
            self.out.source_map.push((self.out.text.len(), edit.origin, false));
            self.out.text.push_str(&edit.text);
            self.copied_to = edit.end;
        }
    }
}

/// Replaces the internal marks of [`marks`] in a source; its length in bytes is unchanged.
pub(super) fn replace_source_marks(source: &str) -> Cow<'_, str> {
    if marks::has_mark(source) { Cow::Owned(marks::replace_marks(source)) } else { Cow::Borrowed(source) }
}
