import { describe, expect, test } from "bun:test";
import { FrameStream } from "../../../src/sockets/frame_stream.ts";
import { ZooKeeperLink } from "../../../src/zookeeper/zookeeper_link.ts";
import { ByteReader } from "../../../src/wire/bytes.ts";
import { JuteFrameDecoder } from "../../../src/wire/jute/jute_frame.ts";
import { FakeClock, settled } from "../../support/fake_clock.ts";

function rig(nextXid: number) {
  const sent: number[] = [];
  const lost: (Error | null)[] = [];
  const stream = new FrameStream({ onFrame() {}, onChunkEnd() {}, onClosed() {} });
  stream.attach({
    write(bytes) {
      for (const frame of new JuteFrameDecoder().push(bytes)) sent.push(new ByteReader(frame).i32());
    },
    bufferedBytes: 0,
    peer: "test",
    pause() {},
    resume() {},
    end() {},
    destroy() {},
  });
  const owner = {
    eventReceived() {},
    repliesReceived() {},
    connectionLost: (error: Error | null) => void lost.push(error),
  };
  const link = new ZooKeeperLink(stream, owner, {
    clock: new FakeClock(),
    nextXid,
    connectSentMs: 0,
    relayMs: 0,
    lastZxid: 0n,
  });
  const reply = (xid: number) => {
    const frame = new DataView(new ArrayBuffer(20));
    frame.setInt32(0, 16);
    frame.setInt32(4, xid);
    stream.onData(new Uint8Array(frame.buffer));
  };
  return { link, sent, lost, reply, stream };
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
});
