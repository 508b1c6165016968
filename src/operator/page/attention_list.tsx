/** Draws what needs attention: one sentence, since when, a small picture, and the command that mends it. */
import type { JSX } from "preact";
import { actionParts } from "../ui/action_parts.ts";
import { countText, shownText } from "../ui/shown_text.ts";
import { type AttentionItem, attentionItems, viewOfItem } from "./attention.ts";
import { Spark } from "./charts.tsx";
import { CopyButton } from "./copy_button.tsx";
import { Card } from "./frame.tsx";
import { Mark } from "./marks.tsx";
import { pageTables, rowHref, rowName, rowTitles } from "./page_state.ts";
import { topicPoints } from "./recorded_hour.ts";
import { AgeText, PoolProgress } from "./row_parts.tsx";
import { RecentLane } from "./schedules.tsx";

/** How many items of one kind are drawn before the rest becomes one line. */
const ofKindMax = 3;
const kindsMax = 50;

export function AttentionList(): JSX.Element {
  const items = attentionItems.value;
  const kinds = [...Map.groupBy(items, ({ id }) => id).values()].slice(0, kindsMax);
  return (
    <Card title="Needs attention" size="wide" more={items.length === 0 ? "" : "worst first"}>
      {items.length === 0
        ? <p class="empty">Nothing. Problems and warnings appear here, with the command that mends them.</p>
        : (
          <ul class="attention">
            {kinds.map((kind) => (
              <>
                {kind.slice(0, ofKindMax).map((item) => <Item key={`${item.id} ${item.key}`} item={item} />)}
                {kind.length > ofKindMax && <More kind={kind} />}
              </>
            ))}
          </ul>
        )}
    </Card>
  );
}

function Item({ item }: { readonly item: AttentionItem }): JSX.Element {
  const { severity, what, action } = item;
  const { words, command, more } = actionParts(action);
  return (
    <li>
      <Mark kind={severity === "problem" ? "bad" : "warn"} label={severity} />
      <div class="what">
        <Subject item={item} />: {shownText(what)}
        <span class="action">
          <ItemAge item={item} />
          {item.since !== null && words !== "" && ", "}
          {shownText(words)} {command !== null && <code>{shownText(command)}</code>}
          {shownText(more)}
        </span>
      </div>
      <div class="evidence">
        <Evidence item={item} />
      </div>
      {command !== null && <CopyButton text={command} />}
    </li>
  );
}

/** Says how long an item has been there. */
export function ItemAge({ item: { since, isOlder } }: { readonly item: AttentionItem }): JSX.Element | null {
  if (since === null) return null;
  return (
    <>
      for {isOlder && "at least "}
      <AgeText since={since} />
    </>
  );
}

/** Names the object of an item, and leads to its details. */
function Subject({ item }: { readonly item: AttentionItem }): JSX.Element {
  const { table, key, where } = item;
  const title = rowTitles[table];
  if (title === undefined) return <b>{shownText(where)}</b>;
  return (
    <a href={rowHref(table, key)}>
      {title} <b>{shownText(rowName(table, key))}</b>
    </a>
  );
}

/** The small picture beside an item: what its object did in the past hours. */
function Evidence({ item: { table, key } }: { readonly item: AttentionItem }): JSX.Element | null {
  if (table === "ticks") {
    const row = pageTables.ticks.rows.get(key)?.value;
    return row === undefined ? null : <RecentLane row={row} />;
  }
  if (table === "pools") {
    const row = pageTables.pools.rows.get(key)?.value;
    return row === undefined ? null : <PoolProgress row={row} />;
  }
  if (table !== "topics") return null;
  return <Spark what="Messages behind" points={topicPoints(key, "behind")} kind="warn" least={20} />;
}

function More({ kind }: { readonly kind: readonly AttentionItem[] }): JSX.Element {
  const first = kind[0];
  return (
    <li>
      <span />
      <div class="what">
        <a href={`#${first === undefined ? "overview" : viewOfItem(first)}`}>
          {countText(kind.length - ofKindMax)} more: {shownText(first?.what ?? "")}
        </a>
      </div>
    </li>
  );
}
