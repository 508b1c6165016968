import { expect, test } from "bun:test";
import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { HttpConnections } from "../../../../src/base/http/http_listener.ts";
import { FakeClock } from "../../../support/fake_clock.ts";

const limits = { headMsMax: 1000, idleMsMax: 1000, pipelinedMax: 4 };

class FakeSocket extends EventEmitter {
  isDestroyed = false;

  destroy(): void {
    this.isDestroyed = true;
    this.emit("close");
  }
}

function socket(): FakeSocket & Socket {
  return new FakeSocket() as FakeSocket & Socket;
}

test("one connection too many takes the place of the one that is idle for longest, never of one with a request", () => {
  const connections = new HttpConnections({ ...limits, connectionsMax: 3 }, new FakeClock());
  const [busy, idle, silent, late, refused] = Array.from({ length: 5 }, socket);
  if (!busy || !idle || !silent || !late || !refused) throw new Error("five were made");
  for (const one of [busy, idle, silent]) connections.add(one);
  connections.countRequestStart(busy);
  connections.countRequestStart(idle);
  connections.countRequestEnd(idle);
  connections.add(late);
  expect([busy, idle, silent, late].map(({ isDestroyed }) => isDestroyed)).toEqual([false, false, true, false]);
  for (const one of [idle, late]) connections.countRequestStart(one);
  connections.add(refused);
  expect([busy, idle, late, refused].map(({ isDestroyed }) => isDestroyed)).toEqual([false, false, false, true]);
  expect(connections.size).toBe(3);
});

test("where all have a request, one that no longer arrives gives way", () => {
  let asked = 0;
  const connections = new HttpConnections({ ...limits, connectionsMax: 1 }, new FakeClock(), () => ++asked > 0);
  const first = socket();
  const second = socket();
  connections.add(first);
  connections.countRequestStart(first);
  connections.add(second);
  expect([asked, second.isDestroyed]).toEqual([1, false]);
});
