//! Table of the macros that are translated, with their rows in the specification.

/// Translation rule of one macro.
#[derive(Debug)]
pub(super) struct MacroRule {
    /// Names of the macro, in lower case.
    pub(super) names: &'static [&'static str],
    /// Row of the specification's macro table, or `-` for macros outside of it.
    pub(super) row: &'static str,
    /// Minimum number of arguments. The body of a scoped form, `{{name}}…{{/name}}`, counts as one.
    pub(super) min_args: usize,
    /// Maximum number of arguments, counted in the same way.
    pub(super) max_args: usize,
    /// True if the macro may enclose text that becomes its last argument.
    pub(super) is_scopable: bool,
    /// True if everything after the name is one argument, as written.
    pub(super) is_raw: bool,
    pub(super) target: MacroTarget,
}

/// Jinja construct that a macro becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MacroTarget {
    /// This expression, whatever the arguments.
    Expression(&'static str),
    /// Call of this function with the arguments as texts.
    Call(&'static str),
    /// Condition.
    If,
    /// `else` of a condition.
    Else,
    /// Assignment of a variable.
    Set,
    /// Assignment of a global variable.
    SetGlobal,
    /// Random choice, made anew each time.
    Random,
    /// Random choice that stays the same in a chat.
    Pick,
    /// Comment.
    Comment,
    /// Time of day.
    Time,
    /// Date in the format of the argument.
    Format,
    /// Line breaks.
    Newline,
    /// Blanks.
    Space,
    /// Removal of line breaks around the macro, or of white space around its body.
    Trim,
    /// Nothing.
    Noop,
    /// Reversed text.
    Reverse,
    /// Request to ban a word.
    Banned,
    /// Greeting of the character.
    Greeting,
    /// Variable of a Tavern-Helper scope, as text or as YAML.
    ScopeVariable { scope: &'static str, is_yaml: bool },
    /// Short forms for variables: `.name`, and `$name` for a global one.
    Short,
}

use MacroTarget::{Call, Expression};

/// Creates a rule. A macro that takes a limited number of arguments may have a body in place of the last one.
const fn new_rule(
    names: &'static [&'static str],
    row: &'static str,
    min_args: usize,
    max_args: usize,
    target: MacroTarget,
) -> MacroRule {
    MacroRule {
        names,
        row,
        min_args,
        max_args,
        is_scopable: max_args > 0 && max_args < usize::MAX,
        is_raw: false,
        target,
    }
}

/// Creates the rule of a macro whose argument is everything after its name.
const fn raw_rule(names: &'static [&'static str], row: &'static str, target: MacroTarget) -> MacroRule {
    MacroRule { names, row, min_args: 1, max_args: 1, is_scopable: false, is_raw: true, target }
}

/// Creates the rule of a macro that prints a variable of a scope as text.
const fn scope_rule(names: &'static [&'static str], row: &'static str, scope: &'static str) -> MacroRule {
    new_rule(names, row, 1, 1, MacroTarget::ScopeVariable { scope, is_yaml: false })
}

/// Creates the rule of a macro that prints a variable of a scope as YAML.
const fn scope_yaml_rule(
    names: &'static [&'static str],
    row: &'static str,
    scope: &'static str,
) -> MacroRule {
    new_rule(names, row, 1, 1, MacroTarget::ScopeVariable { scope, is_yaml: true })
}

