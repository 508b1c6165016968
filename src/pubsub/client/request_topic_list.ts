/** Which topics there are, as a proxy knows them. */
import { decodeTopicList } from "../../wire/pubsub/topic_list.ts";
import { requireOk } from "./pubsub_client_session.ts";
import type { Requester } from "./requester.ts";

/** Sorted. Rejects with what the question failed with, or with the signal's reason. */
export async function requestTopics(requester: Requester, sender: string, signal?: AbortSignal): Promise<string[]> {
  const answer = requireOk("list the topics", await requester.request({ name: "TOPICS", sender }, { signal }));
  return (decodeTopicList(answer.body) ?? []).sort();
}
