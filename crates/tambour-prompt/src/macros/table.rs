//! Table of the macros that are translated, with their rows in the specification.

/// Translation rule of one macro.
#[derive(Debug)]
pub(super) struct Rule {
    /// Names of the macro, in lower case.
    pub(super) names: &'static [&'static str],
    /// Row of the macro table, or `-` for macros outside of the table.
    pub(super) row: &'static str,
    /// Fewest and most arguments; the body of a scoped form counts as one.
    pub(super) least: usize,
    pub(super) most: usize,
    /// True if the macro may enclose text that becomes its last argument.
    pub(super) scoped: bool,
    /// True if everything after the name is one argument, as written.
    pub(super) raw: bool,
    pub(super) target: Target,
}

/// Jinja construct that a macro becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// An expression without arguments.
    Expression(&'static str),
    /// A call with the arguments as texts.
    Call(&'static str),
    If,
    Else,
    Set,
    SetGlobal,
    Random,
    Pick,
    Comment,
    Time,
    Format,
    Newline,
    Space,
    Trim,
    Noop,
    Reverse,
    Banned,
    Greeting,
    /// A variable of a Tavern-Helper scope, as text or as YAML.
    Scoped {
        scope: &'static str,
        yaml: bool,
    },
    /// Short forms `.name` and `$name`.
    Short,
}

use Target::{Call, Expression};

const fn rule(
    names: &'static [&'static str],
    row: &'static str,
    least: usize,
    most: usize,
    target: Target,
) -> Rule {
    Rule { names, row, least, most, scoped: most > 0 && most < usize::MAX, raw: false, target }
}

const fn raw(names: &'static [&'static str], row: &'static str, target: Target) -> Rule {
    Rule { names, row, least: 1, most: 1, scoped: false, raw: true, target }
}

const fn scope(name: &'static [&'static str], row: &'static str, scope: &'static str, yaml: bool) -> Rule {
    rule(name, row, 1, 1, Target::Scoped { scope, yaml })
}

