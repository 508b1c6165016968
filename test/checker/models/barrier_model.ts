/**
 * A barrier of generations. An arrival and a departure of a member are operations of their own: a generation forms with
 * the arrival that makes it complete, and a departure shows that the member was in one.
 */
import { z } from "zod";
import type { CheckerModel, HistoryOperation } from "../operation.ts";

const member = z.string();
const shape = z.discriminatedUnion("do", [
  z.object({
    do: z.literal("arrive"),
    input: z.object({ member, parties: z.number().int().min(1) }),
    output: z.object({}).nullable(),
  }),
  z.object({
    do: z.literal("depart"),
    input: z.object({ member }),
    output: z.object({ token: z.number().int().optional() }).nullable(),
  }),
  // The member's process has ended, or has given up.
  z.object({ do: z.literal("quit"), input: z.object({ member }), output: z.object({}).nullable() }),
]);

interface Generation {
  readonly token: number | null;
  /** Members that have not departed. */
  readonly members: readonly string[];
}

interface Generations {
  readonly waiting: readonly string[];
  readonly gone: readonly string[];
  /** In the order in which they formed. */
  readonly formed: readonly Generation[];
  /** The highest token of the generations that all members have left. */
  readonly lastToken: number;
}

function arrived(state: Generations, { input, output }: HistoryOperation): Generations | null {
  const { member, parties } = input as { member: string; parties: number };
  if (state.gone.includes(member) || state.waiting.includes(member)) return output === null ? state : null;
  const waiting = [...state.waiting, member].sort();
  if (waiting.length < parties) return { ...state, waiting };
  return { ...state, waiting: [], formed: [...state.formed, { token: null, members: waiting }] };
}

function departed(state: Generations, { input, output }: HistoryOperation): Generations | null {
  const { member } = input as { member: string };
  const at = state.formed.findIndex(({ members }) => members.includes(member));
  const generation = state.formed[at];
  if (generation === undefined) return output === null ? state : null;
  const told = (output as { token?: number } | null)?.token ?? null;
  const token = generation.token ?? told;
  if (told !== null && token !== told) return null;
  const members = generation.members.filter((one) => one !== member);
  const formed = state.formed.with(at, { token, members });
  const tokens = [state.lastToken, ...formed.map((one) => one.token).filter((one) => one !== null)];
  if (tokens.some((one, index) => index > 0 && one <= (tokens[index - 1] ?? 0))) return null;
  return withoutEmpty({ ...state, formed });
}

function withoutEmpty(state: Generations): Generations {
  const { formed: [first, ...rest], lastToken } = state;
  if (first === undefined || first.members.length > 0) return state;
  return withoutEmpty({ ...state, formed: rest, lastToken: first.token ?? lastToken });
}

function quit(state: Generations, { input }: HistoryOperation): Generations {
  const { member } = input as { member: string };
  if (state.gone.includes(member)) return state;
  const formed = state.formed.map((one) => ({ ...one, members: one.members.filter((other) => other !== member) }));
  const waiting = state.waiting.filter((one) => one !== member);
  return withoutEmpty({ ...state, waiting, formed, gone: [...state.gone, member].sort() });
}

export const barrierModel: CheckerModel<Generations> = {
  name: "barrier",
  shape,
  initial: () => ({ waiting: [], gone: [], formed: [], lastToken: -1 }),
  step(state, operation) {
    if (operation.do === "arrive") return arrived(state, operation);
    return operation.do === "depart" ? departed(state, operation) : quit(state, operation);
  },
  key: (state) => JSON.stringify(state),
  mayMatter: () => true,
  describe: ({ waiting, formed }) =>
    `waiting: ${waiting.join(", ") || "none"}; released: ${
      formed.map(({ members }) => members.join(", ")).join(" | ") || "none"
    }`,
};
