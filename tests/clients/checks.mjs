// Checks of a client test, and the summary of their results.

let passed = 0;
const failures = [];

/** Throws unless both values are equal as JSON. */
export function assertEqual(name, got, expected) {
  if (JSON.stringify(got) !== JSON.stringify(expected)) {
    throw new Error(`${name}: ${JSON.stringify(got)?.slice(0, 300)} instead of ${JSON.stringify(expected)?.slice(0, 300)}`);
  }
}

export function recordPass() {
  passed += 1;
}

export function recordFailure(text) {
  failures.push(text);
}

/** Runs one check and records its result. */
export async function check(name, run) {
  try {
    await run();
    recordPass();
  } catch (error) {
    recordFailure(`${name}: ${error?.stack?.split("\n").slice(0, 3).join(" | ") ?? error}`);
  }
}

/** Prints up to 40 failures and the summary, and ends the process. */
export function finishChecks() {
  for (const failure of failures.slice(0, 40)) console.log(failure);
  console.log(`test result: ${failures.length ? "FAILED" : "ok"}. ${passed} passed; ${failures.length} failed;`);
  process.exit(failures.length ? 1 : 0);
}
