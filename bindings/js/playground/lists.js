// Lists of findings and events.
import { make, shorten } from "./answer.js";
import { MOST_EVENTS, MOST_FINDINGS } from "./limits.js";

/** Most characters of the data of an event: in its line, and when it is open. */
const LINE = 160;
const OPEN = 20_000;

/** Shows findings; `onChoose` is called with the number of the one that is pressed. */
export function showFindings(target, findings, t, onChoose) {
  if (findings.length === 0) {
    target.replaceChildren(make("p", "muted none", t("noFindings")));
    return;
  }
  const list = make("ol", "findings");
  findings.slice(0, MOST_FINDINGS).forEach((finding, number) => {
    const { severity, code, rule, message, line, column, repair } = finding;
    const head = make(
      "span",
      "line",
      make("span", `badge ${severity}`, t(severity)),
      make("span", "code", code),
      make("span", "muted", rule),
      make("span", "muted place", t("place", { line, column })),
    );
    const button = make(
      "button",
      "finding",
      head,
      make("span", "message", shorten(message, t, 1000)),
      make("span", repair === null ? "muted" : "repair", repair === null ? t("noRepair") : t("repair", { repair: shorten(repair, t, 1000) })),
    );
    button.type = "button";
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", () => onChoose(number));
    list.append(make("li", "", button));
  });
  const left = findings.length - MOST_FINDINGS;
  target.replaceChildren(list, ...(left > 0 ? [make("p", "muted none", t("moreFindings", { count: left }))] : []));
}

/** Shows which finding is chosen. */
export function markFinding(target, number) {
  target.querySelectorAll("button.finding").forEach((button, at) => {
    button.setAttribute("aria-pressed", String(at === number));
    if (at === number) button.scrollIntoView({ block: "nearest" });
  });
}

/** Shows the first events, and how many more there are. */
export function showEvents(target, events, count, t) {
  if (events.length === 0) {
    target.replaceChildren(make("p", "muted none", t("noEvents")));
    return;
  }
  const list = make("ol", "events");
  target.replaceChildren(list);
  events.forEach((event, number) => addEvent(list, event, number, t));
  const left = count - Math.min(events.length, MOST_EVENTS);
  if (left > 0) target.append(make("p", "muted none", t("moreEvents", { count: left })));
}

/** Adds an event to a list; its whole data is written when it is opened. */
export function addEvent(list, { event, data }, number, t) {
  const json = JSON.stringify(data);
  const line = json.length > LINE ? `${json.slice(0, LINE)}…` : json;
  const summary = make("summary", "", make("span", "number", String(number + 1)), make("span", "name", event), make("span", "data", line));
  const details = make("details", "event", summary);
  details.addEventListener("toggle", () => {
    if (details.open && details.childElementCount === 1) {
      details.append(make("pre", "json", shorten(JSON.stringify(data, null, 2), t, OPEN)));
    }
  });
  list.append(make("li", "", details));
  return details;
}