/// Rules of all macros.
static RULES: &[Rule] = &[
    rule(&["user"], "M-001", 0, 0, Expression("user")),
    rule(&["char"], "M-002", 0, 0, Expression("char")),
    rule(&["if"], "M-006", 2, 2, Target::If),
    rule(&["else"], "M-006", 0, 0, Target::Else),
    Rule { least: 0, scoped: true, ..raw(&["//"], "M-017", Target::Comment) },
    Rule { scoped: true, ..rule(&["comment", "hidden_key"], "M-017", 0, usize::MAX, Target::Comment) },
    rule(&["group", "charifnotgroup"], "M-018", 0, 0, Expression("group")),
    rule(&["groupnotmuted"], "M-019", 0, 0, Expression("group | filter_not_muted")),
    rule(&["notchar"], "M-020", 0, 0, Expression("not_char")),
    rule(&["description", "chardescription"], "M-021", 0, 0, Expression("char.description")),
    rule(&["personality", "charpersonality"], "M-022", 0, 0, Expression("char.personality")),
    rule(&["persona"], "M-023", 0, 0, Expression("user.persona")),
    rule(&["scenario", "charscenario"], "M-024", 0, 0, Expression("char.scenario")),
    rule(&["charversion", "char_version", "version"], "M-025", 0, 0, Expression("char.version")),
    rule(&["charprompt"], "M-026", 0, 0, Expression("char.main_prompt")),
    rule(&["charjailbreak", "charinstruction"], "M-027", 0, 0, Expression("char.jailbreak")),
    rule(&["chardepthprompt"], "M-028", 0, 0, Expression("char.depth_prompt")),
    rule(&["creatornotes", "charcreatornotes"], "M-029", 0, 0, Expression("char.creator_notes")),
    rule(&["model"], "M-030", 0, 0, Expression("config.model")),
    rule(&["mesexamples"], "M-031", 0, 0, Expression("char.examples | format_examples")),
    rule(&["mesexamplesraw"], "M-032", 0, 0, Expression("char.examples_raw")),
    rule(&["lastmessage"], "M-033", 0, 0, Expression("history[-1].content")),
    rule(&["lastmessageid"], "M-034", 0, 0, Expression("history[-1].id")),
    rule(
        &["lastusermessage"],
        "M-035",
        0,
        0,
        Expression("(history | selectattr('role', 'equalto', 'user') | last).content"),
    ),
    rule(
        &["lastcharmessage"],
        "M-036",
        0,
        0,
        Expression("(history | selectattr('role', 'equalto', 'assistant') | last).content"),
    ),
    rule(&["firstincludedmessageid"], "M-037", 0, 0, Expression("context[0].id")),
    rule(&["firstdisplayedmessageid"], "M-038", 0, 0, Expression("display_context[0].id")),
    rule(&["lastswipeid"], "M-039", 0, 0, Expression("history[-1].swipe_count")),
    rule(&["currentswipeid"], "M-040", 0, 0, Expression("history[-1].current_swipe")),
    rule(&["lastgenerationtype"], "M-041", 0, 0, Expression("last_generation.type")),
    rule(&["allchatrange"], "-", 0, 0, Expression("('0-' ~ (history | length - 1) if history else '')")),
    rule(&["input"], "M-042", 0, 0, Expression("user_input")),
    rule(&["time"], "M-043", 0, 1, Target::Time),
    rule(&["date"], "M-044", 0, 0, Expression("now | date_format('LL')")),
    rule(&["weekday"], "M-045", 0, 0, Expression("now | date_format('dddd')")),
    rule(&["isotime"], "M-046", 0, 0, Expression("now | time_format('HH:mm')")),
    rule(&["isodate"], "M-047", 0, 0, Expression("now | date_format('YYYY-MM-DD')")),
    rule(&["datetimeformat"], "M-048", 1, 1, Target::Format),
    rule(&["idle_duration", "idleduration"], "M-050", 0, 0, Expression("idle_duration")),
    rule(&["timediff"], "M-051", 2, 2, Call("time_diff")),
    rule(&["getvar"], "M-052", 1, 1, Call("st_get")),
    rule(&["setvar"], "M-053", 2, 2, Target::Set),
    rule(&["addvar"], "M-054", 2, 2, Call("st_add")),
    rule(&["incvar"], "M-055", 1, 1, Call("st_inc")),
    rule(&["decvar"], "M-056", 1, 1, Call("st_dec")),
    rule(&["getglobalvar"], "M-057", 1, 1, Call("st_get_global")),
    rule(&["setglobalvar"], "M-058", 2, 2, Target::SetGlobal),
    rule(&["addglobalvar"], "M-059", 2, 2, Call("st_add_global")),
    rule(&["incglobalvar"], "M-060", 1, 1, Call("st_inc_global")),
    rule(&["decglobalvar"], "M-061", 1, 1, Call("st_dec_global")),
    rule(&["newline"], "M-063", 0, 1, Target::Newline),
    rule(&["space"], "-", 0, 1, Target::Space),
    rule(&["trim"], "M-064", 0, 1, Target::Trim),
    rule(&["noop"], "M-065", 0, 0, Target::Noop),
    rule(&["random"], "M-067", 0, usize::MAX, Target::Random),
    rule(&["pick"], "M-068", 0, usize::MAX, Target::Pick),
    rule(&["roll"], "M-069", 1, 1, Call("roll")),
    rule(&["reverse"], "M-070", 1, 1, Target::Reverse),
    rule(&["banned"], "M-071", 1, 1, Target::Banned),
    rule(&["ismobile"], "M-072", 0, 0, Expression("is_mobile")),
    rule(&["outlet"], "M-073", 1, 1, Call("outlet")),
    rule(
        &["maxprompt", "maxprompttokens", "maxcontext", "maxcontexttokens"],
        "M-074",
        0,
        0,
        Expression("config.max_context"),
    ),
    rule(&["maxresponse", "maxresponsetokens"], "-", 0, 0, Expression("config.max_response")),
    rule(&["pipe"], "M-075", 0, 0, Expression("pipe_result")),
    rule(&["anchorbefore"], "M-076", 0, 0, Expression("anchor_before")),
    rule(&["anchorafter"], "M-077", 0, 0, Expression("anchor_after")),
    rule(&["wibefore", "lorebefore"], "M-078", 0, 0, Expression("lore_before")),
    rule(&["wiafter", "loreafter"], "M-079", 0, 0, Expression("lore_after")),
    rule(&["system"], "M-080", 0, 0, Expression("system_prompt")),
    rule(
        &["instructsystemprompt", "instructsystem", "defaultsystemprompt", "systemprompt"],
        "M-081",
        0,
        0,
        Expression("instruct.system_prompt"),
    ),
    rule(&["instructuserprefix", "instructinput"], "M-082", 0, 0, Expression("instruct.user_prefix")),
    rule(&["instructusersuffix"], "M-083", 0, 0, Expression("instruct.user_suffix")),
    rule(
        &["instructassistantprefix", "instructoutput"],
        "M-084",
        0,
        0,
        Expression("instruct.assistant_prefix"),
    ),
    rule(
        &["instructassistantsuffix", "instructseparator"],
        "M-085",
        0,
        0,
        Expression("instruct.assistant_suffix"),
    ),
    rule(&["instructsystemprefix"], "-", 0, 0, Expression("instruct.system_prefix")),
    rule(&["instructsystemsuffix"], "-", 0, 0, Expression("instruct.system_suffix")),
    rule(&["instructstop"], "-", 0, 0, Expression("instruct.stop")),
    rule(&["instructuserfiller"], "-", 0, 0, Expression("instruct.user_filler")),
    rule(&["instructstorystringprefix"], "-", 0, 0, Expression("instruct.story_string_prefix")),
    rule(&["instructstorystringsuffix"], "-", 0, 0, Expression("instruct.story_string_suffix")),
    rule(&["exampleseparator", "chatseparator"], "-", 0, 0, Expression("config.example_separator")),
    rule(&["chatstart"], "-", 0, 0, Expression("config.chat_start")),
    scope(&["get_message_variable"], "M-086", "message", false),
    scope(&["get_chat_variable"], "M-087", "chat", false),
    scope(&["get_character_variable"], "M-088", "character", false),
    scope(&["get_preset_variable"], "M-089", "preset", false),
    scope(&["get_global_variable"], "M-090", "global", false),
    scope(&["format_message_variable"], "M-091", "message", true),
    scope(&["format_chat_variable"], "M-092", "chat", true),
    scope(&["format_character_variable"], "M-093", "character", true),
    scope(&["format_preset_variable"], "M-094", "preset", true),
    scope(&["format_global_variable"], "M-095", "global", true),
    rule(&["useravatar", "useravatarpath"], "M-096", 0, 0, Expression("user.avatar_path")),
    rule(&["charavatar", "charavatarpath"], "-", 0, 0, Expression("char.avatar_path")),
    rule(&["original"], "-", 0, 0, Expression("st_original()")),
    rule(&["greeting", "charfirstmessage"], "-", 0, 1, Target::Greeting),
    rule(&["hasvar", "varexists"], "-", 1, 1, Call("st_has")),
    rule(&["deletevar", "flushvar"], "-", 1, 1, Call("st_delete")),
    rule(&["hasglobalvar", "globalvarexists"], "-", 1, 1, Call("st_has_global")),
    rule(&["deleteglobalvar", "flushglobalvar"], "-", 1, 1, Call("st_delete_global")),
    rule(&["setvarkey", "setvarindex"], "-", 3, 3, Call("st_set_key")),
    rule(&["getvarkey", "getvarindex"], "-", 2, 2, Call("st_get_key")),
    rule(&["setglobalvarkey", "setglobalvarindex"], "-", 3, 3, Call("st_set_global_key")),
    rule(&["getglobalvarkey", "getglobalvarindex"], "-", 2, 2, Call("st_get_global_key")),
    // Extensions do not exist here.
    rule(&["hasextension"], "-", 1, 1, Expression("'false'")),
    raw(&["."], "-", Target::Short),
    raw(&["$"], "-", Target::Short),
];

