/**
 * The identity frames that a ROUTER gives to its program: one frame for all messages of a connection. A response
 * usually starts with the frame of its request, which finds the peer ten times faster than its bytes. The program may
 * change or pass on these frames, so they are verified before use.
 */
import type { Peer } from "./zeromq_peer.ts";

export class IdentityFrames {
  /** Frames in use; lookups in a weak map cost several times as much. */
  readonly #peers = new Map<Uint8Array, Peer>();
  /** The original bytes of each frame, as long as the frame exists. */
  readonly #identities = new WeakMap<Uint8Array, Uint8Array>();

  /** Creates the frame for messages of this peer, which has its identity from now on. */
  issue(peer: Peer): Uint8Array {
    this.revoke(peer);
    const frame = peer.identity.slice();
    peer.frame = frame;
    this.#peers.set(frame, peer);
    this.#identities.set(frame, peer.identity);
    return frame;
  }

  /** The peer loses its identity; frames of its unread messages keep the old one. */
  revoke(peer: Peer): void {
    if (peer.frame !== null) this.#peers.delete(peer.frame);
    peer.frame = null;
  }

  /** Returns the peer of this frame; undefined if it is not from this ROUTER, was changed, or is outdated. */
  peerOf(frame: Uint8Array): Peer | undefined {
    const peer = this.#peers.get(frame);
    return peer !== undefined && isSame(frame, peer.identity) ? peer : undefined;
  }

  /** Repairs the first frame of a message from this peer, if the program changed it in an earlier message. */
  mend(message: Uint8Array[], peer: Peer | null): void {
    const frame = message[0] as Uint8Array;
    // A message of an earlier connection starts with the frame of that connection.
    const identity = peer !== null && frame === peer.frame ? peer.identity : this.#identities.get(frame);
    if (identity !== undefined && !isSame(frame, identity)) message[0] = identity.slice();
  }
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  const { byteLength } = one;
  if (byteLength !== other.byteLength) return false;
  for (let at = 0; at < byteLength; at++) if (one[at] !== other[at]) return false;
  return true;
}
