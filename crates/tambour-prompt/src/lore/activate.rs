//! Activation of entries: passes over the chat, and over the text of entries that earlier passes activated.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::entry::{Entry, Logic, Source};
use super::group::{Chooser, Score};
use super::key::{Read, Sought, Texts, Whole, Work, keys};
use super::settings::{Scan, ScanSettings};
use super::slots::Slots;
use super::timed::Timed;
use tambour::finding::clip;

/// Result of a scan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Activation {
    /// Indexes of the active entries in the book, ascending.
    pub active: Vec<usize>,
    /// Cause of each activation, in the same order.
    pub woken: Vec<Wake>,
    /// Active entries by their place in the prompt.
    pub slots: Slots,
    /// Entries that matched but are not active.
    pub dropped: Vec<Dropped>,
    /// Timed effects to pass to the scan of the next turn.
    pub timed: Timed,
    /// Problems with keys.
    pub warnings: Vec<String>,
    /// Total tokens of the active entries.
    pub tokens: usize,
    /// True if the scan ended early because [`Scan::read`] refused more bytes.
    #[serde(skip)]
    pub cut: bool,
}

/// An entry that matched but is not active.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Dropped {
    /// Index of the entry in the book.
    pub entry: usize,
    /// Reason.
    pub why: Drop,
}

/// Reason why a matched entry is not active.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Drop {
    /// The probability roll failed.
    Probability,
    /// Another entry of its group is active.
    Group,
    /// The token budget is used up.
    Budget,
}

/// Cause of an activation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "by", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Wake {
    /// The entry is always active.
    Constant,
    /// The entry is still active from an earlier turn.
    Sticky,
    /// A decorator activates the entry.
    Forced,
    /// A key of the entry occurs.
    Key {
        /// The first of its keys that occurs.
        key: String,
        /// Kind of the first text that contains the key; absent for a regular expression, which searches all
        /// texts together.
        #[serde(skip_serializing_if = "Option::is_none")]
        found_in: Option<KeyText>,
    },
}

/// Kinds of text that are searched for keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyText {
    /// Messages of the chat.
    Messages,
    /// Texts of the user and the character.
    Persons,
    /// Additional texts.
    Others,
    /// Text of entries that earlier passes activated.
    Entries,
}

/// Texts that a pass searches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// The chat.
    First,
    /// The chat, and the text of entries that earlier passes activated.
    Recursion,
    /// More of the chat, because too few entries are active.
    Further,
}

/// Most characters of a key in a reported cause.
const KEY: usize = 200;

/// Kinds of the lists in [`Texts`], in order.
const LISTS: [KeyText; 4] = [KeyText::Messages, KeyText::Persons, KeyText::Others, KeyText::Entries];

/// Most passes. Each one activates a new entry, reads further, or takes the next recursion level.
const PASSES: u32 = 1000;

/// Finds the active entries of `book` by the rules of SillyTavern's world info. An entry is active if it is
/// constant, or if a key occurs in the newest messages or, with recursion, in the text of active entries; its
/// secondary keys, timed effects, groups, probability and the budget must allow it. The budget goes to
/// constant entries first, then by `priority` and `order`; all entries after the first one that does not fit
/// are dropped as well.
///
/// Each key searches each text once; a regular expression searches all texts together.
#[must_use]
pub fn activate(book: &[Entry], scan: &Scan<'_>) -> Activation {
    let mut run = Run::new(book, scan);
    run.timed.pass(book, scan.lines.len() as u64);
    run.passes();
    if run.work.shortened {
        run.warnings
            .push("a text is too long for a regular expression, which read its beginning alone".to_owned());
    }
    if run.work.apart {
        run.warnings.push(
            "regular expressions read later texts one by one, since there is too much to read".to_owned(),
        );
    }
    let mut active = run.active;
    active.sort_unstable();
    for &at in &active {
        run.timed.begin(&book[at], scan.lines.len() as u64);
    }
    let mut causes = run.causes;
    let woken = active.iter().map(|at| causes.remove(at).unwrap_or(Wake::Constant)).collect();
    Activation {
        slots: Slots::fill(book, &active),
        woken,
        active,
        dropped: run.dropped,
        timed: run.timed,
        warnings: run.warnings,
        tokens: run.tokens,
        cut: run.work.over,
    }
}

