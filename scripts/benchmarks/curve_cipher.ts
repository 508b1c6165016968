/**
 * Benchmark: the cost of CURVE compared with its bare cipher. Encrypts and decrypts each message once, in one thread,
 * without a socket: with the package's XSalsa20-Poly1305, as MESSAGE commands, and through both ends of a connection.
 */
import { xsalsa20poly1305 } from "@noble/ciphers/salsa.js";
import { CurveRig, seededBytes, seededKey } from "../../test/support/curve_rig.ts";
import { curveClientMechanism } from "../../src/protocols/zeromq/zmtp/curve_client.ts";
import { curveServerMechanism } from "../../src/protocols/zeromq/zmtp/curve_server.ts";
import { zmtpLimitsDefault } from "../../src/protocols/zeromq/zmtp/zmtp_limits.ts";
import type { SecurityMechanismFactory } from "../../src/protocols/zeromq/zmtp/security_mechanism.ts";
import { ZmtpPeer } from "../../src/protocols/zeromq/zmtp/zmtp_peer.ts";
import { alignedTable, formatFigure, summarizeMeasurements } from "./statistics.ts";

const sizes = [100, 1024, 65_536];
/** The number of messages that a busy connection processes in one turn. */
const batch = 16;
const turnMs = 100;
/** The goal in performance.md for the ratio of MESSAGE to the bare cipher. */
const goal = 0.8;

/** Processes `batch` messages. */
type Pass = (body: Uint8Array) => void;

const contestants: readonly { name: string; make: () => Pass }[] = [
  { name: "bare cipher", make: bareCipher },
  { name: "CURVE MESSAGE", make: messages },
  { name: "two ends, CURVE", make: connections },
];

/** Returns a table: `rounds` turns of each contestant for each size, after one warm-up turn. */
// deno-lint-ignore require-await -- as every benchmark
export async function curveCipher(rounds: number): Promise<string> {
  const rows = sizes.flatMap((size) => {
    const body = seededBytes(size)(size);
    const rates = contestants.map(() => [] as number[]);
    const passes = contestants.map(({ make }) => make());
    for (let round = -1; round < rounds; round++) {
      for (const [index, pass] of passes.entries()) {
        const rate = ratePerSecond(pass, body);
        if (round >= 0) rates[index]?.push(rate);
      }
    }
    const bare = summarizeMeasurements(rates[0] ?? []).p50;
    return contestants.map(({ name }, index) => {
      const { min, p50, max } = summarizeMeasurements(rates[index] ?? []);
      const ratio = p50 / bare;
      const verdict = name === "CURVE MESSAGE" ? (ratio >= goal ? "yes" : "NO") : "";
      return [
        name,
        `${size}`,
        ...[min, p50, max].map(formatFigure),
        formatFigure(p50 * size / 1e6),
        formatFigure(ratio),
        verdict,
      ];
    });
  });
  return alignedTable([["", "bytes", "messages/s min", "p50", "max", "MB/s", "÷ bare", `≥ ${goal}`], ...rows]);
}

function ratePerSecond(pass: Pass, body: Uint8Array): number {
  const startMs = performance.now();
  let passed = 0;
  let tookMs = 0;
  do {
    pass(body);
    passed += batch;
    tookMs = performance.now() - startMs;
  } while (tookMs < turnMs);
  return passed / tookMs * 1000;
}

function bareCipher(): Pass {
  const key = seededBytes(5)(32);
  const nonce = new Uint8Array(24);
  return (body) => {
    const sealed = Array.from({ length: batch }, (_, at) => {
      nonce[0] = at;
      return xsalsa20poly1305(key, nonce).encrypt(body);
    });
    for (const [at, one] of sealed.entries()) {
      nonce[0] = at;
      xsalsa20poly1305(key, nonce).decrypt(one);
    }
  };
}

function messages(): Pass {
  const { client, server } = new CurveRig().established();
  return (body) => {
    const sealed = Array.from({ length: batch }, () => client.seal(0, body));
    for (const one of sealed) server.open(one);
  };
}

function connections(): Pass {
  let heard = 0;
  const key = seededKey(1);
  const randomBytes = seededBytes(2);
  const client = endOf(
    curveClientMechanism({ key: seededKey(3), serverKey: key.publicKey, randomBytes }),
    () => heard++,
  );
  const server = endOf(curveServerMechanism({ key, randomBytes }), () => heard++);
  while (!client.isReady || !server.isReady) {
    carry(client, server);
    carry(server, client);
  }
  return (body) => {
    heard = 0;
    for (let sent = 0; sent < batch; sent++) client.send([body]);
    carry(client, server);
    if (heard !== batch) throw new Error(`${heard} of ${batch} messages arrived`);
  };
}

function endOf(mechanism: SecurityMechanismFactory, onMessage: () => void): ZmtpPeer {
  return new ZmtpPeer({
    socketType: "DEALER",
    identity: new Uint8Array(0),
    mechanism,
    limits: zmtpLimitsDefault,
  }, {
    onReady: () => ({ prefix: null, wantsMore: true }),
    onMessage: () => {
      onMessage();
      return true;
    },
    onPing: () => true,
  });
}

function carry(from: ZmtpPeer, to: ZmtpPeer): void {
  from.output.flush((bytes) => {
    to.push(bytes);
    return false;
  });
}
