import { type Screen } from "../support/screens.ts";

export const screens: Screen[] = [{ name: "prompts", path: "/prompts" }];
