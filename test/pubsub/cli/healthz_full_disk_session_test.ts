/**
 * /healthz while somebody else fills the disk of a role that has nothing to store just then. It needs root, to mount a
 * disk.
 */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { BatonSession } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { canMountDisk, SmallDisk } from "../../support/small_disk.ts";

setDefaultTimeout(60_000);

const hasDisks = canMountDisk("/healthz is not tried on a disk that is really full");

let session: BatonSession;
beforeEach(() => void (session = new BatonSession({ BATON_SERVERS: "embedded" })));
let disk: SmallDisk | null = null;
afterEach(async () => {
  disk?.[Symbol.dispose]();
  await session[Symbol.asyncDispose]();
});

const roles = [
  { words: "pubsub server --id s1 --data-dir disk/s1", says: "messages are refused: " },
  { words: "keeper --data-dir disk/k --listen unix:$dir/k.sock", says: "the disk is full: " },
  {
    words: "retry-processor run --store disk/r --create --exec cat",
    says: "is full: only the space reserved for accepted messages",
  },
];

for (const { words, says } of roles) {
  test.skipIf(!hasDisks)(
    `${words.split(" --")[0]}: not well on a full disk, and well again when there is room`,
    async () => {
      disk = new SmallDisk(session.path("disk"), 64);
      const role = session.start(`exec "$baton" ${words} --metrics-listen unix:$dir/page`);
      const health = async () =>
        (await session.run(`curl -s -w ' %{http_code}' --unix-socket "$dir/page" http://localhost/healthz`)).stdout;
      await eventually(async () => await health() === "ok\n 200", { withinMs: 30_000, what: role.stderr() });
      disk.fill();
      await eventually(async () => (await health()).includes(says) && (await health()).endsWith(" 503"), {
        withinMs: 10_000,
        what: `/healthz to say "${says}"`,
      });
      disk.makeRoom();
      await eventually(async () => await health() === "ok\n 200", { withinMs: 10_000, what: "/healthz to say ok" });
      role.child.kill("SIGTERM");
      expect((await role.ended).code).toBe(0);
    },
  );
}
