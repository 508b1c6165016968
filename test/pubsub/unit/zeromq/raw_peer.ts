/** The other end of a connection to a bound socket, to be written by hand. */
import type { ZeroMqSocket } from "../../../../src/protocols/zeromq/zeromq_socket.ts";
import type { SocketRig } from "./socket_rig.ts";

export async function rawPeer(rig: SocketRig, socket: ZeroMqSocket) {
  const endpoint = await socket.bind("tcp://127.0.0.1:0");
  const port = Number(/\d+$/.exec(endpoint)?.[0]);
  let heard = "";
  let isClosed = false;
  await rig.network.dial({ kind: "tcp", host: "127.0.0.1", port }, {
    onData: (chunk) => heard += new TextDecoder("latin1").decode(chunk),
    onClosed: () => isClosed = true,
  });
  await rig.settle();
  return { end: rig.network.last, heard: () => heard, isClosed: () => isClosed };
}
