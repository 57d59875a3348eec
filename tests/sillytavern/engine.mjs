// The macro engine and the world info of the published package, run without a browser.

import { register } from 'node:module';
import { pathToFileURL } from 'node:url';
import path from 'node:path';
import * as chevrotain from 'chevrotain';
import droll from 'droll';
import moment from 'moment';
import seedrandom from 'seedrandom';

// What stands for everything that does nothing here: a function, an object, an empty text.
const nothing = new Proxy(function () {}, {
  get: (target, name) => name === Symbol.toPrimitive ? () => '' : name === Symbol.iterator ? function* () {}
    : name === 'prototype' ? target.prototype : name === 'then' ? undefined : nothing,
  apply: () => nothing,
  construct: () => nothing,
  has: () => false,
});

const chat = [];
const chatMetadata = {};
const power = { experimental_macro_engine: true, instruct: {}, context: {}, sysprompt: {} };
const note = { value: '' };
const extensionPrompts = { '2_floating_prompt': note };
const settings = { variables: { global: {} }, note: {} };
let card = {};
let clock;

const given = {
  lib: { chevrotain, droll, moment, seedrandom },
  script: {
    chat, chat_metadata: chatMetadata, this_chid: 0, characters: [{ name: 'Sera', avatar: 'Sera.png', data: { extensions: { world: 'book' } } }],
    name1: 'Tom', name2: 'Sera', main_api: 'openai', substituteParams: (text) => substitute(text), getCurrentChatId: () => 'chat',
    extension_prompt_roles: { SYSTEM: 0, USER: 1, ASSISTANT: 2 }, extension_prompts: extensionPrompts,
    getCharacterCardFieldsLazy: () => card, getGeneratingModel: () => 'm-1', getMaxPromptTokens: () => 4096,
    getMaxContextTokens: () => 4096, getMaxResponseTokens: () => 400, parseMesExamples: (text) => [text], getExtensionPromptByName: async () => '',
    eventSource: { emit: async () => {}, on: () => {} }, event_types: {}, saveSettingsDebounced: () => {}, user_avatar: 'tom.png',
  },
  'scripts/extensions': {
    extension_settings: settings, saveMetadataDebounced: () => {}, findExtension: () => null,
    getContext: () => ({ extensionPrompts, setExtensionPrompt: () => {}, tagMap: {}, characters: given.script.characters, characterId: 0 }),
  },
  'scripts/events': { eventSource: { emit: async () => {}, on: () => {} }, event_types: {} },
  'scripts/authors-note': { NOTE_MODULE_NAME: '2_floating_prompt', metadata_keys: {}, shouldWIAddPrompt: true },
  'scripts/power-user': { power_user: power },
  'scripts/group-chats': { groups: [], selected_group: null },
  'scripts/RossAscends-mods': { isMobile: () => false },
  'scripts/tokenizers': { getTokenCountAsync: async (text) => text.split(/\s+/).filter(Boolean).length },
  'scripts/extensions/regex/engine': { getRegexedString: (text) => text, regex_placement: {} },
  'scripts/tags': { getTagKeyForEntity: () => 'Sera.png', getTagsList: () => [] },
  'scripts/filters': { FilterHelper: class {}, FILTER_TYPES: {} },
  'scripts/textgen-settings': { textgenerationwebui_banned_in_macros: [] },
  'scripts/i18n': { t: (parts) => parts.join(''), getCurrentLocale: () => 'en' },
  'scripts/util/AccountStorage': { accountStorage: { getItem: () => 'true', setItem: () => {} } },
};

globalThis.standIn = (target, name) => {
  const own = given[target.replace(/\.js$/, '')];
  return own && name in own ? own[name] : nothing;
};
globalThis.window = globalThis;
globalThis.document = { querySelector: () => ({ value: 'typed', getAttribute: () => '6' }), createElement: () => nothing, addEventListener: () => {} };
globalThis.$ = globalThis.jQuery = nothing;
globalThis.toastr = nothing;
globalThis.structuredClone ??= (value) => JSON.parse(JSON.stringify(value));
for (const level of ['debug', 'log', 'info', 'warn', 'error']) console[level] = process.env.LOUD ? (...all) => process.stderr.write(all.map(String).join(' ') + '\n') : () => {};

let substitute = (text) => text;