/// Compiled keys of one entry.
struct Keys {
    keys: Vec<Sought>,
    secondary: Vec<Sought>,
    additional: Vec<Sought>,
    exclude: Vec<Sought>,
    /// True if one of them is a regular expression.
    patterns: bool,
}

struct Run<'a> {
    book: &'a [Entry],
    scan: &'a Scan<'a>,
    settings: &'a ScanSettings,
    keys: Vec<Keys>,
    /// Searched messages, the newest first.
    lines: Vec<Read<'a>>,
    /// Texts of the user and the character, in the order of [`Source`].
    sources: Vec<Read<'a>>,
    also: Vec<Read<'a>>,
    /// Text of activated entries, one item for each pass.
    found: Vec<Read<'a>>,
    /// All texts joined, for regular expressions.
    whole: Whole,
    /// Number of messages by the character.
    replies: usize,
    /// Messages to read beyond the scan depth.
    further: usize,
    /// Current recursion level.
    level: u32,
    timed: Timed,
    active: Vec<usize>,
    /// Causes of the activations so far.
    causes: BTreeMap<usize, Wake>,
    /// Entries that are decided and not examined again.
    settled: BTreeSet<usize>,
    dropped: Vec<Dropped>,
    warnings: Vec<String>,
    tokens: usize,
    full: bool,
    work: Work<'a>,
}

