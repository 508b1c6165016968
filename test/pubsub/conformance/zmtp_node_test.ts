/**
 * baton's sockets with each other, and with libzmq's in Node on both sides: today's, and the last that spoke ZMTP 3.0.
 */
import { libzmqInNode, oldLibzmqInNode, own } from "../../support/zeromq_peers/implementations.ts";
import { describePairing } from "./zmtp_pairing.ts";

describePairing(own, own);
for (const libzmq of [libzmqInNode, oldLibzmqInNode]) {
  describePairing(own, libzmq);
  describePairing(libzmq, own);
}
