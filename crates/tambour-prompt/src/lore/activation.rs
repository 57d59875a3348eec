//! Activation of lorebook entries: passes over the chat, and over the text of entries that earlier passes
//! activated.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::entry::{CharacterText, LoreEntry, SecondaryLogic};
use super::group::{GroupChooser, KeyScore};
use super::key::{EntryTexts, JoinedText, KeySearch, ScanBudget, SearchText, compile_keys};
use super::settings::{LoreScan, ScanSettings};
use super::slots::LoreSlots;
use super::timed_effects::TimedEffects;
use tambour::finding::clip;

/// Result of a scan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LoreActivation {
    /// Indexes of the active entries in the book, ascending.
    pub active: Vec<usize>,
    /// Cause of each activation, in the order of `active`.
    pub woken: Vec<ActivationCause>,
    /// Active entries by their place in the prompt.
    pub slots: LoreSlots,
    /// Entries that matched but are not active.
    pub dropped: Vec<DroppedLore>,
    /// Timed effects to pass to the scan of the next turn.
    pub timed: TimedEffects,
    /// Problems with keys.
    pub warnings: Vec<String>,
    /// Total tokens of the active entries.
    pub tokens: usize,
    /// True if the scan ended early because [`LoreScan::charge`] refused more bytes.
    #[serde(skip)]
    pub is_truncated: bool,
}

/// An entry that matched but is not active.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DroppedLore {
    /// Index of the entry in the book.
    pub entry: usize,
    /// Reason.
    pub why: DropReason,
}

/// Reason why a matched entry is not active.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DropReason {
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
pub enum ActivationCause {
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
        found_in: Option<KeyTextKind>,
    },
}

/// Kinds of text that are searched for keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyTextKind {
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
enum PassKind {
    /// The chat.
    Chat,
    /// The chat, and the text of entries that earlier passes activated.
    Recursion,
    /// Older messages as well, because too few entries are active ([`ScanSettings::min_activations`]).
    MoreMessages,
}

/// Maximum length in characters of a key in a reported cause.
const MAX_REPORTED_KEY: usize = 200;

/// Kinds of text in the lists of [`EntryTexts`], in their order.
const LIST_KINDS: [KeyTextKind; 4] =
    [KeyTextKind::Messages, KeyTextKind::Persons, KeyTextKind::Others, KeyTextKind::Entries];

/// Maximum number of passes. Each pass activates a new entry, searches older messages, or takes the next
/// recursion level.
const MAX_PASSES: u32 = 1000;

/// Finds the active entries of `book` by the rules of SillyTavern's world info. An entry is active if it is
/// constant, or if a key occurs in the newest messages or, with recursion, in the text of active entries; its
/// secondary keys, timed effects, groups, probability and the budget must allow it. In each pass, the budget
/// goes to sticky entries first, then to constant ones, then by `priority` and `order`. All entries after the
/// first one that does not fit are dropped as well, unless they have `ignore_budget`.
///
/// Each text is searched once for each key; a regular expression searches all texts together, and again when
/// there is new text.
#[must_use]
pub fn activate(book: &[LoreEntry], scan: &LoreScan<'_>) -> LoreActivation {
    let mut run = ActivationRun::new(book, scan);
    run.timed_effects.advance(book, scan.lines.len() as u64);
    run.run_passes();
    if run.scan_budget.has_truncated_text {
        run.warnings
            .push("a text is too long for regular expressions, so only its beginning was read".to_owned());
    }
    if run.scan_budget.has_split_search {
        run.warnings.push(
            "there is too much text, so regular expressions searched the later texts one by one".to_owned(),
        );
    }
    let mut active = run.active_indexes;
    active.sort_unstable();
    for &index in &active {
        run.timed_effects.record_activation(&book[index], scan.lines.len() as u64);
    }
    let mut causes = run.causes;
    let woken =
        active.iter().map(|index| causes.remove(index).unwrap_or(ActivationCause::Constant)).collect();
    LoreActivation {
        slots: LoreSlots::from_active(book, &active),
        woken,
        active,
        dropped: run.dropped_entries,
        timed: run.timed_effects,
        warnings: run.warnings,
        tokens: run.tokens,
        is_truncated: run.scan_budget.is_exhausted,
    }
}

