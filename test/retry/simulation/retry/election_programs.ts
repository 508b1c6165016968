/**
 * The election of simulated processors: the real one, at a simulated keeper, which each processor reaches through a
 * relay of its own.
 */
import { readCoordinationServers } from "../../../../src/coordination/connect/coordination_servers.ts";
import { unknownHolder } from "../../../../src/coordination/nodes/holder_info.ts";
import { ProcessorElection } from "../../../../src/retry/processor/processor_election.ts";
import type { StoreProcessor, StoreProcessorOptions } from "../../../../src/retry/processor/store_processor.ts";
import type { Connection } from "../../../../src/base/sockets/connection.ts";
import { keeperPort } from "../../../coordination/simulation/lock/keeper_program.ts";
import type { SimNetwork } from "../../../world/sim_network.ts";
import type { SimProcess, SimProgram } from "../../../world/sim_process.ts";
import type { SimWorld } from "../../../world/sim_world.ts";

/** A relay lets faults of the network meet one processor and not the others, which are on the same machine. */
export function relayProgram(network: SimNetwork, keeperHost: string): SimProgram {
  return async (process) => {
    const from = { kind: "tcp", host: process.machine.name, port: keeperPort } as const;
    await network.listen(process)(from, (client) => {
      let server: Connection | null = null;
      let isClosed = false;
      const early: Uint8Array[] = [];
      const close = () => {
        isClosed = true;
        client.destroy();
        server?.destroy();
      };
      const handlers = { onData: (chunk: Uint8Array) => client.write(chunk), onClosed: close };
      network.dial(process)({ kind: "tcp", host: keeperHost, port: keeperPort }, handlers).then((connection) => {
        server = connection;
        if (isClosed) return connection.destroy();
        for (const chunk of early) connection.write(chunk);
      }, close);
      return {
        onData: (chunk) => server === null ? void early.push(chunk.slice()) : server.write(chunk),
        onClosed: close,
      };
    });
  };
}

/** What a processor has in place of the election that it would load. */
export function electionOf(process: SimProcess, network: SimNetwork) {
  return ({ values, sources, log }: StoreProcessorOptions) =>
    Promise.resolve((storeName: string, onChange: () => void) =>
      new ProcessorElection({
        storeName,
        place: readCoordinationServers(values, sources),
        clock: process.clock,
        candidate: { value: process.name, info: unknownHolder },
        dial: network.dial(process),
        log,
        onChange,
      })
    );
}

interface Candidate {
  readonly process: SimProcess;
  readonly life: number;
  readonly processor: StoreProcessor;
}

/** Judges that a try starts only at a processor that leads, and that no other one leads then. */
export class ElectionOracle {
  readonly #world: SimWorld;
  readonly #candidates = new Map<string, Candidate>();
  #leader: SimProcess | null = null;

  constructor(world: SimWorld) {
    this.#world = world;
  }

  /** The process that was elected last; faults aim at it. */
  get leader(): SimProcess | undefined {
    return this.#leader ?? undefined;
  }

  opened(process: SimProcess, processor: StoreProcessor): void {
    this.#candidates.set(process.name, { process, life: process.life, processor });
  }

  elected(process: SimProcess): void {
    if (this.#leader !== null && this.#leader !== process) this.#world.count("mark another processor leads");
    this.#leader = process;
  }

  /** A processor starts a try. */
  began(process: SimProcess, id: string): void {
    for (const { process: one, life, processor } of this.#candidates.values()) {
      if (one.life !== life || one.state !== "running") continue;
      this.#world.visit(one, () => {
        if (processor.leads === (one === process)) return;
        const who = one === process ? "does not lead" : `does not lead alone: ${one.name} leads, too`;
        this.#world.fail("tried without leading", `${process.name} tries ${id}, and ${who}`);
      });
    }
  }
}
