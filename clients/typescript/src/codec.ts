/** How a value becomes the body of a job, and the result of one. */

import { isUtf8 } from "node:buffer";
import { bytes } from "./words.ts";

export interface Codec {
  encode(value: unknown): Uint8Array;
  decode(data: Uint8Array): unknown;
}

/**
 * JSON in UTF-8. The default. A value that JSON has no word for is a TypeError, and so are bytes
 * that aren't UTF-8.
 */
export const JSON_CODEC: Codec = {
  encode(value) {
    const written = JSON.stringify(value);
    if (written === undefined) throw new TypeError(`JSON has no word for ${String(value)}`);
    return Buffer.from(written);
  },
  decode(data) {
    if (!isUtf8(data)) throw new TypeError("JSON is UTF-8, and these bytes are not");
    return JSON.parse(bytes(data).toString());
  },
};

/** Bytes as they are. Text is taken, as UTF-8, and comes back as bytes. */
export const RAW: Codec = {
  encode(value) {
    if (typeof value === "string") return Buffer.from(value);
    if (value instanceof Uint8Array) return value;
    throw new TypeError(`the raw codec takes bytes or text, not ${typeof value}`);
  },
  decode: (data) => data,
};
