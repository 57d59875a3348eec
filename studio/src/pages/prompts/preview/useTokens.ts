import { useEffect, useState } from "react";
import { countTokens, type Tokenizer } from "./renderPrompt.ts";

/** Texts that are counted at once. */
const TOGETHER = 3;
/** Texts of one prompt that are counted; of more, the rest has no count. */
const MOST = 60;

/** Tokens of each text by itself, as they are counted by the server; absent until they are. */
export function useTokens(texts: readonly string[], tokenizer: Tokenizer): ReadonlyMap<string, number> {
  const [counts, setCounts] = useState<ReadonlyMap<string, number>>(new Map());
  const name = JSON.stringify([tokenizer, texts.slice(0, MOST)]);

  useEffect(() => {
    const [counter, wanted] = JSON.parse(name) as [Tokenizer, string[]];
    const stop = new AbortController();
    const queue = [...new Set(wanted)];
    const work = async () => {
      for (let text = queue.shift(); text !== undefined; text = queue.shift()) {
        const counted = text;
        const tokens = await countTokens(counted, counter, stop.signal);
        setCounts((before) => new Map(before).set(keyOf(counter, counted), tokens));
      }
    };
    // A text that cannot be counted has no count; the prompt is shown all the same.
    void Promise.allSettled(Array.from({ length: TOGETHER }, work));
    return () => stop.abort();
  }, [name]);
  return counts;
}

export const keyOf = (tokenizer: Tokenizer, text: string): string => `${tokenizer} ${text}`;