/// Compiled keys of one entry.
struct EntryKeys {
    /// Primary keys.
    keys: Vec<KeySearch>,
    /// Secondary keys, combined by [`LoreEntry::logic`].
    secondary_keys: Vec<KeySearch>,
    /// Keys of which one must occur as well.
    additional_keys: Vec<KeySearch>,
    /// Keys that must not occur.
    excluding_keys: Vec<KeySearch>,
    /// True if a key in one of these lists is a regular expression.
    has_pattern: bool,
}

/// State of a scan between its passes.
struct ActivationRun<'a> {
    book: &'a [LoreEntry],
    scan: &'a LoreScan<'a>,
    settings: &'a ScanSettings,
    /// Keys of the entries, in the order of the book.
    keys: Vec<EntryKeys>,
    /// Messages that any entry may search, the newest first.
    lines: Vec<SearchText<'a>>,
    /// Texts of the user and the character, in the order of [`CharacterText`].
    sources: Vec<SearchText<'a>>,
    extra_texts: Vec<SearchText<'a>>,
    /// Text of activated entries, one item for each pass.
    activated_texts: Vec<SearchText<'a>>,
    /// All texts joined, for regular expressions.
    joined_text: JoinedText,
    /// Number of messages by the character.
    reply_count: usize,
    /// Number of older messages to search beyond the scan depth.
    extra_depth: usize,
    /// Highest [`LoreEntry::delay_until_recursion`] of the entries that a recursion can activate now.
    recursion_level: u32,
    timed_effects: TimedEffects,
    /// Indexes of the entries activated so far, in the order of activation.
    active_indexes: Vec<usize>,
    /// Causes of the activations so far, by the index of the entry. May also hold entries that were dropped.
    causes: BTreeMap<usize, ActivationCause>,
    /// Indexes of the entries that are active or dropped, and so not examined again.
    decided_indexes: BTreeSet<usize>,
    dropped_entries: Vec<DroppedLore>,
    warnings: Vec<String>,
    /// Tokens of the active entries.
    tokens: usize,
    /// True once an entry did not fit into the token budget.
    is_token_budget_spent: bool,
    /// Limits on the cost of searching.
    scan_budget: ScanBudget<'a>,
}

