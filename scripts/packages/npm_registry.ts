/** A local npm registry with the packages of a release and their dependencies. It needs no network. */
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { gunzipSync } from "node:zlib";

export interface LocalNpmRegistry extends AsyncDisposable {
  /** The address with a slash at the end: http://127.0.0.1:4873/. */
  readonly url: string;
}

interface Served {
  readonly description: { readonly name: string; readonly version: string };
  readonly bytes: Uint8Array;
}

/** Returns the package.json of an npm archive, which is below "package/". */
export function npmPackageDescription(archive: Uint8Array): Served["description"] {
  const bytes = gunzipSync(archive);
  for (let at = 0; at < bytes.length;) {
    const path = bytes.toString("latin1", at, at + 100).replace(/\0.*$/s, "");
    const size = parseInt(bytes.toString("latin1", at + 124, at + 135), 8);
    if (path === "package/package.json") return JSON.parse(bytes.toString("utf8", at + 512, at + 512 + size));
    if (path === "") break;
    at += 512 + Math.ceil(size / 512) * 512;
  }
  throw new Error("the archive has no package/package.json");
}

/** Starts a registry on a free port of this machine, until it is disposed. */
export async function startNpmRegistry(archives: readonly Uint8Array[]): Promise<LocalNpmRegistry> {
  const served = new Map(archives.map((bytes): [string, Served] => {
    const description = npmPackageDescription(bytes);
    return [description.name, { description, bytes }];
  }));
  const server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url ?? "/", "http://localhost").pathname).slice(1);
    const found = served.get(path.replace(/\/-\/.*$/, ""));
    if (found === undefined) return void response.writeHead(404).end();
    if (path.endsWith(".tgz")) return void response.writeHead(200).end(found.bytes);
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(packument(found, url)));
  });
  await new Promise<void>((resolve, reject) => {
    server.on("error", reject).listen(0, "127.0.0.1", resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** What a registry says about a package with one version. */
function packument({ description, bytes }: Served, url: string): object {
  const { name, version } = description;
  const integrity = `sha512-${createHash("sha512").update(bytes).digest("base64")}`;
  const tarball = `${url}${name}/-/${name.replace(/^.*\//, "")}-${version}.tgz`;
  return {
    name,
    "dist-tags": { latest: version },
    versions: { [version]: { ...description, dist: { tarball, integrity } } },
  };
}
