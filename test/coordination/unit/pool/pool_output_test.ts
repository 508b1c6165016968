/** How the output of jobs is printed, with the pipes of the jobs and the readers in the test's hand. */
import { expect, test } from "bun:test";
import { PoolOutput, type PoolOutputOptions } from "../../../../src/coordination/pool/pool_output.ts";
import type { CommandOutput } from "../../../../src/base/process/spawn/output_pipe.ts";
import { BatonError } from "../../../../src/base/errors.ts";
import { rejectOnAbort } from "../../../../src/base/support/abort.ts";
import { OneTimeEvent } from "../../../../src/base/support/event.ts";
import { StdoutReaderGone } from "../../../../src/base/terminal/io.ts";
import { FakeClock } from "../../../support/fake_clock.ts";
import { type FakeIo, fakeIo } from "../../../support/fake_io.ts";

/** The read end of a pipe, which a process fills. */
class FakePipe implements CommandOutput {
  readonly #chunks: Uint8Array[] = [];
  #isOver = false;
  #changed = new OneTimeEvent();
  isLeft = false;

  write(text: string): void {
    this.#chunks.push(Buffer.from(text));
    this.#changed.set();
  }

  close(): void {
    this.#isOver = true;
    this.#changed.set();
  }

  destroy(): void {
    this.isLeft = true;
    this.close();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for (;;) {
      const chunk = this.#chunks.shift();
      if (chunk !== undefined) yield chunk;
      else if (this.#isOver) return;
      else {
        await this.#changed.wait();
        this.#changed = new OneTimeEvent();
      }
    }
  }
}

class Rig {
  readonly clock = new FakeClock();
  /** Resolves when the reader of stdout takes what was written. */
  reader = new OneTimeEvent();
  readonly io: FakeIo;
  readonly output: PoolOutput;

  constructor(options: Partial<PoolOutputOptions>, io: Parameters<typeof fakeIo>[0] = {}) {
    this.reader.set();
    const written: FakeIo["written"] = (_stream, signal) => rejectOnAbort(this.reader.wait(), signal);
    this.io = { ...fakeIo(), written, ...io };
    const all = { mode: "group", isTagged: false, unprintedMax: 2, ...options } as const;
    this.output = new PoolOutput(all, { io: this.io, clock: this.clock });
  }

  job(item: string) {
    const stdout = new FakePipe();
    const stderr = new FakePipe();
    const job = this.output.readJob(item, { output: stdout, errors: stderr });
    const end = () => {
      stdout.close();
      stderr.close();
      this.output.jobEnded(job);
    };
    return { stdout, stderr, end, endOpen: () => this.output.jobEnded(job) };
  }

