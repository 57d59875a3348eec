import { type RouteObject } from "react-router";

export const routes: RouteObject[] = [
  { path: "inspect", lazy: () => import("./InspectPage.tsx") },
  { path: "inspect/rules", lazy: () => import("./RulesPage.tsx") },
  { path: "inspect/rules/:code", lazy: () => import("./RulePage.tsx") },
];