impl Rule {
    /// Returns true if the macro, given `args` arguments, can enclose text as its last one.
    pub(super) fn opens(&self, args: usize) -> bool {
        let room = args + 1 >= self.least && args < self.most;
        // A comment with an argument is complete.
        self.scoped && room && (self.target != Target::Comment || args == 0)
    }
}

/// Returns the rule for a name, in any letter case.
pub(super) fn find(name: &str) -> Option<&'static Rule> {
    // No name is longer; the check also avoids comparing long texts.
    if name.is_empty() || name.len() > 32 {
        return None;
    }
    let known = |rule: &&Rule| rule.names.iter().any(|known| known.eq_ignore_ascii_case(name));
    RULES.iter().find(known)
}

/// Returns the byte length of the name at the beginning of `text`: letters of any script, digits, `_` and
/// inner `-`.
pub(super) fn name_length(text: &str) -> usize {
    if !text.starts_with(|c: char| c == '_' || unicode_ident::is_xid_start(c)) {
        return 0;
    }
    let end = text.find(|c: char| c != '-' && !unicode_ident::is_xid_continue(c)).unwrap_or(text.len());
    text[..end].trim_end_matches('-').len()
}

/// Returns true if `text` is a name in both macros and Jinja.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.contains('-') && name_length(text) == text.len()
}

/// Returns the offset in `time_UTC+2`: sign and digits.
pub(super) fn utc<'t>(name: &str, rest: &'t str) -> Option<&'t str> {
    if !name.eq_ignore_ascii_case("time_utc") || !rest.starts_with(['+', '-']) {
        return None;
    }
    let digits = rest[1..].bytes().take_while(u8::is_ascii_digit).count();
    let behind = rest[1 + digits..].trim_start();
    let ends = behind.is_empty() || behind.starts_with("}}");
    ((1..=4).contains(&digits) && ends).then_some(&rest[..1 + digits])
}
