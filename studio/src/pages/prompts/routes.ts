import { type RouteObject } from "react-router";

export const routes: RouteObject[] = [
  { path: "prompts", lazy: () => import("./templates/TemplatesPage.tsx") },
  { path: "prompts/templates/:id", lazy: () => import("./templates/TemplatePage.tsx") },
  { path: "prompts/imports", lazy: () => import("./imports/ImportsPage.tsx") },
  { path: "prompts/cards/:id", lazy: () => import("./imports/CardPage.tsx") },
  { path: "prompts/lorebooks/:id", lazy: () => import("./imports/LorebookPage.tsx") },
  { path: "prompts/preview", lazy: () => import("./preview/PreviewPage.tsx") },
  { path: "prompts/macros", lazy: () => import("./macros/MacrosPage.tsx") },
];
