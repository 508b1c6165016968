import { backends, describeBackend } from "../support/backends.ts";
import { zooKeeperSuite } from "./zookeeper_suite.ts";

for (const backend of backends) describeBackend(backend, () => zooKeeperSuite(backend));
