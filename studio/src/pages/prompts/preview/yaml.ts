import { stringify } from "yaml";

/** Skein as YAML, with its texts as block scalars. */
export function yamlOf(skein: object): string {
  return stringify(skein, { lineWidth: 0, blockQuote: "literal" });
}
