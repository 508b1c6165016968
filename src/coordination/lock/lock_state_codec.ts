/** What a recipe writes into its guarded state: a lock its limit, an election also who has led. */
import { formatLockState, type LockState } from "./lock_state.ts";

/** The state as it was read, with the version that guards what follows from it. */
export interface StoredLockState {
  readonly state: LockState;
  readonly data: Uint8Array;
  readonly mzxid: bigint;
}

/** Only the version guards a write, so that each must follow from the state that was read with it. */
export interface LockStateCodec {
  /** Of a node that has to be made. */
  initial(limit: number | null): Uint8Array;
  /** By somebody who only moves the version. */
  unchanged(read: StoredLockState): Uint8Array;
  /** With a grant. */
  afterGrant(read: StoredLockState, grant: { readonly guid: string; readonly limit: number | null }): Uint8Array;
  /** The node stays when nobody uses it any more: what it remembers counts. */
  readonly permanent: boolean;
}

export const limitStateCodec: LockStateCodec = {
  initial: (limit) => formatLockState({ limit }),
  unchanged: ({ state }) => formatLockState(state),
  afterGrant: (_, { limit }) => formatLockState({ limit }),
  permanent: false,
};
