/**
 * The frames with identities that a ROUTER gives to its program: one for all messages that a peer's connection brings. An answer
 * mostly begins with the very frame of its question, which finds the peer ten times faster than its bytes do. The frames are
 * the program's, which may change them or give them away: they are compared before they mean anything.
 */
import type { Peer } from "./peer.ts";

interface Route {
  readonly identity: Uint8Array;
  /** Null when the peer has this identity no more. */
  peer: Peer | null;
}

export class IdentityFrames {
  readonly #routes = new WeakMap<Uint8Array, Route>();
  readonly #current = new WeakMap<Peer, Route>();

  /** A frame for the messages of this peer, which has its identity from now on. */
  issue(peer: Peer): Uint8Array {
    this.revoke(peer);
    const route: Route = { identity: peer.identity, peer };
    const frame = peer.identity.slice();
    this.#routes.set(frame, route);
    this.#current.set(peer, route);
    return frame;
  }

  /** The peer has its identity no more; the frames of its messages that are unread go on to say what it was. */
  revoke(peer: Peer): void {
    const route = this.#current.get(peer);
    if (route !== undefined) route.peer = null;
    this.#current.delete(peer);
  }

  /** Whose frame this is; undefined when it was not given by this ROUTER, was changed, or is out of date. */
  peerOf(frame: Uint8Array): Peer | undefined {
    const route = this.#routes.get(frame);
    if (route === undefined || route.peer === null || !isSame(frame, route.identity)) return undefined;
    return route.peer;
  }

  /** Puts right what a message from a peer begins with, where the program has changed it in an earlier one. */
  mend(message: Uint8Array[]): void {
    const frame = message[0] as Uint8Array;
    const route = this.#routes.get(frame);
    if (route !== undefined && !isSame(frame, route.identity)) message[0] = route.identity.slice();
  }
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  const { byteLength } = one;
  if (byteLength !== other.byteLength) return false;
  for (let at = 0; at < byteLength; at++) if (one[at] !== other[at]) return false;
  return true;
}
