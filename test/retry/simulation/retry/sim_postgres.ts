/**
 * A simulated PostgreSQL with a standby: statements in autocommit, each of which runs when it arrives, also after its
 * client has given it up or died. A statement that has written is answered when the standby has it; others see before
 * that what it has written. A fail-over undoes what the standby does not have, and ends all connections.
 */
import { parseDatabaseUrl } from "../../../../src/base/postgres/database_address.ts";
import type {
  connectToPrimary,
  PostgresRow,
  PrimaryConnection,
  SqlParameter,
  SqlStatement,
} from "../../../../src/base/postgres/primary_connection.ts";
import { StatementError, type StatementOutcome } from "../../../../src/base/postgres/statement_error.ts";
import { CleanupScope, onAbort } from "../../../../src/base/support/abort.ts";
import type { DiskFaults } from "../../../world/apply_faults.ts";
import type { Chance } from "../../../world/chance.ts";
import type { SimNetwork } from "../../../world/sim_network.ts";
import type { SimProcess, SimProgram } from "../../../world/sim_process.ts";
import type { SimSocket } from "../../../world/sim_socket.ts";
import { runSimStatement, SimTables } from "./sim_postgres_tables.ts";

export const databaseHost = "10.0.5.1";
export const simAddress = parseDatabaseUrl(`postgres://baton@${databaseHost}/sim`, { mayHavePassword: false, env: {} });

export interface SimPostgresOptions {
  readonly network: SimNetwork;
  /** The time until the standby has a commit, in milliseconds. */
  readonly flushMs: number;
  /** The share of the statements that something happens to. */
  readonly lossRate: number;
  readonly isQuiet: () => boolean;
  /** Called when a message is redriven. */
  readonly redriving: (id: string) => void;
}

/** A commit that the standby does not have. */
interface Unconfirmed {
  readonly before: SimTables;
  readonly confirmedMs: number;
}

interface SentStatement {
  readonly name: string;
  readonly values: readonly SqlParameter[];
  readonly from: SimConnection;
}

/** What becomes of a statement. */
type Fate = "usual" | "lost" | "late" | "unanswered" | "refused";

const lateMsMax = 8000;
/** When a client notices that its server is gone. Milliseconds. */
const noticedMsMax = 3000;

export class SimPostgres {
  readonly faults: DiskFaults = { slow: 0, full: 0, failing: 0 };
  readonly #options: SimPostgresOptions;
  readonly #server: SimProcess;
  readonly #chance: Chance;
  readonly #connections = new Set<SimConnection>();
  tables = new SimTables();
  #unconfirmed: Unconfirmed[] = [];
  #onCommit: ((durationMs: number) => void)[] = [];

  constructor(server: SimProcess, options: SimPostgresOptions) {
    this.#server = server;
    this.#options = options;
    this.#chance = server.world.chance.fork("database");
  }

