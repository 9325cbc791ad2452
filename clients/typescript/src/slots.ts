/** Slots of a cluster, and the checksums that tell slots and shards. */

import { type Id, sent } from "./words.ts";

export const SLOTS = 16_384;

const CRC16 = table(8, (crc) => (crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1), 8);
const CRC32 = table(8, (crc) => (crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1), 0);

function table(bits: number, step: (crc: number) => number, shift: number): number[] {
  return Array.from({ length: 256 }, (_, byte) => {
    let crc = byte << shift;
    for (let bit = 0; bit < bits; bit += 1) crc = step(crc);
    return crc >>> 0;
  });
}

/** By what stands in the first braces, if anything does, or by the whole key. */
export function slotOf(key: string): number {
  const opened = key.indexOf("{");
  const closed = opened < 0 ? -1 : key.indexOf("}", opened + 1);
  const tag = closed > opened + 1 ? key.slice(opened + 1, closed) : key;
  let crc = 0;
  for (const byte of Buffer.from(tag)) {
    crc = ((crc << 8) ^ (CRC16[((crc >> 8) ^ byte) & 0xff] ?? 0)) & 0xffff;
  }
  return crc % SLOTS;
}

export function crc32(id: Id): number {
  let crc = 0xffffffff;
  for (const byte of Buffer.from(sent(id))) {
    crc = (crc >>> 8) ^ (CRC32[(crc ^ byte) & 0xff] ?? 0);
  }
  return (crc ^ 0xffffffff) >>> 0;
}
