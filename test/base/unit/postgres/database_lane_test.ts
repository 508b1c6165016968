import { expect, test } from "bun:test";
import { parseDatabaseUrl } from "../../../../src/base/postgres/database_address.ts";
import { DatabaseLane } from "../../../../src/base/postgres/database_lane.ts";
import type { PrimaryConnection } from "../../../../src/base/postgres/primary_connection.ts";
import { StatementError } from "../../../../src/base/postgres/statement_error.ts";
import { systemClock } from "../../../../src/base/support/clock.ts";

test("a database that accepts connections and answers nothing keeps no statement beyond its deadline", async () => {
  let closed = 0;
  const connect = () => {
    const { promise, reject } = Promise.withResolvers<never>();
    const close = () => {
      closed++;
      reject(new StatementError("the connection was closed", { outcome: "unknown", sqlState: null }));
    };
    return Promise.resolve({ isOpen: true, run: () => promise, close } as unknown as PrimaryConnection);
  };
  const onConnect = async (connection: PrimaryConnection) => void await connection.run({ name: "", text: "" }, []);
  const address = parseDatabaseUrl("postgres://baton@localhost/x", { mayHavePassword: false, env: {} });
  await using lane = new DatabaseLane({ address, clock: systemClock(), name: "test", connect, onConnect });
  const running = lane.run({ name: "one", text: "SELECT 1" }, [], { deadlineMs: 20 });
  await expect(running).rejects.toMatchObject({ code: "UNREACHABLE", outcome: "not_sent" });
  expect(closed).toBeGreaterThan(0);
});
