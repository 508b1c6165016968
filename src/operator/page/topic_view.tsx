/** Shows the details and actions of a topic, and the actions of a publish/subscribe server. */
import { type Signal, useSignal, useSignalEffect } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { countText, shownText } from "../ui/shown_text.ts";
import type { TopicListRow, TopicServerRow } from "../../base/rows/topic_row.ts";
import { ActionButton } from "./action_dialog.tsx";
import { pageTables } from "./page_state.ts";
import { requestJsonFromProgram } from "./read_stream.ts";
import { bytesText, Fields, ShortTable } from "./row_parts.tsx";
import type { AnsweredTopicRow } from "../ui/topic_reading.ts";
import type { RatedTopicRow } from "../ui/ui_rows.ts";
import { hourText, Spark } from "./charts.tsx";
import { attentionOfRow } from "./attention.ts";
import { type MarkKind, StateMark } from "./marks.tsx";
import { topicState } from "./views.tsx";
import { type HourPoints, topicPoints } from "./recorded_hour.ts";

const readEveryMs = 2000;

interface TopicAnswer {
  readonly now: AnsweredTopicRow | null;
  readonly why: string;
}

/** Reads the details of a topic at intervals while it is shown. */
function useTopicReading(topic: string): Signal<TopicAnswer> {
  const read = useSignal<TopicAnswer>({ now: null, why: "" });
  useSignalEffect(() => {
    let timer: ReturnType<typeof setTimeout> | null = null;
    let isOver = false;
    const look = async () => {
      try {
        const now = await requestJsonFromProgram<AnsweredTopicRow>(`/topic?${new URLSearchParams({ topic })}`);
        read.value = { now, why: "" };
      } catch (thrown) {
        read.value = { now: read.peek().now, why: thrown instanceof Error ? thrown.message : String(thrown) };
      }
      if (!isOver) timer = setTimeout(look, readEveryMs);
    };
    void look();
    return () => {
      isOver = true;
      if (timer !== null) clearTimeout(timer);
    };
  });
  return read;
}

export function TopicDetailsView({ row }: { readonly row: RatedTopicRow }): JSX.Element {
  const { topic, server, epoch, reading } = row;
  const rate = reading?.rate ?? null;
  const { now, why } = useTopicReading(topic).value;
  const kind = attentionOfRow("topics", topic);
  const facts: [string, ComponentChildren][] = [
    ["Owner", shownText(server)],
    ["State", <StateMark key="state" {...topicState(row)} />],
    ["Epoch", countText(epoch)],
  ];
  if (now !== null) {
    const first = Number(now.first);
    const end = Number(now.end);
    facts.push(
      ["Messages", first > end ? "none" : `${countText(first)} to ${countText(end)}`],
      ["In", rate === null ? "-" : `${countText(rate)}/s`],
      ["Stored", bytesText(now.bytes)],
      ["Clients", countText(now.clients)],
      ["Subscribers", countText(now.subscriber_count)],
    );
    if (now.damage !== null) facts.push(["Damage", shownText(now.damage)]);
  }
  return (
    <>
      <Fields fields={facts} />
      {why !== "" && <p class="state bad">{shownText(why)}</p>}
      <HourChart what="Messages in per second" points={topicPoints(topic, "rate")} kind="busy" />
      <HourChart
        what="Messages behind of the slowest subscriber"
        points={topicPoints(topic, "behind")}
        kind={kind ?? "busy"}
      />
      {now !== null && now.subscribers.length > 0 && (
        <ShortTable
          caption="Subscribers, the furthest behind first"
          rows={now.subscribers}
          columns={[
            ["Subscriber", ({ client }) => shownText(client)],
            ["Had", ({ position }) => countText(Number(position))],
            ["Behind", ({ pending }, index) => {
              return index === 0 && kind !== undefined && pending > 0
                ? <StateMark kind={kind} text={countText(pending)} />
                : countText(pending);
            }],
          ]}
        />
      )}
      <MoveButton row={row} />
    </>
  );
}

function HourChart({ what, points, kind }: {
  readonly what: string;
  readonly points: HourPoints;
  readonly kind: MarkKind;
}): JSX.Element {
  return (
    <>
      <h3>{hourText(what, points)}</h3>
      <Spark what={what} points={points} kind={kind} least={20} />
    </>
  );
}

function MoveButton({ row: { topic, server, epoch } }: { readonly row: TopicListRow }): JSX.Element | null {
  const others = pageTables.servers.keys.value.filter((id) => {
    const other = pageTables.servers.rows.get(id)?.value;
    return id !== server && other !== undefined && other.endpoint !== null && !other.draining;
  });
  if (others.length === 0) return null;
  return (
    <p class="buttons">
      <ActionButton
        label="Move"
        action={() => ({
          verb: "move",
          title: "Move",
          body: { topic, owner: server, epoch },
          choices: others,
          words: `Topic "${shownText(topic)}" is handed over while it is used. Its owner is "${shownText(server)}".`,
        })}
      />
    </p>
  );
}

export function ServerActions({ row: { server, endpoint, draining, topic_count } }: {
  readonly row: TopicServerRow;
}): JSX.Element | null {
  if (endpoint === null) return null;
  const what = 'Server "' + shownText(server) + '"';
  return (
    <p class="buttons">
      <ActionButton
        label="Drain"
        action={() => ({
          verb: "drain",
          title: "Drain",
          body: { server, endpoint },
          words: `${what} gets no new topics, and its ${
            countText(topic_count)
          } topics are handed over to other servers.`,
        })}
      />
      {draining && (
        <ActionButton
          label="End the drain"
          action={() => ({
            verb: "drain",
            title: "End the drain",
            body: { server, endpoint, undo: true },
            words: `${what} gets new topics again. Topics that were handed over do not come back.`,
          })}
        />
      )}
    </p>
  );
}
