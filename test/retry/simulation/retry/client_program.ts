/**
 * Clients of `serve` as a simulated process: each request is on a connection of its own, some of them end before their
 * response.
 */
import type { NewMessage } from "../../../../src/retry/queue/stored_message.ts";
import { sleep } from "../../../../src/base/support/deadline.ts";
import type { Address } from "../../../../src/base/sockets/connection.ts";
import type { Chance } from "../../../world/chance.ts";
import type { SimNetwork } from "../../../world/sim_network.ts";
import type { SimProcess, SimProgram } from "../../../world/sim_process.ts";
import { encoded, lineReader } from "./backend_program.ts";
import type { ServeOracle } from "./serve_oracle.ts";
import type { RequestHead, ResponseLine } from "./sim_http.ts";

export interface HttpClientOptions {
  readonly network: SimNetwork;
  readonly oracle: ServeOracle;
  readonly everyMs: number;
  /** Where requests are served. */
  readonly addresses: readonly Address[];
  readonly newMessage: (chance: Chance) => Omit<NewMessage, "tried">;
  readonly isEnough: () => boolean;
}

/** The longest time for which a client waits, in milliseconds. */
const waitMs = 20_000;

export function httpClientProgram(options: HttpClientOptions): SimProgram {
  const { everyMs, isEnough } = options;
  return async (process) => {
    const chance = process.world.chance.fork(`client ${process.name} ${process.life}`);
    while (!isEnough()) {
      await sleep(process.clock, chance.next() * 2 * everyMs);
      if (!isEnough()) void request(process, chance, options);
    }
  };
}

/** Sends one request, and tells the oracle what became of it. */
async function request(
  process: SimProcess,
  chance: Chance,
  { network, oracle, addresses, newMessage }: HttpClientOptions,
): Promise<void> {
  const body = new TextDecoder().decode(newMessage(chance).body);
  const number = body.trim();
  const method = chance.oneOf(["POST", "POST", "POST", "PUT", "GET"]);
  // A GET has no body: its number is in its path alone.
  const sent = method === "GET" ? "" : body;
  const key = chance.is(0.4) ? [["Idempotency-Key", `client ${number}`] as const] : [];
  const head: RequestHead = {
    ...{ method, path: `/${number}`, headers: [...key, ["Content-Length", String(sent.length)]] },
  };
  const ended = Promise.withResolvers<ResponseLine | null>();
  const timer = process.startTimer(waitMs, () => ended.resolve(null));
  try {
    const connection = await network.dial(process)(chance.oneOf(addresses), {
      onData: lineReader((line) => ended.resolve(JSON.parse(line) as ResponseLine)),
      onClosed: () => ended.resolve(null),
    });
    oracle.sent(head, number);
    connection.write(encoded(head));
    if (chance.is(0.9)) connection.write(encoded(sent));
    else process.startTimer(chance.between(0, 3000), () => connection.write(encoded(sent)));
    if (chance.is(0.05)) process.startTimer(chance.between(0, 50), () => connection.destroy());
    const response = await ended.promise;
    if (response === null) process.world.count("mark request without an answer");
    else oracle.answered(number, response);
    connection.end();
  } catch {
    process.world.count("mark request not sent");
  } finally {
    timer();
  }
}
