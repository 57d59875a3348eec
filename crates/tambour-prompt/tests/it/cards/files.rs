//! Cards in their containers, and their export as V3 JSON (F-013).

use serde_json::{Value, json};
use tambour::limits::ImportLimits;
use tambour_prompt::card::{ImportedFileKind, import_file};

use super::{png_chunk, png_file, read_bytes, read_value, v2_card, zip_file};

#[test]
fn a_picture_holds_a_card_and_the_newer_one_counts() {
    let old_card = v2_card(&json!({"description": "old"})).to_string();
    let new_card =
        json!({"spec": "chara_card_v3", "spec_version": "3.0", "data": {"name": "Mia", "description": "新"}})
            .to_string();
    // F-013
    let card = read_bytes(&png_file(&[("chara", &old_card)])).expect("a card").card.expect("a card");
    assert_eq!(card.description, "old");
    for texts in
        [[("chara", &*old_card), ("ccv3", &*new_card)], [("ccv3", &*new_card), ("Chara", &*old_card)]]
    {
        let imported = read_bytes(&png_file(&texts)).expect("a card");
        assert_eq!((imported.version.as_str(), &*imported.card.expect("a card").description), ("v3", "新"));
    }
    // Keywords in another letter case.
    assert_eq!(read_bytes(&png_file(&[("CHARA", &old_card)])).expect("a card").name, "Mia");
    let error = read_bytes(&png_file(&[("comment", "hi")])).expect_err("no card");
    assert!(error.contains("case.json") && error.contains("chara"), "{error}");
}

#[test]
fn an_archive_holds_a_card_also_behind_a_picture() {
    let card = v2_card(&json!({"description": "in a zip"})).to_string();
    let archive =
        zip_file(&[(b"assets/icon/images/a.png", b"x", None), (b"card.json", card.as_bytes(), None)]);
    // F-013
    let imported = read_bytes(&archive).expect("a card");
    assert_eq!(imported.card.as_ref().map(|card| &*card.description), Some("in a zip"));
    assert!(
        imported.warnings.iter().any(|warning| warning.contains("1 other files")),
        "{:?}",
        imported.warnings
    );
    let picture = [b"\xff\xd8\xff\xe0 a picture".as_slice(), &archive].concat();
    assert_eq!(read_bytes(&picture).expect("a card").name, "Mia");
    // A deflated entry.
    let packed = miniz_oxide::deflate::compress_to_vec(card.as_bytes(), 6);
    let mut archive = zip_file(&[(b"card.json", &packed, Some(u32::try_from(card.len()).unwrap()))]);
    let crc = crc32fast::hash(card.as_bytes()).to_le_bytes();
    let packed_crc = crc32fast::hash(&packed).to_le_bytes();
    for at in 0..archive.len() - 4 {
        if archive[at..at + 4] == packed_crc {
            archive[at..at + 4].copy_from_slice(&crc);
        }
        if &archive[at..at + 4] == b"PK\x03\x04" {
            archive[at + 8] = 8;
        }
        if &archive[at..at + 4] == b"PK\x01\x02" {
            archive[at + 10] = 8;
        }
    }
    assert_eq!(read_bytes(&archive).expect("a packed card").name, "Mia");
}

/// Collects the texts and numbers of a value.
fn leaves(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::Object(map) => map.values().for_each(|value| leaves(value, out)),
        Value::Array(items) => items.iter().for_each(|item| leaves(item, out)),
        Value::Null => {}
        other => out.push(other.to_string()),
    }
}

