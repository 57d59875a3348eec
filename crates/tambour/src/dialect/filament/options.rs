//! Options of Filament.

use serde_json::Value;

use crate::error::{Error, Result};
use crate::html::Mode;
use crate::options::{Options, Set, Setting};
use crate::protocol::Registry;
use crate::structure::Expected;

/// Options for reading Filament.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct FilamentOptions {
    /// Expected structure of replies, if given (F-200).
    pub(super) structure: Option<Expected>,
    /// Active protocols; the instructions are made from them.
    pub(super) protocols: Option<Vec<String>>,
    /// Set if a thinking head is inserted only for a mandatory thought (F-201).
    pub(super) mandatory_head: bool,
    /// Set if all operations of a block are applied or none (F-113).
    pub(super) atomic: bool,
    /// Treatment of markup that is not on the list (F-104).
    pub(super) html: Mode,
    /// Set if a list at the end of the text is offered as a choice (F-142).
    pub(super) choices_from_text: bool,
    /// Views that the client can draw; `None` means all (F-133).
    pub(super) views: Option<Vec<String>>,
    /// View that HTML status bars become (F-140).
    pub(super) status_view: Option<String>,
}

impl FilamentOptions {
    /// Returns whether the client can draw a view.
    pub(super) fn draws(&self, view: &str) -> bool {
        self.views.as_ref().is_none_or(|views| views.iter().any(|known| known == view))
    }
}

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        name: "filament.structure",
        about: "the expected structure (F-200): an object of `mandatory`, `optional` and `dependency`",
        default: "",
        set: Set::Json(|options, value| {
            let expected = Expected::from_json(value)?;
            options.change(|own: &mut FilamentOptions| own.structure = Some(expected));
            Ok(())
        }),
    },
    Setting {
        name: "filament.protocols",
        about: "the active protocols (F-007): a list of their names; they give the structure and the instructions",
        default: "",
        set: Set::Json(|options, value| {
            let ids = words(value, "filament.protocols")?;
            let (expected, warnings) = Registry::builtin().expected(ids.iter().map(String::as_str));
            if let Some(warning) = warnings.first() {
                return Err(Error::invalid(warning.message.clone()));
            }
            options.change(|own: &mut FilamentOptions| {
                own.structure = Some(expected);
                own.protocols = Some(ids);
            });
            Ok(())
        }),
    },
    Setting {
        name: "filament.missing_head",
        about: "text before all tags is thinking if the structure has a thought, or only if that is mandatory (F-201)",
        default: "structure",
        set: Set::Word(&["structure", "mandatory"], |options, at| {
            options.change(|own: &mut FilamentOptions| own.mandatory_head = at == 1);
        }),
    },
    Setting {
        name: "filament.atomic",
        about: "all operations of a block are carried out or none (F-113)",
        default: "false",
        set: Set::Flag(|options, on| options.change(|own: &mut FilamentOptions| own.atomic = on)),
    },
    Setting {
        name: "filament.html",
        about: "inline HTML that is not on the list is shown as text, or taken out (F-104)",
        default: "escape",
        set: Set::Word(&["escape", "strip"], |options, at| {
            options.change(|own: &mut FilamentOptions| own.html = [Mode::Escape, Mode::Strip][at]);
        }),
    },
    Setting {
        name: "filament.choices_from_text",
        about: "a list at the end of the text is offered as a choice (F-142)",
        default: "false",
        set: Set::Flag(|options, on| options.change(|own: &mut FilamentOptions| own.choices_from_text = on)),
    },
    Setting {
        name: "filament.views",
        about: "views of `ui_component` that the client can draw (F-133): a list; for others `fallback_text` is filled",
        default: "",
        set: Set::Json(|options, value| {
            let views = words(value, "filament.views")?;
            options.change(|own: &mut FilamentOptions| own.views = Some(views));
            Ok(())
        }),
    },
    Setting {
        name: "filament.status_view",
        about: "the view of `ui_component` that status bars in HTML become (F-140); absent: `status_bar`",
        default: "",
        set: Set::Text(|options, view| {
            options.change(|own: &mut FilamentOptions| own.status_view = Some(view));
        }),
    },
];

/// Parses a list of words; on the command line also one separated by commas.
fn words(value: &Value, name: &str) -> Result<Vec<String>> {
    let wrong = || Error::invalid(format!("option `{name}` is a list of names, not `{value}`"));
    match value {
        Value::String(text) => {
            Ok(text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect())
        }
        Value::Array(list) => {
            list.iter().map(|word| word.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
        }
        _ => Err(wrong()),
    }
}

/// Returns the options of this dialect.
pub(super) fn of(options: &Options) -> FilamentOptions {
    options.of()
}
