import { type RouteObject } from "react-router";

export const routes: RouteObject[] = [{ path: "live/:id?", lazy: () => import("./LivePage.tsx") }];
