import { describe, expect, test } from "bun:test";
import {
  connectToZooKeeper,
  type ZooKeeperConnectOptions,
} from "../../../../src/protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../../../src/protocols/zookeeper/hosts.ts";
import { BatonError } from "../../../../src/base/errors.ts";
import type { Dial } from "../../../../src/base/sockets/connection.ts";
import { startCallDeadline } from "../../../../src/base/support/deadline.ts";
import { FakeClock, settled } from "../../../support/fake_clock.ts";
import { ScriptedEnsemble } from "./scripted_ensemble.ts";

interface Attempt {
  readonly clock: FakeClock;
  readonly ensemble: ScriptedEnsemble;
  /** "connected", or what it was rejected with. */
  outcome(): unknown;
}

function begin(ensemble: ScriptedEnsemble, options: Partial<ZooKeeperConnectOptions> = {}): Attempt {
  const clock = new FakeClock();
  let outcome: unknown = "pending";
  connectToZooKeeper({
    servers: parseZooKeeperServers(ensemble.text),
    sessionTimeoutMs: 12_000,
    clock,
    dial: ensemble.dial,
    ...options,
  }).then(() => outcome = "connected", (error) => outcome = error);
  return { clock, ensemble, outcome: () => outcome };
}

describe("connect", () => {
  test("goes to the next server at once when one refuses, and soon when one says nothing", async () => {
    const ensemble = new ScriptedEnsemble(3);
    ensemble.server(1).mode = "refuse";
    ensemble.server(2).mode = "silent";
    const { clock, outcome } = begin(ensemble);
    await clock.advance(1000); // T/12
    expect(outcome()).toBe("connected");
    expect(ensemble.server(3).hellos.length).toBe(1);
  });

  test("goes to the next server when one refuses to open a session, and says so when all do", async () => {
    const ensemble = new ScriptedEnsemble(2);
    ensemble.server(1).session = "expired";
    const { clock, outcome } = begin(ensemble, { retries: 0 });
    await clock.advance(1000);
    expect(outcome()).toBe("connected");
    const alone = new ScriptedEnsemble(1);
    alone.server(1).session = "expired";
    const refused = begin(alone, { connectTimeoutMs: 1000 });
    await refused.clock.advance(1000);
    expect((refused.outcome() as BatonError).message).toBe(
      "Cannot open a ZooKeeper session within 1 s: 10.0.0.1:2181: it refused to open a session",
    );
  });

  test("says at the end which server did what", async () => {
    const ensemble = new ScriptedEnsemble(3);
    ensemble.server(1).mode = "refuse";
    ensemble.server(2).mode = "silent";
    ensemble.server(3).mode = "deaf";
    const { clock, outcome } = begin(ensemble, { connectTimeoutMs: 3000 });
    await clock.advance(2999);
    expect(outcome()).toBe("pending");
    await clock.advance(1);
    const error = outcome() as BatonError;
    expect(error.code).toBe("UNREACHABLE");
    expect(error.message).toStartWith("Cannot open a ZooKeeper session within 3 s: ");
    expect(error.message).toContain("10.0.0.1:2181: connection refused");
    expect(error.message).toMatch(/10\.0\.0\.2:2181: no response to the handshake within /);
    expect(error.message).toMatch(/10\.0\.0\.3:2181: no connection within /);
    expect(clock.timers).toBe(0);
  });

  test("tries as often as `retries` says, with the delay between", async () => {
    const ensemble = new ScriptedEnsemble(1);
    ensemble.server(1).mode = "refuse";
    const { clock, outcome } = begin(ensemble, { retries: 2, delayMs: 30_000 });
    await clock.advance(59_999);
    expect([ensemble.dials.length, outcome()]).toEqual([2, "pending"]);
    await clock.advance(1);
    expect(ensemble.dials.length).toBe(3);
    expect(outcome()).toHaveProperty("code", "UNREACHABLE");
  });

  test("goes on until the connect timeout when no number is given, and takes a server that comes up", async () => {
    const ensemble = new ScriptedEnsemble(1);
    ensemble.server(1).mode = "refuse";
    const { clock, outcome } = begin(ensemble, { connectTimeoutMs: 60_000 });
    await clock.advance(50_000);
    expect(ensemble.dials.length).toBeGreaterThan(50);
    ensemble.server(1).mode = "serve";
    await clock.advance(1000);
    expect(outcome()).toBe("connected");
  });

  test("does not take a server that is read-only", async () => {
    const ensemble = new ScriptedEnsemble(1);
    ensemble.server(1).session = "readOnly";
    const { clock, outcome } = begin(ensemble, { retries: 0 });
    await clock.advance(1000);
    expect(outcome()).toMatchObject({ code: "UNREACHABLE", message: expect.stringContaining("read-only") });
    const later = begin(ensemble, { connectTimeoutMs: 60_000 });
    await later.clock.advance(1000);
    ensemble.server(1).session = "accept";
    await later.clock.advance(2000);
    expect(later.outcome()).toBe("connected");
  });

  test("says so when a server speaks something else", async () => {
    const ensemble = new ScriptedEnsemble(1);
    ensemble.server(1).mode = "silent";
    const { clock, outcome } = begin(ensemble, { retries: 0 });
    await settled();
    ensemble.server(1).connections[0]?.send(new TextEncoder().encode("HTTP/1.1 400 Bad Request\r\n\r\n"));
    await clock.advance(1000);
    expect(outcome()).toMatchObject({
      code: "UNREACHABLE",
      message: expect.stringContaining(
        "10.0.0.1:2181: the port does not use ZooKeeper's protocol (The length of a frame is",
      ),
    });
  });

  test("takes for something else what has the length of a frame, and is none that opens a session", async () => {
    const ensemble = new ScriptedEnsemble(1);
    ensemble.server(1).mode = "silent";
    const { clock, outcome } = begin(ensemble, { connectTimeoutMs: 60_000 });
    await settled();
    ensemble.server(1).connections[0]?.send(new Uint8Array(4)); // an empty frame
    await clock.advance(1000);
    expect(outcome()).toMatchObject({
      code: "UNREACHABLE",
      message: expect.stringContaining(
        "10.0.0.1:2181: the port does not use ZooKeeper's protocol (Cannot read 4 bytes",
      ),
    });
  });

  test("gives up when each server is something else or keeps this user out, not if one may yet answer", async () => {
    const web = new TextEncoder().encode("HTTP/1.1 400 Bad Request\r\n\r\n");
    const alone = new ScriptedEnsemble(2);
    alone.server(1).mode = alone.server(2).mode = "silent";
    const refused = begin(alone, { connectTimeoutMs: 60_000 });
    await refused.clock.advance(2000); // both are asked
    for (const number of [1, 2]) alone.server(number).connections[0]?.send(web);
    await refused.clock.advance(10);
    expect(refused.outcome()).toMatchObject({
      code: "UNREACHABLE",
      message: expect.stringContaining("10.0.0.2:2181: the port"),
    });

    const others = new ScriptedEnsemble(2);
    others.server(1).mode = "silent";
    others.server(2).mode = "refuse";
    const going = begin(others, { connectTimeoutMs: 60_000 });
    await going.clock.advance(1000);
    for (const connection of others.server(1).connections) connection.send(web);
    await going.clock.advance(10_000);
    expect(going.outcome()).toBe("pending");
    others.server(2).mode = "serve";
    await going.clock.advance(10_000);
    expect(going.outcome()).toBe("connected");

    const dial: Dial = () => Promise.reject(Object.assign(new Error("connect EACCES"), { code: "EACCES" }));
    const servers = parseZooKeeperServers("unix:/run/keeper.1");
    const kept = begin(new ScriptedEnsemble(1), { servers, dial, connectTimeoutMs: 60_000 });
    await settled();
    expect(kept.outcome()).toBe("pending"); // a server that starts opens its socket to all a moment after it is there
    await kept.clock.advance(100);
    expect(kept.outcome()).toMatchObject({
      code: "REFUSED",
      message: "Cannot open a ZooKeeper session: unix:/run/keeper.1: permission denied",
    });
  });

  test("a wait that is over is told as the end of the connect timeout; any other reason as it is", async () => {
    const ensemble = new ScriptedEnsemble(1);
    ensemble.server(1).mode = "refuse";
    const clock = new FakeClock();
    const limit = startCallDeadline(clock, 2000);
    const connecting = connectToZooKeeper({
      servers: parseZooKeeperServers(ensemble.text),
      clock,
      dial: ensemble.dial,
      signal: limit.signal,
      connectTimeoutMs: 60_000,
    });
    const failed = connecting.then(() => null, (thrown) => thrown);
    expect(await clock.within(failed, { withinMs: 2100 })).toMatchObject({
      code: "UNREACHABLE",
      message: "Cannot open a ZooKeeper session within 2 s: 10.0.0.1:2181: connection refused",
    });
  });

  test("asks whether TLS is wanted when a port of TLS answers with an alert", async () => {
    const ensemble = new ScriptedEnsemble(1);
    ensemble.server(1).mode = "silent";
    const { clock, outcome } = begin(ensemble, { retries: 0 });
    await settled();
    ensemble.server(1).connections[0]?.send(Uint8Array.of(0x15, 3, 1, 0, 2, 2, 10)); // fatal, unexpected message
    await clock.advance(1000);
    expect(outcome()).toMatchObject({
      code: "UNREACHABLE",
      message: expect.stringMatching(/protocol \(The length of a frame is .*\); does this port need TLS\?$/),
    });
  });

  test("ends with the caller's signal", async () => {
    const ensemble = new ScriptedEnsemble(1);
    ensemble.server(1).mode = "silent";
    const giveUp = new AbortController();
    const { clock, outcome } = begin(ensemble, { signal: giveUp.signal });
    await clock.advance(100);
    const reason = new Error("enough");
    giveUp.abort(reason);
    await settled();
    expect(outcome()).toBe(reason);
    expect(clock.timers).toBe(0);
    expect(ensemble.server(1).connections[0]?.open).toBe(false);
  });

  test("sends the credentials before anything else, and again at every connection", async () => {
    const ensemble = new ScriptedEnsemble(1);
    const clock = new FakeClock();
    const auth = [{ scheme: "digest", credentials: "ada:secret" }, { scheme: "digest", credentials: "bob:word" }];
    const servers = parseZooKeeperServers(ensemble.text);
    const zk = await connectToZooKeeper({ servers, clock, dial: ensemble.dial, auth });
    await zk.exists("/a");
    expect(ensemble.server(1).codes).toEqual([100, 100, 3]);
    ensemble.server(1).connections[0]?.close();
    await settled();
    await zk.exists("/a");
    expect(ensemble.server(1).codes).toEqual([100, 100, 3, 100, 100, 3]);
  });

  test("is refused at once, without more tries, when the credentials are", async () => {
    const ensemble = new ScriptedEnsemble(2);
    for (const server of ensemble.servers) server.answer = ({ code }) => code === 100 ? { err: -115 } : undefined;
    const { outcome } = begin(ensemble, { auth: [{ scheme: "digest", credentials: "ada:guess" }] });
    await settled();
    expect(outcome()).toMatchObject({ code: "REFUSED", reason: "AUTHFAILED" });
    expect(ensemble.dials.length).toBe(1);
  });

  test("ends a session whose credentials are refused at a later connection", async () => {
    const ensemble = new ScriptedEnsemble(1);
    const clock = new FakeClock();
    const auth = [{ scheme: "digest", credentials: "ada:secret" }];
    const zk = await connectToZooKeeper({
      servers: parseZooKeeperServers(ensemble.text),
      clock,
      dial: ensemble.dial,
      auth,
    });
    ensemble.server(1).answer = ({ code }) => code === 100 ? { err: -115 } : undefined;
    ensemble.server(1).connections[0]?.close();
    await settled();
    expect(zk.session.ended.reason).toHaveProperty("reason", "AUTHFAILED");
  });
});

