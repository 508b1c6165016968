/** `baton pool` where nothing can be taken: --total is used up, or the job around it is in its own way. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { BatonSession } from "../support/baton_session.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
beforeAll(() => session = new BatonSession({ BATON_SERVERS: "embedded" }));
afterAll(() => session[Symbol.asyncDispose]());

/** Runs until the test makes the file. */
const until = (file: string) => `while ! [ -e ${file} ]; do sleep 0.01; done`;

test("64: the job around it holds the component, for which it would wait for ever", async () => {
  for (const words of ["", "-w 30s"]) {
    const nested = await session.run(`"$baton" lock nest -- "$baton" pool nest ${words} --items a -- true`);
    expect(nested).toMatchObject({
      code: 64,
      stderr: expect.stringContaining(
        '"nest" is already held by this job: a baton lock or baton hold around this call has it',
      ),
    });
  }
  const inner = `"$baton" pool nest --items a,b -- printenv BATON_ITEM`;
  const inside = await session.run(`"$baton" pool nest --items a,b -- ${inner}`);
  expect(inside).toMatchObject({ code: 0, stdout: "b\n" });
});

test("75: items are free, and as many as --total allows run already", async () => {
  const working = session.start(
    `"$baton" pool full --items a --total 1 -- sh -c 'touch full; ${until("end-full")}'`,
  );
  await session.made("full");
  for (const loop of ["", "--loop"]) {
    const none = await session.run(`"$baton" pool full --items b,c --total 1 ${loop} --status-fd 1 -- echo ran {}`);
    expect([none.code, none.stderr]).toEqual([
      75,
      'baton: No item of "full" may run: one runs already, as many as --total allows, and 2 are left\n',
    ]);
    expect(JSON.parse(none.stdout)).toMatchObject({ reason: "nothing_free", items: { taken: 0, left: 2 } });
  }
  const other = await session.run('"$baton" pool full --items b --total 2 -- echo ran {}');
  expect(other).toMatchObject({
    code: 78,
    stderr: 'baton: Cannot run "full" with --total 2: what runs of it was begun with --total 1; all calls need the ' +
      "same number, and another one when nothing of it runs\n",
  });
  await session.run("touch end-full");
  expect((await working.ended).code).toBe(0);
  expect(await session.run('"$baton" pool full --items b --total 2 -- echo ran {}')).toMatchObject({
    code: 0,
    stdout: "ran b\n",
  });
});