  get printed(): readonly [string, string] {
    return [this.io.stdout(), this.io.stderr()];
  }
}

const turns = async () => {
  for (let count = 0; count < 10; count++) await new Promise((resolve) => setImmediate(resolve));
};

test("group: a job's output comes in one piece when it ends, and messages after it", async () => {
  const rig = new Rig({ mode: "group" });
  const [a, b] = [rig.job("a"), rig.job("b")];
  a.stdout.write("a1\n");
  b.stdout.write("b1\n");
  b.stderr.write("b!\n");
  a.stdout.write("a2");
  await turns();
  expect(rig.printed).toEqual(["", ""]);
  b.end();
  rig.output.after(() => rig.io.err("b ended\n"));
  a.end();
  await rig.output.printed({ isStopped: false });
  expect(rig.printed).toEqual(["b1\na1\na2", "b!\nb ended\n"]);
});

test("lines: whole lines come at once, with their items as tags; an unfinished line at the end", async () => {
  const rig = new Rig({ mode: "lines", isTagged: true });
  const [a, b] = [rig.job("a"), rig.job("b")];
  a.stdout.write("a1\nrest");
  b.stdout.write("b1\n");
  b.stderr.write("b!\n");
  await turns();
  expect(rig.printed).toEqual(["a\ta1\nb\tb1\n", "b\tb!\n"]);
  a.end();
  b.end();
  await rig.output.printed({ isStopped: false });
  expect(rig.io.stdout()).toBe("a\ta1\nb\tb1\na\trest\n");
});

test("group with tags: each line of the piece begins with the item", async () => {
  const rig = new Rig({ mode: "group", isTagged: true });
  const a = rig.job("a");
  a.stdout.write("1\n2");
  a.end();
  await rig.output.printed({ isStopped: false });
  expect(rig.io.stdout()).toBe("a\t1\na\t2\n");
});

test("a reader that reads nothing holds back new jobs, not the end of a job", async () => {
  const rig = new Rig({ unprintedMax: 2 });
  let wakes = 0;
  rig.output.onRoom(() => wakes++);
  rig.reader = new OneTimeEvent();
  for (const item of ["a", "b"]) {
    expect(rig.output.isFull()).toBe(false);
    const job = rig.job(item);
    job.stdout.write(`${item}\n`);
    job.end();
  }
  await turns();
  expect([rig.output.isFull(), wakes]).toEqual([true, 0]);
  rig.reader.set();
  await rig.output.waitForRoom(new AbortController().signal);
  await turns();
  expect([rig.output.isFull(), wakes, rig.io.stdout()]).toEqual([false, 2, "a\nb\n"]);
});

test("lines: a job that its reader holds up gets its pipe emptied when it ends", async () => {
  const rig = new Rig({ mode: "lines" });
  rig.reader = new OneTimeEvent();
  const a = rig.job("a");
  a.stdout.write("1\n");
  await turns();
  a.stdout.write("2\n");
  await turns();
  expect(rig.io.stdout()).toBe("1\n"); // the reader comes first
  a.end();
  await turns();
  expect(rig.io.stdout()).toBe("1\n2\n");
});

test("a process outside that keeps a pipe open does not keep the run", async () => {
  const rig = new Rig({});
  const a = rig.job("a");
  a.stdout.write("1\n");
  a.stderr.close();
  a.endOpen();
  await turns();
  a.stdout.write("2\n");
  await turns();
  await rig.clock.advance(100);
  await turns();
  expect([rig.io.stdout(), a.stdout.isLeft]).toEqual(["", false]); // something has come
  await rig.clock.advance(100);
  await turns();
  expect([rig.io.stdout(), a.stdout.isLeft]).toEqual(["1\n2\n", true]);
});

test("when the reader of stdout is gone, commands that write get SIGPIPE, and no other job starts", async () => {
  const gone = new StdoutReaderGone("EPIPE");
  const rig = new Rig({}, {
    out: () => {
      throw gone;
    },
  });
  const [a, b] = [rig.job("a"), rig.job("b")];
  a.stdout.write("1\n");
  a.end();
  await turns();
  expect([rig.output.failed.reason, b.stdout.isLeft, b.stderr.isLeft]).toEqual([gone, true, false]);
  expect(rig.job("late").stdout.isLeft).toBe(true);
});

test("stdout that cannot be written ends the run, but not the running commands", async () => {
  const full = new BatonError("IO", "Cannot write to stdout: no space");
  const rig = new Rig({}, { written: (stream) => stream === "stdout" ? Promise.reject(full) : Promise.resolve() });
  const [a, b] = [rig.job("a"), rig.job("b")];
  a.stdout.write("1\n");
  a.end();
  await turns();
  b.stderr.write("still read\n");
  b.end();
  await rig.output.printed({ isStopped: false });
  expect([rig.output.failed.reason, b.stdout.isLeft]).toEqual([full, false]);
  expect(rig.io.stderr()).toBe("still read\n");
});

test("after a signal, a reader that takes nothing is given up, and that is said", async () => {
  const rig = new Rig({});
  rig.reader = new OneTimeEvent();
  const a = rig.job("a");
  a.stdout.write("1\n");
  a.end();
  const printed = rig.output.printed({ isStopped: true });
  for (let waits = 0; waits < 3; waits++) {
    await turns();
    await rig.clock.advance(2000);
  }
  await printed;
  expect(rig.io.stderr()).toBe("baton: the output of 1 item is lost, because its reader does not read\n");
});
