import { type RouteObject } from "react-router";

export const routes: RouteObject[] = [{ path: "run", lazy: () => import("./RunPage.tsx") }];
