// The topology: columns from the inputs to the outputs, sub-topologies with their stores, and the stages at work.

import { change, el, svg } from "./dom.js";
import { asTable, table } from "./tables.js";

const GAP = { x: 32, y: 18 };
const TOPIC = { width: 184, height: 46 };
const SUBTOPOLOGY = { width: 200, height: 46, store: 20 };
const KINDS = { input: "input", output: "output", repartition: "repartition topic", subtopology: "sub-topology", bridged: "other end of the bridge" };

export function drawGraph({ graph, work }) {
  const places = layout(graph.nodes);
  const width = Math.max(...graph.nodes.map((n) => places[n.id].x + places[n.id].width)) + 4;
  const height = Math.max(...graph.nodes.map((n) => places[n.id].y + places[n.id].height)) + 4;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, role: "img", "aria-label": summary(graph, work), class: "graph" },
    svg("defs", {}, svg("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
      svg("path", { d: "M0 0 8 4 0 8z", class: "arrow" }))),
    graph.edges.map(([from, to]) => edge(places[from], places[to])),
    graph.nodes.map((node) => box(node, places[node.id], work)));
  // The picture shrinks to the width of the page while it stays readable. Below that width it scrolls.
  picture.style.minWidth = `${width * 0.7}px`;
  return [el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Topology" }, picture), asTable(nodeTable(graph))];
}

function layout(nodes) {
  const columns = [];
  for (const node of nodes) (columns[node.column] ??= []).push(node);
  const heights = columns.map((column) => column.reduce((sum, n) => sum + size(n).height + GAP.y, -GAP.y));
  const tallest = Math.max(...heights);
  const places = {};
  let x = 2;
  columns.forEach((column, index) => {
    let y = 2 + (tallest - heights[index]) / 2;
    const widest = Math.max(...column.map((n) => size(n).width));
    for (const node of column.sort((a, b) => a.row - b.row)) {
      const { width, height } = size(node);
      places[node.id] = { x, y, width, height };
      y += height + GAP.y;
    }
    x += widest + GAP.x;
  });
  return places;
}

function size(node) {
  if (node.kind !== "subtopology") return TOPIC;
  const stores = node.stores.length * SUBTOPOLOGY.store;
  return { width: SUBTOPOLOGY.width, height: SUBTOPOLOGY.height + stores + (stores ? 8 : 0) };
}

function edge(from, to) {
  const [x1, y1] = [from.x + from.width, from.y + from.height / 2];
  const [x2, y2] = [to.x, to.y + to.height / 2];
  const back = x2 < x1;
  const bend = back ? 60 : Math.max(18, (x2 - x1) / 2);
  return svg("path", { d: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2 - 1} ${y2}`, class: back ? "edge back" : "edge", "marker-end": "url(#arrow)" });
}

function box(node, at, work) {
  const working = node.stage !== null && work.stages.includes(node.stage);
  const label = `${KINDS[node.kind]} ${node.name}: ${change(node.now, node.then)}${working ? `, ${work.step}` : ""}`;
  const rows = node.stores.map((store, index) => {
    const y = at.y + SUBTOPOLOGY.height + 12 + index * SUBTOPOLOGY.store;
    return [text(at.x + 12, y, shortened(store.name, 21), "store"), text(at.x + at.width - 10, y, countOf(store), "count end")];
  });
  return svg("g", { class: `node ${node.kind}${working ? " working" : ""}${node.then === null ? "" : " changing"}` },
    svg("title", {}, label),
    svg("rect", { x: at.x, y: at.y, width: at.width, height: at.height, rx: node.kind === "subtopology" ? 8 : 22 }),
    text(at.x + 14, at.y + 19, shortened(node.name, 22), "name"),
    text(at.x + 14, at.y + 36, working ? work.step : KINDS[node.kind], "kind"),
    text(at.x + at.width - 12, at.y + 36, `${change(node.now, node.then)}${node.kind === "subtopology" ? " tasks" : ""}`, "count end"),
    rows.length ? svg("line", { x1: at.x, x2: at.x + at.width, y1: at.y + 45, y2: at.y + 45, class: "rule" }) : null,
    rows.flat());
}

const countOf = (store) => (store.is_logged ? change(store.now, store.then) : "no log");

function text(x, y, content, kind) {
  return svg("text", { x, y, class: kind }, content);
}

const shortened = (name, most) => (name.length <= most ? name : `${name.slice(0, most - 9)}…${name.slice(-8)}`);

function summary(graph, work) {
  const stages = work.stages.length ? ` At work: ${work.step}, stage ${work.stages.join(", ")}.` : "";
  return `Topology with ${graph.nodes.length} nodes.${stages} The table below has the same contents.`;
}

function nodeTable(graph) {
  const rows = graph.nodes.flatMap((node) => [
    [node.name, KINDS[node.kind], change(node.now, node.then), node.stage ?? ""],
    ...node.stores.map((store) => [store.name, `store of ${node.name}`, store.is_logged ? countOf(store) : "not copied: no changelog", node.stage ?? ""]),
  ]);
  return table("Topics, sub-topologies and stores", ["name", "what", "partitions or tasks", "stage"], rows);
}
