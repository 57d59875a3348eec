// Program that Deno and Bun run beside an installed package: reads replies whole and cut, and prints a summary.
import { readFileSync } from "node:fs";

import { decode, decodeInto, decodeStream, State } from "@tambour/core";
import { migrateMacros, Script } from "@tambour/core/prompts";

const rows = readFileSync(process.argv[2], "utf8").trim().split("\n").map((line) => JSON.parse(line));
const DELTAS = ["final_delta", "phase_delta", "draft_delta"];

/** JSON text of events, whose neighbouring deltas are joined. */
function join(events) {
  const joined = [];
  for (const { event, data } of events) {
    const last = joined.at(-1);
    const isText = DELTAS.includes(event) || (event === "aside" && data.kind === "thought");
    if (isText && last?.event === event && last.data.id === data.id && last.data.kind === data.kind) {
      last.data.text += data.text;
    } else {
      joined.push({ event, data: { ...data } });
    }
  }
  return JSON.stringify(joined);
}

let read = 0;
for (const row of rows) {
  const settings = { ...row.options, dialect: row.dialect, finish: row.finish };
  const bytes = Uint8Array.from(atob(row.input), (character) => character.charCodeAt(0));
  const third = Math.ceil(bytes.length / 3);
  const cuts = [bytes.subarray(0, third), bytes.subarray(third, 2 * third), bytes.subarray(2 * third)];
  const expected = join(row.events);
  for (const chunks of [bytes, cuts]) {
    if (join(decode(chunks, settings)) !== expected) throw new Error(row.name);
  }
  read += 1;
}

const response = new Response("<think>2 + 2</think>It is 4.");
let answer = "";
for await (const event of response.body.pipeThrough(decodeStream({ dialect: "plain" }))) {
  if (event.event === "final_delta") answer += event.data.text;
}
const state = new State({ trust: 5 });
state.apply([["ADD", "trust", 3]]);
const value = decodeInto({ type: "object" }, ["{a: ", "1}"]).final();
let problem;
try {
  new Script("x: 1");
} catch (error) {
  problem = error.name;
}
console.log(JSON.stringify({ read, answer, state: state.value, value, macro: migrateMacros("{{user}}").text, problem }));
