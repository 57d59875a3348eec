//! Options for reading the answer of a dialogue round.

use crate::options::{Options, Setting, SettingValues};
use crate::texts::Language;

/// Options of this dialect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RoundOptions {
    /// Key of the message; `None` means the key of the texts' language (S-052).
    pub(super) role: Option<String>,
    /// Additional keys that mark an object as an answer.
    pub(super) answer_keys: &'static [&'static str],
}

pub(super) const SETTINGS: &[Setting] = &[Setting {
    name: "ai_say.role",
    description: "key of the message in `response` (S-052); else `咨询师` or `counsellor`, by the language of the texts",
    default: "",
    accepts: SettingValues::Text(|options, role| {
        options.update_section(|own: &mut RoundOptions| own.role = Some(role))
    }),
}];

/// Default keys of the message, by language.
const ROLES: [(Language, &str); 2] = [(Language::Zh, "咨询师"), (Language::En, "counsellor")];

/// The key that S-052 names; it is accepted in texts of any language.
pub(super) const SPEC_ROLE: &str = ROLES[0].1;

/// Returns the key of the message when none is configured.
pub(super) fn default_role(options: &Options) -> &'static str {
    let is_of_language = |&&(language, _): &&(Language, &str)| language == options.texts.language;
    ROLES.iter().find(is_of_language).unwrap_or(&ROLES[0]).1
}

/// Returns the key of the message.
pub fn role(options: &Options) -> String {
    options.section::<RoundOptions>().role.unwrap_or_else(|| default_role(options).to_owned())
}

/// Makes objects with these top-level keys count as answers too.
pub fn add_answer_keys(options: &mut Options, keys: &'static [&'static str]) {
    options.update_section(|section: &mut RoundOptions| section.answer_keys = keys);
}

/// Returns the additional keys that mark an object as an answer.
pub(super) fn answer_keys(options: &Options) -> &'static [&'static str] {
    options.section::<RoundOptions>().answer_keys
}

/// Returns the keys under which the message is accepted, preferred first; if none is configured, those of all
/// languages.
pub fn roles(options: &Options) -> Vec<String> {
    match options.section::<RoundOptions>().role {
        Some(role) => vec![role],
        None => {
            let main_role = default_role(options);
            let other_roles = ROLES.iter().map(|(_, role)| *role).filter(|role| *role != main_role);
            std::iter::once(main_role).chain(other_roles).map(str::to_owned).collect()
        }
    }
}
