/**
 * The model of a machine's processes behaves as Linux does: adopters of orphans, groups, signals to stopped processes,
 * numbers, pipes.
 */
import { expect, test } from "bun:test";
import { type OsProcess, type Program, SimOs } from "./sim_os.ts";
import { SimPipe, SimSystem } from "./sim_proc.ts";
import { SimWorld } from "./sim_world.ts";

const program = (name: string): Program => ({ exe: `/bin/${name}`, args: [name], environ: `NAME=${name}\0` });

/** Runs `work` on a machine, and everything that follows from it within a minute. */
async function onMachine(work: (os: SimOs, shell: OsProcess, world: SimWorld) => void): Promise<SimWorld> {
  const world = new SimWorld({ seed: 1 });
  const os = new SimOs(world.machine("one", { clockRate: 1, wallMs: 0 }), { pidMax: 400 });
  world.after(1, () => work(os, os.start(os.init, program("shell")), world));
  await world.run(60_000);
  expect(world.failure).toBeNull();
  return world;
}

test("an orphan goes to the nearest adopter, and what process 1 adopts is reaped", async () => {
  await onMachine((os, shell, world) => {
    shell.isSubreaper = true;
    shell.onChild = () => false;
    const middle = os.fork(shell);
    const leaf = os.fork(middle);
    os.end(middle, { code: 0, signal: null });
    expect(leaf.parent).toBe(shell);
    os.end(leaf, { code: 3, signal: null });
    expect([leaf.state, leaf.letter]).toEqual(["zombie", "Z"]);
    expect(new SimSystem(shell).readText(`/proc/${leaf.pid}/environ`)).toBe("");
    os.end(shell, { code: 0, signal: null });
    world.after(1, () => expect([shell.state, middle.state, leaf.state]).toEqual(["gone", "gone", "gone"]));
  });
});

test("a copy shows its parent's program until it has another one", async () => {
  await onMachine((os, shell) => {
    const child = os.fork(shell);
    const system = new SimSystem(shell);
    const flags = () => Number(system.readText(`/proc/${child.pid}/stat`).split(" ")[8]);
    expect([flags() & 0x40, system.readLink(`/proc/${child.pid}/exe`)]).toEqual([0x40, "/bin/shell"]);
    os.exec(child, program("job"));
    expect([flags() & 0x40, system.readLink(`/proc/${child.pid}/exe`)]).toEqual([0, "/bin/job"]);
    expect(system.readText(`/proc/${shell.pid}/task/${shell.pid}/children`)).toBe(`${child.pid} `);
  });
});

test("a stopped process keeps SIGTERM until it continues; SIGKILL ends it at once", async () => {
  const steps: string[] = [];
  await onMachine((os, shell, world) => {
    const [patient, other] = [os.fork(shell), os.fork(shell)];
    for (const one of [patient, other]) os.deliver(one, "SIGSTOP");
    os.after(patient, 5, () => steps.push("ran while it was stopped"));
    os.deliver(patient, "SIGTERM");
    os.deliver(other, "SIGKILL");
    world.after(1000, () => {
      steps.push(patient.letter, other.state);
      os.deliver(patient, "SIGCONT");
    });
    world.after(2000, () => steps.push(patient.state, String(patient.exit?.signal)));
  });
  expect(steps).toEqual(["T", "gone", "gone", "SIGTERM"]);
});

test("nothing ends a process that waits in the kernel before it leaves it", async () => {
  const steps: string[] = [];
  await onMachine((os, shell, world) => {
    const child = os.fork(shell);
    os.holdInSystem(child, 3000);
    os.deliver(child, "SIGKILL");
    world.after(2900, () => steps.push(child.letter));
    world.after(3100, () => steps.push(child.state));
  });
  expect(steps).toEqual(["D", "gone"]);
});

test("a signal to a group reaches its members; a number in use as a group is not given again", async () => {
  await onMachine((os, shell, world) => {
    const leader = os.fork(shell);
    os.setSession(leader);
    const member = os.fork(leader);
    os.end(leader, { code: 0, signal: null });
    expect(leader.state).toBe("gone");
    expect(os.isFree(leader.pid)).toBe(false);
    new SimSystem(shell).kill(-leader.pid, "SIGTERM");
    world.after(100, () => {
      expect([member.state, shell.state, os.isFree(leader.pid)]).toEqual(["gone", "alive", true]);
      expect(() => new SimSystem(shell).kill(-leader.pid, 0)).toThrow("no such process");
    });
  });
});

test("a pipe keeps what a dead writer wrote, and ends with its last writer", async () => {
  await onMachine((os, shell) => {
    const pipe = new SimPipe();
    pipe.openFor(shell);
    const copy = os.fork(shell);
    pipe.inherit(copy);
    void pipe.write(shell, new TextEncoder().encode("done\n"));
    os.end(shell, { code: 0, signal: null });
    const bytes = new Uint8Array(16);
    expect([pipe.read(bytes), pipe.isReadable, pipe.read(bytes)]).toEqual([5, false, -1]);
    os.exec(copy, program("job"));
    expect([pipe.isReadable, pipe.read(bytes)]).toEqual([true, 0]);
  });
});