describe("a certificate", () => {
  const coded = (code: string, message: string = code) => Object.assign(new Error(message), { code });
  const refusing = (ensemble: ScriptedEnsemble, errors: readonly (Error | null)[]): Dial => {
    return (address, ...rest) => {
      const error = errors[address.kind === "tcp" ? Number(address.host.at(-1)) - 1 : 0];
      return error ? Promise.reject(error) : ensemble.dial(address, ...rest);
    };
  };
  const tls = { ca: "the authority's" };
  const expired = coded("CERT_HAS_EXPIRED");
  const wanted = coded("ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE");

  test("that is bad at one server only is passed over", async () => {
    const ensemble = new ScriptedEnsemble(3);
    const { clock, outcome } = begin(ensemble, { tls, dial: refusing(ensemble, [expired, wanted, null]) });
    await clock.advance(1000);
    expect(outcome()).toBe("connected");
  });

  test("that is bad at every server ends the connect at once, and says why at each", async () => {
    const ensemble = new ScriptedEnsemble(4);
    const errors = [
      expired,
      coded("SELF_SIGNED_CERT_IN_CHAIN", "self signed"),
      coded(
        "ERR_TLS_CERT_ALTNAME_INVALID",
        "Hostname/IP does not match certificate's altnames: Host: zk9. is not in the cert's altnames: DNS:zk1",
      ),
      coded("CERT_NOT_YET_VALID"),
    ];
    const { outcome } = begin(ensemble, { tls, dial: refusing(ensemble, errors) });
    await settled();
    const { code, message } = outcome() as BatonError;
    expect(code).toBe("UNREACHABLE");
    expect(message).toStartWith("Cannot open a ZooKeeper session: 10.0.0.");
    for (
      const why of [
        "10.0.0.1:2181: its certificate has expired",
        "10.0.0.2:2181: its certificate is signed by an unknown authority; " +
        "trusted are the authorities in tls.ca (self signed)",
        "10.0.0.3:2181: its certificate is for another name (Host: zk9. is not in the cert's altnames: DNS:zk1)",
        "10.0.0.4:2181: its certificate is not valid yet",
      ]
    ) expect(message).toContain(why);
  });

  test("of this client's that no server takes is a refusal", async () => {
    const ensemble = new ScriptedEnsemble(1);
    const none = begin(ensemble, { tls, dial: refusing(ensemble, [wanted]) });
    const refused = coded("ERR_SSL_TLSV1_ALERT_UNKNOWN_CA");
    const bad = begin(ensemble, { tls: { ...tls, cert: "c", key: "k" }, dial: refusing(ensemble, [refused]) });
    await settled();
    expect(none.outcome()).toMatchObject({
      code: "REFUSED",
      message: "Cannot open a ZooKeeper session: 10.0.0.1:2181: it requires a client certificate; " +
        "set tls.cert (alert: bad certificate)",
    });
    expect(bad.outcome()).toMatchObject({
      code: "REFUSED",
      message:
        "Cannot open a ZooKeeper session: 10.0.0.1:2181: it refuses the certificate in tls.cert (alert: unknown ca)",
    });
  });

  test("that goes bad under a session does not end it: somebody may renew it before the servers do", async () => {
    const ensemble = new ScriptedEnsemble(1);
    const clock = new FakeClock();
    const errors: (Error | null)[] = [null];
    const zk = await connectToZooKeeper({
      servers: parseZooKeeperServers(ensemble.text),
      clock,
      tls,
      dial: refusing(ensemble, errors),
    });
    errors[0] = expired;
    ensemble.server(1).connections[0]?.close();
    await clock.advance(1000);
    expect(zk.session.state).toBe("connecting");
    errors[0] = null;
    await clock.advance(1000);
    expect(zk.session.state).toBe("connected");
  });
});

