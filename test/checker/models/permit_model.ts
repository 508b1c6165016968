/**
 * A lock with fencing tokens, and a semaphore: permits that are acquired and released, with tokens that rise with each
 * grant.
 */
import { z } from "zod";
import type { CheckerModel, HistoryOperation } from "../operation.ts";

const acquire = {
  holder: z.string(),
  limit: z.number().int().min(1).optional(),
  permits: z.number().int().min(1).optional(),
};
const token = z.number().int();

const shape = z.discriminatedUnion("do", [
  z.object({
    do: z.literal("acquire"),
    input: z.object(acquire),
    output: z.union([z.object({ busy: z.literal(true) }), z.object({ token: token.optional() })]).nullable(),
  }),
  z.object({
    do: z.literal("release"),
    input: z.object({ holder: z.string(), token: token.optional() }),
    output: z.object({ lost: z.boolean().optional() }).nullable(),
  }),
]);

interface Permits {
  readonly held: ReadonlyMap<string, number>;
  readonly lastToken: number;
}

const sum = (held: Permits["held"]) => [...held.values()].reduce((total, permits) => total + permits, 0);

function granted(state: Permits, { input, output }: HistoryOperation): Permits | null {
  const { holder, limit = 1, permits = 1 } = input as { holder: string; limit?: number; permits?: number };
  const reply = output as { busy?: true; token?: number } | null;
  const isFree = !state.held.has(holder) && sum(state.held) + permits <= limit;
  if (reply === null) return isFree ? { ...state, held: new Map(state.held).set(holder, permits) } : state;
  if (reply.busy === true) return isFree ? null : state;
  if (!isFree || (reply.token !== undefined && reply.token <= state.lastToken)) return null;
  return { held: new Map(state.held).set(holder, permits), lastToken: reply.token ?? state.lastToken };
}

function released(state: Permits, { input, output }: HistoryOperation): Permits | null {
  const { holder } = input as { holder: string };
  // `lost`: the holder was told that it had lost the permit before.
  if (!state.held.has(holder)) return output === null || output["lost"] === true ? state : null;
  if (output?.["lost"] === true) return null;
  const held = new Map(state.held);
  held.delete(holder);
  return { ...state, held };
}

function permitModel(name: string): CheckerModel<Permits> {
  return {
    name,
    shape,
    initial: () => ({ held: new Map(), lastToken: -1 }),
    step: (state, operation) => (operation.do === "acquire" ? granted : released)(state, operation),
    key: ({ held, lastToken }) => JSON.stringify([lastToken, [...held].sort(([a], [b]) => (a < b ? -1 : 1))]),
    mayMatter: () => true,
    witness({ do: name, input, output }) {
      const at = (name === "acquire" ? output : input)?.["token"];
      if (typeof at !== "number") return null;
      return { at, kind: name === "acquire" ? "change" : "observation" };
    },
    describe: ({ held, lastToken }) => {
      const holders = [...held].map(([holder, permits]) => (permits === 1 ? holder : `${holder} (${permits} permits)`));
      return `${holders.length === 0 ? "free" : `held by ${holders.join(", ")}`}, last token ${lastToken}`;
    },
  };
}

export const lockModel = permitModel("lock");
export const semaphoreModel = permitModel("semaphore");
