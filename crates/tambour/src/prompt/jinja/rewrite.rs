//! What is done to a template before the engine compiles it.
//!
//! The engine has no statement `set_global`, does not tell where a missing value was printed or a function called, spells values
//! as Python does when `~` joins them, forgets what was set when a template ends, and does not ask what an operator costs. Each
//! is a small change of the source between its tokens; places in the changed source are led back to the original one.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use super::grammar::{self, Form};
use super::source::{Kind, Piece, Token, TokenKind, piece, tokens};
use super::{functions, marks};
use crate::error::{Error, Location, Result};

/// Names that cannot be set (F-024).
const READ_ONLY: &[&str] = &["state", "state_desc", "global_state"];

/// Statements whose inside is a scope of its own: what is set there is not kept.
const SCOPES: &[&str] = &["for", "macro", "call", "with"];

/// Tokens of one expression between commas, brackets around them counted apart. The engine reads and gives up a chain of
/// operators with one call in another for each.
const CHAIN: usize = 500;

/// Tags and tokens of a template: each takes some hundred bytes while it is compiled.
const PARTS: usize = 100_000;

/// Bytes of a name: the engine hashes it each time it looks for what is called so.
const NAME: usize = 1_000;

/// `elif` of one `if`, which nest in the engine.
const ELIF: usize = 100;

/// A changed source.
#[derive(Debug)]
pub(super) struct Rewritten {
    pub(super) text: String,
    /// Places in the text, in order, with the place in the source each stands for, and whether the text goes on as the source.
    places: Vec<(usize, usize, bool)>,
    /// Names that are set and kept.
    pub(super) sets: Vec<String>,
    /// Place of a tag whose operators could not be read; such a source is not rendered.
    pub(super) unread: Option<usize>,
    /// Tags and tokens.
    pub(super) parts: usize,
}

impl Rewritten {
    /// The place in the source that a place in the changed text stands for.
    pub(super) fn origin(&self, offset: usize) -> usize {
        let at = self.places.partition_point(|(place, ..)| *place <= offset);
        match at.checked_sub(1).map(|at| self.places[at]) {
            Some((place, source, true)) => source + (offset - place),
            Some((_, source, false)) => source,
            None => offset,
        }
    }
}

/// Changes one expression, without functions of ours; `None` if it cannot be read.
pub(super) fn rewrite_expression(source: &str) -> Option<Rewritten> {
    let tokens = tokens(source, 0..source.len());
    Some(rewritten(source, grammar::edits(source, &tokens, Form::Expression, None)?))
}

/// As [`rewrite_expression`], with all comparisons as filters of ours.
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

/// Names of the macros that a source has.
fn macros(source: &str) -> HashSet<&str> {
    let starts = memchr::memmem::find_iter(source.as_bytes(), b"macro ").map(|at| at + "macro ".len());
    let names = starts.map(|at| {
        let name = source[at..].trim_start();
        let end = name.find(|c| !unicode_ident::is_xid_continue(c)).unwrap_or(name.len());
        &name[..end]
    });
    names.collect()
}

/// Changes `source`.
///
/// # Errors
/// It sets what is read-only, or `set_global` has another form than `{% set_global name = value %}`.
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
            // The engine reads it all the same, before it finds that no end comes.
            Kind::Open => drop(writer.tokens(&piece)?),
            // Stands for `{{noop}}`, which a `{{trim}}` beside it does not get past (M-065).
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
    /// How much of the source is in the text.
    copied: usize,
    /// Statements that are open, of [`SCOPES`].
    scopes: Vec<&'s str>,
    /// Names of the block forms of `set` that are open; `None` for those that are not kept.
    kept: Vec<Option<&'s str>>,
    trims: bool,
    /// Names of the macros in the source.
    macros: HashSet<&'s str>,
    /// How many `elif` the `if` have that are open.
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

    /// Puts `text` in at a place of the source.
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

    /// `{{ x }}` becomes `{{ (x)|__out(place) }}`.
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
        // `a if b` without `else` is meant to be nothing at times.
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

    /// The mark that a tag prints which holds nothing but the call of `st_trim` or `st_noop`: it needs no code.
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

    /// The tokens of a tag.
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

    /// `{% set_global name = value %}` becomes a call (F-023).
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

    /// What `set` sets is kept for the templates that follow (F-027).
    fn set(&mut self, piece: &Piece, tokens: &[Token]) -> Result<()> {
        let sign = tokens.iter().position(|token| token.depth == 0 && self.word(token) == "=");
        let mut names = Vec::new();
        let targets = &tokens[1..sign.unwrap_or(tokens.len())];
        for (at, token) in targets.iter().enumerate() {
            // In the block form filters may follow the name.
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

    /// After the tag comes one that keeps these names; it takes over what the tag does with the blanks behind it.
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

    /// Makes the changes within the code of one tag.
    fn edit(&mut self, piece: &Piece, tokens: &[Token], form: Form) {
        match grammar::edits(self.source, tokens, form, Some(&self.macros)) {
            Some(edits) => self.apply(edits),
            // The engine says what is wrong with it; if it finds nothing, it is refused all the same.
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

/// The source without our own marks, of the same length in bytes.
pub(super) fn cleaned(source: &str) -> Cow<'_, str> {
    if marks::any(source) { Cow::Owned(marks::without(source)) } else { Cow::Borrowed(source) }
}
