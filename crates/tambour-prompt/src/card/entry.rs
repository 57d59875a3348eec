//! Reads lorebook entries of each file layout into [`LoreEntry`].

use serde_json::Value;

use tambour::error::Result;

use super::super::lore::{CharacterFilter, CharacterText, EntryPosition, LoreEntry, SecondaryLogic};
use super::fields::{CardFields, split_keys};
use super::model::read_role;

/// Names that SillyTavern's files and the extensions of embedded books use for the same fields. Each member
/// is named after the field of [`LoreEntry`] that it fills; `use_probability` switches `probability` on.
pub(super) struct EntryFieldNames {
    logic: &'static str,
    use_probability: &'static str,
    group_override: &'static str,
    group_weight: &'static str,
    group_scoring: &'static str,
    exclude_recursion: &'static str,
    prevent_recursion: &'static str,
    delay_until_recursion: &'static str,
    scan_depth: &'static str,
    whole_words: &'static str,
    case_sensitive: &'static str,
    outlet: &'static str,
    ignore_budget: &'static str,
    filter: &'static str,
    /// Names of the character texts, in the order of [`CharacterText::ALL`].
    sources: [&'static str; 6],
}

/// Names in a SillyTavern file.
pub(super) const CAMEL_NAMES: EntryFieldNames = EntryFieldNames {
    logic: "selectiveLogic",
    use_probability: "useProbability",
    group_override: "groupOverride",
    group_weight: "groupWeight",
    group_scoring: "useGroupScoring",
    exclude_recursion: "excludeRecursion",
    prevent_recursion: "preventRecursion",
    delay_until_recursion: "delayUntilRecursion",
    scan_depth: "scanDepth",
    whole_words: "matchWholeWords",
    case_sensitive: "caseSensitive",
    outlet: "outletName",
    ignore_budget: "ignoreBudget",
    filter: "characterFilter",
    sources: [
        "matchPersonaDescription",
        "matchCharacterDescription",
        "matchCharacterPersonality",
        "matchCharacterDepthPrompt",
        "matchScenario",
        "matchCreatorNotes",
    ],
};

/// Names in the extensions of an embedded book.
pub(super) const SNAKE_NAMES: EntryFieldNames = EntryFieldNames {
    logic: "selectiveLogic",
    use_probability: "useProbability",
    group_override: "group_override",
    group_weight: "group_weight",
    group_scoring: "use_group_scoring",
    exclude_recursion: "exclude_recursion",
    prevent_recursion: "prevent_recursion",
    delay_until_recursion: "delay_until_recursion",
    scan_depth: "scan_depth",
    whole_words: "match_whole_words",
    case_sensitive: "case_sensitive",
    outlet: "outlet_name",
    ignore_budget: "ignore_budget",
    filter: "character_filter",
    sources: [
        "match_persona_description",
        "match_character_description",
        "match_character_personality",
        "match_character_depth_prompt",
        "match_scenario",
        "match_creator_notes",
    ],
};

impl EntryFieldNames {
    /// Returns all names, in the same order for both layouts.
    pub(super) fn list(&self) -> [&'static str; 20] {
        let [persona, description, personality, depth_prompt, scenario, notes] = self.sources;
        [
            persona,
            description,
            personality,
            depth_prompt,
            scenario,
            notes,
            self.logic,
            self.use_probability,
            self.group_override,
            self.group_weight,
            self.group_scoring,
            self.exclude_recursion,
            self.prevent_recursion,
            self.delay_until_recursion,
            self.scan_depth,
            self.whole_words,
            self.case_sensitive,
            self.outlet,
            self.ignore_budget,
            self.filter,
        ]
    }
}

/// Reads an entry of a SillyTavern file.
pub(super) fn read_sillytavern(fields: &CardFields<'_>) -> Result<LoreEntry> {
    let mut entry = LoreEntry {
        id: read_id(fields, &["uid"])?,
        title: fields.text("comment")?,
        keys: fields.keys("key")?,
        secondary_keys: fields.keys("keysecondary")?,
        selective: fields.flag("selective")?.unwrap_or(true),
        content: fields.text("content")?,
        enabled: !fields.flag("disable")?.unwrap_or(false),
        order: fields.integer("order")?.unwrap_or(100),
        constant: fields.flag("constant")?.unwrap_or(false),
        ..LoreEntry::default()
    };
    read_shared(&mut entry, fields, &CAMEL_NAMES)?;
    if fields.get(CAMEL_NAMES.filter).is_none() {
        entry.filter = CharacterFilter {
            names: fields.texts("characterFilterNames")?,
            tags: fields.texts("characterFilterTags")?,
            exclude: fields.flag("characterFilterExclude")?.unwrap_or(false),
        };
    }
    Ok(entry)
}

/// Reads an entry of a card's book, in the card or in a separate file, or of a V3 lorebook.
pub(super) fn read_embedded(fields: &CardFields<'_>) -> Result<LoreEntry> {
    let (name, comment) = (fields.text("name")?, fields.text("comment")?);
    let mut entry = LoreEntry {
        id: read_id(fields, &["id", "uid"])?,
        title: if name.is_empty() { comment } else { name },
        keys: fields.keys("keys")?,
        secondary_keys: fields.keys("secondary_keys")?,
        selective: fields.flag("selective")?.unwrap_or(false),
        content: fields.text("content")?,
        enabled: fields.flag("enabled")?.unwrap_or(true),
        order: fields.integer("insertion_order")?.unwrap_or(100),
        constant: fields.flag("constant")?.unwrap_or(false),
        regex: fields.flag("use_regex")?.unwrap_or(false),
        priority: fields.integer("priority")?.unwrap_or(0),
        ..LoreEntry::default()
    };
    match fields.get("position") {
        Some(Value::String(position)) => match position.as_str() {
            "before_char" | "" => {}
            "after_char" => entry.position = EntryPosition::AfterChar,
            other => fields
                .warn("position", &format!("is `{other}`, which is not known; it goes before the character")),
        },
        Some(value @ Value::Number(_)) => entry.position = read_position(fields, "position", value)?,
        Some(other) => return Err(fields.type_error("position", "before_char or after_char", other)),
        None => {}
    }
    if let Some(extensions) = fields.object("extensions")? {
        let path = fields.full_name("extensions");
        let extensions = CardFields::new(fields.file, extensions, &path);
        read_shared(&mut entry, &extensions, &SNAKE_NAMES)?;
    }
    if let Some(case_sensitive) = fields.flag("case_sensitive")? {
        entry.case_sensitive = Some(case_sensitive);
    }
    Ok(entry)
}

/// Reads an entry of NovelAI.
pub(super) fn read_novelai(fields: &CardFields<'_>) -> Result<LoreEntry> {
    let order = match fields.object("contextConfig")? {
        None => None,
        Some(map) => {
            CardFields::new(fields.file, map, &fields.full_name("contextConfig")).integer("budgetPriority")?
        }
    };
    Ok(LoreEntry {
        id: read_id(fields, &["id"])?,
        title: fields.text("displayName")?,
        keys: fields.keys("keys")?,
        content: fields.text("text")?,
        enabled: fields.flag("enabled")?.unwrap_or(true),
        constant: fields.flag("forceActivation")?.unwrap_or(false),
        order: order.unwrap_or(100),
        ..LoreEntry::default()
    })
}

/// Reads an entry of Agnai.
pub(super) fn read_agnai(fields: &CardFields<'_>) -> Result<LoreEntry> {
    Ok(LoreEntry {
        title: fields.text("name")?,
        keys: fields.keys("keywords")?,
        content: fields.text("entry")?,
        enabled: fields.flag("enabled")?.unwrap_or(true),
        order: fields.integer("weight")?.unwrap_or(100),
        priority: fields.integer("priority")?.unwrap_or(0),
        ..LoreEntry::default()
    })
}

/// Reads an entry of RisuAI.
pub(super) fn read_risu(fields: &CardFields<'_>) -> Result<LoreEntry> {
    let is_folder = fields.text("mode")? == "folder";
    if is_folder {
        fields.warn("mode", "is `folder`: it is kept and never active");
    }
    Ok(LoreEntry {
        id: read_id(fields, &["id"])?,
        title: fields.text("comment")?,
        keys: split_keys(&fields.text("key")?),
        secondary_keys: split_keys(&fields.text("secondkey")?),
        selective: fields.flag("selective")?.unwrap_or(false),
        content: fields.text("content")?,
        enabled: !is_folder,
        constant: fields.flag("alwaysActive")?.unwrap_or(false),
        regex: fields.flag("useRegex")?.unwrap_or(false),
        order: fields.integer("insertorder")?.unwrap_or(100),
        probability: fields.number("activationPercent")?.unwrap_or(100.0).clamp(0.0, 100.0),
        ..LoreEntry::default()
    })
}

/// Reads the id from the first of `keys` that is present; empty if none is.
fn read_id(fields: &CardFields<'_>, keys: &[&'static str]) -> Result<String> {
    match fields.first_present(keys).map(|key| (key, fields.get(key))) {
        Some((_, Some(Value::Number(number)))) => Ok(number.to_string()),
        Some((key, Some(_))) => fields.text(key),
        _ => Ok(String::new()),
    }
}

