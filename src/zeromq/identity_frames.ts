/**
 * The frames with identities that a ROUTER gives to its program: one for all messages that a peer's connection brings. An answer
 * mostly begins with the very frame of its question, which finds the peer ten times faster than its bytes do. The frames are
 * the program's, which may change them or give them away: they are compared before they mean anything.
 */
import type { Peer } from "./zeromq_peer.ts";

export class IdentityFrames {
  /** Those in use; a weak map costs several times as much to look into. */
  readonly #peers = new Map<Uint8Array, Peer>();
  /** What each was when it was given, as long as somebody has it. */
  readonly #identities = new WeakMap<Uint8Array, Uint8Array>();

  /** A frame for the messages of this peer, which has its identity from now on. */
  issue(peer: Peer): Uint8Array {
    this.revoke(peer);
    const frame = peer.identity.slice();
    peer.frame = frame;
    this.#peers.set(frame, peer);
    this.#identities.set(frame, peer.identity);
    return frame;
  }

  /** The peer has its identity no more; the frames of its messages that are unread go on to say what it was. */
  revoke(peer: Peer): void {
    if (peer.frame !== null) this.#peers.delete(peer.frame);
    peer.frame = null;
  }

  /** Whose frame this is; undefined when it was not given by this ROUTER, was changed, or is out of date. */
  peerOf(frame: Uint8Array): Peer | undefined {
    const peer = this.#peers.get(frame);
    return peer !== undefined && isSame(frame, peer.identity) ? peer : undefined;
  }

  /** Puts right what a message from this peer begins with, where the program has changed it in an earlier one. */
  mend(message: Uint8Array[], peer: Peer | null): void {
    const frame = message[0] as Uint8Array;
    // One that an earlier connection has brought begins with that one's.
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
