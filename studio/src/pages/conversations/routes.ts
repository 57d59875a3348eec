import { type RouteObject } from "react-router";

export const routes: RouteObject[] = [{ path: "conversations", lazy: () => import("./ConversationsPage.tsx") }];
