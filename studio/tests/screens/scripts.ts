import { type Screen } from "../support/screens.ts";

export const screens: Screen[] = [{ name: "scripts", path: "/scripts" }];
