/** Terminals that are stopped, by ^S or by the copy mode of a terminal multiplexer: what runs in them goes on. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { BatonSession, untilMade } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { canBeOthers } from "../../support/other_user.ts";
import { PtySession } from "../../support/pty_session.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
beforeAll(async () => {
  session = new BatonSession();
  // A folder that another user may enter, which the repository need not be.
  await session.run('chmod 1777 .; cp "$baton" baton; chmod 755 baton');
});
afterAll(() => session[Symbol.asyncDispose]());

const [stop, go] = ["\x13", "\x11"]; // ^S, ^Q

function onTerminal(script: string): PtySession {
  return new PtySession(["/bin/sh", "-c", script], { env: { ...session.env }, cwd: session.folder });
}

/** Resolves when the terminal has the key. */
async function press(pty: PtySession, key: string): Promise<void> {
  pty.press(key);
  await pty.modes();
}

/** Stops the terminal when the first item runs. The other one starts after a message about the first. */
async function poolGoesOn(name: string, baton: string): Promise<void> {
  const job = `touch {}-runs; ${untilMade("{}-go")}`;
  await using pty = onTerminal(`${baton} pool ${name} -v --items ${name}1,${name}2 -j 1 -- sh -c '${job}'`);
  await session.made(`${name}1-runs`);
  await press(pty, stop);
  await session.run(`touch ${name}1-go`);
  await session.made(`${name}2-runs`);
  await session.run(`touch ${name}2-go`);
  const isFree = async () => (await session.run(`${baton} who -q ${name}/${name}2`)).code === 1;
  await eventually(isFree, { what: "the last item to end", withinMs: 15_000 });
  pty.press(go);
  await pty.showsAll(`"${name}1" exited with 0`, `"${name}2" exited with 0`, "2 done");
  expect(await pty.ended()).toMatchObject({ ended: { code: 0 } });
}

test("a pool goes on, and its messages come later", async () => {
  await poolGoesOn("own", "./baton");
});

test.skipIf(!canBeOthers("a terminal of another user is not tried"))(
  "also where the terminal is another user's",
  async () => {
    await session.run("mkdir -m 1777 open");
    const other = "setpriv --reuid=64871 --regid=64871 --clear-groups";
    await poolGoesOn("other", `env BATON_KEEPER_DIR=${session.path("open/keeper")} ${other} ./baton`);
  },
);

test("a lock that waits gets its turn", async () => {
  const holder = session.start(`"$baton" lock -q turn -- sh -c 'touch held; ${untilMade("free")}'`);
  await session.made("held");
  await using pty = onTerminal(
    `stty -ixany; ./baton lock turn -- sh -c 'touch had; ${untilMade("end")}'; echo "ended: $?"`,
  );
  await pty.shows("held for");
  await press(pty, stop);
  await session.run("touch free");
  await session.made("had");
  expect((await holder.ended).code).toBe(0);
  await session.run("touch end");
  pty.press(go);
  await pty.shows("ended: 0");
});

test("who --watch ends by a signal, and shows the last state when the terminal goes on", async () => {
  await using pty = onTerminal("exec ./baton who seen --watch");
  await pty.shows('lock "seen" is free');
  await press(pty, stop);
  const holder = session.start(`"$baton" lock -q seen -- sh -c 'touch seen; ${untilMade("unseen")}'`);
  await session.made("seen");
  pty.press(go);
  await pty.shows("holds");
  await session.run("touch unseen");
  await holder.ended;
  await press(pty, stop);
  pty.signal(15);
  expect(await pty.ended()).toMatchObject({ ended: { signal: 15 } });
});
