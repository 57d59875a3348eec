import { type RouteObject } from "react-router";

export const routes: RouteObject[] = [{ path: "live", lazy: () => import("./LivePage.tsx") }];
