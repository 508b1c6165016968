/** Starts Debian's RabbitMQ with separate data, ports and name server, so that an installed service is not touched. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../../test/support/eventually.ts";
import { freePorts } from "../../test/support/free_ports.ts";
import { ServerProcess } from "../../test/support/server_process.ts";

/** Not the program in PATH, which switches to the service's user. */
const program = "/usr/lib/rabbitmq/bin/rabbitmq-server";
/** How long its first start may take, in milliseconds, which compiles and creates its database. */
const startMsMax = 90_000;

export interface RabbitmqServer {
  readonly version: string;
  readonly port: number;
  /** The process that stores messages. */
  readonly pid: number;
  readonly process: ServerProcess;
}

/** Returns whether RabbitMQ is installed. */
export function hasRabbitmq(): boolean {
  return existsSync(program);
}

/** Starts RabbitMQ with its data in the folder. */
export async function startRabbitmq(folder: string): Promise<RabbitmqServer> {
  const [port = 0, nodePort = 0, epmdPort = 0] = await freePorts(3);
  const pidFile = join(folder, "pid");
  // Both run in one process group, which ends with this process.
  const server = new ServerProcess(["sh", "-c", `epmd -address 127.0.0.1 & exec ${program}`], {
    folder,
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: folder,
      ERL_EPMD_PORT: String(epmdPort),
      ERL_EPMD_ADDRESS: "127.0.0.1",
      RABBITMQ_NODENAME: "bench@localhost",
      RABBITMQ_NODE_IP_ADDRESS: "127.0.0.1",
      RABBITMQ_NODE_PORT: String(port),
      RABBITMQ_DIST_PORT: String(nodePort),
      RABBITMQ_MNESIA_BASE: folder,
      RABBITMQ_LOG_BASE: folder,
      RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, "plugins"),
      RABBITMQ_CONFIG_FILE: join(folder, "config"),
      RABBITMQ_CONF_ENV_FILE: join(folder, "environment"),
      RABBITMQ_PID_FILE: pidFile,
    },
  });
  const said = /completed with \d+ plugins/;
  const isThere = () => said.test(server.output) || !server.alive;
  await eventually(isThere, { withinMs: startMsMax, what: "RabbitMQ to serve" });
  if (!server.alive) throw new Error(`RabbitMQ ended at its start: ${server.output}`);
  return { version: versionIn(folder), port, pid: Number(readFileSync(pidFile, "latin1")), process: server };
}

function versionIn(folder: string): string {
  const log = readFileSync(join(folder, "bench@localhost.log"), "latin1");
  return /RabbitMQ (\d+\.\d+\.\d+)/.exec(log)?.[1] ?? "?";
}
