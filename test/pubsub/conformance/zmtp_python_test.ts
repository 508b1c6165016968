/**
 * baton's sockets and libzmq's in Python, on both sides; and libzmq with libzmq, which is the control: what it does not
 * do either is no rule.
 */
import { libzmqInNode, libzmqInPython, own } from "../../support/zeromq_peers/implementations.ts";
import { describePairing } from "./zmtp_pairing.ts";

describePairing(libzmqInNode, libzmqInPython);
describePairing(own, libzmqInPython);
describePairing(libzmqInPython, own);
