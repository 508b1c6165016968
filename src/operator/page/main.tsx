/** Starts the page. */
import { render } from "preact";
import { Page, startView } from "./page.tsx";
import { tickClock } from "./page_state.ts";
import { followStream, takeToken } from "./read_stream.ts";

takeToken();
startView();
render(<Page />, document.body);
followStream();
setInterval(() => document.hidden || tickClock(), 1000);
