//! What is done to a template before the engine compiles it.
//!
//! The engine has no statement `set_global`, does not tell where a missing value was printed or a function called, spells values
//! as Python does when `~` joins them, and forgets what was set when a template ends. Each is a small change of the source
//! between its tokens; places in the changed source are led back to the original one.

use std::ops::Range;

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

/// Changes `source`.
///
/// # Errors
/// It sets what is read-only, or `set_global` has another form than `{% set_global name = value %}`.
pub(super) fn rewrite(source: &str) -> Result<Rewritten> {
    let text = String::with_capacity(source.len() + source.len() / 4);
    let mut writer = Writer {
        source,
        out: Rewritten { text, places: Vec::new(), sets: Vec::new() },
        copied: 0,
        scopes: Vec::new(),
        kept: Vec::new(),
        trims: source.contains("st_trim"),
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
                writer.replace(piece.range.clone(), "{{ st_noop() }}");
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
        let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else { return Ok(()) };
        let (start, end) = (first.range.start, last.range.end);
        self.insert(start, "(");
        self.expression(&tokens);
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

    /// The tokens of a tag.
    fn tokens(&self, piece: &Piece) -> Result<Vec<Token>> {
        let tokens = tokens(self.source, piece.inside.clone());
        let mut chains: Vec<usize> = Vec::new();
        for token in &tokens {
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
        self.expression(&tokens[1..]);
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
        self.expression(&tokens[3..]);
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
        if !self.scopes.is_empty() {
            names.clear();
        }
        match sign {
            Some(sign) => {
                let value = &tokens[sign + 1..];
                if let (Some(first), Some(last)) = (value.first(), value.last()) {
                    self.insert(first.range.start, "__flat((");
                    self.expression(value);
                    self.insert(last.range.end, "))");
                }
                self.keep(piece, &names);
            }
            None => {
                self.kept.push(names.first().copied());
                self.expression(&tokens[1..]);
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

    /// The changes within one expression: operands of `~` become texts, functions learn where they are called.
    fn expression(&mut self, tokens: &[Token]) {
        let mut changes = Vec::new();
        joins(self.source, tokens, &mut changes);
        for (at, token) in tokens.iter().enumerate() {
            let called = tokens.get(at + 1).is_some_and(|next| self.word(next) == "(");
            let free = at
                .checked_sub(1)
                .is_none_or(|before| !matches!(self.word(&tokens[before]), "." | "|" | "is"));
            let name = self.word(token);
            // A macro of the template's own goes before ours; a variable of that name does not.
            let own = || self.source.contains(&format!("macro {name}"));
            if token.kind == TokenKind::Name && called && free && functions::is_placed(name) && !own() {
                changes.push((token.range.start, functions::OURS.to_owned()));
                changes.push((token.range.end, format!(".at({})", token.range.start)));
            }
        }
        changes.sort_by_key(|(at, _)| *at);
        for (at, text) in changes {
            self.insert(at, &text);
        }
    }
}

/// Words and signs that end an operand of `~`, besides brackets.
fn ends_operand(source: &str, tokens: &[Token], at: usize) -> bool {
    let word = |at: usize| &source[tokens[at].range.clone()];
    match word(at) {
        "," | ":" | "=" | "==" | "!=" | "<" | ">" | "<=" | ">=" => true,
        // A sign at the beginning of an operand belongs to it.
        "+" | "-" => at.checked_sub(1).is_some_and(|before| match tokens[before].kind {
            TokenKind::Name => !matches!(word(before), "and" | "or" | "not" | "in" | "if" | "elif" | "else"),
            TokenKind::Number | TokenKind::Text => true,
            TokenKind::Sign => matches!(word(before), ")" | "]" | "}"),
        }),
        "not" => at.checked_sub(1).is_none_or(|before| word(before) != "is"),
        "and" | "or" | "in" | "if" | "elif" | "else" | "recursive" => {
            tokens[at].kind == TokenKind::Name && at.checked_sub(1).is_none_or(|before| word(before) != ".")
        }
        _ => false,
    }
}

/// Puts `__text( )` around each operand of `~`. Linear: at each depth the tokens are gone through once.
fn joins(source: &str, tokens: &[Token], changes: &mut Vec<(usize, String)>) {
    if !tokens.iter().any(|token| &source[token.range.clone()] == "~") {
        return;
    }
    let word = |at: usize| &source[tokens[at].range.clone()];
    // For each depth the operand that goes on: its first and last token, and whether it stands behind a `~`.
    struct Run {
        first: Option<usize>,
        last: usize,
        joined: bool,
    }
    let fresh = || Run { first: None, last: 0, joined: false };
    let mut runs: Vec<Run> = vec![fresh()];
    let mut put = |run: &Run, tokens: &[Token]| {
        if let Some(first) = run.first {
            changes.push((tokens[first].range.start, "__text(".to_owned()));
            changes.push((tokens[run.last].range.end, ")".to_owned()));
        }
    };
    for at in 0..tokens.len() {
        let depth = tokens[at].depth;
        while runs.len() > depth + 1 {
            // A bracket ends what stands in it.
            if let Some(run) = runs.pop().filter(|run| run.joined) {
                put(&run, tokens);
            }
        }
        while runs.len() < depth + 1 {
            runs.push(fresh());
        }
        let run = &mut runs[depth];
        if word(at) == "~" {
            put(run, tokens);
            *run = Run { joined: true, ..fresh() };
        } else if ends_operand(source, tokens, at) {
            if run.joined {
                put(run, tokens);
            }
            *run = fresh();
        } else {
            run.first.get_or_insert(at);
            run.last = at;
        }
    }
    for run in runs.iter().rev().filter(|run| run.joined) {
        put(run, tokens);
    }
}

/// The source without our own marks, of the same length in bytes.
pub(super) fn cleaned(source: &str) -> std::borrow::Cow<'_, str> {
    if marks::any(source) {
        std::borrow::Cow::Owned(marks::without(source))
    } else {
        std::borrow::Cow::Borrowed(source)
    }
}
