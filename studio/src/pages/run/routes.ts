import { type RouteObject } from "react-router";

export const routes: RouteObject[] = [
  { path: "run", lazy: () => import("./RunPage.tsx") },
  { path: "run/:dialogueId", lazy: () => import("./DialoguePage.tsx") },
];
