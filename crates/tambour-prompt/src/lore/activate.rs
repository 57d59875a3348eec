//! Which entries are active: passes over the chat, and over the text of entries found before.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::entry::{Entry, Logic, Source};
use super::group::{Chooser, Score};
use super::key::{Read, Sought, Texts, Whole, Work, keys};
use super::settings::{Scan, ScanSettings};
use super::slots::Slots;
use super::timed::Timed;
use tambour::finding::clip;

/// What a scan found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Activation {
    /// Indexes of the active entries in the book, as they stand there.
    pub active: Vec<usize>,
    /// Cause of each of them, in the same order.
    pub woken: Vec<Wake>,
    /// Where they go.
    pub slots: Slots,
    /// Entries that were found and are not active.
    pub dropped: Vec<Dropped>,
    /// To be remembered for the next turn.
    pub timed: Timed,
    /// Keys that cannot be read.
    pub warnings: Vec<String>,
    /// Tokens of the active entries.
    pub tokens: usize,
    /// Set when it ended before all was read, since [`Scan::read`] said so.
    #[serde(skip)]
    pub cut: bool,
}

/// An entry that was found and is not active.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Dropped {
    /// Its index in the book.
    pub entry: usize,
    /// Why.
    pub why: Drop,
}

/// Why an entry that was found is not active.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Drop {
    /// Chance was against it.
    Probability,
    /// Another one of its group is active.
    Group,
    /// The budget is used up.
    Budget,
}

/// Cause of an entry being active.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "by", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Wake {
    /// It is always active.
    Constant,
    /// It was active in an earlier turn, and stays for a while.
    Sticky,
    /// A decorator says that it is active.
    Forced,
    /// A key occurs.
    Key {
        /// The first of its keys that does.
        key: String,
        /// The first text that has it; absent for a regular expression, which reads all of them together.
        #[serde(skip_serializing_if = "Option::is_none")]
        found_in: Option<KeyText>,
    },
}

/// Kinds of text that are read for keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyText {
    /// Messages of the chat.
    Messages,
    /// Texts of user and character.
    Persons,
    /// Other texts that are read along.
    Others,
    /// The text of entries found before.
    Entries,
}

/// What a pass reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// The chat.
    First,
    /// The chat, and the text of entries found before.
    Recursion,
    /// More of the chat, since too few entries were found.
    Further,
}

/// Characters of a key that are told.
const KEY: usize = 200;

/// The lists of [`Texts`].
const LISTS: [KeyText; 4] = [KeyText::Messages, KeyText::Persons, KeyText::Others, KeyText::Entries];

/// Passes, at most: each finds an entry that was not found before, reads on, or takes the next level.
const PASSES: u32 = 1000;

/// Finds the active entries of `book`. The rules are those of SillyTavern's world info: an entry is active if it is constant, or if a key
/// occurs in the newest messages or, with recursion, in the text of active entries, and its secondary keys, its times, its
/// groups, chance and the budget let it. The budget is given to constant entries first, then by `priority` and `order`; what
/// comes after one that does not fit is dropped too.
///
/// Each key reads each text once; a regular expression reads all of them together.
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

/// The keys of one entry.
struct Keys {
    keys: Vec<Sought>,
    secondary: Vec<Sought>,
    additional: Vec<Sought>,
    exclude: Vec<Sought>,
    /// Whether there is a regular expression among them.
    patterns: bool,
}

struct Run<'a> {
    book: &'a [Entry],
    scan: &'a Scan<'a>,
    settings: &'a ScanSettings,
    keys: Vec<Keys>,
    /// Messages as they are read, the newest first.
    lines: Vec<Read<'a>>,
    /// Texts of user and character, in the order of [`Source`].
    sources: Vec<Read<'a>>,
    also: Vec<Read<'a>>,
    /// Text of entries that others may be found in: that of one pass after the other.
    found: Vec<Read<'a>>,
    /// What regular expressions read.
    whole: Whole,
    /// Messages of the character.
    replies: usize,
    /// Messages read beyond the depth.
    further: usize,
    /// Level of recursion.
    level: u32,
    timed: Timed,
    active: Vec<usize>,
    /// Causes of the entries that were found.
    causes: BTreeMap<usize, Wake>,
    /// Entries that are not looked at again.
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

    /// Whether further messages are to be read.
    fn wants_more(&self) -> bool {
        let settings = self.settings;
        let depth = settings.scan_depth as usize + self.further;
        // It goes on until it has read one more than the bound.
        let within = |most: u32| most == 0 || depth <= most as usize;
        let more = depth < self.scan.lines.len() && within(settings.min_activations_depth);
        self.active.len() < settings.min_activations as usize && !self.full && more
    }

    /// One pass: the entries that became active in it.
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

    /// Whether an entry is found in a pass, and by how many keys.
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
        // Of no message nothing else is read either.
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

    /// Whether an entry can be active at all in this turn.
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
    /// The first key that occurs, by its number, where what occurs makes the entry active.
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

    /// How many keys match; counted for groups only.
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

/// A number from 0 to below 1 that a seed and a name decide, so that it is the same wherever an entry stands in its book.
fn chance(seed: u64, what: &str, name: &str) -> f64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for byte in what.bytes().chain([0]).chain(name.bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    // Mixes all bits (splitmix64).
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^= hash >> 31;
    (hash >> 11) as f64 / (1_u64 << 53) as f64
}
