import { type RouteObject } from "react-router";

export const routes: RouteObject[] = [{ path: "prompts", lazy: () => import("./PromptsPage.tsx") }];
