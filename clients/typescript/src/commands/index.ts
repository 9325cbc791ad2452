/**
 * Each command: its words, and how its reply is read. Nothing is sent here. The names are the
 * grammar's; what an option means stands in DQ's documentation, docs/commands.
 */

import * as consume from "./consume.ts";
import * as look from "./look.ts";
import * as manage from "./manage.ts";
import { add } from "./produce.ts";

export const commands = { add, ...consume, ...look, ...manage } as const;