/** Loads the package that was unpacked to `folder`. */
export async function load(folder) {
  const root = path.join(path.resolve(folder), 'public');
  register('./hooks.mjs', { parentURL: import.meta.url, data: { root } });
  const at = (file) => import(pathToFileURL(path.join(root, file)).href);
  const variables = await at('scripts/variables.js');
  const of = (kind) => ({
    get: variables[`get${kind}Variable`], set: variables[`set${kind}Variable`], add: variables[`add${kind}Variable`],
    inc: variables[`increment${kind}Variable`], dec: variables[`decrement${kind}Variable`], has: variables[`exists${kind}Variable`],
    del: variables[`delete${kind}Variable`],
  });
  globalThis.SillyTavern = { getContext: () => ({ variables: { local: of('Local'), global: of('Global') } }) };
  const system = await at('scripts/macros/macro-system.js');
  system.initRegisterMacros();
  const { macros } = system;
  substitute = (text, original) => {
    if (!text) return '';
    const env = macros.envBuilder.buildFromRawEnv({ content: text, replaceCharacterCard: true, dynamicMacros: {}, original });
    return macros.engine.evaluate(text, env);
  };
  const worlds = await at('scripts/world-info.js');
  const real = Date.now;
  moment.now = () => clock ?? real();

  /** What the texts of one prompt come to, one after the other. */
  function render(context, texts) {
    const fields = context.char ?? {};
    card = {
      system: fields.main_prompt, jailbreak: fields.jailbreak, description: fields.description, personality: fields.personality,
      scenario: fields.scenario, persona: context.user?.persona, mesExamples: fields.mes_example, version: fields.version,
      charDepthPrompt: fields.depth_prompt?.prompt, creatorNotes: fields.creator_notes, firstMessage: fields.first_mes,
      alternateGreetings: fields.alternate_greetings,
    };
    // Fields of a card are texts with macros, replaced when they are asked for.
    const lazy = {};
    for (const [name, text] of Object.entries(card)) {
      Object.defineProperty(lazy, name, {
        get: () => typeof text === 'string' ? plain(() => substitute(text)) : Array.isArray(text) ? text.map((one) => substitute(one)) : text,
        enumerable: true,
      });
    }
    card = lazy;
    clock = context.now ? Date.parse(context.now) : undefined;
    chat.length = 0;
    chat.push(...(context.history ?? []).map((line) => ({ name: line.name, mes: line.content, is_user: line.role === 'user', swipes: Array(line.swipe_count ?? 1).fill(''), swipe_id: (line.current_swipe ?? 1) - 1 })));
    chatMetadata.variables = Object.fromEntries(Object.entries(context.state ?? {}).map(([name, value]) => [name, typeof value === 'object' ? JSON.stringify(value) : value]));
    settings.variables.global = structuredClone(context.global_state ?? {});
    return texts.map((text) => substitute(text, context.original));
  }
  const plain = (text) => text();

  /** Entries that are active, by place, and their order. */
  async function scan({ entries, settings: how, lines, global, maxContext, seen }) {
    worlds.updateWorldInfoSettings({
      world_info_depth: 2, world_info_min_activations: 0, world_info_min_activations_depth_max: 0, world_info_budget: 100,
      world_info_include_names: true, world_info_recursive: false, world_info_case_sensitive: false, world_info_match_whole_words: false,
      world_info_character_strategy: 1, world_info_budget_cap: 0, world_info_use_group_scoring: false, world_info_max_recursion_steps: 0, ...how,
    }, ['book']);
    worlds.worldInfoCache.set('book', { entries });
    chatMetadata.variables = {};
    chatMetadata.timedWorldInfo = seen ?? {};
    const names = how?.world_info_include_names ?? true;
    const messages = lines.map((line) => names && line.name ? `${line.name}: ${line.content}` : line.content).reverse();
    const found = await worlds.checkWorldInfo(messages, maxContext ?? 1_000_000, false, { trigger: 'normal', personaDescription: '', characterDescription: '', characterPersonality: '', characterDepthPrompt: '', scenario: '', creatorNotes: '', ...global });
    return { ...found, active: [...found.allActivatedEntries].map((entry) => entry.uid), seen: chatMetadata.timedWorldInfo };
  }
  return { render, scan, template: worlds.newWorldInfoEntryTemplate };
}
