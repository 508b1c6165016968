import { backends, currentZooKeepers, describeBackend } from "../../support/backends.ts";
import { zooKeeperSuite } from "./zookeeper_suite.ts";

for (const backend of [...backends, ...currentZooKeepers]) describeBackend(backend, () => zooKeeperSuite(backend));
