//! Rewrites the source of a template before the engine compiles it.
//!
//! The engine has no `set_global` statement, does not report the place of a printed missing value or a
//! function call, spells values as Python does when `~` joins them, forgets assignments when a template ends,
//! and does not charge for operators. Small edits between the tokens add all this; offsets in the rewritten
//! source map back to the original.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use super::grammar::{self, Form};
use super::source::{Kind, Piece, Token, TokenKind, piece, tokens};
use super::{functions, marks};
use tambour::error::{Error, Location, Result};

/// Names that templates cannot set (F-024).
const READ_ONLY: &[&str] = &["state", "state_desc", "global_state"];

/// Statements with a scope of their own: assignments inside them are not kept.
const SCOPES: &[&str] = &["for", "macro", "call", "with"];

/// Most tokens of one expression between commas, counted per bracket level. The engine parses and drops a
/// chain of operators with one nested call for each.
const CHAIN: usize = 500;

/// Most tags and tokens of a template; each takes some hundred bytes during compilation.
const PARTS: usize = 100_000;

/// Bytes of a name: the engine hashes it each time it looks for what is called so.
const NAME: usize = 1_000;

/// `elif` of one `if`, which nest in the engine.
const ELIF: usize = 100;

/// A rewritten source with its mapping to the original.
#[derive(Debug)]
pub(super) struct Rewritten {
    pub(super) text: String,
    /// Offsets in the text, ascending, each with its offset in the source, and true if the following text is
    /// copied from the source.
    places: Vec<(usize, usize, bool)>,
    /// Names that the template sets for later templates.
    pub(super) sets: Vec<String>,
    /// Offset of a tag that could not be parsed; such a template is not rendered.
    pub(super) unread: Option<usize>,
    /// Number of tags and tokens.
    pub(super) parts: usize,
}

impl Rewritten {
    /// Maps an offset in the rewritten text to the source.
    pub(super) fn origin(&self, offset: usize) -> usize {
        let at = self.places.partition_point(|(place, ..)| *place <= offset);
        match at.checked_sub(1).map(|at| self.places[at]) {
            Some((place, source, true)) => source + (offset - place),
            Some((_, source, false)) => source,
            None => offset,
        }
    }
}

/// Rewrites one expression, without our functions; `None` if it cannot be parsed.
pub(super) fn rewrite_expression(source: &str) -> Option<Rewritten> {
    let tokens = tokens(source, 0..source.len());
    Some(rewritten(source, grammar::edits(source, &tokens, Form::Expression, None)?))
}

/// Like [`rewrite_expression`], with every comparison turned into a filter.
pub(super) fn rewrite_comparing(source: &str) -> Option<Rewritten> {
    let tokens = tokens(source, 0..source.len());
    Some(rewritten(source, grammar::comparing(source, &tokens)?.0))
}

fn rewritten(source: &str, edits: Vec<grammar::Edit>) -> Rewritten {
    let out = Rewritten { text: String::new(), places: Vec::new(), sets: Vec::new(), unread: None, parts: 0 };
    let (scopes, kept, conditions) = (Vec::new(), Vec::new(), Vec::new());
    let mut writer =
        Writer { source, out, copied: 0, scopes, kept, trims: false, macros: HashSet::new(), conditions };
    writer.apply(edits);
    writer.copy(source.len());
    writer.out
}

/// Returns the names of the macros that a source defines.
fn macros(source: &str) -> HashSet<&str> {
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
/// The template sets a read-only name, or `set_global` does not have the form `{% set_global name = value
/// %}`.
pub(super) fn rewrite(source: &str) -> Result<Rewritten> {
    let text = String::with_capacity(source.len() + source.len() / 4);
    let mut writer = Writer {
        source,
        out: Rewritten { text, places: Vec::new(), sets: Vec::new(), unread: None, parts: 0 },
        copied: 0,
        scopes: Vec::new(),
        kept: Vec::new(),
        trims: source.contains("st_trim"),
        macros: macros(source),
        conditions: Vec::new(),
    };
    let mut at = 0;
    while at < source.len() {
        let piece = piece(source, at);
        at = piece.range.end;
        match piece.kind {
            Kind::Output => writer.output(&piece)?,
            Kind::Statement => writer.statement(&piece)?,
            // The engine lexes an unclosed tag too before it reports the missing end.
            Kind::Open => drop(writer.tokens(&piece)?),
            // Migrated `{{noop}}`, beyond which an adjacent `{{trim}}` removes nothing (M-065).
            Kind::Comment if writer.trims && source[piece.inside.clone()].trim() == "no-op" => {
                writer.replace(piece.range.clone(), marks::BARRIER.encode_utf8(&mut [0; 4]));
            }
            _ => {}
        }
    }
    writer.copy(source.len());
    Ok(writer.out)
}

struct Writer<'s> {
    source: &'s str,
    out: Rewritten,
    /// Bytes of the source that have been copied.
    copied: usize,
    /// Open statements listed in [`SCOPES`].
    scopes: Vec<&'s str>,
    /// Names of open `set` blocks; `None` for those that are not kept.
    kept: Vec<Option<&'s str>>,
    trims: bool,
    /// Names of the macros that the source defines.
    macros: HashSet<&'s str>,
    /// Number of `elif` branches of each open `if`.
    conditions: Vec<usize>,
}

