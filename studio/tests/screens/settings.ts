import { type Screen } from "../support/screens.ts";

export const screens: Screen[] = [
  { name: "settings", path: "/settings" },
  {
    name: "settings-new-key",
    path: "/settings",
    act: async (page) => {
      await page.getByRole("button", { name: /New key|新建密钥/ }).click();
      await page.getByRole("dialog").getByRole("button", { name: /Create|创建/ }).click();
      await page.getByText(/Please enter a name|请输入名称/).waitFor();
    },
  },
];
