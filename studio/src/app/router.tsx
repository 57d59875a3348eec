import { createBrowserRouter, type RouteObject } from "react-router";
import { routes as conversations } from "../pages/conversations/routes.ts";
import { routes as inspect } from "../pages/inspect/routes.ts";
import { routes as live } from "../pages/live/routes.ts";
import { routes as overview } from "../pages/overview/routes.ts";
import { routes as prompts } from "../pages/prompts/routes.ts";
import { routes as run } from "../pages/run/routes.ts";
import { routes as scripts } from "../pages/scripts/routes.ts";
import { routes as settings } from "../pages/settings/routes.ts";
import { Layout } from "./Layout.tsx";

/** Page errors replace the page; the frame stays. */
const pages: RouteObject[] = [
  ...overview,
  ...scripts,
  ...run,
  ...live,
  ...inspect,
  ...conversations,
  ...prompts,
  ...settings,
  { path: "*", lazy: async () => ({ Component: (await import("./PageError.tsx")).NotFound }) },
];

const lazyError = async () => ({ ErrorBoundary: (await import("./PageError.tsx")).PageError });

export const router = createBrowserRouter([
  { Component: Layout, HydrateFallback: () => null, children: [{ lazy: lazyError, children: pages }] },
]);
