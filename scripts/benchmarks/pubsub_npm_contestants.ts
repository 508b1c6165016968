/**
 * The contestants of the publish/subscribe benchmark, each with its client in TypeScript or JavaScript instead of the
 * one in C.
 */
import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { bundleForNode } from "../../test/support/zeromq_peers/bundle_for_node.ts";
import { compiled } from "../../test/support/zeromq_peers/compiled.ts";
import { type PubsubContestant, pubsubContestants } from "./pubsub_contestants.ts";

/** Where `install_peers --bench` installs the clients, outside the project. */
const folderOfClients = join(homedir(), ".cache/baton-bench-clients");
/** The client packages for each server. */
const clientsOf: Partial<Record<PubsubContestant["kind"], readonly string[]>> = {
  redis: ["ioredis", "redis"],
  nats: ["nats"],
  rabbitmq: ["amqplib"],
};

/** Starts the contestants that are installed. Names missing ones on stderr. */
export async function pubsubNpmContestants(folder: string): Promise<PubsubContestant[]> {
  const found: PubsubContestant[] = [];
  for (const server of await pubsubContestants(folder)) {
    let owner: Pick<PubsubContestant, typeof Symbol.asyncDispose> = server;
    for (const { name, command, kind } of await clientsFor(server)) {
      const { [Symbol.asyncDispose]: end } = owner;
      found.push({ ...server, name, command, kind, [Symbol.asyncDispose]: () => end.call(server) });
      owner = { [Symbol.asyncDispose]: () => Promise.resolve() }; // one ends the server
    }
  }
  return found;
}

async function clientsFor({ kind, name }: PubsubContestant): Promise<Client[]> {
  if (kind === "baton") {
    const command = [compiled(join(import.meta.dirname, "pubsub_peer_own.ts"))];
    return [{ name: `${name}, its own client`, command, kind }];
  }
  const clients: Client[] = [];
  for (const client of clientsOf[kind] ?? []) {
    const version = versionOf(client);
    if (version === null) {
      console.error(`MISSING PEER: npm's ${client} (sh scripts/install_peers --bench)`);
      continue;
    }
    const bundle = await bundleForNode(join(import.meta.dirname, "pubsub_peer_npm.ts"));
    const command = ["node", bundle, folderOfClients];
    clients.push({ name: `${client} ${version} on ${name}`, command, kind: client as Client["kind"] });
  }
  return clients;
}

type Client = Pick<PubsubContestant, "name" | "kind"> & { readonly command: readonly string[] };

function versionOf(client: string): string | null {
  const path = join(folderOfClients, "node_modules", client, "package.json");
  if (!existsSync(path)) return null;
  return (JSON.parse(readFileSync(path, "utf8")) as { version: string }).version;
}
