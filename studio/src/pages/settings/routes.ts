import { type RouteObject } from "react-router";

export const routes: RouteObject[] = [{ path: "settings", lazy: () => import("./SettingsPage.tsx") }];