/// Rules of all macros.
static RULES: &[MacroRule] = &[
    new_rule(&["user"], "M-001", 0, 0, Expression("user")),
    new_rule(&["char"], "M-002", 0, 0, Expression("char")),
    new_rule(&["if"], "M-006", 2, 2, MacroTarget::If),
    new_rule(&["else"], "M-006", 0, 0, MacroTarget::Else),
    MacroRule { min_args: 0, is_scopable: true, ..raw_rule(&["//"], "M-017", MacroTarget::Comment) },
    MacroRule {
        is_scopable: true,
        ..new_rule(&["comment", "hidden_key"], "M-017", 0, usize::MAX, MacroTarget::Comment)
    },
    new_rule(&["group", "charifnotgroup"], "M-018", 0, 0, Expression("group")),
    new_rule(&["groupnotmuted"], "M-019", 0, 0, Expression("group | filter_not_muted")),
    new_rule(&["notchar"], "M-020", 0, 0, Expression("not_char")),
    new_rule(&["description", "chardescription"], "M-021", 0, 0, Expression("char.description")),
    new_rule(&["personality", "charpersonality"], "M-022", 0, 0, Expression("char.personality")),
    new_rule(&["persona"], "M-023", 0, 0, Expression("user.persona")),
    new_rule(&["scenario", "charscenario"], "M-024", 0, 0, Expression("char.scenario")),
    new_rule(&["charversion", "char_version", "version"], "M-025", 0, 0, Expression("char.version")),
    new_rule(&["charprompt"], "M-026", 0, 0, Expression("char.main_prompt")),
    new_rule(&["charjailbreak", "charinstruction"], "M-027", 0, 0, Expression("char.jailbreak")),
    new_rule(&["chardepthprompt"], "M-028", 0, 0, Expression("char.depth_prompt")),
    new_rule(&["creatornotes", "charcreatornotes"], "M-029", 0, 0, Expression("char.creator_notes")),
    new_rule(&["model"], "M-030", 0, 0, Expression("config.model")),
    new_rule(&["mesexamples"], "M-031", 0, 0, Expression("char.examples | format_examples")),
    new_rule(&["mesexamplesraw"], "M-032", 0, 0, Expression("char.examples_raw")),
    new_rule(&["lastmessage"], "M-033", 0, 0, Expression("history[-1].content")),
    new_rule(&["lastmessageid"], "M-034", 0, 0, Expression("history[-1].id")),
    new_rule(
        &["lastusermessage"],
        "M-035",
        0,
        0,
        Expression("(history | selectattr('role', 'equalto', 'user') | last).content"),
    ),
    new_rule(
        &["lastcharmessage"],
        "M-036",
        0,
        0,
        Expression("(history | selectattr('role', 'equalto', 'assistant') | last).content"),
    ),
    new_rule(&["firstincludedmessageid"], "M-037", 0, 0, Expression("context[0].id")),
    new_rule(&["firstdisplayedmessageid"], "M-038", 0, 0, Expression("display_context[0].id")),
    new_rule(&["lastswipeid"], "M-039", 0, 0, Expression("history[-1].swipe_count")),
    new_rule(&["currentswipeid"], "M-040", 0, 0, Expression("history[-1].current_swipe")),
    new_rule(&["lastgenerationtype"], "M-041", 0, 0, Expression("last_generation.type")),
    new_rule(&["allchatrange"], "-", 0, 0, Expression("('0-' ~ (history | length - 1) if history else '')")),
    new_rule(&["input"], "M-042", 0, 0, Expression("user_input")),
    new_rule(&["time"], "M-043", 0, 1, MacroTarget::Time),
    new_rule(&["date"], "M-044", 0, 0, Expression("now | date_format('LL')")),
    new_rule(&["weekday"], "M-045", 0, 0, Expression("now | date_format('dddd')")),
    new_rule(&["isotime"], "M-046", 0, 0, Expression("now | time_format('HH:mm')")),
    new_rule(&["isodate"], "M-047", 0, 0, Expression("now | date_format('YYYY-MM-DD')")),
    new_rule(&["datetimeformat"], "M-048", 1, 1, MacroTarget::Format),
    new_rule(&["idle_duration", "idleduration"], "M-050", 0, 0, Expression("idle_duration")),
    new_rule(&["timediff"], "M-051", 2, 2, Call("time_diff")),
    new_rule(&["getvar"], "M-052", 1, 1, Call("st_get")),
    new_rule(&["setvar"], "M-053", 2, 2, MacroTarget::Set),
    new_rule(&["addvar"], "M-054", 2, 2, Call("st_add")),
    new_rule(&["incvar"], "M-055", 1, 1, Call("st_inc")),
    new_rule(&["decvar"], "M-056", 1, 1, Call("st_dec")),
    new_rule(&["getglobalvar"], "M-057", 1, 1, Call("st_get_global")),
    new_rule(&["setglobalvar"], "M-058", 2, 2, MacroTarget::SetGlobal),
    new_rule(&["addglobalvar"], "M-059", 2, 2, Call("st_add_global")),
    new_rule(&["incglobalvar"], "M-060", 1, 1, Call("st_inc_global")),
    new_rule(&["decglobalvar"], "M-061", 1, 1, Call("st_dec_global")),
    new_rule(&["newline"], "M-063", 0, 1, MacroTarget::Newline),
    new_rule(&["space"], "-", 0, 1, MacroTarget::Space),
    new_rule(&["trim"], "M-064", 0, 1, MacroTarget::Trim),
    new_rule(&["noop"], "M-065", 0, 0, MacroTarget::Noop),
    new_rule(&["random"], "M-067", 0, usize::MAX, MacroTarget::Random),
    new_rule(&["pick"], "M-068", 0, usize::MAX, MacroTarget::Pick),
    new_rule(&["roll"], "M-069", 1, 1, Call("roll")),
    new_rule(&["reverse"], "M-070", 1, 1, MacroTarget::Reverse),
    new_rule(&["banned"], "M-071", 1, 1, MacroTarget::Banned),
    new_rule(&["ismobile"], "M-072", 0, 0, Expression("is_mobile")),
    new_rule(&["outlet"], "M-073", 1, 1, Call("outlet")),
    new_rule(
        &["maxprompt", "maxprompttokens", "maxcontext", "maxcontexttokens"],
        "M-074",
        0,
        0,
        Expression("config.max_context"),
    ),
    new_rule(&["maxresponse", "maxresponsetokens"], "-", 0, 0, Expression("config.max_response")),
    new_rule(&["pipe"], "M-075", 0, 0, Expression("pipe_result")),
    new_rule(&["anchorbefore"], "M-076", 0, 0, Expression("anchor_before")),
    new_rule(&["anchorafter"], "M-077", 0, 0, Expression("anchor_after")),
    new_rule(&["wibefore", "lorebefore"], "M-078", 0, 0, Expression("lore_before")),
    new_rule(&["wiafter", "loreafter"], "M-079", 0, 0, Expression("lore_after")),
    new_rule(&["system"], "M-080", 0, 0, Expression("system_prompt")),
    new_rule(
        &["instructsystemprompt", "instructsystem", "defaultsystemprompt", "systemprompt"],
        "M-081",
        0,
        0,
        Expression("instruct.system_prompt"),
    ),
    new_rule(&["instructuserprefix", "instructinput"], "M-082", 0, 0, Expression("instruct.user_prefix")),
    new_rule(&["instructusersuffix"], "M-083", 0, 0, Expression("instruct.user_suffix")),
    new_rule(
        &["instructassistantprefix", "instructoutput"],
        "M-084",
        0,
        0,
        Expression("instruct.assistant_prefix"),
    ),
    new_rule(
        &["instructassistantsuffix", "instructseparator"],
        "M-085",
        0,
        0,
        Expression("instruct.assistant_suffix"),
    ),
    new_rule(&["instructsystemprefix"], "-", 0, 0, Expression("instruct.system_prefix")),
    new_rule(&["instructsystemsuffix"], "-", 0, 0, Expression("instruct.system_suffix")),
    new_rule(&["instructstop"], "-", 0, 0, Expression("instruct.stop")),
    new_rule(&["instructuserfiller"], "-", 0, 0, Expression("instruct.user_filler")),
    new_rule(&["instructstorystringprefix"], "-", 0, 0, Expression("instruct.story_string_prefix")),
    new_rule(&["instructstorystringsuffix"], "-", 0, 0, Expression("instruct.story_string_suffix")),
    new_rule(&["exampleseparator", "chatseparator"], "-", 0, 0, Expression("config.example_separator")),
    new_rule(&["chatstart"], "-", 0, 0, Expression("config.chat_start")),
    scope_rule(&["get_message_variable"], "M-086", "message"),
    scope_rule(&["get_chat_variable"], "M-087", "chat"),
    scope_rule(&["get_character_variable"], "M-088", "character"),
    scope_rule(&["get_preset_variable"], "M-089", "preset"),
    scope_rule(&["get_global_variable"], "M-090", "global"),
    scope_yaml_rule(&["format_message_variable"], "M-091", "message"),
    scope_yaml_rule(&["format_chat_variable"], "M-092", "chat"),
    scope_yaml_rule(&["format_character_variable"], "M-093", "character"),
    scope_yaml_rule(&["format_preset_variable"], "M-094", "preset"),
    scope_yaml_rule(&["format_global_variable"], "M-095", "global"),
    new_rule(&["useravatar", "useravatarpath"], "M-096", 0, 0, Expression("user.avatar_path")),
    new_rule(&["charavatar", "charavatarpath"], "-", 0, 0, Expression("char.avatar_path")),
    new_rule(&["original"], "-", 0, 0, Expression("st_original()")),
    new_rule(&["greeting", "charfirstmessage"], "-", 0, 1, MacroTarget::Greeting),
    new_rule(&["hasvar", "varexists"], "-", 1, 1, Call("st_has")),
    new_rule(&["deletevar", "flushvar"], "-", 1, 1, Call("st_delete")),
    new_rule(&["hasglobalvar", "globalvarexists"], "-", 1, 1, Call("st_has_global")),
    new_rule(&["deleteglobalvar", "flushglobalvar"], "-", 1, 1, Call("st_delete_global")),
    new_rule(&["setvarkey", "setvarindex"], "-", 3, 3, Call("st_set_key")),
    new_rule(&["getvarkey", "getvarindex"], "-", 2, 2, Call("st_get_key")),
    new_rule(&["setglobalvarkey", "setglobalvarindex"], "-", 3, 3, Call("st_set_global_key")),
    new_rule(&["getglobalvarkey", "getglobalvarindex"], "-", 2, 2, Call("st_get_global_key")),
    // There are no extensions of SillyTavern here, so the answer is always `false`.
    new_rule(&["hasextension"], "-", 1, 1, Expression("'false'")),
    raw_rule(&["."], "-", MacroTarget::Short),
    raw_rule(&["$"], "-", MacroTarget::Short),
];

