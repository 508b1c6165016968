/** A message store on a disk that is full: by its own messages, and by somebody else. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { BatonSession } from "../../support/baton_session.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
beforeAll(() => session = new BatonSession());
afterAll(() => session[Symbol.asyncDispose]());

/**
 * A file system of the test's own, in a namespace of its own; where nobody may have that the test is left out, aloud.
 */
const small = (size: string, script: string) =>
  `unshare -rm sh -c 'mkdir -p disk && mount -t tmpfs -o size=${size} none disk && exec sh -c "$1"' sh '${script}'`;
const canMount = spawnSync("unshare", ["-rm", "mount", "-t", "tmpfs", "none", "/mnt"]).status === 0;
if (!canMount) console.error("MISSING: this user may not mount a tmpfs; the tests of a full disk are left out");

test.skipIf(!canMount)(
  "a full disk: what is told to be stored is, the rest is refused, and all of it is delivered",
  async () => {
    const script = [
      "seq 2000 | sed s/$/$(head -c 100000 /dev/zero | tr \\\\0 x)/ >lines",
      "@retry submit --store disk/s --lines lines",
      "echo submit $?",
      'head -c 7000000 lines | @retry call --store disk/s -- sh -c "exit 9"',
      "echo call $?",
      '@retry run --store disk/s --until-empty -v --exec "cat >/dev/null" -j 4 2>log &',
      "while ! grep -q tries log; do sleep 0.05; done",
      // Somebody else takes what is left.
      "dd if=/dev/zero of=disk/other bs=4096 2>/dev/null",
      "wait",
      "@retry stats --store disk/s --json",
      "@retry verify --store disk/s",
    ].join("\n");
    const ended = await session.run(small("32m", script.replaceAll("@retry", '"$baton" retry-processor')));
    const stored = Number(/(\d+) lines are stored/.exec(ended.stderr)?.[1]);
    expect(stored).toBeGreaterThan(50);
    expect(ended.stdout).toContain("submit 85\ncall 85\n");
    expect(ended.stderr).toContain("only the space reserved for accepted messages is left");
    const { states } = JSON.parse(ended.stdout.split("\n").find((line) => line.startsWith("{")) ?? "{}");
    expect(states).toMatchObject({
      done: { count: stored },
      waiting: { count: 0 },
      in_flight: { count: 0 },
      dead: { count: 0 },
    });
    expect(ended.stdout).toContain("no damage found");
  },
);