#[test]
fn a_card_goes_out_as_it_came_in() {
    let whole = json!({
        "spec": "chara_card_v3", "spec_version": "3.0",
        "data": {
            "name": "Mia", "description": "d", "personality": "p", "scenario": "s", "first_mes": "f", "mes_example": "<START>",
            "creator_notes": "n", "system_prompt": "s {{original}}", "post_history_instructions": "", "alternate_greetings": ["g"],
            "tags": ["t"], "creator": "c", "character_version": "1", "nickname": "M", "group_only_greetings": [],
            "creation_date": 1, "modification_date": 2, "source": ["https://example.org"],
            "assets": [{"type": "icon", "uri": "ccdefault:", "name": "main", "ext": "png", "more": 1}],
            "creator_notes_multilingual": {"de": "N"}, "unknown": {"deep": [1, {"x": null}]},
            "extensions": {"fav": true, "depth_prompt": {"prompt": "dp", "depth": 2, "role": "user"},
                "regex_scripts": [{"findRegex": "/(?<=a)b/g", "replaceString": "<script>"}], "tavern_helper": {"scripts": [1, 2]}},
            "character_book": {"name": "B", "extensions": {"k": 1}, "more": 2, "entries": [
                {"keys": ["a"], "content": "@@depth 3\nx", "extensions": {"position": 4, "odd": [true]}, "enabled": true,
                 "insertion_order": 1, "use_regex": false, "unknown": "u", "priority": 7}]},
        },
        "beside": [1],
    });
    let imported = read_value(&whole);
    // F-013: every field and extension
    assert_eq!(imported.export(), whole);
    assert_eq!(imported.warnings.len(), 2, "{:?}", imported.warnings);
    let second = read_value(&imported.export());
    assert_eq!((second.card, second.entries, second.book), (imported.card, imported.entries, imported.book));
}

#[test]
fn older_cards_and_other_books_go_out_as_v3_with_all_they_had() {
    let flat = json!({"name": "A", "description": "d", "first_mes": "f", "metadata": {"tool": "x"}, "char_persona": "q"});
    let entry = json!({"uid": 3, "key": ["k"], "keysecondary": ["s"], "comment": "T", "content": "@@activate\nc", "order": 7,
        "position": 4, "depth": 9, "role": 1, "selectiveLogic": 3, "probability": 33, "useProbability": true, "group": "g",
        "groupWeight": 12, "excludeRecursion": true, "sticky": 5, "outletName": "o", "automationId": "auto", "displayIndex": 4,
        "characterFilter": {"names": ["Z"], "tags": [], "isExclude": true}, "vectorized": true, "constant": true});
    let sillytavern = json!({"entries": {"3": entry}, "originalData": {"odd": 1}});
    let novel = json!({"lorebookVersion": 5, "settings": {"orderByKeyLocations": false}, "entries": [
        {"text": "T", "displayName": "D", "keys": ["k"], "enabled": true, "forceActivation": true, "searchRange": 1000,
         "contextConfig": {"budgetPriority": 4, "prefix": "pp"}}]});
    let agnai = json!({"kind": "memory", "name": "M", "_id": "id1", "entries": [
        {"name": "n", "entry": "E", "keywords": ["k1"], "weight": 7, "priority": 3, "enabled": false}]});
    let risu = json!({"type": "risu", "ver": 1, "data": [{"key": "a, b", "secondkey": "c", "content": "X", "alwaysActive": true,
        "selective": true, "insertorder": 9, "activationPercent": 25, "comment": "t", "mode": "normal", "extentions": {"q": "deep"}}]});
    for source in [flat, v2_card(&json!({"creator": "me"})), sillytavern, novel, agnai, risu] {
        let imported = read_value(&source);
        let out = imported.export();
        let spec = out["spec"].as_str().expect("a spec");
        assert_eq!(
            spec,
            if imported.kind == ImportedFileKind::Card { "chara_card_v3" } else { "lorebook_v3" }
        );
        let second = read_value(&out);
        // F-013
        assert_eq!(second.card, imported.card);
        let to_entries = |imported: &[tambour_prompt::lore::LoreEntry]| imported.to_vec();
        assert_eq!(to_entries(&second.entries), to_entries(&imported.entries), "{out}");
        let (mut source_leaves, mut exported_leaves) = (Vec::new(), Vec::new());
        leaves(&source, &mut source_leaves);
        leaves(&out, &mut exported_leaves);
        // Inverted flags of SillyTavern, lists as text, and numbers of positions are exported in another form.
        let converted = ["\"chara_card_v2\"", "\"2.0\"", "\"memory\"", "\"a, b\"", "false"];
        for leaf in source_leaves.iter().filter(|leaf| !converted.contains(&leaf.as_str())) {
            assert!(exported_leaves.contains(leaf), "{leaf} is lost in {out}");
        }
        assert_eq!(read_value(&out).export(), out, "a second time it stays");
    }
}

