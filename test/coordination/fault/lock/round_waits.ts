/** Waits of a round: for a time that is part of a fault, and for what contenders are to do. */
import { systemClock } from "../../../../src/base/support/clock.ts";
import { sleep } from "../../../../src/base/support/deadline.ts";
import type { RunningBackend } from "../../../support/backends.ts";
import { eventually, type EventuallyOptions } from "../../../support/eventually.ts";
import { fourLetterWord } from "../../../support/four_letter_word.ts";
import type { Contender } from "./contender.ts";

/** How long a fault lasts, and what comes between two of them, is part of what they are. */
export const wait = (milliseconds: number): Promise<void> => sleep(systemClock(), milliseconds);

/** How long what is said of a contender after its end may take, in milliseconds. */
const lastWordsMs = 15_000;

/**
 * Waits for what is said of contenders after their end: a script that was killed is dead before its holder process, or
 * its guard, says why. Without this, nobody would know.
 */
export async function heardOut(contenders: readonly Pick<Contender, "exit" | "isSilent">[]): Promise<void> {
  const ended = contenders.filter(({ exit }) => exit !== null);
  await eventually(() => ended.every(({ isSilent }) => isSilent), { withinMs: lastWordsMs }).catch(() => {});
}

/** `eventually`, with what the processes and the servers say when it is in vain. */
export async function untilContenders<T>(
  condition: () => T | Promise<T>,
  { contenders, backend, ...options }: EventuallyOptions & {
    readonly contenders: Iterable<Contender>;
    readonly backend: RunningBackend;
  },
) {
  try {
    return await eventually(condition, options);
  } catch (error) {
    const said = [...contenders].map(({ name, exit, stderr }) =>
      `${name}: ${exit?.code ?? exit?.signal ?? "runs"} ${stderr}`
    );
    const servers = await modesOf(backend);
    throw new Error(`${error instanceof Error ? error.message : error}\n${said.join("\n")}\n${servers.join("\n")}`);
  }
}

/** Whether a wait was in vain because nobody served. */
function modesOf({ nodes }: RunningBackend): Promise<string[]> {
  return Promise.all(nodes.map(async ({ address }, number) => {
    const told = await fourLetterWord(address, "srvr").catch((error: Error) => error.message);
    const mode = /^Mode: .*$/m.exec(told)?.[0] ?? told.trim().slice(0, 100);
    return `server ${number + 1}: ${mode}`;
  }));
}