  /** The program of the server. */
  readonly program: SimProgram = (server) => {
    server.whenDead((how) => this.#died(how));
    return Promise.resolve();
  };

  /** Connections of a process. */
  connectorOf(process: SimProcess): typeof connectToPrimary {
    return async (_, { signal }) => {
      await this.#roundTrip(process, signal);
      return new SimConnection(this, process, this.#options.network) as unknown as PrimaryConnection;
    };
  }

  get isUp(): boolean {
    return this.#server.state !== "dead";
  }

  /** Calls back in the next commit, with the time until the standby has it. */
  atCommit(call: (durationMs: number) => void): void {
    this.#onCommit.push(call);
  }

  opened(connection: SimConnection): void {
    this.#connections.add(connection);
  }

  closed(connection: SimConnection): void {
    this.#connections.delete(connection);
  }

  /** Sends a statement, which runs when it arrives. */
  send(process: SimProcess, statement: SentStatement): void {
    const { network } = this.#options;
    const fate = this.#fate();
    if (fate !== "usual") process.world.count(`mark statement ${fate}`);
    process.world.log(() =>
      `${process.name} sends ${statement.name}${fate === "usual" ? "" : `, which will be ${fate}`}`
    );
    const lateMs = fate === "late" ? this.#chance.between(0, lateMsMax) : 0;
    if (fate === "lost" || fate === "late") statement.from.breakLater(this.#chance.between(0, 20));
    if (fate === "lost") return;
    network.travel(process.machine, this.#server.machine, () => {
      process.world.after(lateMs, () => this.#server.schedule("network", 0.05, () => this.#run(statement, fate)));
    });
  }

  #fate(): Fate {
    const { lossRate, isQuiet } = this.#options;
    if (isQuiet() || !this.#chance.is(lossRate)) return "usual";
    return this.#chance.oneOf(["lost", "late", "unanswered", "refused"]);
  }

  #run(statement: SentStatement, fate: Fate): void {
    const { world } = this.#server;
    if (fate === "refused") return this.#answer(statement, 0, { sqlState: "55P03" });
    if (this.faults.failing > 0) {
      world.count("effect disk failing");
      return this.#crash();
    }
    const before = this.tables;
    const tables = before.copy();
    const nowMs = this.#server.machine.wallMs();
    const order = statement.name.startsWith("queue_look_") ? [statement.name.slice("queue_look_".length)] : [];
    const redriving = (seq: number) => this.#options.redriving(`${tables.queue.key}-${seq}`);
    const values = [...statement.values, ...order];
    const rows = runSimStatement(statement.name, { tables, values, nowMs, redriving });
    const numbers = rows.flatMap(({ seq }) => seq ?? []);
    world.log(() => `the database runs ${statement.name} of ${statement.from.process.name}: ${numbers.join(", ")}`);
    if (tables.writes === before.writes) return this.#answer(statement, 0, { rows });
    if (this.faults.full > 0) {
      world.count("effect disk full");
      return this.#answer(statement, 0, { sqlState: "53100" });
    }
    this.tables = tables;
    const waitMs = this.#commit(before);
    if (fate === "unanswered") return statement.from.breakLater(this.#chance.between(0, 2 * waitMs));
    this.#answer(statement, waitMs, { rows });
  }

  /** Returns the time until the standby has the commit: it gets them in their order. */
  #commit(before: SimTables): number {
    const { world } = this.#server;
    const { slow } = this.faults;
    if (slow > 0) world.count("effect disk slow");
    const flushMs = this.#options.flushMs * this.#chance.between(0.3, this.#chance.is(0.03) ? 20 : 2) +
      slow * this.#chance.next();
    this.#unconfirmed = this.#unconfirmed.filter(({ confirmedMs }) => confirmedMs > world.nowMs);
    const confirmedMs = Math.max(this.#unconfirmed.at(-1)?.confirmedMs ?? 0, world.nowMs + flushMs);
    this.#unconfirmed.push({ before, confirmedMs });
    const durationMs = confirmedMs - world.nowMs;
    for (const call of this.#onCommit.splice(0)) call(durationMs);
    return durationMs;
  }

  #answer(
    { from, name }: SentStatement,
    afterMs: number,
    result: { rows?: readonly PostgresRow[]; sqlState?: string },
  ) {
    const { network } = this.#options;
    this.#server.schedule(
      "network",
      afterMs,
      () => network.travel(this.#server.machine, from.process.machine, () => from.answered(name, result)),
    );
  }

  /** The server ends by itself, and is started again. */
  #crash(): void {
    const { world } = this.#server;
    world.after(0, () => {
      this.#server.die("killed");
      world.after(500, () => this.#server.start());
    });
  }

  /** A server whose machine is lost is replaced by the standby. */
  #died(how: "killed" | "lost"): void {
    const { world } = this.#server;
    const undone = this.#unconfirmed.find(({ confirmedMs }) => confirmedMs > world.nowMs);
    if (how === "lost" && undone !== undefined) {
      world.count("mark commit undone by a fail-over");
      this.tables = undone.before;
    }
    this.#unconfirmed = [];
    for (const connection of this.#connections) connection.breakLater(this.#chance.between(0, noticedMsMax));
    this.#connections.clear();
  }

  /** Rejects if the server is not there. */
  async #roundTrip(process: SimProcess, signal: AbortSignal | undefined): Promise<void> {
    const { network } = this.#options;
    const [there, back, life] = [process.machine, this.#server.machine, process.life];
    const isUp = await new Promise<boolean>((resolve, reject) => {
      const ends = new CleanupScope(onAbort(signal, reject));
      const done = (isUp: boolean) => {
        if (process.life !== life) return;
        process.schedule("network", 0, () => {
          ends[Symbol.dispose]();
          resolve(isUp);
        });
      };
      if (!this.isUp) return void process.world.after(this.#chance.between(0, 50), () => done(false));
      network.travel(
        there,
        back,
        () => this.#server.schedule("network", 0.1, () => network.travel(back, there, () => done(true))),
      );
    });
    if (!isUp) throw new StatementError("connect ECONNREFUSED", { outcome: "not_sent", sqlState: null });
  }
}

/** One connection of a process, as the product's own. */
class SimConnection {
  readonly host = simAddress.hosts[0];
  readonly machine: SimProcess["machine"];
  readonly process: SimProcess;
  readonly #database: SimPostgres;
  readonly #network: SimNetwork;
  readonly #life: number;
  #isOpen = true;
  #running: { resolve: (rows: PostgresRow[]) => void; reject: (error: Error) => void } | null = null;

  constructor(database: SimPostgres, process: SimProcess, network: SimNetwork) {
    this.#database = database;
    this.process = process;
    this.machine = process.machine;
    this.#network = network;
    this.#life = process.life;
    database.opened(this);
    network.sockets.add(this as unknown as SimSocket);
    process.whenDead(() => this.#end());
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  async run(
    { name }: SqlStatement,
    values: readonly SqlParameter[],
    signal?: AbortSignal,
  ): Promise<PostgresRow[]> {
    if (!this.#isOpen || signal?.aborted) throw this.#error("not_sent", null);
    using _ends = new CleanupScope(onAbort(signal, () => this.close()));
    return await new Promise<PostgresRow[]>((resolve, reject) => {
      this.#running = { resolve, reject };
      this.#database.send(this.process, { name, values, from: this });
    });
  }

  /** The answer to the statement that runs has arrived. */
  answered(name: string, { rows, sqlState }: { rows?: readonly PostgresRow[]; sqlState?: string }): void {
    this.#inTurn(0, () => {
      const running = this.#running;
      this.#running = null;
      if (rows !== undefined) running?.resolve([...rows]);
      else running?.reject(this.#error("rolled_back", sqlState ?? null, name));
    });
  }

  close(): void {
    this.#end();
    this.#running?.reject(this.#error("unknown", null));
    this.#running = null;
  }

  /** The connection is reset by the network. */
  break(): void {
    this.breakLater(0);
  }

  breakLater(afterMs: number): void {
    this.#inTurn(afterMs, () => this.close());
  }

  #end(): void {
    this.#isOpen = false;
    this.#database.closed(this);
    this.#network.sockets.delete(this as unknown as SimSocket);
  }

  #inTurn(afterMs: number, work: () => void): void {
    this.process.world.after(afterMs, () => {
      if (this.#isOpen && this.process.life === this.#life) this.process.schedule("network", 0, work);
    });
  }

  #error(outcome: StatementOutcome, sqlState: string | null, name = ""): StatementError {
    const what = sqlState === null ? "the connection was lost" : `refused with ${sqlState}`;
    return new StatementError(`simulated database: ${what} ${name}`, { outcome, sqlState });
  }
}
