/** Jobs where /proc is another PID namespace's: the numbers in it are other processes' here. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { BatonSession } from "../../support/baton_session.ts";

setDefaultTimeout(60_000);

const canUnshare = spawnSync("unshare", ["-rpf", "true"]).status === 0;
if (!canUnshare) console.error("MISSING: this user may not have a PID namespace; jobs in one are left out");

let session: BatonSession;
beforeAll(() => void (session = new BatonSession({ BATON_SERVERS: "embedded" })));
afterAll(() => session[Symbol.asyncDispose]());

/** In a namespace of its own, whose process 1 is the shell; it ends all others when it ends. */
const within = (flags: string, script: string) => session.run(`unshare -rpf ${flags} sh -c '${script}; true'`);

test.skipIf(!canUnshare)(
  "nothing is run where a job's processes cannot be told from others, and it is said why",
  async () => {
    const ended = await within(
      "",
      '"$baton" lock x -- touch ran; echo lock $?; "$baton" pool x --items a -- touch ran; echo pool $?; ' +
        '"$baton" hold x --pid 2; echo hold $?; "$baton" doctor >findings; echo doctor $?; ls ran',
    );
    expect(ended.stdout).toBe("lock 125\npool 125\n(exit 78)\nhold 78\ndoctor 1\n");
    const why = /\/proc shows another PID namespace, where process \d+ is \d+: mount \/proc again in this namespace/;
    const said = ended.stderr.split("\n").filter((line) => why.test(line));
    expect(said).toHaveLength(3);
    expect(session.read("findings")).toMatch(why);
  },
);

test.skipIf(!canUnshare)("with its own /proc a namespace is as good as any", async () => {
  const script = '"$baton" lock x -- sh -c "sleep 60 & setsid sleep 60 & exit 3"; echo lock $?; pgrep -c sleep; ' +
    'sh -c "held=\\$(\\"\\$baton\\" hold -q x --pid \\$\\$) || exit; eval \\"\\$held\\"; \\"\\$baton\\" check -q"; echo hold $?';
  expect((await within("--mount-proc", script)).stdout).toBe("lock 3\n0\nhold 0\n");
});

test.skipIf(!canUnshare)(
  "a job's step in a namespace of its own has the server asked, and cannot release",
  async () => {
    const inside = (words: string) => `unshare -rpf --mount-proc "$baton" ${words}; echo ${words.split(" ")[0]} $?`;
    const ended = await session.run(
      `"$baton" lock y -- sh -c '${inside("check")}'; held=$("$baton" hold y --pid $$) || exit; eval "$held"
     ${inside("check --json")}; ${inside("release y")}; "$baton" release y; ${inside("check -q")}`,
    );
    const json = '{"version":1,"names":["y"],"held":true,"remaining_ms":null}';
    expect(ended.stdout).toBe(`check 0\n${json}\ncheck 0\nrelease 77\ncheck 79\n`);
    expect(ended.stderr).toContain('Cannot release "y": its holder process is outside this PID namespace');
  },
);
