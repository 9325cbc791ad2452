/**
 * Each command: its words, and how its reply is read. Nothing is sent here. The names are the
 * grammar's, but for DQ.MADD, which is `addMany`. DQ.POP and DQ.MPOP with FINISH reply something else,
 * and are functions of their own: `finishAndPop`, `finishAndMpop`. What an option means stands in DQ's
 * documentation, docs/commands.
 */

import * as consume from "./consume.ts";
import * as look from "./look.ts";
import * as manage from "./manage.ts";
import { add, addMany } from "./produce.ts";

export const commands = { add, addMany, ...consume, ...look, ...manage } as const;
