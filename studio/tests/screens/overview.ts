import { type Screen } from "../support/screens.ts";
import { type Studio } from "../support/server.ts";

/** Sends a few messages, so that there are figures to show. */
async function withMessages(studio: Studio): Promise<string> {
  const requests = ["thinkingml", "jsonseq", "aiplan"].map((dialect) =>
    studio.request("POST", "/api/v1/messages", { text: "hello", dialect, wait: true }),
  );
  await Promise.all(requests);
  return "/";
}

export const screens: Screen[] = [
  { name: "overview-empty", path: "/" },
  { name: "overview", path: withMessages },
];
