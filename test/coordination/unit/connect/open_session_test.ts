import { expect, test } from "bun:test";
import { openCoordinationSession } from "../../../../src/coordination/connect/command_session.ts";
import { parseZooKeeperServers } from "../../../../src/protocols/zookeeper/hosts.ts";
import type { ZooKeeperConnectOptions } from "../../../../src/protocols/zookeeper/zookeeper_client.ts";
import { FakeClock } from "../../../support/fake_clock.ts";
import { fakeIo } from "../../../support/fake_io.ts";

/** Servers one of which refuses connections, while the other one accepts them and is silent. */
function connectWithoutEnd({ report }: ZooKeeperConnectOptions): Promise<never> {
  report?.begin("zk1:2181", 0);
  report?.fail("zk1:2181", "connection refused");
  report?.begin("zk2:2181", 0);
  report?.waitFor("zk2:2181", "no response to the handshake");
  return new Promise(() => {});
}

test.each([[false, 1], [true, 0]])(
  "a wait without a limit says after 2 s what each server does (quiet: %p)",
  async (quiet, count) => {
    const clock = new FakeClock(0);
    const io = fakeIo();
    const options = { servers: parseZooKeeperServers("zk1,zk2") };
    void openCoordinationSession(connectWithoutEnd, options, { isPatient: true, io, clock, quiet, what: 'lock "x"' });
    await clock.advance(1999);
    expect(io.stderr()).toBe("");
    await clock.advance(60_000);
    const message = "baton: no server has responded for 2 s (zk1:2181: connection refused; " +
      'zk2:2181: no response to the handshake within 2 s); still waiting for lock "x"\n';
    expect(io.stderr()).toBe(message.repeat(count));
  },
);

test.each([['lock "x"', 'still waiting for lock "x"'], ["", "still trying"]])(
  "a call with a limit for connecting says so, too (%p)",
  async (what, goal) => {
    const clock = new FakeClock(0);
    const io = fakeIo();
    const options = { servers: parseZooKeeperServers("zk1"), connectTimeoutMs: 10_000 };
    void openCoordinationSession(connectWithoutEnd, options, { isPatient: false, io, clock, quiet: false, what });
    await clock.advance(2000);
    expect(io.stderr()).toEndWith(`; ${goal}\n`);
  },
);

test("where the names of the servers have no addresses yet it says that", async () => {
  const clock = new FakeClock(0);
  const io = fakeIo();
  const options = { servers: parseZooKeeperServers("zk1") };
  void openCoordinationSession(() => new Promise(() => {}), options, {
    isPatient: true,
    io,
    clock,
    quiet: false,
    what: '"x"',
  });
  await clock.advance(2000);
  expect(io.stderr()).toContain("(no address was found for their names); still waiting");
});