describe("a local server that is not running", () => {
  const local = (ensemble: ScriptedEnsemble, startServer: () => Promise<void>): Partial<ZooKeeperConnectOptions> => ({
    servers: parseZooKeeperServers("unix:/run/keeper.1"),
    startServer,
    dial: ensemble.dial,
  });

  test("is started, once, and connected to in the same attempt", async () => {
    const ensemble = new ScriptedEnsemble(1);
    ensemble.server(1).mode = "refuse";
    let starts = 0;
    const startServer = () => {
      starts++;
      ensemble.server(1).mode = "serve";
      return Promise.resolve();
    };
    const { outcome } = begin(ensemble, local(ensemble, startServer));
    await settled();
    expect([starts, outcome()]).toEqual([1, "connected"]);
  });

  test("is started again when it goes away in the middle of a session, within T/6", async () => {
    const ensemble = new ScriptedEnsemble(1);
    let starts = 0;
    const startServer = () => {
      starts++;
      ensemble.server(1).mode = "serve";
      return Promise.resolve();
    };
    const clock = new FakeClock();
    const options = local(ensemble, startServer);
    const zk = await connectToZooKeeper({ servers: parseZooKeeperServers(ensemble.text), clock, ...options });
    ensemble.server(1).mode = "refuse";
    ensemble.server(1).connections[0]?.close();
    await settled();
    expect([starts, zk.session.state, zk.session.connections]).toEqual([1, "connected", 2]);
  });

  test("is not started twice at a time", async () => {
    const ensemble = new ScriptedEnsemble(1);
    ensemble.server(1).mode = "refuse";
    let starts = 0;
    const startServer = () => {
      starts++;
      return new Promise<void>(() => {});
    };
    const { clock, outcome } = begin(ensemble, { ...local(ensemble, startServer), connectTimeoutMs: 30_000 });
    await clock.advance(29_000);
    expect(ensemble.dials.length).toBeGreaterThan(3);
    expect([starts, outcome()]).toEqual([1, "pending"]);
  });

  test("that does not come up is reported with where to look", async () => {
    const ensemble = new ScriptedEnsemble(1);
    ensemble.server(1).mode = "refuse";
    const unreachableHint = () => "see /run/keeper.log";
    const options = { ...local(ensemble, () => new Promise(() => {})), unreachableHint, connectTimeoutMs: 5000 };
    const { clock, outcome } = begin(ensemble, options);
    await clock.advance(5000);
    expect(outcome()).toMatchObject({
      code: "UNREACHABLE",
      message: expect.stringMatching(/; see \/run\/keeper\.log$/),
    });
  });

  test("that closes the connection without a response: a Unix socket has no quorum and no TLS", async () => {
    const ensemble = new ScriptedEnsemble(1);
    Object.assign(ensemble.server(1), { isJealous: true, zxid: -1n });
    const message = "Cannot open a ZooKeeper session within 1 s: unix:/run/keeper.1: " +
      "closed the connection during the handshake (the keeper could not open the session; its log says why)";
    const { clock, outcome } = begin(ensemble, { ...local(ensemble, () => Promise.resolve()), connectTimeoutMs: 1000 });
    await clock.advance(1000);
    expect(outcome()).toMatchObject({ code: "UNREACHABLE", message });
  });

  test("whose place is wrong ends the connect with that error", async () => {
    const ensemble = new ScriptedEnsemble(1);
    ensemble.server(1).mode = "refuse";
    const wrong = new BatonError("CONFIG", "The folder belongs to somebody else");
    const { outcome } = begin(ensemble, local(ensemble, () => Promise.reject(wrong)));
    await settled();
    expect(outcome()).toBe(wrong);
  });
});

