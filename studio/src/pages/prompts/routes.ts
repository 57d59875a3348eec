import { redirect, type RouteObject } from "react-router";

const toList = (path: string) => () => redirect(path);

export const routes: RouteObject[] = [
  { path: "prompts", lazy: () => import("./templates/TemplatesPage.tsx") },
  { path: "prompts/templates/:id", lazy: () => import("./templates/TemplatePage.tsx") },
  // Addresses without their last part lead to the list.
  { path: "prompts/templates", loader: toList("/prompts") },
  { path: "prompts/cards", loader: toList("/prompts/imports") },
  { path: "prompts/lorebooks", loader: toList("/prompts/imports") },
  { path: "prompts/imports", lazy: () => import("./imports/ImportsPage.tsx") },
  { path: "prompts/cards/:id", lazy: () => import("./imports/CardPage.tsx") },
  { path: "prompts/lorebooks/:id", lazy: () => import("./imports/LorebookPage.tsx") },
  { path: "prompts/preview", lazy: () => import("./preview/PreviewPage.tsx") },
  { path: "prompts/macros", lazy: () => import("./macros/MacrosPage.tsx") },
];