#[test]
fn a_preset_is_read_in_its_order() {
    let preset = json!({
        "openai_max_context": 4096, "openai_max_tokens": 300,
        "prompts": [
            {"identifier": "main", "name": "Main", "role": "system", "content": "Be {{char}}.", "system_prompt": true},
            {"identifier": "chatHistory", "name": "Chat", "marker": true},
            {"identifier": "off", "name": "Off", "role": "user", "content": "never"},
            {"identifier": "late", "name": "Late", "role": "user", "content": "at depth", "injection_position": 1, "injection_depth": 2},
        ],
        "prompt_order": [{"character_id": 100000, "order": []}, {"character_id": 100001, "order": [
            {"identifier": "main", "enabled": true}, {"identifier": "off", "enabled": false},
            {"identifier": "late", "enabled": true}, {"identifier": "chatHistory", "enabled": true}, {"identifier": "gone", "enabled": true}]}],
    });
    let imported = read_value(&preset);
    let items = imported.preset.as_ref().expect("a preset");
    assert_eq!(imported.kind, ImportedFileKind::Preset);
    assert_eq!(items.items.iter().map(|item| &*item.id).collect::<Vec<_>>(), ["main", "late", "chatHistory"]);
    assert_eq!((items.items[1].depth, items.max_context), (Some(2), Some(4096)));
    assert!(imported.warnings[0].contains("gone"), "{:?}", imported.warnings);
}

#[test]
fn a_broken_file_names_itself_and_the_field() {
    let cases = [
        (v2_card(&json!({"alternate_greetings": {"a": 1}})), "data.alternate_greetings"),
        (v2_card(&json!({"extensions": "x"})), "data.extensions"),
        (v2_card(&json!({"tags": [{"a": 1}]})), "data.tags[0]"),
        (
            v2_card(&json!({"character_book": {"entries": [{"keys": [1, []], "content": "c"}]}})),
            "data.character_book.entries[0].keys[1]",
        ),
        (v2_card(&json!({"character_book": {"entries": [7]}})), "data.character_book.entries[0]"),
        (v2_card(&json!({"character_book": {}})), "data.character_book.entries"),
        (
            v2_card(&json!({"extensions": {"depth_prompt": {"prompt": "x", "role": "king"}}})),
            "data.extensions.depth_prompt.role",
        ),
        (json!({"spec": "chara_card_v3", "data": {"description": "x"}}), "data.name"),
        (json!({"spec": "chara_card_v2", "data": [1]}), "data"),
        (json!({"entries": {"9": {"key": ["k"], "order": "first"}}}), "entries.9.order"),
        (json!({"type": "risu", "data": [{"key": 3}]}), "data[0].key"),
        (json!({"prompts": [{"identifier": "a", "role": 9}]}), "prompts[0].role"),
    ];
    for (value, field) in cases {
        let error = read_bytes(value.to_string().as_bytes()).expect_err(field);
        // F-013
        assert!(error.starts_with("case.json: ") && error.contains(&format!("`{field}`")), "{error}");
    }
    let mut card = png_file(&[("chara", "no card")]);
    assert!(read_bytes(&card).expect_err("no JSON").contains("not JSON"));
    card.truncate(card.len() / 2);
    assert!(read_bytes(&card).expect_err("cut off").contains("cut off"));
    let text =
        [b"\x89PNG\r\n\x1a\n".to_vec(), png_chunk(b"tEXt", b"chara\0!!!"), png_chunk(b"IEND", b"")].concat();
    assert!(read_bytes(&text).expect_err("no base64").contains("base64"));
    assert!(
        import_file("a.png", b"\xff\xd8\xff\xe0", &ImportLimits::default())
            .expect_err("JPEG")
            .to_string()
            .contains("PNG")
    );
}
