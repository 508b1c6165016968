/**
 * Lets an operator accept a shared database that has lost commits. Its topics then continue with the remaining data.
 */
import type { DatabaseAddress } from "../../../base/postgres/database_address.ts";
import { DatabaseLane } from "../../../base/postgres/database_lane.ts";
import { acceptMovedDatabase, insertSchemaName, requireSharedStore } from "../../../base/postgres/database_schema.ts";
import { systemClock } from "../../../base/support/clock.ts";
import { decodeStoredName } from "../rows/topic_client.ts";
import { isTopicLossRecordedSql, recordTopicLossSql } from "./topic_loss_sql.ts";
import { setStoreGenerationSql } from "./postgres_copy_rows.ts";
import { postgresTopicStates, postgresTopicTables, topicsWithPossibleLossSql } from "./postgres_tables.ts";

const isServed = `place = ${postgresTopicStates.served}`;

export class AcceptedTopicDatabase implements AsyncDisposable {
  readonly #lane: DatabaseLane;
  storeId = "";

  private constructor(address: DatabaseAddress) {
    this.#lane = new DatabaseLane({
      address,
      clock: systemClock(),
      name: "operator",
      onConnect: async (connection) =>
        void (this.storeId = (await requireSharedStore(connection, address, postgresTopicTables)).storeId),
    });
  }

  /**
   * Connects to the database, even if it is now in another cluster. Rejects with the same errors as the start of a
   * server.
   */
  static async open(address: DatabaseAddress): Promise<AcceptedTopicDatabase> {
    await acceptMovedDatabase(address, { clock: systemClock(), name: "operator" });
    const database = new AcceptedTopicDatabase(address);
    await database.#lane.connect();
    return database;
  }

  async generation(server: string): Promise<number> {
    const text = "SELECT generation FROM SCHEMA.topic_mark WHERE server = $1::text";
    return Number((await this.#run("accept_generation", text, [server]))[0]?.["generation"] ?? 0);
  }

  /**
   * Records a loss of messages for all topics. If `ofAll` is false, records it only for topics that were not opened
   * since a failover that may have lost commits. Returns the names of these topics. A server that serves such a topic
   * then has to open it again.
   */
  async acceptLoss({ ofAll }: { readonly ofAll: boolean }): Promise<string[]> {
    const text = `${
      recordTopicLossSql(ofAll ? isServed : topicsWithPossibleLossSql, {
        certain: String(ofAll),
        lastLost: "NULL::bigint",
      })
    } SELECT name FROM t WHERE ${isTopicLossRecordedSql}`;
    const rows = await this.#run(`accept_loss_${ofAll}`, text, []);
    return rows.map((row) => decodeStoredName(row["name"])).sort();
  }

  async setGeneration(server: string, generation: number): Promise<void> {
    await this.#run("accept_mark", setStoreGenerationSql, [server, generation], 1);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#lane.close();
  }

  #run(name: string, text: string, values: readonly (string | number)[], rowsMin = 0) {
    return this.#lane.run({ name, text: insertSchemaName(text, this.#lane.address.schema), rowsMin }, values);
  }
}
