/** MessagePack, with the package `@msgpack/msgpack`. */

import { decode, encode } from "@msgpack/msgpack";
import type { Codec } from "./codec.ts";

export const MSGPACK: Codec = { encode: (value) => encode(value), decode: (data) => decode(data) };
