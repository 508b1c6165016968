import { describe, expect, test } from "bun:test";
import { FrameStream } from "../../../../src/base/sockets/frame_stream.ts";
import { ZooKeeperLink } from "../../../../src/protocols/zookeeper/zookeeper_link.ts";
import { SilencePatience } from "../../../../src/protocols/zookeeper/session_timing.ts";
import { ByteReader } from "../../../../src/base/wire/bytes.ts";
import { JuteFrameDecoder } from "../../../../src/base/wire/length_frame.ts";
import { FakeClock, settled } from "../../../support/fake_clock.ts";

function rig(nextXid: number, gatherMs = 0) {
  const clock = new FakeClock();
  const flow: string[] = [];
  const sent: number[] = [];
  const lost: (Error | null)[] = [];
  const stream = new FrameStream({ onFrame() {}, onChunkEnd() {}, onClosed() {} });
  stream.attach({
    write(bytes) {
      for (const frame of new JuteFrameDecoder().push(bytes)) sent.push(new ByteReader(frame).i32());
    },
    bufferedBytes: 0,
    peer: "test",
    pause: () => void flow.push("pause"),
    resume: () => void flow.push("resume"),
    end() {},
    destroy() {},
  });
  const owner = {
    eventReceived() {},
    repliesReceived() {},
    connectionLost: (error: Error | null) => void lost.push(error),
  };
  const link = new ZooKeeperLink(stream, owner, {
    clock,
    gatherMs,
    nextXid,
    connectSentMs: 0,
    relayMs: 0,
    lastZxid: 0n,
    patience: new SilencePatience(),
  });
  const reply = (xid: number) => {
    const frame = new DataView(new ArrayBuffer(20));
    frame.setInt32(0, 16);
    frame.setInt32(4, xid);
    stream.onData(new Uint8Array(frame.buffer));
  };
  /** An event at `/x`, with a body that is `more` bytes longer. */
  const event = (more = 0) => {
    const bytes = new Uint8Array(34 + more);
    const frame = new DataView(bytes.buffer);
    frame.setInt32(0, 30 + more);
    frame.setInt32(4, -1);
    frame.setInt32(20, 3);
    frame.setInt32(24, 3);
    frame.setInt32(28, 2);
    bytes.set([0x2f, 0x78], 32);
    stream.onData(bytes);
  };
  return { link, sent, lost, reply, stream, clock, flow, event };
}

describe("a link", () => {
  test("starts its numbers again at 1 after the largest one", async () => {
    const { link, sent, lost, reply } = rig(0x7ffffffe);
    let answers = 0;
    const body = new Uint8Array(0);
    for (let i = 0; i < 4; i++) link.send(3, body, { received: () => answers++, connectionLost() {} });
    await settled();
    expect(sent).toEqual([0x7ffffffe, 0x7fffffff, 1, 2]);
    for (const xid of sent) reply(xid);
    expect([answers, lost.length]).toEqual([4, 0]);
  });

  test("takes no reply out of order, none twice, and none that nobody asked for", async () => {
    for (const wrong of [[2], [1, 1], [1, 2, 3], [-2]]) {
      const { link, lost, reply } = rig(1);
      const losses: unknown[] = [];
      for (let i = 0; i < 2; i++) {
        link.send(3, new Uint8Array(0), {
          received() {},
          connectionLost: (cause) => losses.push(cause),
        });
      }
      await settled();
      for (const xid of wrong) reply(xid);
      expect(lost[0]).toHaveProperty("code", "PROTOCOL");
      expect(lost.length).toBe(1);
      expect(losses.length).toBe(2 - wrong.length + 1);
    }
  });

  test("hears nothing more after it was destroyed", async () => {
    const { link, lost, reply, stream } = rig(1);
    const losses: unknown[] = [];
    link.send(3, new Uint8Array(0), {
      received: () => losses.push("answer"),
      connectionLost: () => losses.push("lost"),
    });
    await settled();
    link.destroy(null);
    reply(1);
    stream.onClosed(null);
    expect([losses, lost]).toEqual([["lost"], []]);
  });

  test("reads events at most once in the time to gather them, but never delays a response", async () => {
    const { link, reply, event, clock, flow, lost } = rig(1, 500);
    const taken = () => flow.splice(0).join();
    event();
    expect(taken()).toBe("pause");
    await clock.advance(499);
    expect(taken()).toBe("");
    await clock.advance(1);
    expect(taken()).toBe("resume");
    event();
    expect(taken()).toBe("pause");
    link.send(3, new Uint8Array(0), { received() {}, connectionLost() {} });
    expect(taken()).toBe("resume");
    event();
    expect(taken()).toBe(""); // a request is unanswered
    reply(1);
    expect(taken()).toBe("pause");
    await clock.advance(500);
    event(1 << 20);
    expect(taken()).toBe("resume"); // more may wait than one chunk holds
    event();
    link.destroy(null);
    expect(taken()).toBe("pause,resume");
    await clock.advance(1000);
    expect([taken(), lost.length]).toEqual(["", 0]);
  });
});
