/** The simulated network: what travels between two machines, how long it takes, and what is in its way. */
import type { Address, Dial, Listen } from "../../src/base/sockets/connection.ts";
import { onAbort, throwIfAborted } from "../../src/base/support/abort.ts";
import type { Chance } from "./chance.ts";
import { SimSocket, systemError } from "./sim_socket.ts";
import type { SimMachine, SimProcess } from "./sim_process.ts";
import type { SimWorld } from "./sim_world.ts";

interface SimListener {
  readonly process: SimProcess;
  readonly life: number;
  readonly accept: Parameters<Listen>[1];
}

/** One direction between two machines. */
interface Route {
  readonly chance: Chance;
  /** Partitions that are in force; each is healed by itself. */
  cuts: number;
  /** Delays that are in force, in milliseconds. */
  addedMs: number;
  /** Deliveries that wait for the route to be healed. */
  held: (() => void)[];
}

/** The time until TCP sends again what was lost, in milliseconds. */
const retransmitMs = { low: 1, high: 1500 };

export class SimNetwork {
  readonly world: SimWorld;
  readonly #routes = new Map<string, Route>();
  readonly #listeners = new Map<string, SimListener>();
  readonly #paths = new Map<string, string>();
  /** Every socket that is not closed at its own end. */
  readonly sockets = new Set<SimSocket>();

  constructor(world: SimWorld) {
    this.world = world;
  }

  /** Lets a `unix:` address reach a listener on TCP, as a forwarded socket does. */
  forwardPath(path: string, host: string, port: number): void {
    this.#paths.set(path, `${host}:${port}`);
  }

  route(from: SimMachine, to: SimMachine): Route {
    const name = `${from.name}>${to.name}`;
    let route = this.#routes.get(name);
    if (route === undefined) {
      route = { chance: this.world.chance.fork(`route ${name}`), cuts: 0, addedMs: 0, held: [] };
      this.#routes.set(name, route);
    }
    return route;
  }

  /** The time of one packet on its way. */
  delayMs({ chance, addedMs }: Route): number {
    const kind = chance.next();
    const usualMs = chance.between(0.05, 0.6);
    const rareMs = kind < 0.93 ? 0 : kind < 0.995 ? chance.between(0, 8) : chance.between(0, 120);
    if (addedMs > 0) this.world.count("effect delay");
    return usualMs + rareMs + addedMs;
  }

  /** Calls back when a packet has arrived; a packet that was lost on the way is sent again when the route is healed. */
  travel(from: SimMachine, to: SimMachine, arrived: () => void): void {
    const route = this.route(from, to);
    this.world.after(this.delayMs(route), () => {
      if (route.cuts > 0) this.hold(route, () => this.travel(from, to, arrived));
      else if (to.isUp) arrived();
    });
  }

  hold(route: Route, again: () => void): void {
    this.world.count("effect cut");
    route.held.push(again);
  }

  cut(from: SimMachine, to: SimMachine): void {
    this.route(from, to).cuts++;
  }

  heal(from: SimMachine, to: SimMachine): void {
    const route = this.route(from, to);
    if (--route.cuts > 0) return;
    const held = route.held;
    route.held = [];
    // One timer of TCP for each connection; the order within a connection is kept by the socket.
    for (const again of held) this.world.after(route.chance.between(retransmitMs.low, retransmitMs.high), again);
  }

  listen(process: SimProcess): Listen {
    return (address, accept) => {
      const name = this.#nameOf(address);
      const found = this.#listeners.get(name);
      if (found !== undefined && found.process.life === found.life) {
        return Promise.reject(systemError("EADDRINUSE", `listen EADDRINUSE ${name}`));
      }
      const listener = { process, life: process.life, accept };
      this.#listeners.set(name, listener);
      process.whenDead(() => this.#removeListener(name, listener));
      return Promise.resolve({
        address,
        close: () => {
          this.#removeListener(name, listener);
          return Promise.resolve();
        },
      });
    };
  }

  dial(process: SimProcess): Dial {
    return async (address, handlers, { signal } = {}) => {
      throwIfAborted(signal);
      const name = this.#nameOf(address);
      const server = this.world.machines.get(name.slice(0, name.lastIndexOf(":")));
      if (server === undefined) throw systemError("ENETUNREACH", `connect ENETUNREACH ${name}`);
      return await new Promise((resolve, reject) => {
        const own = new SimSocket(this, process, name);
        const offAbort = onAbort(signal, (reason) => {
          own.destroy();
          reject(reason);
        });
        const { life } = process;
        const settle = (work: () => void) => {
          if (process.life !== life) return;
          process.schedule("network", 0, () => {
            offAbort();
            if (!signal?.aborted) work();
          });
        };
        this.travel(process.machine, server, () => {
          const listener = this.#listeners.get(name);
          if (listener === undefined || listener.process.life !== listener.life) {
            const refused = systemError("ECONNREFUSED", `connect ECONNREFUSED ${name}`);
            return this.travel(server, process.machine, () => settle(() => reject(refused)));
          }
          const peer = new SimSocket(this, listener.process, `${process.machine.name}:${40_000 + own.id}`);
          own.join(peer);
          peer.join(own);
          listener.process.schedule("network", 0, () => peer.setHandlers(listener.accept(peer)));
          this.travel(server, process.machine, () => {
            own.accepted();
            settle(() => {
              own.setHandlers(handlers);
              resolve(own);
            });
          });
        });
      });
    };
  }

  /** The connections between two machines, in the order in which they were made. One of both ends is returned. */
  connections(one: SimMachine, other: SimMachine): SimSocket[] {
    return [...this.sockets].filter(({ machine, peerSocket }) => machine === one && peerSocket?.machine === other);
  }

  #removeListener(name: string, listener: SimListener): void {
    if (this.#listeners.get(name) === listener) this.#listeners.delete(name);
  }

  #nameOf(address: Address): string {
    if (address.kind === "tcp") return `${address.host}:${address.port}`;
    return this.#paths.get(address.path) ?? `unix:${address.path}`;
  }
}
