/** What a recipe writes into its guarded state: a lock its limit, an election also who has led. */
import { formatLockState, type LockState } from "./lock_state.ts";

/** The state as it was read, with the version that guards what follows from it. */
export interface ReadState {
  readonly state: LockState;
  readonly data: Uint8Array;
  readonly mzxid: bigint;
}

/** Only the version guards a write, so that each must follow from the state that was read with it. */
export interface GuardedState {
  /** Of a node that has to be made. */
  fresh(limit: number | null): Uint8Array;
  /** By somebody who only moves the version. */
  kept(read: ReadState): Uint8Array;
  /** With a grant. */
  granted(read: ReadState, grant: { readonly guid: string; readonly limit: number | null }): Uint8Array;
  /** The node stays when nobody uses it any more: what it remembers counts. */
  readonly permanent: boolean;
}

export const limitOnly: GuardedState = {
  fresh: (limit) => formatLockState({ limit }),
  kept: ({ state }) => formatLockState(state),
  granted: (_, { limit }) => formatLockState({ limit }),
  permanent: false,
};