impl MacroRule {
    /// Returns true if an opening tag with `arg_count` arguments can have a body as its last argument.
    pub(super) fn can_open(&self, arg_count: usize) -> bool {
        let has_room = arg_count + 1 >= self.min_args && arg_count < self.max_args;
        // A comment with an argument is complete.
        self.is_scopable && has_room && (self.target != MacroTarget::Comment || arg_count == 0)
    }
}

/// Returns the rule for a name, in any letter case.
pub(super) fn find_rule(name: &str) -> Option<&'static MacroRule> {
    // No name has more than 32 bytes; long texts are not compared.
    if name.is_empty() || name.len() > 32 {
        return None;
    }
    let has_name =
        |rule: &&MacroRule| rule.names.iter().any(|candidate| candidate.eq_ignore_ascii_case(name));
    RULES.iter().find(has_name)
}

/// Returns the byte length of the name at the beginning of `text`: letters of any writing system, digits, `_`
/// and inner `-`.
pub(super) fn name_len(text: &str) -> usize {
    if !text.starts_with(|c: char| c == '_' || unicode_ident::is_xid_start(c)) {
        return 0;
    }
    let end = text.find(|c: char| c != '-' && !unicode_ident::is_xid_continue(c)).unwrap_or(text.len());
    text[..end].trim_end_matches('-').len()
}

/// Returns true if `text` is a name in both macros and Jinja.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.contains('-') && name_len(text) == text.len()
}

/// Returns the offset, sign and digits, if `name` and `after_name` together are a macro such as `time_UTC+2`.
pub(super) fn parse_time_utc<'t>(name: &str, after_name: &'t str) -> Option<&'t str> {
    if !name.eq_ignore_ascii_case("time_utc") || !after_name.starts_with(['+', '-']) {
        return None;
    }
    let digits = after_name[1..].bytes().take_while(u8::is_ascii_digit).count();
    let after_offset = after_name[1 + digits..].trim_start();
    let is_end = after_offset.is_empty() || after_offset.starts_with("}}");
    ((1..=4).contains(&digits) && is_end).then_some(&after_name[..1 + digits])
}
