/** Clients of other ZeroMQ libraries that speak the paper's messages and nothing more, through a proxy. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { describeWithPeer } from "../../support/peers.ts";
import { PubsubCluster } from "../../support/pubsub_cluster.ts";
import { libzmqInNode, libzmqInPython, own } from "../../support/zeromq_peers/implementations.ts";
import type { PeerProcess, PeerSocket } from "../../support/zeromq_peers/peer_process.ts";
import type { SocketOptions } from "../../support/zeromq_peers/peer_protocol.ts";

setDefaultTimeout(120_000);

let cluster: PubsubCluster;
beforeAll(async () => void (cluster = await PubsubCluster.start({ servers: 2, proxies: 2 })), 60_000);
afterAll(() => cluster[Symbol.asyncDispose]());

for (const implementation of [libzmqInPython, libzmqInNode, own]) {
  const suite = () => {
    let peer: PeerProcess;
    beforeAll(async () => void (peer = await implementation.start()), 60_000);
    afterAll(() => peer?.kill());

    const open = async (proxy = "p1", options: SocketOptions = {}): Promise<PeerSocket> => {
      const socket = await peer.open("REQ", options);
      await socket.connect(cluster.proxy(proxy).endpoint);
      return socket;
    };
    const ask = async (socket: PeerSocket, header: string, body = ""): Promise<string> => {
      await socket.send([`${header}\r\n\r\n${body}`]);
      const frames = await socket.receive(40_000);
      expect(frames.length).toBe(1);
      return (frames[0] as string).replace("\r\n\r\n", "|").replace(/^STATUS (s1|s2) /, "");
    };
    const topic = `the ${implementation.name}`.replaceAll(/[ ,]/g, "%20");

    test("subscribe, put, get, acknowledge, unsubscribe", async () => {
      const [alice, bob] = [await open("p1"), await open("p2")];
      expect(await ask(alice, `GET alice ${topic} -1`)).toMatch(/^STATUS p1 NOT_SUBSCRIBED\|/);
      expect(await ask(alice, `SUBSCRIBE alice ${topic}`)).toBe("OK|");
      expect(await ask(alice, `GET alice ${topic} -1`)).toBe("NO_MESSAGE|");
      expect(await ask(bob, `PUT bob ${topic} 1`, "one\r\n\r\n\0\xff")).toBe("OK|");
      expect(await ask(bob, `PUT bob ${topic} 1`, "one\r\n\r\n\0\xff")).toBe("OK|");
      expect(await ask(bob, `PUT bob ${topic} 2`, "two")).toBe("OK|");
      expect(await ask(bob, `PUT bob ${topic} 2`, "other")).toMatch(/^COUNTER_REUSE\|/);
      expect(await ask(alice, `GET alice ${topic} -1`)).toBe("OK 1|one\r\n\r\n\0\xff");
      expect(await ask(alice, `GET alice ${topic} -1`)).toBe("OK 1|one\r\n\r\n\0\xff");
      expect(await ask(alice, `GET alice ${topic} 1`)).toBe("OK 2|two");
      expect(await ask(alice, `GET alice ${topic} 2`)).toBe("NO_MESSAGE|");
      expect(await ask(alice, `UNSUBSCRIBE alice ${topic}`)).toBe("OK|");
      expect(await ask(alice, `GET alice ${topic} 2`)).toMatch(/^NOT_SUBSCRIBED\|/);
    });

    test("each of the paper's messages has the paper's answer", async () => {
      const socket = await open();
      const made = `${topic}%3F`;
      const paper = [
        // Nobody has put or subscribed: nothing is there, and asking makes nothing.
        [`GET alice ${made} -1`, "", /^STATUS p1 NOT_SUBSCRIBED\|there is no topic/],
        [`UNSUBSCRIBE alice ${made}`, "", /^STATUS p1 NOT_SUBSCRIBED\|there is no topic/],
        [`MERGE p9 ${made} s1`, "", /^STATUS p1 NOT_OWNER\|there is no topic/],
        [`SUBSCRIBE alice ${made}`, "", /^OK\|$/],
        [`SUBSCRIBE alice ${made}`, "", /^OK\|$/],
        [`UNSUBSCRIBE carol ${made}`, "", /^OK\|$/],
        [`GET carol ${made} -1`, "", /^NOT_SUBSCRIBED\|this client/],
        [`PUT bob ${made} 7`, "seven", /^OK\|$/],
        [`PUT bob ${made} 7`, "seven", /^OK\|$/],
        [`PUT bob ${made} 8`, "", /^OK\|$/],
        [`GET alice ${made} -1`, "", /^OK 1\|seven$/],
        [`GET alice ${made} 9`, "", /^BAD_REQUEST\|message 9 does not exist/],
        [`GET alice ${made} 1`, "", /^OK 2\|$/],
        [`GET alice ${made} 2`, "", /^NO_MESSAGE\|$/],
        ["PERIODIC s9", `${made} ${topic}`, /^STATUS p1 OK\|$/],
        ["PERIODIC s9", "", /^STATUS p1 OK\|$/],
        [`TRANSFER s9 ${made}`, "data", /^STATUS p1 BAD_REQUEST\|TRANSFER goes/],
        [`PUT bob ${made}`, "no counter", /^STATUS p1 BAD_REQUEST\|/],
        [`UNSUBSCRIBE alice ${made}`, "", /^OK\|$/],
        [`GET alice ${made} 2`, "", /^NOT_SUBSCRIBED\|this client/],
      ] as const;
      for (const [header, body, answer] of paper) {
        expect(`${header}: ${await ask(socket, header, body)}`).toMatch(
          new RegExp(`^${RegExp.escape(`${header}: `)}${answer.source.slice(1)}`),
        );
      }
      // Whoever hands a topic over names a server, and is told when it is there.
      const owner = (await cluster.owners()).get(decodeURIComponent(made)) ?? "";
      const other = owner === "s1" ? "s2" : "s1";
      expect(await ask(socket, `MERGE p9 ${made} ${other}`)).toBe("OK|");
      expect((await cluster.owners()).get(decodeURIComponent(made))).toBe(other);
      expect(await ask(socket, `PUT bob ${made} 7`, "seven")).toBe("OK|");
    });

    test("no line is said to whoever has shown none, not even in an answer of the proxy's own", async () => {
      const socket = await open();
      expect(await ask(socket, "HELLO me")).toBe("STATUS p1 OK|");
      expect(await ask(socket, "nonsense")).toMatch(/^STATUS p1 BAD_REQUEST\|Cannot read the name "nonsense"/);
      expect(await ask(socket, `PUT bob ${topic} -1`, "x")).toMatch(/^STATUS p1 BAD_REQUEST\|Cannot read the counter/);
      expect(await ask(socket, `PUT bob ${topic} 10`, "x")).toBe("OK|");
    });

    test("a REQ socket that marks its requests is answered with its marks", async () => {
      const socket = await open("p2", { correlate: true, relaxed: true });
      for (let n = 20; n < 25; n++) expect(await ask(socket, `PUT bob ${topic} ${n}`, `${n}`)).toBe("OK|");
    });
  };
  if (implementation.peer === null) describe(implementation.name, suite);
  else describeWithPeer(implementation.peer, implementation.name, suite);
}
