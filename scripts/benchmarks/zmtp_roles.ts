/**
 * The roles of the ZMTP benchmark, the same for every implementation:
 * PEER ROLE ENDPOINT [ENDPOINT | BYTES MILLISECONDS].
 *
 * Who binds prints the endpoints, a line each, and serves until it is killed:
 *   rep      REP: every request goes back
 *   echo     ROUTER: every message goes back
 *   ack      ROUTER: the first 8 octets of every message go back
 *   proxy    ROUTER in front, DEALER behind: what comes in goes out on the other side
 *   sink     DEALER: swallows everything; an empty message is answered
 * and `worker`, a DEALER behind the proxy that answers as `ack` does, connects.
 *
 * Who measures connects, works for a second to get warm, then the whole time, and prints one number:
 *   req, ask   REQ, DEALER: one message at a time; median of the round trips, in microseconds
 *   window     DEALER: 256 messages on their way; acknowledgements a second
 *   source     DEALER: as many as go; messages a second, until the other end has the last one
 *   cipher     baton only: no socket, the cipher of CURVE alone; messages a second
 */

/** The number of messages in flight. */
export const zmtpOutstandingMax = 256;
export const zmtpAckBytes = 8;

/** The environment variables with the CURVE keys in Z85, if the connection is to be encrypted. */
export const curveKeyVariables = {
  server: "CURVE_SERVER",
  publicKey: "CURVE_PUBLIC",
  secretKey: "CURVE_SECRET",
} as const;

/** Warm-up time for just-in-time compilers; every contestant gets it. */
const warmMs = 1000;

export type ZmtpMeasure = (body: Uint8Array, forMs: number) => Promise<number>;

/** Runs a measurement twice, first to warm up, and prints the second result. */
export async function measureWarm(
  measure: ZmtpMeasure,
  [bytes = "", milliseconds = ""]: readonly string[],
): Promise<void> {
  const body = new Uint8Array(Number(bytes)).fill(0x78);
  await measure(body, warmMs);
  const result = await measure(body, Number(milliseconds));
  console.log(result.toFixed(3));
}

/** Returns the median time of a round trip, in microseconds. */
export async function medianRoundTripUs(trip: () => Promise<void>, forMs: number): Promise<number> {
  const trips: number[] = [];
  const endMs = performance.now() + forMs;
  for (let startMs = performance.now(); startMs < endMs;) {
    await trip();
    const nowMs = performance.now();
    trips.push(nowMs - startMs);
    startMs = nowMs;
  }
  trips.sort((a, b) => a - b);
  return (trips[Math.floor(trips.length / 2)] ?? NaN) * 1000;
}
