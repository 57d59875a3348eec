import { type RouteObject } from "react-router";

export const routes: RouteObject[] = [
  { path: "conversations", lazy: () => import("./ConversationsPage.tsx") },
  { path: "conversations/:id", lazy: () => import("./ConversationPage.tsx") },
];
