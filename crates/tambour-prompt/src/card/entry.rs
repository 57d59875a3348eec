//! Converts entries of each file layout to their normal form.

use serde_json::Value;

use tambour::error::Result;

use super::super::lore::{Entry, Filter, Logic, Position, Source};
use super::fields::{Fields, split_keys};
use super::model::role;

/// Field names that differ between two layouts with the same fields.
pub(super) struct Names {
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
    /// Names of the character texts, in the order of [`Source::ALL`].
    sources: [&'static str; 6],
}

/// Names in a SillyTavern file.
pub(super) const CAMEL: Names = Names {
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
pub(super) const SNAKE: Names = Names {
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

impl Names {
    /// Returns all names in a fixed order.
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
pub(super) fn sillytavern(fields: &Fields<'_>) -> Result<Entry> {
    let mut entry = Entry {
        id: id(fields, &["uid"])?,
        title: fields.text("comment")?,
        keys: fields.keys("key")?,
        secondary_keys: fields.keys("keysecondary")?,
        selective: fields.flag("selective")?.unwrap_or(true),
        content: fields.text("content")?,
        enabled: !fields.flag("disable")?.unwrap_or(false),
        order: fields.whole("order")?.unwrap_or(100),
        constant: fields.flag("constant")?.unwrap_or(false),
        ..Entry::default()
    };
    shared(&mut entry, fields, &CAMEL)?;
    if fields.get(CAMEL.filter).is_none() {
        entry.filter = Filter {
            names: fields.texts("characterFilterNames")?,
            tags: fields.texts("characterFilterTags")?,
            exclude: fields.flag("characterFilterExclude")?.unwrap_or(false),
        };
    }
    Ok(entry)
}

/// Reads an entry of a book in a card, of such a book saved alone, or of a V3 file.
pub(super) fn embedded(fields: &Fields<'_>) -> Result<Entry> {
    let (name, comment) = (fields.text("name")?, fields.text("comment")?);
    let mut entry = Entry {
        id: id(fields, &["id", "uid"])?,
        title: if name.is_empty() { comment } else { name },
        keys: fields.keys("keys")?,
        secondary_keys: fields.keys("secondary_keys")?,
        selective: fields.flag("selective")?.unwrap_or(false),
        content: fields.text("content")?,
        enabled: fields.flag("enabled")?.unwrap_or(true),
        order: fields.whole("insertion_order")?.unwrap_or(100),
        constant: fields.flag("constant")?.unwrap_or(false),
        regex: fields.flag("use_regex")?.unwrap_or(false),
        priority: fields.whole("priority")?.unwrap_or(0),
        ..Entry::default()
    };
    match fields.get("position") {
        Some(Value::String(position)) => match position.as_str() {
            "before_char" | "" => {}
            "after_char" => entry.position = Position::AfterChar,
            other => fields
                .warn("position", &format!("is `{other}`, which is not known; it goes before the character")),
        },
        Some(value @ Value::Number(_)) => entry.position = place(fields, "position", value)?,
        Some(other) => return Err(fields.wrong("position", "before_char or after_char", other)),
        None => {}
    }
    if let Some(extensions) = fields.object("extensions")? {
        let path = fields.name("extensions");
        let extensions = Fields::new(fields.file, extensions, &path);
        shared(&mut entry, &extensions, &SNAKE)?;
    }
    if let Some(case) = fields.flag("case_sensitive")? {
        entry.case_sensitive = Some(case);
    }
    Ok(entry)
}

/// Reads an entry of NovelAI.
pub(super) fn novelai(fields: &Fields<'_>) -> Result<Entry> {
    let order = match fields.object("contextConfig")? {
        None => None,
        Some(map) => Fields::new(fields.file, map, &fields.name("contextConfig")).whole("budgetPriority")?,
    };
    Ok(Entry {
        id: id(fields, &["id"])?,
        title: fields.text("displayName")?,
        keys: fields.keys("keys")?,
        content: fields.text("text")?,
        enabled: fields.flag("enabled")?.unwrap_or(true),
        constant: fields.flag("forceActivation")?.unwrap_or(false),
        order: order.unwrap_or(100),
        ..Entry::default()
    })
}

/// Reads an entry of Agnai.
pub(super) fn agnai(fields: &Fields<'_>) -> Result<Entry> {
    Ok(Entry {
        title: fields.text("name")?,
        keys: fields.keys("keywords")?,
        content: fields.text("entry")?,
        enabled: fields.flag("enabled")?.unwrap_or(true),
        order: fields.whole("weight")?.unwrap_or(100),
        priority: fields.whole("priority")?.unwrap_or(0),
        ..Entry::default()
    })
}

/// Reads an entry of RisuAI.
pub(super) fn risu(fields: &Fields<'_>) -> Result<Entry> {
    let folder = fields.text("mode")? == "folder";
    if folder {
        fields.warn("mode", "is `folder`: it is kept and never active");
    }
    Ok(Entry {
        id: id(fields, &["id"])?,
        title: fields.text("comment")?,
        keys: split_keys(&fields.text("key")?),
        secondary_keys: split_keys(&fields.text("secondkey")?),
        selective: fields.flag("selective")?.unwrap_or(false),
        content: fields.text("content")?,
        enabled: !folder,
        constant: fields.flag("alwaysActive")?.unwrap_or(false),
        regex: fields.flag("useRegex")?.unwrap_or(false),
        order: fields.whole("insertorder")?.unwrap_or(100),
        probability: fields.number("activationPercent")?.unwrap_or(100.0).clamp(0.0, 100.0),
        ..Entry::default()
    })
}

fn id(fields: &Fields<'_>, keys: &[&'static str]) -> Result<String> {
    match fields.first(keys).map(|key| (key, fields.get(key))) {
        Some((_, Some(Value::Number(number)))) => Ok(number.to_string()),
        Some((key, Some(_))) => fields.text(key),
        _ => Ok(String::new()),
    }
}

fn shared(entry: &mut Entry, fields: &Fields<'_>, names: &Names) -> Result<()> {
    if let Some(value) = fields.get("position") {
        entry.position = place(fields, "position", value)?;
    }
    if let Some(logic) = fields.count(names.logic)? {
        entry.logic = match logic {
            0 => Logic::AndAny,
            1 => Logic::NotAll,
            2 => Logic::NotAny,
            3 => Logic::AndAll,
            other => {
                fields.warn(
                    names.logic,
                    &format!("is {other}, which is not known; one of the secondary keys is enough"),
                );
                Logic::AndAny
            }
        };
    }
    if let Some(value) = fields.get("role") {
        entry.role = role(value).ok_or_else(|| fields.wrong("role", "0, 1 or 2", value))?;
    }
    entry.depth = fields.count("depth")?.unwrap_or(entry.depth);
    let probability = fields.number("probability")?.unwrap_or(100.0).clamp(0.0, 100.0);
    // Without the flag, the probability has no effect.
    entry.probability = if fields.flag(names.use_probability)?.unwrap_or(true) { probability } else { 100.0 };
    entry.group = fields.listed("group")?;
    entry.group_override = fields.flag(names.group_override)?.unwrap_or(false);
    entry.group_weight = fields.number(names.group_weight)?.unwrap_or(100.0).max(0.0);
    entry.group_scoring = fields.flag(names.group_scoring)?;
    entry.exclude_recursion = fields.flag(names.exclude_recursion)?.unwrap_or(false);
    entry.prevent_recursion = fields.flag(names.prevent_recursion)?.unwrap_or(false);
    entry.delay_until_recursion = match fields.get(names.delay_until_recursion) {
        Some(Value::Bool(delayed)) => u32::from(*delayed),
        _ => fields.count(names.delay_until_recursion)?.unwrap_or(0),
    };
    entry.sticky = fields.count("sticky")?.unwrap_or(0);
    entry.cooldown = fields.count("cooldown")?.unwrap_or(0);
    entry.delay = fields.count("delay")?.unwrap_or(0);
    entry.scan_depth = fields.count(names.scan_depth)?;
    entry.whole_words = fields.flag(names.whole_words)?;
    entry.case_sensitive = fields.flag(names.case_sensitive)?;
    entry.outlet = fields.text(names.outlet)?;
    for (source, name) in Source::ALL.into_iter().zip(names.sources) {
        if fields.flag(name)?.unwrap_or(false) {
            entry.sources.push(source);
        }
    }
    entry.ignore_budget = fields.flag(names.ignore_budget)?.unwrap_or(false);
    entry.triggers = fields.texts("triggers")?;
    if let Some(filter) = fields.object(names.filter)? {
        let path = fields.name(names.filter);
        let filter = Fields::new(fields.file, filter, &path);
        entry.filter = Filter {
            names: filter.texts("names")?,
            tags: filter.texts("tags")?,
            exclude: filter.flag("isExclude")?.unwrap_or(false),
        };
    }
    Ok(())
}

/// Maps a SillyTavern position number to a position.
fn place(fields: &Fields<'_>, key: &str, value: &Value) -> Result<Position> {
    let places = [
        Position::BeforeChar,
        Position::AfterChar,
        Position::NoteTop,
        Position::NoteBottom,
        Position::AtDepth,
        Position::ExamplesBefore,
        Position::ExamplesAfter,
        Position::Outlet,
    ];
    match value {
        Value::Number(number) => {
            let place = number.as_u64().and_then(|number| places.get(usize::try_from(number).ok()?));
            if place.is_none() {
                fields.warn(key, &format!("is {number}, which is not known; it goes before the character"));
            }
            Ok(place.copied().unwrap_or_default())
        }
        other => Err(fields.wrong(key, "a number from 0 to 7", other)),
    }
}
