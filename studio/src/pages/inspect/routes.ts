import { type RouteObject } from "react-router";

export const routes: RouteObject[] = [{ path: "inspect", lazy: () => import("./InspectPage.tsx") }];
