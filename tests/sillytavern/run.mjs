// Prints what the published package makes of the rows beside this file, one JSON object a line.
//   npm install && node run.mjs [FOLDER of the unpacked package]

import { readFileSync, writeSync } from 'node:fs';
import { load } from './engine.mjs';

process.env.TZ = 'UTC';
const here = new URL('.', import.meta.url);
const read = (name) => readFileSync(new URL(name, here), 'utf8');
const rows = (name) => read(name).trim().split('\n').map((line) => JSON.parse(line));
const print = (value) => writeSync(1, JSON.stringify(value) + '\n');

const engine = await load(process.argv[2] ?? new URL('node_modules/sillytavern', here).pathname);
const context = JSON.parse(read('context.json'));
for (const { id, text } of rows('macros.jsonl')) {
  print({ id, text: engine.render(structuredClone(context), [text])[0] });
}

const SETTINGS = {
  scan_depth: 'world_info_depth', recursive: 'world_info_recursive', max_recursion_steps: 'world_info_max_recursion_steps',
  case_sensitive: 'world_info_case_sensitive', whole_words: 'world_info_match_whole_words', include_names: 'world_info_include_names',
  group_scoring: 'world_info_use_group_scoring', min_activations: 'world_info_min_activations',
  min_activations_depth: 'world_info_min_activations_depth_max',
};
const SOURCES = {
  persona: 'personaDescription', description: 'characterDescription', personality: 'characterPersonality',
  depth_prompt: 'characterDepthPrompt', scenario: 'scenario', creator_notes: 'creatorNotes',
};
const renamed = (values, names) => Object.fromEntries(Object.entries(values ?? {}).map(([name, value]) => [names[name], value]));
for (const { id, entries, lines, steps, settings, sources, budget } of rows('worlds.jsonl')) {
  const book = Object.fromEntries(entries.map((entry, uid) => [uid, { ...engine.template, uid, content: `C${uid}`, ...entry }]));
  const found = [];
  let seen;
  for (const step of steps ?? [lines]) {
    const scan = { entries: book, settings: renamed(settings, SETTINGS), lines: step, global: renamed(sources, SOURCES), maxContext: budget, seen };
    const { seen: after, ...places } = await engine.scan(scan);
    seen = after;
    found.push({
      active: places.active.sort((a, b) => a - b),
      before: places.worldInfoBefore, after: places.worldInfoAfter,
      note_top: places.ANBeforeEntries, note_bottom: places.ANAfterEntries,
      examples: places.EMEntries.map(({ position, content }) => [position, content]),
      depth: places.WIDepthEntries.map(({ depth, role, entries }) => [depth, role, entries]).sort(),
      outlets: places.outletEntries,
    });
  }
  print({ id, found });
}
