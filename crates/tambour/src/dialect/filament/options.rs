//! Options of Filament.

use serde_json::Value;

use crate::error::{Error, Result};
use crate::html::HtmlMode;
use crate::options::{Options, Setting, SettingValues};
use crate::protocol::ProtocolRegistry;
use crate::structure::ExpectedStructure;

/// Options for reading Filament.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct FilamentOptions {
    /// Expected structure of replies, if one is configured (F-200) or follows from the active protocols
    /// (F-007).
    pub(super) structure: Option<ExpectedStructure>,
    /// Set if a thinking head is inserted only for a mandatory thought (F-201).
    pub(super) is_head_mandatory_only: bool,
    /// Set if all operations of a block are applied or none (F-113).
    pub(super) is_atomic: bool,
    /// Treatment of inline HTML that is not on the list of allowed elements (F-104).
    pub(super) html_mode: HtmlMode,
    /// Set if a list at the end of the content is offered as a choice (F-142).
    pub(super) finds_choices_in_text: bool,
    /// Views that the client can draw; `None` means all (F-133).
    pub(super) views: Option<Vec<String>>,
    /// View of the `ui_component` that HTML status bars become (F-140); `None` keeps them status bars.
    pub(super) status_view: Option<String>,
}

impl FilamentOptions {
    /// Returns whether the client can draw a view.
    pub(super) fn can_draw(&self, view: &str) -> bool {
        self.views.as_ref().is_none_or(|views| views.iter().any(|known_view| known_view == view))
    }
}

/// Settings of the dialect.
pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        name: "filament.structure",
        description: "the expected structure (F-200): an object of `mandatory`, `optional` and `dependency`",
        default: "",
        accepts: SettingValues::Json(|options, value| {
            let expected = ExpectedStructure::from_json(value)?;
            options.update_section(|filament: &mut FilamentOptions| filament.structure = Some(expected));
            Ok(())
        }),
    },
    Setting {
        name: "filament.protocols",
        description: "the active protocols (F-007): a list of their names; they give the structure and the instructions",
        default: "",
        accepts: SettingValues::Json(|options, value| {
            let ids = parse_words(value, "filament.protocols")?;
            let (expected, warnings) =
                ProtocolRegistry::builtin().expected_structure(ids.iter().map(String::as_str));
            if let Some(warning) = warnings.first() {
                return Err(Error::invalid(warning.message.clone()));
            }
            options.update_section(|filament: &mut FilamentOptions| filament.structure = Some(expected));
            Ok(())
        }),
    },
    Setting {
        name: "filament.missing_head",
        description: "text before all tags is thinking if the structure has a thought, or only if that is mandatory (F-201)",
        default: "structure",
        accepts: SettingValues::Choice(&["structure", "mandatory"], |options, choice_index| {
            options.update_section(|filament: &mut FilamentOptions| {
                filament.is_head_mandatory_only = choice_index == 1
            });
        }),
    },
    Setting {
        name: "filament.atomic",
        description: "either all operations of a block are applied or none (F-113)",
        default: "false",
        accepts: SettingValues::Flag(|options, on| {
            options.update_section(|filament: &mut FilamentOptions| filament.is_atomic = on)
        }),
    },
    Setting {
        name: "filament.html",
        description: "inline HTML that is not allowed is shown as text or removed (F-104)",
        default: "escape",
        accepts: SettingValues::Choice(&["escape", "strip"], |options, choice_index| {
            options.update_section(|filament: &mut FilamentOptions| {
                filament.html_mode = [HtmlMode::Escape, HtmlMode::Strip][choice_index]
            });
        }),
    },
    Setting {
        name: "filament.choices_from_text",
        description: "a list at the end of the text is offered as a choice (F-142)",
        default: "false",
        accepts: SettingValues::Flag(|options, on| {
            options.update_section(|filament: &mut FilamentOptions| filament.finds_choices_in_text = on)
        }),
    },
    Setting {
        name: "filament.views",
        description: "views of `ui_component` that the client can draw (F-133): a list; for others `fallback_text` is filled",
        default: "",
        accepts: SettingValues::Json(|options, value| {
            let views = parse_words(value, "filament.views")?;
            options.update_section(|filament: &mut FilamentOptions| filament.views = Some(views));
            Ok(())
        }),
    },
    Setting {
        name: "filament.status_view",
        description: "the view of `ui_component` that replaces status bars in HTML (F-140); absent: `status_bar`",
        default: "",
        accepts: SettingValues::Text(|options, view| {
            options.update_section(|filament: &mut FilamentOptions| filament.status_view = Some(view));
        }),
    },
];

/// Parses a list of words: a JSON array or, as on the command line, a text separated by commas.
fn parse_words(value: &Value, name: &str) -> Result<Vec<String>> {
    let invalid_list = || Error::invalid(format!("option `{name}` must be a list of names, not `{value}`"));
    match value {
        Value::String(text) => {
            Ok(text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect())
        }
        Value::Array(list) => {
            list.iter().map(|word| word.as_str().map(str::to_owned).ok_or_else(invalid_list)).collect()
        }
        _ => Err(invalid_list()),
    }
}

/// Returns the options of this dialect.
pub(super) fn filament_options(options: &Options) -> FilamentOptions {
    options.section()
}
