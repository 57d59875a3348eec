import { type Page } from "playwright-core";
import { type Screen } from "../support/screens.ts";
import { type Studio } from "../support/server.ts";

/** Finished message, from a recording of the demo. */
async function message(studio: Studio, model: string, dialect: string): Promise<string> {
  const body = { text: "What next?", model, dialect, output_protocol: "jsonseq_v1", extensions: true, findings: true, wait: true };
  const record = (await studio.request("POST", "/api/v1/messages", body)) as { message_id: string };
  return record.message_id;
}

const chooseFinding = async (page: Page) => {
  await page.getByText(/^(Findings|检查结果) \d+$/).click();
  await page.getByRole("list", { name: /Findings|检查结果/ }).getByRole("button").first().click();
};

export const screens: Screen[] = [
  { name: "live", path: "/live" },
  {
    name: "live-message",
    path: async (studio) => `/live/${await message(studio, "535147b67fc8", "filament")}`,
    act: async (page) => {
      await page.getByText(/^(Completed|已完成)$/).waitFor();
      await chooseFinding(page);
    },
  },
  {
    name: "live-two",
    path: async (studio) => {
      const first = await message(studio, "0f79820f792a", "filament");
      return `/live/${first}?beside=${await message(studio, "31573842286b", "filament")}`;
    },
    act: async (page) => {
      await page.getByText(/^(Completed|已完成)$/).nth(1).waitFor();
      await page.getByRole("checkbox", { name: /side by side|并排/ }).check();
    },
  },
  { name: "live-missing", path: "/live/msg_00000000000000000000000000000000", allow: [/status of 404/] },
];
