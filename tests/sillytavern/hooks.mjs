// Loads modules of the published package by themselves: what they import from the rest of it is a stand-in that does nothing,
// or that `engine.mjs` has given.

import { readFileSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import path from 'node:path';

let root;

// Modules that are run as they are; all others are stand-ins.
const REAL = [
  'scripts/world-info.js', 'scripts/variables.js', 'scripts/utils.js', 'scripts/constants.js', 'scripts/util/StructuredCloneMap.js',
  'scripts/util/SimpleMutex.js', 'scripts/macros/',
];

export function initialize(data) {
  root = data.root;
}

// Names that the modules above import from `target`.
const wanted = new Map();
let collected = false;
function collect() {
  collected = true;
  const add = (file) => {
    const text = readFileSync(path.join(root, file), 'utf8');
    for (const [, names, from] of text.matchAll(/import\s*\{([^}]*)\}\s*from\s*'([^']+)'/g)) {
      const target = from.startsWith('/') ? from.slice(1) : path.posix.join(path.posix.dirname(file), from);
      const all = wanted.get(target) ?? new Set();
      for (const name of names.split(',')) {
        const plain = name.replace(/\/\*.*?\*\//gs, '').trim().split(/\s+as\s+/)[0];
        if (plain) all.add(plain);
      }
      wanted.set(target, all);
    }
  };
  for (const file of FILES) add(file);
}

const FILES = [
  'scripts/world-info.js', 'scripts/variables.js', 'scripts/utils.js', 'scripts/util/StructuredCloneMap.js', 'scripts/util/SimpleMutex.js',
  ...['macro-system', 'definitions/chat-macros', 'definitions/core-macros', 'definitions/env-macros', 'definitions/instruct-macros',
    'definitions/state-macros', 'definitions/time-macros', 'definitions/variable-macros', 'engine/MacroBrowser', 'engine/MacroCstWalker',
    'engine/MacroDiagnostics', 'engine/MacroEngine', 'engine/MacroEnvBuilder', 'engine/MacroFlags', 'engine/MacroLexer',
    'engine/MacroParser', 'engine/MacroRegistry'].map((name) => `scripts/macros/${name}.js`),
];

const inside = (url) => url?.startsWith('file:') && !path.relative(root, fileURLToPath(url)).startsWith('..');

export async function resolve(specifier, context, next) {
  if (!inside(context.parentURL) && !(specifier.startsWith('file:') && inside(specifier))) return next(specifier, context);
  const from = context.parentURL && inside(context.parentURL) ? path.posix.dirname(path.relative(root, fileURLToPath(context.parentURL))) : '';
  const target = specifier.startsWith('file:') ? path.relative(root, fileURLToPath(specifier))
    : specifier.startsWith('/') ? specifier.slice(1) : path.posix.join(from, specifier);
  if (REAL.some((real) => target === real || real.endsWith('/') && target.startsWith(real))) {
    return { url: pathToFileURL(path.join(root, target)).href, format: 'module', shortCircuit: true };
  }
  return { url: `stand-in:${target}`, format: 'module', shortCircuit: true };
}

export async function load(url, context, next) {
  if (!url.startsWith('stand-in:')) return next(url, context.format ? context : { ...context, format: 'module' });
  if (!collected) collect();
  const target = url.slice('stand-in:'.length);
  const names = [...wanted.get(target) ?? []];
  const source = names.map((name) => `export const ${name} = globalThis.standIn(${JSON.stringify(target)}, ${JSON.stringify(name)});`);
  return { source: source.join('\n') + '\nexport default globalThis.standIn("", "default");', format: 'module', shortCircuit: true };
}
