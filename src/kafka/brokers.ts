/** The connections to a Kafka cluster: one for each broker in use, opened when needed. */
import { BatonError, messageOf } from "../errors.ts";
import { type Address, formatAddress } from "../sockets/connection.ts";
import { BrokerConnection, type BrokerOptions } from "./broker_connection.ts";
import { deadlineAfter } from "../support/deadline.ts";
import { throwIfAborted } from "../support/abort.ts";
import type { Clock } from "../support/clock.ts";

export interface BrokersOptions extends BrokerOptions {
  /** The brokers to try first. */
  readonly addresses: readonly Address[];
  readonly clock: Clock;
}

/** The time limit of one attempt at one broker, in milliseconds. */
const attemptMs = 5000;

export class Brokers {
  readonly #options: BrokersOptions;
  readonly #open = new Map<string, BrokerConnection>();

  constructor(options: BrokersOptions) {
    this.#options = options;
  }

  /** The configured addresses, for messages. */
  get names(): string {
    return this.#options.addresses.map(formatAddress).join(", ");
  }

  /** The connection to this address. Rejects with UNREACHABLE, REFUSED, or the signal's reason. */
  async at(address: Address, signal: AbortSignal): Promise<BrokerConnection> {
    const name = formatAddress(address);
    const known = this.#open.get(name);
    if (known !== undefined && !known.isClosed) return known;
    const { clock } = this.#options;
    const reason = () => new BatonError("UNREACHABLE", `${name}: no response for ${attemptMs / 1000} s`);
    const deadline = deadlineAfter(clock, attemptMs, { signal, reason });
    try {
      const broker = await BrokerConnection.open(address, this.#options, deadline.signal);
      this.#open.set(name, broker);
      return broker;
    } finally {
      deadline.cancel();
    }
  }

  /**
   * A connection to any broker: an open one, or else the first that responds. Rejects with UNREACHABLE when none does.
   */
  async any(signal: AbortSignal): Promise<BrokerConnection> {
    for (const broker of this.#open.values()) if (!broker.isClosed) return broker;
    const failures: string[] = [];
    for (const address of this.#options.addresses) {
      try {
        return await this.at(address, signal);
      } catch (error) {
        throwIfAborted(signal);
        if (error instanceof BatonError && error.code === "REFUSED") throw error;
        failures.push(messageOf(error));
      }
    }
    throw new BatonError("UNREACHABLE", `No Kafka broker can be reached: ${failures.join("; ")}`);
  }

  close(): void {
    for (const broker of this.#open.values()) broker.close();
    this.#open.clear();
  }
}
