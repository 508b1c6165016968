/**
 * Ports for servers that cannot choose one themselves, and for those that keep theirs over a restart. Nobody else gets
 * them in between: they lie below what systems give to whoever does not ask for a number, and each is claimed among
 * test processes.
 */
import { createSocket, type Socket } from "node:dgram";
import { createServer } from "node:net";

/** Linux gives away 32768 and above by itself, macOS 49152 and above. */
const lowest = 10_240;
const highest = 32_767;
/** So many claims are kept, the newest ones; each is an open socket. */
const claimsMax = 300;
const triesMax = 1000;

const claims: Socket[] = [];

/** So many different TCP ports of 127.0.0.1, of which nobody has one and no test process is given one later. */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  for (let tries = 0; ports.length < count; tries++) {
    if (tries === triesMax) throw new Error(`Of ${triesMax} ports, ${ports.length} were free; ${count} are wanted`);
    const port = lowest + Math.floor(Math.random() * (highest - lowest + 1));
    const claim = await claimPort(port);
    if (claim === null) continue;
    if (await isFree(port)) ports.push(port);
    claims.push(claim);
    if (claims.length > claimsMax) claims.shift()?.close();
  }
  return ports;
}

/** The UDP port of the same number, which no test uses otherwise: the system gives it back when the process ends. */
function claimPort(port: number): Promise<Socket | null> {
  return new Promise((resolve) => {
    const socket = createSocket("udp4");
    socket.once("error", () => resolve(null));
    socket.bind({ port, address: "127.0.0.1", exclusive: true }, () => resolve(socket.unref()));
  });
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
