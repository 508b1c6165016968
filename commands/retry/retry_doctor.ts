/** Names the databases of message stores that `baton doctor` checks. */
import type { SettingTable } from "../../src/base/config/setting.ts";
import { isDatabaseUrl } from "../../src/base/postgres/database_address.ts";
import { retryStoreSettings } from "../../src/retry/settings/retry_settings.ts";
import { defineDoctor } from "../product.ts";
import { readStoreLocation } from "../../src/retry/queue/retry_store_location.ts";

const settings = {
  retryStore: {
    ...retryStoreSettings.retryStore,
    help: "check the PostgreSQL database at this URL, too; folders are checked by retry-processor verify and pubsub " +
      "server verify",
    unset: "the stores of messages and topics in the configuration",
  },
  retryRequireSync: retryStoreSettings.retryRequireSync,
} satisfies SettingTable;

export const retryDoctor = defineDoctor({
  settings,
  databases(values, sources) {
    const { retryStore } = values;
    if (retryStore === undefined || !isDatabaseUrl(retryStore)) return [];
    const { where, database } = readStoreLocation({ ...values, retryName: "default" }, sources);
    return database === null ? [] : [{ where, ...database }];
  },
});
