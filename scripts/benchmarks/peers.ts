/**
 * Measures peers in turn, with a time limit. A peer that does not respond or fails is named on stderr and left out of
 * the rest of the run, which then ends with a failure.
 */

/** How long one measurement of a peer may take, in milliseconds. */
const measurementMsMax = 120_000;

const leftOut = new Set<string>();

/** Returns the peers that were left out. */
export function leftOutPeers(): readonly string[] {
  return [...leftOut];
}

/**
 * Runs work that waits for a peer. Returns null if the peer fails or does not respond in time, now or earlier. `signal`
 * ends what was started for it; `task` is for the message.
 */
export async function tryPeer<T>(
  peer: string,
  task: string,
  run: (signal: AbortSignal) => Promise<T>,
  msMax = measurementMsMax,
): Promise<T | null> {
  if (leftOut.has(peer)) return null;
  const ending = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it did not respond within ${msMax / 1000} s`)), msMax);
  });
  try {
    return await Promise.race([run(ending.signal), late]);
  } catch (error) {
    leftOut.add(peer);
    console.error(`NOT MEASURED: ${peer}, ${task}: ${error instanceof Error ? error.message : String(error)}`);
    return null;
  } finally {
    clearTimeout(timer);
    ending.abort();
  }
}

export interface MeasurementTurns {
  /** The name of the benchmark, for messages. */
  readonly task: string;
  readonly rounds: number;
  /** How many warm-up rounds come first. */
  readonly warmRounds?: number;
}

/** Measures the peers in turn, A B A B …, and returns the results of those that responded each time. */
export async function measureInTurn<P extends { readonly name: string }, T>(
  peers: readonly P[],
  { task, rounds, warmRounds = 0 }: MeasurementTurns,
  measure: (peer: P, round: number, signal: AbortSignal) => Promise<T>,
): Promise<Map<P, T[]>> {
  const results = new Map<P, T[]>(peers.map((peer) => [peer, []]));
  for (let round = -warmRounds; round < rounds; round++) {
    for (const [peer, all] of [...results]) {
      const result = await tryPeer(peer.name, task, async (signal) => ({ value: await measure(peer, round, signal) }));
      if (result === null) results.delete(peer);
      else if (round >= 0) all.push(result.value);
    }
  }
  return results;
}
