import { type Screen } from "../support/screens.ts";

export const screens: Screen[] = [
  { name: "not-found", path: "/nowhere" },
  {
    name: "menu",
    path: "/",
    act: async (page) => {
      const menu = page.getByRole("button", { name: /Open menu|打开菜单/ });
      if (await menu.isVisible()) await menu.click();
    },
  },
];
