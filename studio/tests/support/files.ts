import { readFileSync } from "node:fs";
import { join } from "node:path";
import { deflateSync } from "node:zlib";
import { type Page } from "playwright-core";

const ROOT = join(import.meta.dirname, "../../..");

/** File in the row of `fixtures/import/independent.jsonl` with that id. */
export function importFixture(id: string): object {
  const lines = readFileSync(join(ROOT, "fixtures/import/independent.jsonl"), "utf8").split("\n");
  for (const line of lines) {
    if (line === "") continue;
    const row = JSON.parse(line) as { id: string; file?: object };
    if (row.id === id && row.file !== undefined) return row.file;
  }
  throw new Error(`there is no import fixture ${id}`);
}

/** File of `examples/roleplay`. */
export const roleplay = (name: string): string => readFileSync(join(ROOT, "examples/roleplay", name), "utf8");

const CRC = Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value >>> 0;
});

function checksum(bytes: Buffer): number {
  let value = 0xffffffff;
  for (const byte of bytes) value = (CRC[(value ^ byte) & 0xff] ?? 0) ^ (value >>> 8);
  return (value ^ 0xffffffff) >>> 0;
}

function chunk(kind: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(kind, "latin1"), data]);
  const out = Buffer.alloc(body.length + 8);
  out.writeUInt32BE(data.length, 0);
  body.copy(out, 4);
  out.writeUInt32BE(checksum(body), body.length + 4);
  return out;
}

/** Picture of one pixel that carries a card. */
export function pngOf(card: object): Buffer {
  const header = Buffer.from([0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0]);
  const text = Buffer.from(`chara\0${Buffer.from(JSON.stringify(card)).toString("base64")}`, "latin1");
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    chunk("IHDR", header),
    chunk("IDAT", deflateSync(Buffer.from([0, 0]))),
    chunk("tEXt", text),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

/** Drops files on an element of a page. */
export async function dropFiles(
  page: Page,
  label: string,
  files: readonly { name: string; bytes: Buffer | string }[],
): Promise<void> {
  const encoded = files.map(({ name, bytes }) => ({ name, base64: Buffer.from(bytes).toString("base64") }));
  const transfer = await page.evaluateHandle((all) => {
    const data = new DataTransfer();
    for (const { name, base64 } of all) {
      const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
      data.items.add(new File([bytes], name));
    }
    return data;
  }, encoded);
  const zone = page.getByRole("group", { name: label });
  await zone.dispatchEvent("dragenter", { dataTransfer: transfer });
  await zone.dispatchEvent("drop", { dataTransfer: transfer });
}
