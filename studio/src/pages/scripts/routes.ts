import { type RouteObject } from "react-router";

export const routes: RouteObject[] = [
  { path: "scripts", lazy: () => import("./ScriptsPage.tsx") },
  { path: "scripts/:id", lazy: () => import("./ScriptPage.tsx") },
];
