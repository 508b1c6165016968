/** The IDs, the folder and the endpoints of `baton pubsub serve`, which a user does not name. */
import { expect, test } from "bun:test";
import { localPubsubServiceFlags } from "../../../../commands/pubsub/local_service.ts";
import { ownUserName } from "../../../../src/base/support/user_name.ts";

const own = { dir: "/srv/example/keeper", socketPath: "/srv/example/keeper/keeper.sock", scope: "user" } as const;

test("beside a user's own keeper: its folder, sockets in it, and the same IDs after a restart", () => {
  expect(localPubsubServiceFlags(own, undefined)).toEqual({
    server: {
      pubsubServerId: "local",
      pubsubDataDir: "/srv/example/keeper/topics",
      pubsubServerListen: "ipc:///srv/example/keeper/keeper.server.sock",
    },
    proxy: { pubsubProxyListen: "ipc:///srv/example/keeper/keeper.proxy.sock", pubsubProxyId: "local" },
  });
  expect(localPubsubServiceFlags(own, "/srv/topics").server.pubsubDataDir).toBe("/srv/topics");
});

test("a path that is too long for a socket: TCP on this machine, and an ID that is not kept", () => {
  const { server, proxy } = localPubsubServiceFlags(
    { ...own, socketPath: `/${"x".repeat(95)}/keeper.sock` },
    undefined,
  );
  expect(server.pubsubServerListen).toBe("tcp://127.0.0.1:0");
  expect(proxy).toEqual({ pubsubProxyListen: "tcp://127.0.0.1:0" });
});

test("beside a keeper of all users, each user has an ID, and all of them reach the endpoints", () => {
  const machine = { dir: null, socketPath: "/run/baton/keeper.sock", scope: "machine" } as const;
  const { server, proxy } = localPubsubServiceFlags(machine, "/srv/topics");
  expect(server).toMatchObject({ pubsubServerId: `local-${ownUserName()}`, pubsubServerListen: "tcp://127.0.0.1:0" });
  expect(proxy).toEqual({ pubsubProxyListen: "tcp://127.0.0.1:0" });
});
