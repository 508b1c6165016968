/** What baton leaves behind where process 1 reaps no orphans, as in many containers. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { BatonSession } from "../../support/baton_session.ts";

setDefaultTimeout(60_000);

const canUnshare = spawnSync("unshare", ["-rpf", "true"]).status === 0;
if (!canUnshare) {
  console.error("MISSING: this user may not have a PID namespace; what is left behind in one is not looked at");
}

let session: BatonSession;
beforeEach(() => void (session = new BatonSession({ BATON_SERVERS: "embedded", BATON_PUBSUB_STATE_DIR: "state" })));
afterEach(() => session[Symbol.asyncDispose]());

const init = [process.execPath, join(import.meta.dirname, "../../fixtures/careless_init.ts")];
/** What the script has printed, and the zombies when all has ended. */
const left = async (script: string) => {
  const { stdout, stderr } = await session.run(`unshare -rpf --mount-proc ${init.join(" ")} "$script"`, { script });
  return stdout.includes("zombies: ") ? stdout.trim().split("\n") : [stdout, stderr];
};

const background = "sh -c 'true & setsid sleep 0.01 & true'";
const busy = `"$baton" lock x -- sh -c 'touch held; while ! [ -e over ]; do sleep 0.01; done' & until [ -e held ]; do
  sleep 0.01; done;`;
const retry = `BATON_RETRY_STORE=store "$baton" retry-processor`;
const service = (words: string, sign: string) =>
  `${words} 2>${sign} & all="$all $!"; until grep -Eq "serves|takes requests" ${sign}; do sleep 0.02; done;`;
const servers = `${service('"$baton" pubsub server --id s1 --data-dir s1', "s")} ${
  service('"$baton" pubsub proxy --id p1', "p")
}`;

/** Scripts, and the exit codes that they print. */
const calls: Readonly<Record<string, readonly [script: string, codes: string]>> = {
  "lock": [`for i in 1 2 3 4 5 6 7 8 9 10; do "$baton" lock x -- ${background} || echo $?; done; echo 0`, "0"],
  "lock whose time is over": [`"$baton" lock --max-hold 100ms x -- sleep 60; echo $?`, "124"],
  "lock that does not get it": [
    `${busy} "$baton" lock -n x -- true; echo $?; "$baton" lock -w 500ms x -- true; echo $?
     timeout -s INT --preserve-status 0.3 "$baton" lock x -- true; echo $?; touch over; wait`,
    "75 75 130",
  ],
  "lock whose command is stopped": [
    `"$baton" lock x -- sh -c 'touch runs; exec sleep 60' & until [ -e runs ]; do sleep 0.01; done; kill $!; wait $!; echo $?`,
    "143",
  ],
  "hold that does not get it": [
    `${busy} "$baton" hold -n x --pid $$ >out; echo $?; timeout -s INT --preserve-status 0.3 "$baton" hold x --pid $$ >out; echo $?
     touch over; wait`,
    "75 130",
  ],
  "elect": [
    `"$baton" elect x --value v --restart never --on-elected true --on-deposed true --health true -- ${background}; echo $?`,
    "0",
  ],
  "barrier": [`"$baton" barrier x -N 2 -- true & "$baton" barrier x -N 2 -- ${background}; echo $?; wait`, "0"],
  "pool": [`"$baton" pool x --items a,b,c,d --jobs 2 -- ${background}; echo $?`, "0"],
  "fence run": [`"$baton" lock x -- "$baton" fence run --store tokens -- ${background}; echo $?`, "0"],
  "pubsub client get --exec": [
    `${servers} "$baton" pubsub client a subscribe t; echo one | "$baton" pubsub client b put t -
     "$baton" pubsub client a get t --exec 'cat >/dev/null'; echo $?; kill $all; wait`,
    "0",
  ],
  "retry-processor call": [
    `${retry} call --no-stdin -- ${background}; echo $?; ${retry} call --no-stdin -- false; echo $?`,
    "0 75",
  ],
  "retry-processor run": [
    `${retry} call --no-stdin --interval 1ms -- sh -c '[ -e tried ] || { touch tried; false; }'; echo $?
     ${retry} run --until-empty; echo $?`,
    "75 0",
  ],
  "retry-processor serve": [
    `${service(`${retry} serve --listen unix:$dir/http --url http://127.0.0.1:9`, "h")} kill $all; wait $all; echo $?`,
    "0",
  ],
};

for (const [call, [script, codes]] of Object.entries(calls)) {
  test.skipIf(!canUnshare)(`${call}: nothing is left`, async () => {
    expect(await left(script)).toEqual([...codes.split(" "), "zombies: none"]);
  });
}

test.skipIf(!canUnshare)("a holder outlives all that could reap it; its guard does not", async () => {
  const script = 'held=$("$baton" hold -q x --pid $$) || exit; eval "$held"; "$baton" release x';
  expect(await left(script)).toEqual(["zombies: lock-holder"]);
});

test.skipIf(!canUnshare)(
  "the guard of a baton that was killed outlives it, which is what it is there for",
  async () => {
    const script =
      '"$baton" lock x -- sh -c "touch held; sleep 60" & until [ -e held ]; do sleep 0.01; done; kill -9 $!; wait';
    expect((await left(script)).at(-1)).toMatch(/^zombies: lock-guard /);
  },
);
