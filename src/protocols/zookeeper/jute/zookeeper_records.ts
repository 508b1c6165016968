/** The records of zookeeper.jute (3.8), with the same names and field order. */
import {
  juteBooleanCodec,
  juteBytesCodec,
  type JuteCodecValue,
  juteIntCodec,
  juteLongCodec,
  juteRecordCodec,
  juteStringCodec,
  juteVectorCodec,
} from "../../../base/wire/record_codec.ts";

export const AclIdentity = juteRecordCodec({ scheme: juteStringCodec, id: juteStringCodec });
export const Acl = juteRecordCodec({ perms: juteIntCodec, id: AclIdentity });
export type Acl = JuteCodecValue<typeof Acl>;

export const Stat = juteRecordCodec({
  czxid: juteLongCodec,
  mzxid: juteLongCodec,
  ctime: juteLongCodec,
  mtime: juteLongCodec,
  version: juteIntCodec,
  cversion: juteIntCodec,
  aversion: juteIntCodec,
  ephemeralOwner: juteLongCodec,
  dataLength: juteIntCodec,
  numChildren: juteIntCodec,
  pzxid: juteLongCodec,
});
export type Stat = JuteCodecValue<typeof Stat>;

/** session_frames.ts adds the readOnly byte, which clients before 3.4 omit. */
export const ConnectRequest = juteRecordCodec({
  protocolVersion: juteIntCodec,
  lastZxidSeen: juteLongCodec,
  timeOut: juteIntCodec,
  sessionId: juteLongCodec,
  passwd: juteBytesCodec,
});
export const ConnectResponse = juteRecordCodec({
  protocolVersion: juteIntCodec,
  timeOut: juteIntCodec,
  sessionId: juteLongCodec,
  passwd: juteBytesCodec,
});

export const RequestHeader = juteRecordCodec({ xid: juteIntCodec, type: juteIntCodec });
export const ReplyHeader = juteRecordCodec({ xid: juteIntCodec, zxid: juteLongCodec, err: juteIntCodec });
export const WatcherEvent = juteRecordCodec({ type: juteIntCodec, state: juteIntCodec, path: juteStringCodec });

export const PathRequest = juteRecordCodec({ path: juteStringCodec });
export const PathWatchRequest = juteRecordCodec({ path: juteStringCodec, watch: juteBooleanCodec });
export const StatResponse = juteRecordCodec({ stat: Stat });
export const PathResponse = juteRecordCodec({ path: juteStringCodec });

export const CreateRequest = juteRecordCodec({
  path: juteStringCodec,
  data: juteBytesCodec,
  acl: juteVectorCodec(Acl),
  flags: juteIntCodec,
});
export const CreateTtlRequest = juteRecordCodec({
  path: juteStringCodec,
  data: juteBytesCodec,
  acl: juteVectorCodec(Acl),
  flags: juteIntCodec,
  ttl: juteLongCodec,
});
export const Create2Response = juteRecordCodec({ path: juteStringCodec, stat: Stat });
export const DeleteRequest = juteRecordCodec({ path: juteStringCodec, version: juteIntCodec });
export const SetDataRequest = juteRecordCodec({ path: juteStringCodec, data: juteBytesCodec, version: juteIntCodec });
export const CheckVersionRequest = juteRecordCodec({ path: juteStringCodec, version: juteIntCodec });
export const GetDataResponse = juteRecordCodec({ data: juteBytesCodec, stat: Stat });
export const GetAclResponse = juteRecordCodec({ acl: juteVectorCodec(Acl), stat: Stat });
export const SetAclRequest = juteRecordCodec({
  path: juteStringCodec,
  acl: juteVectorCodec(Acl),
  version: juteIntCodec,
});
export const GetChildrenResponse = juteRecordCodec({ children: juteVectorCodec(juteStringCodec) });
export const GetChildren2Response = juteRecordCodec({ children: juteVectorCodec(juteStringCodec), stat: Stat });
export const SetWatchesRequest = juteRecordCodec({
  relativeZxid: juteLongCodec,
  dataWatches: juteVectorCodec(juteStringCodec),
  existWatches: juteVectorCodec(juteStringCodec),
  childWatches: juteVectorCodec(juteStringCodec),
});
export const SetWatches2Request = juteRecordCodec({
  relativeZxid: juteLongCodec,
  dataWatches: juteVectorCodec(juteStringCodec),
  existWatches: juteVectorCodec(juteStringCodec),
  childWatches: juteVectorCodec(juteStringCodec),
  persistentWatches: juteVectorCodec(juteStringCodec),
  persistentRecursiveWatches: juteVectorCodec(juteStringCodec),
});
export const AddWatchRequest = juteRecordCodec({ path: juteStringCodec, mode: juteIntCodec });
export const WatchesOfTypeRequest = juteRecordCodec({ path: juteStringCodec, type: juteIntCodec });
export const AuthPacket = juteRecordCodec({ type: juteIntCodec, scheme: juteStringCodec, auth: juteBytesCodec });
/** The record of GetSASLRequest and of SetSASLResponse, which are equal. */
export const SaslToken = juteRecordCodec({ token: juteBytesCodec });
export const ErrorResponse = juteRecordCodec({ err: juteIntCodec });
export const GetEphemeralsRequest = juteRecordCodec({ prefixPath: juteStringCodec });
export const GetEphemeralsResponse = juteRecordCodec({ ephemerals: juteVectorCodec(juteStringCodec) });
export const GetAllChildrenNumberResponse = juteRecordCodec({ totalNumber: juteIntCodec });
export const WhoAmIClientInfo = juteRecordCodec({ authScheme: juteStringCodec, user: juteStringCodec });
export const WhoAmIResponse = juteRecordCodec({ clientInfo: juteVectorCodec(WhoAmIClientInfo) });
export const MultiHeader = juteRecordCodec({ type: juteIntCodec, done: juteBooleanCodec, err: juteIntCodec });
