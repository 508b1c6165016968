/**
 * The words of `scripts/fault NAME`: how many rounds, from which seed, how many at a time, on what, and which of them
 * alone.
 */
import process from "node:process";
import { parseArgs } from "node:util";
import type { Backend } from "./backends.ts";
import { hasPeer } from "./peers.ts";
import { type DoseLength, doseLength, doseOptions } from "./run_rounds.ts";

/** As exit_codes.ts has it for a command line that cannot be done. */
const usage = 64;

export interface DoseArguments extends DoseLength {
  readonly seed: number;
  /** Rounds at a time. */
  readonly parallel: number;
  /** Those that were asked for and are installed; at least one. */
  readonly backends: readonly Backend[];
  /** Whether the round of this number is asked for. */
  readonly isWanted: (plan: { readonly number: number }) => boolean;
  /** What stands behind the options. */
  readonly rest: readonly string[];
}

/** Says aloud which backends are missing; ends the process with 64 when none is left. */
export function doseArguments(backends: readonly Backend[]): DoseArguments {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      ...doseOptions,
      parallel: { type: "string", default: "4" },
      backend: { type: "string", multiple: true },
      only: { type: "string", multiple: true },
    },
  });
  const { only } = values;
  return {
    ...doseLength(values, 30),
    seed: Number(values.seed),
    parallel: Number(values.parallel),
    backends: installedBackends(backends, values.backend),
    isWanted: ({ number }) => only === undefined || only.includes(String(number)),
    rest: positionals,
  };
}

/** Of those whose name has one of `parts` in it; all when left out. */
export function installedBackends(backends: readonly Backend[], parts?: readonly string[]): readonly Backend[] {
  const installed = backends
    .filter(({ name }) => parts === undefined || parts.some((part) => name.includes(part)))
    .filter(({ peer, name }) => {
      if (peer === null || hasPeer(peer)) return true;
      console.error(`MISSING PEER: ${name}; its rounds are left out`);
      return false;
    });
  if (installed.length > 0) return installed;
  console.error(`No backend to run on. There are: ${backends.map(({ name }) => name).join("; ")}`);
  process.exit(usage);
}