impl<'a> Run<'a> {
    fn new(book: &'a [Entry], scan: &'a Scan<'a>) -> Run<'a> {
        let settings = &scan.settings;
        let (mut warnings, mut work) = (Vec::new(), Work::new(scan.read));
        let mut read = |entry: &Entry, list: &[String]| keys(entry, list, settings, &mut work, &mut warnings);
        let keys = book.iter().map(|entry| {
            let mut read = |list: &[String]| if entry.enabled { read(entry, list) } else { Vec::new() };
            let [keys, secondary, additional, exclude] =
                [&entry.keys, &entry.secondary_keys, &entry.additional_keys, &entry.exclude_keys]
                    .map(|list| read(list));
            let all = || keys.iter().chain(&secondary).chain(&additional).chain(&exclude);
            let patterns = all().any(Sought::is_pattern);
            Keys { keys, secondary, additional, exclude, patterns }
        });
        let keys: Vec<Keys> = keys.collect();
        let deepest =
            book.iter().filter_map(|entry| entry.scan_depth).max().unwrap_or(0).max(settings.scan_depth);
        let most = if settings.min_activations > 0 { usize::MAX } else { deepest as usize };
        let lines = scan.lines.iter().rev().take(most).map(|line| match line.name.as_str() {
            name if settings.include_names && !name.is_empty() => {
                Read::new(format!("{name}: {}", line.content).trim().to_owned())
            }
            _ => Read::new(line.content.trim()),
        });
        let source = |source: Source| scan.sources.iter().find(|(other, _)| *other == source);
        let sources = Source::ALL.map(|name| Read::new(source(name).map_or("", |(_, text)| text.as_str())));
        Run {
            book,
            scan,
            settings,
            keys,
            lines: lines.collect(),
            sources: sources.into(),
            also: scan.also.iter().map(|text| Read::new(*text)).collect(),
            found: Vec::new(),
            whole: Whole::default(),
            replies: scan.lines.iter().filter(|line| line.role == "assistant").count(),
            further: 0,
            level: 0,
            timed: scan.timed.clone(),
            active: Vec::new(),
            causes: BTreeMap::new(),
            settled: BTreeSet::new(),
            dropped: Vec::new(),
            warnings,
            tokens: 0,
            full: false,
            work,
        }
    }

    fn passes(&mut self) {
        let levels: BTreeSet<u32> =
            self.book.iter().map(|entry| entry.delay_until_recursion).filter(|&level| level > 0).collect();
        let mut levels = levels.into_iter();
        self.level = levels.next().unwrap_or(0);
        let mut pass = Pass::First;
        let most = match self.settings.max_recursion_steps {
            0 => PASSES,
            most => most.min(PASSES),
        };
        for _ in 0..most {
            let new = self.pass(pass);
            if self.work.over {
                return;
            }
            let texts = new.iter().map(|&at| &self.book[at]).filter(|entry| !entry.prevent_recursion);
            let texts: Vec<&'a str> = texts.map(|entry| entry.content.as_str()).collect();
            let mut next = None;
            let found = !texts.is_empty() || pass == Pass::Further && !self.found.is_empty();
            if self.settings.recursive && !self.full && found {
                next = Some(Pass::Recursion);
            } else if self.wants_more() {
                self.further += 1;
                next = Some(Pass::Further);
            }
            if next.is_none()
                && let Some(level) = levels.next()
            {
                self.level = level;
                next = Some(Pass::Recursion);
            }
            match texts.as_slice() {
                [] => {}
                [one] => self.found.push(Read::new(*one)),
                several => self.found.push(Read::new(several.join("\n"))),
            }
            match next {
                Some(next) => pass = next,
                None => return,
            }
        }
    }

    /// Returns true if more messages must be searched.
    fn wants_more(&self) -> bool {
        let settings = self.settings;
        let depth = settings.scan_depth as usize + self.further;
        // Searches until one message beyond the bound, as SillyTavern does.
        let within = |most: u32| most == 0 || depth <= most as usize;
        let more = depth < self.scan.lines.len() && within(settings.min_activations_depth);
        self.active.len() < settings.min_activations as usize && !self.full && more
    }

    /// Runs one pass and returns the entries that it activated.
    fn pass(&mut self, pass: Pass) -> Vec<usize> {
        let mut found = Vec::new();
        for at in 0..self.book.len() {
            if !self.settled.contains(&at)
                && let Some(score) = self.matches(at, pass)
            {
                found.push((at, score));
            }
        }
        found.sort_by_key(|&(at, _)| {
            let entry = &self.book[at];
            let first = (self.timed.sticks(entry), entry.constant, entry.priority, entry.order);
            (std::cmp::Reverse(first), at)
        });
        let seed = self.settings.seed;
        let lost = Chooser {
            book: self.book,
            timed: &self.timed,
            active: &self.active,
            scoring: self.settings.group_scoring,
            chance: &|name| chance(seed, "group", name),
        }
        .losers(&found);
        let mut new = Vec::new();
        for (at, _) in found {
            self.settled.insert(at);
            let entry = &self.book[at];
            let tokens = (self.scan.count)(&entry.content);
            let lucky = || {
                entry.probability >= 100.0
                    || self.timed.sticks(entry)
                    || chance(seed, "entry", &entry.id) * 100.0 < entry.probability
            };
            let over = |budget| self.full || self.tokens.saturating_add(tokens) > budget;
            if lost.contains(&at) {
                self.dropped.push(Dropped { entry: at, why: Drop::Group });
            } else if !lucky() {
                self.dropped.push(Dropped { entry: at, why: Drop::Probability });
            } else if !entry.ignore_budget && self.settings.budget.is_some_and(over) {
                self.full = true;
                self.dropped.push(Dropped { entry: at, why: Drop::Budget });
            } else {
                self.tokens = self.tokens.saturating_add(tokens);
                new.push(at);
            }
        }
        self.active.extend(&new);
        new
    }

    /// Returns the number of matching keys of an entry, or `None` if it does not match in this pass.
    fn matches(&mut self, at: usize, pass: Pass) -> Option<Score> {
        let (entry, settings) = (&self.book[at], self.settings);
        let sticks = self.timed.sticks(entry);
        let recursive = pass == Pass::Recursion;
        let late =
            entry.delay_until_recursion > 0 && (!recursive || entry.delay_until_recursion > self.level);
        let closed = recursive && settings.recursive && entry.exclude_recursion;
        if !self.possible(entry) || !sticks && (late || closed) || entry.force == Some(false) {
            return None;
        }
        let without_key = match entry.force {
            Some(true) => Some(Wake::Forced),
            _ if entry.constant => Some(Wake::Constant),
            _ => sticks.then_some(Wake::Sticky),
        };
        let must = without_key.is_none();
        if let Some(cause) = without_key {
            self.causes.insert(at, cause);
            if entry.group.is_empty() {
                return Some(Score::default());
            }
        }
        // With a depth of 0, no other text is searched either.
        let depth =
            entry.scan_depth.map_or(settings.scan_depth as usize + self.further, |depth| depth as usize);
        let found = if pass == Pass::Further { &[] } else { &self.found[..] };
        let lists = match depth {
            0 => [&[][..]; 4],
            depth => [&self.lines[..depth.min(self.lines.len())], &self.sources, &self.also, found],
        };
        let sources = if depth == 0 { &[] } else { &entry.sources[..] };
        let (keys, work) = (&mut self.keys[at], &mut self.work);
        if keys.patterns {
            self.whole.join(&lists, sources, work);
        }
        let texts = Texts { lists, sources, whole: &self.whole };
        if must {
            let found = keys.hold(entry, &texts, work)?;
            let key = entry.keys.get(found).map(|key| clip(key, KEY).into_owned()).unwrap_or_default();
            let found_in = keys.keys[found].list().map(|list| LISTS[list]);
            self.causes.insert(at, Wake::Key { key, found_in });
        }
        Some(keys.score(entry, &texts, work))
    }

    /// Returns true if an entry can be active at all in this turn.
    fn possible(&self, entry: &Entry) -> bool {
        let settings = self.settings;
        entry.enabled
            && (entry.triggers.is_empty() || entry.triggers.contains(&settings.trigger))
            && entry.filter.passes(&settings.character, &settings.tags)
            && self.scan.lines.len() >= entry.delay as usize
            && !self.timed.rests(entry)
            && self.replies >= entry.only_after as usize
            && (entry.only_every == 0 || self.replies.is_multiple_of(entry.only_every as usize))
            && entry.greeting.is_none_or(|greeting| greeting == settings.greeting)
    }
}

impl Keys {
    /// Returns the index of the first key that occurs, if all conditions of the entry hold.
    fn hold(&mut self, entry: &Entry, texts: &Texts<'_, '_>, work: &mut Work<'_>) -> Option<usize> {
        fn any(keys: &mut [Sought], texts: &Texts<'_, '_>, work: &mut Work<'_>) -> bool {
            keys.iter_mut().any(|key| key.occurs(texts, work))
        }
        fn all(keys: &mut [Sought], texts: &Texts<'_, '_>, work: &mut Work<'_>) -> bool {
            keys.iter_mut().all(|key| key.occurs(texts, work))
        }
        let found = self.keys.iter_mut().position(|key| key.occurs(texts, work))?;
        if any(&mut self.exclude, texts, work) {
            return None;
        }
        if !self.additional.is_empty() && !any(&mut self.additional, texts, work) {
            return None;
        }
        let secondary = &mut self.secondary;
        let holds = !entry.selective
            || secondary.is_empty()
            || match entry.logic {
                Logic::AndAny => any(secondary, texts, work),
                Logic::NotAll => !all(secondary, texts, work),
                Logic::NotAny => !any(secondary, texts, work),
                Logic::AndAll => all(secondary, texts, work),
            };
        holds.then_some(found)
    }

    /// Counts the matching keys; always 0 for entries without a group.
    fn score(&mut self, entry: &Entry, texts: &Texts<'_, '_>, work: &mut Work<'_>) -> Score {
        if entry.group.is_empty() {
            return Score::default();
        }
        let mut count = |keys: &mut [Sought]| {
            keys.iter_mut().filter_map(|key| key.occurs(texts, work).then_some(())).count()
        };
        Score { keys: count(&mut self.keys), secondary: count(&mut self.secondary) }
    }
}

/// Returns a number in 0..1 that depends only on the seed and a name, so it does not change when a book is
/// reordered.
fn chance(seed: u64, what: &str, name: &str) -> f64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for byte in what.bytes().chain([0]).chain(name.bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    // Mixes all bits (splitmix64 finalizer).
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^= hash >> 31;
    (hash >> 11) as f64 / (1_u64 << 53) as f64
}
