// Elements without a framework. All text becomes text nodes, so the name of a topic or a key can never act as markup.

const SVG = "http://www.w3.org/2000/svg";

export function el(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

// A part of the page. It is drawn again only if its data has changed, so that focus, table pages and scroll positions stay.
export function section(id, title, draw) {
  const body = el("div", { class: "body" });
  // Hidden until there is data: an empty card would say nothing.
  const node = el("section", { id, class: "card", hidden: true, "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title` }, title), body);
  let last;
  return {
    node,
    update(data) {
      const now = JSON.stringify(data);
      if (now === last) return;
      last = now;
      const drawn = draw(data);
      node.hidden = drawn === null;
      if (drawn !== null) body.replaceChildren(...[drawn].flat());
    },
  };
}

const WHOLE = new Intl.NumberFormat("en");
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const whole = (number) => (number === null || number === undefined ? "–" : WHOLE.format(number));
export const short = (number) => (number === null || number === undefined ? "–" : SHORT.format(number));
export const size = (bytes) => (bytes >= 1e6 ? `${WHOLE.format(Math.round(bytes / 1e5) / 10)} MB` : bytes >= 1e3 ? `${WHOLE.format(Math.round(bytes / 1e3))} kB` : `${WHOLE.format(Math.round(bytes))} B`);
export const lagText = (lag) => (lag === null || lag < 0 ? "not begun" : whole(lag));

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 10) return `${seconds.toFixed(seconds < 1 ? 2 : 1)} s`;
  const [h, m, s] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, Math.floor(seconds) % 60];
  if (h) return `${h} h ${m} min`;
  return m ? `${m} min ${s} s` : `${s} s`;
}

export const clock = (ms) => new Date(ms).toLocaleTimeString([], { hour12: false });
export const moment = (ms) => new Date(ms).toLocaleString([], { hour12: false });
export const change = (now, then) => (then === null || then === undefined || then === now ? `${now ?? "?"}` : `${now ?? "?"} → ${then}`);

// Airflow shows the page in a frame. The sandbox of that frame forbids navigation, but its parent window may navigate and
// has the same origin. So a click is made on a link in the parent.
const ROOT = location.pathname.slice(0, location.pathname.lastIndexOf("/kafka-rescale/"));

export function airflowLink(path, ...content) {
  const href = `${ROOT}/${path}`;
  const follow = (event) => {
    if (window.parent === window || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const outer = window.parent.document.createElement("a");
    outer.href = href;
    window.parent.document.body.append(outer);
    outer.click();
    outer.remove();
  };
  return el("a", { href, target: "_top", onclick: follow }, ...content);
}

export function runLink(run, text, taskId = "") {
  const dag = `dags/${encodeURIComponent(run.dag_id)}`;
  const inRun = run.run_id ? `/runs/${encodeURIComponent(run.run_id)}` : "";
  const task = inRun && taskId ? `/tasks/${encodeURIComponent(taskId)}` : "";
  return airflowLink(`${dag}${inRun}${task}`, text);
}

// A canvas doesn't understand custom properties, and the text of a property may be a function. So the browser resolves the
// color on a hidden element.
export function color(name) {
  const probe = el("span", { hidden: true });
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}
