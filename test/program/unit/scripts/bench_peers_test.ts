/** A benchmark waits for no peer without an end, and goes on without one that does not respond. */
import { expect, spyOn, test } from "bun:test";
import { leftOutPeers, measureInTurn, tryPeer } from "../../../../scripts/benchmarks/peers.ts";

/** What is said on stderr while `run` runs. */
async function saidBy(run: () => Promise<unknown>): Promise<string[]> {
  const said: string[] = [];
  const spy = spyOn(console, "error").mockImplementation((text: string) => void said.push(text));
  try {
    await run();
  } finally {
    spy.mockRestore();
  }
  return said;
}

test("a peer that does not respond is named, what was started for it ends, and it is not asked again", async () => {
  let asked = 0;
  let isEnded = false;
  const silent = (signal: AbortSignal) => {
    asked++;
    signal.addEventListener("abort", () => isEnded = true);
    return new Promise<number>(() => {});
  };
  const said = await saidBy(async () => {
    expect(await tryPeer("a silent peer", "barrier", silent, 1)).toBeNull();
    expect(await tryPeer("a silent peer", "cycles", silent, 1)).toBeNull();
  });
  expect(said).toEqual(["NOT MEASURED: a silent peer, barrier: it did not respond within 0.001 s"]);
  expect({ asked, isEnded }).toEqual({ asked: 1, isEnded: true });
  expect(leftOutPeers()).toContain("a silent peer");
});

test("peers are measured in turn, and the others go on without one that fails", async () => {
  const peers = [{ name: "fast" }, { name: "fails in round 1" }];
  const order: string[] = [];
  let results: Map<{ name: string }, number[]> | undefined;
  const said = await saidBy(async () => {
    results = await measureInTurn(peers, { task: "elect", rounds: 3, warmRounds: 1 }, ({ name }, round) => {
      order.push(`${name} ${round}`);
      return name !== "fast" && round === 1 ? Promise.reject(new Error("it exited 1")) : Promise.resolve(round * 10);
    });
  });
  expect([...results ?? []]).toEqual([[{ name: "fast" }, [0, 10, 20]]]);
  expect(order).toEqual([
    "fast -1",
    "fails in round 1 -1",
    "fast 0",
    "fails in round 1 0",
    "fast 1",
    "fails in round 1 1",
    "fast 2",
  ]);
  expect(said).toEqual(["NOT MEASURED: fails in round 1, elect: it exited 1"]);
});
