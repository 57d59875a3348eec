import { stringify } from "yaml";

/** A Skein as YAML, with its texts in blocks. */
export function yamlOf(skein: object): string {
  return stringify(skein, { lineWidth: 0, blockQuote: "literal" });
}