test("a session that took longer to open than it lasts is told: it may have expired already", async () => {
  for (const [openingMs, count] of [[11_000, 0], [14_000, 1]] as const) {
    const ensemble = new ScriptedEnsemble(1);
    ensemble.server(1).mode = "silent";
    const told: string[] = [];
    const onSlow = (sentence: string) => void told.push(sentence);
    const { clock, outcome } = begin(ensemble, { connectTimeoutMs: 60_000, onSlow });
    await clock.advance(openingMs);
    ensemble.server(1).wake();
    await clock.advance(0);
    expect(outcome()).toBe("connected");
    expect(told).toEqual(Array(count).fill(expect.stringContaining("needed 14 s to open a session of 12 s")));
  }
});

test("a server that accepts connections without a session gets twice the time in each attempt", async () => {
  // A server that is the only one gets more time from the start.
  for (const [mode, servers, attempts] of [["silent", 1, 2], ["silent", 2, 8], ["deaf", 1, 15]] as const) {
    const ensemble = new ScriptedEnsemble(servers);
    for (let server = 1; server <= servers; server++) ensemble.server(server).mode = mode;
    const stop = new AbortController();
    const { clock } = begin(ensemble, { retries: 1000, delayMs: 0, signal: stop.signal });
    await clock.advance(4000 + 8000 + 16_000 + 31_000);
    expect(ensemble.dials.length).toBe(attempts);
    stop.abort();
    await settled();
  }
});
