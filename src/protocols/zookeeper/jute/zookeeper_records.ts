/** The records of zookeeper.jute (3.8), with the same names and field order. */
import {
  boolean,
  buffer,
  type CodecValue,
  int,
  long,
  record,
  ustring,
  vector,
} from "../../../base/wire/record_codec.ts";

export const AclIdentity = record({ scheme: ustring, id: ustring });
export const Acl = record({ perms: int, id: AclIdentity });
export type Acl = CodecValue<typeof Acl>;

export const Stat = record({
  czxid: long,
  mzxid: long,
  ctime: long,
  mtime: long,
  version: int,
  cversion: int,
  aversion: int,
  ephemeralOwner: long,
  dataLength: int,
  numChildren: int,
  pzxid: long,
});
export type Stat = CodecValue<typeof Stat>;

/** session_frames.ts adds the readOnly byte, which clients before 3.4 omit. */
export const ConnectRequest = record({
  protocolVersion: int,
  lastZxidSeen: long,
  timeOut: int,
  sessionId: long,
  passwd: buffer,
});
export const ConnectResponse = record({ protocolVersion: int, timeOut: int, sessionId: long, passwd: buffer });

export const RequestHeader = record({ xid: int, type: int });
export const ReplyHeader = record({ xid: int, zxid: long, err: int });
export const WatcherEvent = record({ type: int, state: int, path: ustring });

export const PathRequest = record({ path: ustring });
export const PathWatchRequest = record({ path: ustring, watch: boolean });
export const StatResponse = record({ stat: Stat });
export const PathResponse = record({ path: ustring });

export const CreateRequest = record({ path: ustring, data: buffer, acl: vector(Acl), flags: int });
export const CreateTtlRequest = record({ path: ustring, data: buffer, acl: vector(Acl), flags: int, ttl: long });
export const Create2Response = record({ path: ustring, stat: Stat });
export const DeleteRequest = record({ path: ustring, version: int });
export const SetDataRequest = record({ path: ustring, data: buffer, version: int });
export const CheckVersionRequest = record({ path: ustring, version: int });
export const GetDataResponse = record({ data: buffer, stat: Stat });
export const GetAclResponse = record({ acl: vector(Acl), stat: Stat });
export const SetAclRequest = record({ path: ustring, acl: vector(Acl), version: int });
export const GetChildrenResponse = record({ children: vector(ustring) });
export const GetChildren2Response = record({ children: vector(ustring), stat: Stat });
export const SetWatchesRequest = record({
  relativeZxid: long,
  dataWatches: vector(ustring),
  existWatches: vector(ustring),
  childWatches: vector(ustring),
});
export const SetWatches2Request = record({
  relativeZxid: long,
  dataWatches: vector(ustring),
  existWatches: vector(ustring),
  childWatches: vector(ustring),
  persistentWatches: vector(ustring),
  persistentRecursiveWatches: vector(ustring),
});
export const AddWatchRequest = record({ path: ustring, mode: int });
export const WatchesOfTypeRequest = record({ path: ustring, type: int });
export const AuthPacket = record({ type: int, scheme: ustring, auth: buffer });
/** GetSASLRequest and SetSASLResponse: the same record in both directions. */
export const SaslToken = record({ token: buffer });
export const ErrorResponse = record({ err: int });
export const GetEphemeralsRequest = record({ prefixPath: ustring });
export const GetEphemeralsResponse = record({ ephemerals: vector(ustring) });
export const GetAllChildrenNumberResponse = record({ totalNumber: int });
export const WhoAmIClientInfo = record({ authScheme: ustring, user: ustring });
export const WhoAmIResponse = record({ clientInfo: vector(WhoAmIClientInfo) });
export const MultiHeader = record({ type: int, done: boolean, err: int });