impl<'a> ActivationRun<'a> {
    fn new(book: &'a [LoreEntry], scan: &'a LoreScan<'a>) -> ActivationRun<'a> {
        let settings = &scan.settings;
        let (mut warnings, mut scan_budget) = (Vec::new(), ScanBudget::new(scan.charge));
        let mut compile = |entry: &LoreEntry, list: &[String]| {
            compile_keys(entry, list, settings, &mut scan_budget, &mut warnings)
        };
        let keys = book.iter().map(|entry| {
            let mut compile_enabled =
                |list: &[String]| if entry.enabled { compile(entry, list) } else { Vec::new() };
            let [keys, secondary_keys, additional_keys, excluding_keys] =
                [&entry.keys, &entry.secondary_keys, &entry.additional_keys, &entry.exclude_keys]
                    .map(|list| compile_enabled(list));
            let all_keys =
                || keys.iter().chain(&secondary_keys).chain(&additional_keys).chain(&excluding_keys);
            let has_pattern = all_keys().any(KeySearch::is_pattern);
            EntryKeys { keys, secondary_keys, additional_keys, excluding_keys, has_pattern }
        });
        let keys: Vec<EntryKeys> = keys.collect();
        let max_depth =
            book.iter().filter_map(|entry| entry.scan_depth).max().unwrap_or(0).max(settings.scan_depth);
        // The search for `min_activations` may reach the oldest message.
        let line_limit = if settings.min_activations > 0 { usize::MAX } else { max_depth as usize };
        let lines = scan.lines.iter().rev().take(line_limit).map(|line| match line.name.as_str() {
            name if settings.include_names && !name.is_empty() => {
                SearchText::new(format!("{name}: {}", line.content).trim().to_owned())
            }
            _ => SearchText::new(line.content.trim()),
        });
        let find_source = |kind: CharacterText| scan.sources.iter().find(|(other, _)| *other == kind);
        let sources = CharacterText::ALL
            .map(|kind| SearchText::new(find_source(kind).map_or("", |(_, text)| text.as_str())));
        ActivationRun {
            book,
            scan,
            settings,
            keys,
            lines: lines.collect(),
            sources: sources.into(),
            extra_texts: scan.extra_texts.iter().map(|text| SearchText::new(*text)).collect(),
            activated_texts: Vec::new(),
            joined_text: JoinedText::default(),
            reply_count: scan.lines.iter().filter(|line| line.role == "assistant").count(),
            extra_depth: 0,
            recursion_level: 0,
            timed_effects: scan.timed_effects.clone(),
            active_indexes: Vec::new(),
            causes: BTreeMap::new(),
            decided_indexes: BTreeSet::new(),
            dropped_entries: Vec::new(),
            warnings,
            tokens: 0,
            is_token_budget_spent: false,
            scan_budget,
        }
    }

    /// Runs passes until nothing more can be activated, or a limit is reached.
    fn run_passes(&mut self) {
        // Recursion levels to which entries are delayed, ascending.
        let levels: BTreeSet<u32> =
            self.book.iter().map(|entry| entry.delay_until_recursion).filter(|&level| level > 0).collect();
        let mut levels = levels.into_iter();
        self.recursion_level = levels.next().unwrap_or(0);
        let mut pass = PassKind::Chat;
        let max_passes = match self.settings.max_recursion_steps {
            0 => MAX_PASSES,
            max_passes => max_passes.min(MAX_PASSES),
        };
        for _ in 0..max_passes {
            let activated = self.run_pass(pass);
            if self.scan_budget.is_exhausted {
                return;
            }
            let new_texts =
                activated.iter().map(|&index| &self.book[index]).filter(|entry| !entry.prevent_recursion);
            let new_texts: Vec<&'a str> = new_texts.map(|entry| entry.content.as_str()).collect();
            let mut next_pass = None;
            // A pass over more messages leaves out the text of entries, so a recursion searches it
            // afterwards.
            let has_recursion_text =
                !new_texts.is_empty() || pass == PassKind::MoreMessages && !self.activated_texts.is_empty();
            if self.settings.recursive && !self.is_token_budget_spent && has_recursion_text {
                next_pass = Some(PassKind::Recursion);
            } else if self.needs_more_messages() {
                self.extra_depth += 1;
                next_pass = Some(PassKind::MoreMessages);
            }
            // Once nothing else is left to search, a recursion can activate the entries of the next level.
            if next_pass.is_none()
                && let Some(level) = levels.next()
            {
                self.recursion_level = level;
                next_pass = Some(PassKind::Recursion);
            }
            match new_texts.as_slice() {
                [] => {}
                [text] => self.activated_texts.push(SearchText::new(*text)),
                new_texts => self.activated_texts.push(SearchText::new(new_texts.join("\n"))),
            }
            match next_pass {
                Some(next_pass) => pass = next_pass,
                None => return,
            }
        }
    }

    /// Returns true if more messages must be searched.
    fn needs_more_messages(&self) -> bool {
        let settings = self.settings;
        let depth = settings.scan_depth as usize + self.extra_depth;
        // Searches one message beyond the bound, as SillyTavern does.
        let is_within = |max_depth: u32| max_depth == 0 || depth <= max_depth as usize;
        let has_more = depth < self.scan.lines.len() && is_within(settings.min_activations_depth);
        self.active_indexes.len() < settings.min_activations as usize
            && !self.is_token_budget_spent
            && has_more
    }

    /// Runs one pass and returns the indexes of the entries that it activated.
    fn run_pass(&mut self, pass: PassKind) -> Vec<usize> {
        let mut matches = Vec::new();
        for index in 0..self.book.len() {
            if !self.decided_indexes.contains(&index)
                && let Some(score) = self.match_entry(index, pass)
            {
                matches.push((index, score));
            }
        }
        // The order in which entries get the token budget.
        matches.sort_by_key(|&(index, _)| {
            let entry = &self.book[index];
            let rank = (self.timed_effects.is_sticky(entry), entry.constant, entry.priority, entry.order);
            (std::cmp::Reverse(rank), index)
        });
        let seed = self.settings.seed;
        let losers = GroupChooser {
            book: self.book,
            timed_effects: &self.timed_effects,
            active_indexes: &self.active_indexes,
            scores_groups: self.settings.group_scoring,
            chance: &|name| seeded_chance(seed, "group", name),
        }
        .find_losers(&matches);
        let mut activated = Vec::new();
        for (index, _) in matches {
            self.decided_indexes.insert(index);
            let entry = &self.book[index];
            let tokens = (self.scan.count_tokens)(&entry.content);
            let passes_chance = || {
                entry.probability >= 100.0
                    || self.timed_effects.is_sticky(entry)
                    || seeded_chance(seed, "entry", &entry.id) * 100.0 < entry.probability
            };
            let exceeds_budget =
                |budget| self.is_token_budget_spent || self.tokens.saturating_add(tokens) > budget;
            if losers.contains(&index) {
                self.dropped_entries.push(DroppedLore { entry: index, why: DropReason::Group });
            } else if !passes_chance() {
                self.dropped_entries.push(DroppedLore { entry: index, why: DropReason::Probability });
            } else if !entry.ignore_budget && self.settings.budget.is_some_and(exceeds_budget) {
                self.is_token_budget_spent = true;
                self.dropped_entries.push(DroppedLore { entry: index, why: DropReason::Budget });
            } else {
                self.tokens = self.tokens.saturating_add(tokens);
                activated.push(index);
            }
        }
        self.active_indexes.extend(&activated);
        activated
    }

    /// Returns the numbers of matching keys of an entry, or `None` if it does not match in this pass. Records
    /// the cause of a match.
    fn match_entry(&mut self, index: usize, pass: PassKind) -> Option<KeyScore> {
        let (entry, settings) = (&self.book[index], self.settings);
        let is_sticky = self.timed_effects.is_sticky(entry);
        let is_recursion = pass == PassKind::Recursion;
        let is_delayed = entry.delay_until_recursion > 0
            && (!is_recursion || entry.delay_until_recursion > self.recursion_level);
        let is_excluded = is_recursion && settings.recursive && entry.exclude_recursion;
        if !self.is_eligible(entry) || !is_sticky && (is_delayed || is_excluded) || entry.force == Some(false)
        {
            return None;
        }
        let keyless_cause = match entry.force {
            Some(true) => Some(ActivationCause::Forced),
            _ if entry.constant => Some(ActivationCause::Constant),
            _ => is_sticky.then_some(ActivationCause::Sticky),
        };
        let needs_key = keyless_cause.is_none();
        if let Some(cause) = keyless_cause {
            self.causes.insert(index, cause);
            // The keys of an entry in a group still count for its score.
            if entry.group.is_empty() {
                return Some(KeyScore::default());
            }
        }
        // With a depth of 0, no other text is searched either.
        let depth =
            entry.scan_depth.map_or(settings.scan_depth as usize + self.extra_depth, |depth| depth as usize);
        let entry_texts = if pass == PassKind::MoreMessages { &[] } else { &self.activated_texts[..] };
        let lists = match depth {
            0 => [&[][..]; 4],
            depth => {
                [&self.lines[..depth.min(self.lines.len())], &self.sources, &self.extra_texts, entry_texts]
            }
        };
        let sources = if depth == 0 { &[] } else { &entry.sources[..] };
        let (keys, budget) = (&mut self.keys[index], &mut self.scan_budget);
        if keys.has_pattern {
            self.joined_text.join(&lists, sources, budget);
        }
        let texts = EntryTexts { lists, sources, joined_text: &self.joined_text };
        if needs_key {
            let key_index = keys.find_match(entry, &texts, budget)?;
            let key = entry
                .keys
                .get(key_index)
                .map(|key| clip(key, MAX_REPORTED_KEY).into_owned())
                .unwrap_or_default();
            let found_in = keys.keys[key_index].found_list().map(|list| LIST_KINDS[list]);
            self.causes.insert(index, ActivationCause::Key { key, found_in });
        }
        Some(keys.score(entry, &texts, budget))
    }

    /// Returns true if an entry can be active at all in this turn.
    fn is_eligible(&self, entry: &LoreEntry) -> bool {
        let settings = self.settings;
        entry.enabled
            && (entry.triggers.is_empty() || entry.triggers.contains(&settings.trigger))
            && entry.filter.matches(&settings.character, &settings.tags)
            && self.scan.lines.len() >= entry.delay as usize
            && !self.timed_effects.is_on_cooldown(entry)
            && self.reply_count >= entry.only_after as usize
            && (entry.only_every == 0 || self.reply_count.is_multiple_of(entry.only_every as usize))
            && entry.greeting.is_none_or(|greeting| greeting == settings.greeting)
    }
}

impl EntryKeys {
    /// Returns the index of the first key that occurs, if all conditions of the entry hold.
    fn find_match(
        &mut self,
        entry: &LoreEntry,
        texts: &EntryTexts<'_, '_>,
        budget: &mut ScanBudget<'_>,
    ) -> Option<usize> {
        fn any(keys: &mut [KeySearch], texts: &EntryTexts<'_, '_>, budget: &mut ScanBudget<'_>) -> bool {
            keys.iter_mut().any(|key| key.search(texts, budget))
        }
        fn all(keys: &mut [KeySearch], texts: &EntryTexts<'_, '_>, budget: &mut ScanBudget<'_>) -> bool {
            keys.iter_mut().all(|key| key.search(texts, budget))
        }
        let first_key = self.keys.iter_mut().position(|key| key.search(texts, budget))?;
        if any(&mut self.excluding_keys, texts, budget) {
            return None;
        }
        if !self.additional_keys.is_empty() && !any(&mut self.additional_keys, texts, budget) {
            return None;
        }
        let secondary = &mut self.secondary_keys;
        let is_match = !entry.selective
            || secondary.is_empty()
            || match entry.logic {
                SecondaryLogic::AndAny => any(secondary, texts, budget),
                SecondaryLogic::NotAll => !all(secondary, texts, budget),
                SecondaryLogic::NotAny => !any(secondary, texts, budget),
                SecondaryLogic::AndAll => all(secondary, texts, budget),
            };
        is_match.then_some(first_key)
    }

    /// Counts the matching keys; always 0 for entries without a group.
    fn score(
        &mut self,
        entry: &LoreEntry,
        texts: &EntryTexts<'_, '_>,
        budget: &mut ScanBudget<'_>,
    ) -> KeyScore {
        if entry.group.is_empty() {
            return KeyScore::default();
        }
        let mut count = |keys: &mut [KeySearch]| {
            keys.iter_mut().filter_map(|key| key.search(texts, budget).then_some(())).count()
        };
        KeyScore { key_count: count(&mut self.keys), secondary_key_count: count(&mut self.secondary_keys) }
    }
}

/// Returns a number in 0..1 that depends only on the seed, a purpose and a name, so it does not change when a
/// book is reordered.
fn seeded_chance(seed: u64, purpose: &str, name: &str) -> f64 {
    // FNV-1a over purpose and name; the multiplier spreads small seeds over all bits.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for byte in purpose.bytes().chain([0]).chain(name.bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    // Mixes all bits (finalizer of splitmix64).
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^= hash >> 31;
    // The upper 53 bits, as many as a double holds exactly.
    (hash >> 11) as f64 / (1_u64 << 53) as f64
}
