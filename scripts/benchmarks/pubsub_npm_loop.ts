/**
 * Runs the load of pubsub_peer.c with clients in TypeScript. A message counts when its publisher knows that it is
 * stored and its consumer has received it. Prints what that program prints.
 */

export interface PubsubLoadHooks {
  /** Reports that this many more messages are stored. */
  acked(count?: number): void;
  /** Reports that the next message has arrived. */
  received(body: Uint8Array | string): void;
  fail(error: unknown): void;
}

export interface PubsubLoadPeer {
  /** Connects, subscribes, and begins to consume. */
  begin(hooks: PubsubLoadHooks): Promise<void>;
  put(body: Uint8Array): void;
}

const warmMs = 1000;
const digits = 16;
const ring = 65_536;

/** Runs the load. `words` are the program's arguments: KIND HOST PORT BYTES OUTSTANDING MS. */
export async function runPubsubLoad(
  words: readonly string[],
  open: (kind: string, port: number) => PubsubLoadPeer,
): Promise<void> {
  const [kind = "", , port, bytes, window, forMs] = words;
  const outstanding = Number(window);
  const endMs = warmMs + Number(forMs);
  const peer = open(kind, Number(port));
  const sentAt = new Float64Array(ring);
  const ways: number[] = [];
  const acks: number[] = [];
  let sent = 0;
  let acked = 0;
  let received = 0;
  let first = 0;
  let measuredMs = 0;
  let isDue = false;
  let isMeasuring = false;
  let fail: (error: unknown) => void = () => {};
  const over = new Promise<never>((_, reject) => fail = reject);
  const body = new Uint8Array(Number(bytes)).fill(66);
  const pump = () => {
    isDue = false;
    for (; sent - Math.min(acked, received) < outstanding; sent++) {
      const message = body.slice();
      message.set(new TextEncoder().encode(String(sent).padStart(digits, "0")));
      sentAt[sent % ring] = performance.now();
      peer.put(message);
    }
  };
  const pumpSoon = () => {
    if (isDue) return;
    isDue = true;
    setImmediate(pump);
  };
  const sinceUs = (number: number) => (performance.now() - (sentAt[number % ring] as number)) * 1000;
  await peer.begin({
    acked(count = 1) {
      for (; count > 0; count--, acked++) if (isMeasuring) acks.push(sinceUs(acked));
      pumpSoon();
    },
    received(content) {
      const text = typeof content === "string"
        ? content.slice(0, digits)
        : Buffer.from(content.subarray(0, digits)).toString("latin1");
      if (Number(text) !== received) return fail(new Error(`message ${text} came instead of ${received}`));
      if (isMeasuring) ways.push(sinceUs(received));
      received++;
      pumpSoon();
    },
    fail: (error) => fail(error),
  });
  const startMs = performance.now();
  pump();
  const measured = new Promise<void>((resolve) => {
    setTimeout(() => {
      isMeasuring = true;
      first = received;
      measuredMs = performance.now();
    }, warmMs);
    setTimeout(resolve, endMs - (performance.now() - startMs));
  });
  await Promise.race([measured, over]);
  const rate = (received - first) / ((performance.now() - measuredMs) / 1000);
  const rank = (all: number[], share: number) => all.sort((a, b) => a - b)[Math.floor((all.length - 1) * share)] ?? 0;
  const figures = [rate, rank(ways, 0.5), rank(ways, 0.99), rank(acks, 0.5), rank(acks, 0.99)];
  console.log(figures.map((figure) => figure.toFixed(0)).join(" "));
  process.exit(0);
}