impl<'s> Writer<'s> {
    fn copy(&mut self, to: usize) {
        if to > self.copied {
            self.out.places.push((self.out.text.len(), self.copied, true));
            self.out.text.push_str(&self.source[self.copied..to]);
            self.copied = to;
        }
    }

    /// Inserts `text` at an offset of the source.
    fn insert(&mut self, at: usize, text: &str) {
        self.copy(at);
        self.out.places.push((self.out.text.len(), at, false));
        self.out.text.push_str(text);
    }

    fn replace(&mut self, range: Range<usize>, text: &str) {
        self.insert(range.start, text);
        self.copied = range.end;
    }

    fn word(&self, token: &Token) -> &'s str {
        &self.source[token.range.clone()]
    }

    fn error(&self, at: usize, message: &str, code: &'static str) -> Error {
        let place = Location::at(self.source, at);
        Error::malformed(message, Some(place)).coded(code)
    }

    /// Rewrites `{{ x }}` to `{{ (x)|__out(offset) }}`.
    fn output(&mut self, piece: &Piece) -> Result<()> {
        let tokens = self.tokens(piece)?;
        if let Some(mark) = self.mark(piece, &tokens) {
            self.out.parts -= tokens.len() + 1;
            self.replace(piece.range.clone(), mark.encode_utf8(&mut [0; 4]));
            return Ok(());
        }
        let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else { return Ok(()) };
        let (start, end) = (first.range.start, last.range.end);
        self.insert(start, "(");
        self.edit(piece, &tokens, Form::Expression);
        // `a if b` without `else` intentionally prints nothing when `b` is false.
        let plain = |word: &str| {
            let is = |token: &&Token| {
                token.depth == 0 && token.kind == TokenKind::Name && self.word(token) == word
            };
            tokens.iter().filter(is).count()
        };
        let nothing = if plain("if") == 1 && plain("else") == 0 { " else ''" } else { "" };
        self.insert(end, &format!("{nothing})|__out({start})"));
        Ok(())
    }

    /// Returns the mark for a tag that only calls `st_trim` or `st_noop`; it needs no code.
    fn mark(&self, piece: &Piece, tokens: &[Token]) -> Option<char> {
        let [name, open, close] = tokens else { return None };
        let plain = piece.inside == (piece.range.start + 2..piece.range.end - 2);
        if !plain
            || self.word(open) != "("
            || self.word(close) != ")"
            || self.macros.contains(self.word(name))
        {
            return None;
        }
        match self.word(name) {
            "st_trim" => Some(marks::TRIM),
            "st_noop" => Some(marks::BARRIER),
            _ => None,
        }
    }

    /// Reads the tokens of a tag and checks the limits.
    fn tokens(&mut self, piece: &Piece) -> Result<Vec<Token>> {
        let tokens = tokens(self.source, piece.inside.clone());
        self.out.parts += tokens.len() + 1;
        if self.out.parts > PARTS {
            let message = format!("a template has at most {PARTS} tags and tokens");
            return Err(self.error(piece.range.start, &message, "limit_exceeded"));
        }
        let mut chains: Vec<usize> = Vec::new();
        for token in &tokens {
            if token.kind == TokenKind::Name && token.range.len() > NAME {
                let message = format!("a name has at most {NAME} bytes");
                return Err(self.error(token.range.start, &message, "limit_exceeded"));
            }
            chains.truncate(token.depth + 1);
            chains.resize(token.depth + 1, 0);
            let chain = &mut chains[token.depth];
            *chain = if self.word(token) == "," { 0 } else { *chain + 1 };
            if *chain > CHAIN {
                let message = format!("an expression has at most {CHAIN} parts in a row");
                return Err(self.error(token.range.start, &message, "limit_exceeded"));
            }
        }
        Ok(tokens)
    }

    fn statement(&mut self, piece: &Piece) -> Result<()> {
        let tokens = self.tokens(piece)?;
        let Some(first) = tokens.first() else { return Ok(()) };
        let keyword = self.word(first);
        match keyword {
            "set_global" => return self.set_global(piece, &tokens),
            "set" => return self.set(piece, &tokens),
            "endset" => {
                if let Some(Some(name)) = self.kept.pop() {
                    self.keep(piece, &[name]);
                }
                return Ok(());
            }
            "if" => self.conditions.push(0),
            "elif" => {
                let count = self.conditions.last_mut().map_or(0, |count| {
                    *count += 1;
                    *count
                });
                if count > ELIF {
                    let message = format!("an `if` has at most {ELIF} `elif`");
                    return Err(self.error(first.range.start, &message, "limit_exceeded"));
                }
            }
            "endif" => drop(self.conditions.pop()),
            _ => {}
        }
        if SCOPES.contains(&keyword) {
            self.scopes.push(keyword);
        } else if keyword.strip_prefix("end").is_some_and(|ended| self.scopes.last() == Some(&ended)) {
            self.scopes.pop();
        }
        let form = match keyword {
            "if" | "elif" => Form::Condition,
            "for" => Form::Loop,
            "with" => Form::Assignments,
            "macro" => Form::Macro,
            "call" => Form::Call,
            "filter" => Form::Filters,
            "do" | "autoescape" => Form::Expression,
            _ => Form::Empty,
        };
        self.edit(piece, &tokens[1..], form);
        Ok(())
    }

    /// Rewrites `{% set_global name = value %}` to a function call (F-023).
    fn set_global(&mut self, piece: &Piece, tokens: &[Token]) -> Result<()> {
        let form = "expected `{% set_global name = value %}`";
        let [first, name, sign, value, ..] = tokens else {
            return Err(self.error(piece.range.start, form, "template_syntax"));
        };
        let quoted = match name.kind {
            TokenKind::Name => format!("\"{}\"", self.word(name)),
            TokenKind::Text => self.word(name).to_owned(),
            _ => return Err(self.error(name.range.start, form, "template_syntax")),
        };
        if self.word(sign) != "=" {
            return Err(self.error(sign.range.start, form, "template_syntax"));
        }
        let at = first.range.start;
        let end = tokens.last().map_or(at, |last| last.range.end);
        self.replace(
            at..value.range.start,
            &format!("do {}set_global.at({at})({quoted}, (", functions::OURS),
        );
        self.edit(piece, &tokens[3..], Form::Expression);
        self.insert(end, "))");
        Ok(())
    }

    /// Rewrites `set` so that its names are kept for later templates (F-027).
    fn set(&mut self, piece: &Piece, tokens: &[Token]) -> Result<()> {
        let sign = tokens.iter().position(|token| token.depth == 0 && self.word(token) == "=");
        let mut names = Vec::new();
        let targets = &tokens[1..sign.unwrap_or(tokens.len())];
        for (at, token) in targets.iter().enumerate() {
            // In the block form, filters may follow the name.
            if self.word(token) == "|" {
                break;
            }
            let field = targets.get(at + 1).is_some_and(|next| self.word(next) == ".")
                || at > 0 && self.word(&targets[at - 1]) == ".";
            if token.kind != TokenKind::Name {
                continue;
            }
            if READ_ONLY.contains(&self.word(token)) && (at == 0 || !field) {
                let message = format!("`{}` is read-only", self.word(token));
                return Err(self.error(token.range.start, &message, "state_read_only"));
            }
            if !field {
                names.push(self.word(token));
            }
        }
        let several = targets.iter().any(|token| self.word(token) == ",");
        if !self.scopes.is_empty() {
            names.clear();
        }
        match sign {
            Some(sign) => {
                let value = &tokens[sign + 1..];
                if let (Some(first), Some(last)) = (value.first(), value.last()) {
                    self.insert(first.range.start, if several { "__flat_row((" } else { "__flat((" });
                    self.edit(piece, value, Form::Expressions);
                    self.insert(last.range.end, "))");
                }
                self.keep(piece, &names);
            }
            None => {
                self.kept.push(names.first().copied());
                let filters = tokens.iter().position(|token| self.word(token) == "|");
                if let Some(filters) = filters {
                    self.edit(piece, &tokens[filters + 1..], Form::Filters);
                }
            }
        }
        Ok(())
    }

    /// Adds a tag that stores these names. It takes over the white-space control at the end of the original
    /// tag.
    fn keep(&mut self, piece: &Piece, names: &[&str]) {
        if names.is_empty() {
            return;
        }
        self.out.sets.extend(names.iter().map(|name| (*name).to_owned()));
        let (start, end) = (piece.inside.end, piece.range.end);
        let close = &self.source[start..end];
        self.copy(start);
        let kept: Vec<String> = names.iter().map(|name| format!("\"{name}\", {name}")).collect();
        self.replace(start..end, &format!("%}}{{% do __keep({}) {close}", kept.join(", ")));
    }

    /// Applies the edits for the code of one tag.
    fn edit(&mut self, piece: &Piece, tokens: &[Token], form: Form) {
        match grammar::edits(self.source, tokens, form, Some(&self.macros)) {
            Some(edits) => self.apply(edits),
            // The engine reports the error when it compiles the template; if it finds none, the template is
            // refused anyway.
            None => {
                self.out.unread.get_or_insert(piece.range.start);
            }
        }
    }

    fn apply(&mut self, edits: Vec<grammar::Edit>) {
        for edit in edits {
            self.copy(edit.at);
            self.out.places.push((self.out.text.len(), edit.origin, false));
            self.out.text.push_str(&edit.text);
            self.copied = edit.end;
        }
    }
}

/// Replaces our internal marks in a source; its length in bytes is unchanged.
pub(super) fn cleaned(source: &str) -> Cow<'_, str> {
    if marks::any(source) { Cow::Owned(marks::without(source)) } else { Cow::Borrowed(source) }
}