/// Reads the fields that SillyTavern's files and the extensions of embedded books share.
fn read_shared(entry: &mut LoreEntry, fields: &CardFields<'_>, names: &EntryFieldNames) -> Result<()> {
    if let Some(value) = fields.get("position") {
        entry.position = read_position(fields, "position", value)?;
    }
    if let Some(logic) = fields.count(names.logic)? {
        entry.logic = match logic {
            0 => SecondaryLogic::AndAny,
            1 => SecondaryLogic::NotAll,
            2 => SecondaryLogic::NotAny,
            3 => SecondaryLogic::AndAll,
            other => {
                fields.warn(
                    names.logic,
                    &format!("is {other}, which is not known; one of the secondary keys is enough"),
                );
                SecondaryLogic::AndAny
            }
        };
    }
    if let Some(value) = fields.get("role") {
        entry.role = read_role(value).ok_or_else(|| fields.type_error("role", "0, 1 or 2", value))?;
    }
    entry.depth = fields.count("depth")?.unwrap_or(entry.depth);
    let probability = fields.number("probability")?.unwrap_or(100.0).clamp(0.0, 100.0);
    // If the flag is false, the probability does not count.
    entry.probability = if fields.flag(names.use_probability)?.unwrap_or(true) { probability } else { 100.0 };
    entry.group = fields.text_list("group")?;
    entry.group_override = fields.flag(names.group_override)?.unwrap_or(false);
    entry.group_weight = fields.number(names.group_weight)?.unwrap_or(100.0).max(0.0);
    entry.group_scoring = fields.flag(names.group_scoring)?;
    entry.exclude_recursion = fields.flag(names.exclude_recursion)?.unwrap_or(false);
    entry.prevent_recursion = fields.flag(names.prevent_recursion)?.unwrap_or(false);
    entry.delay_until_recursion = match fields.get(names.delay_until_recursion) {
        // `true` delays to the first recursion level.
        Some(Value::Bool(is_delayed)) => u32::from(*is_delayed),
        _ => fields.count(names.delay_until_recursion)?.unwrap_or(0),
    };
    entry.sticky = fields.count("sticky")?.unwrap_or(0);
    entry.cooldown = fields.count("cooldown")?.unwrap_or(0);
    entry.delay = fields.count("delay")?.unwrap_or(0);
    entry.scan_depth = fields.count(names.scan_depth)?;
    entry.whole_words = fields.flag(names.whole_words)?;
    entry.case_sensitive = fields.flag(names.case_sensitive)?;
    entry.outlet = fields.text(names.outlet)?;
    for (source, name) in CharacterText::ALL.into_iter().zip(names.sources) {
        if fields.flag(name)?.unwrap_or(false) {
            entry.sources.push(source);
        }
    }
    entry.ignore_budget = fields.flag(names.ignore_budget)?.unwrap_or(false);
    entry.triggers = fields.texts("triggers")?;
    if let Some(filter) = fields.object(names.filter)? {
        let path = fields.full_name(names.filter);
        let filter = CardFields::new(fields.file, filter, &path);
        entry.filter = CharacterFilter {
            names: filter.texts("names")?,
            tags: filter.texts("tags")?,
            exclude: filter.flag("isExclude")?.unwrap_or(false),
        };
    }
    Ok(())
}

/// Maps a position number of SillyTavern. An unknown number gives the default, with a warning.
fn read_position(fields: &CardFields<'_>, key: &str, value: &Value) -> Result<EntryPosition> {
    let positions = [
        EntryPosition::BeforeChar,
        EntryPosition::AfterChar,
        EntryPosition::NoteTop,
        EntryPosition::NoteBottom,
        EntryPosition::AtDepth,
        EntryPosition::ExamplesBefore,
        EntryPosition::ExamplesAfter,
        EntryPosition::Outlet,
    ];
    match value {
        Value::Number(number) => {
            let position = number.as_u64().and_then(|number| positions.get(usize::try_from(number).ok()?));
            if position.is_none() {
                fields.warn(key, &format!("is {number}, which is not known; it goes before the character"));
            }
            Ok(position.copied().unwrap_or_default())
        }
        other => Err(fields.type_error(key, "a number from 0 to 7", other)),
    }
}
