// Charts: lags over time, a heat map of partitions, the pause in its parts, entries per partition.

import { clock, color, duration, el, short, svg, whole } from "./dom.js";

const NOT_BEGUN = -1;
// A pause has at most this many parts, so no two of its parts share a color.
const PALETTE = Array.from({ length: 16 }, (_, i) => `series-${i + 1}`);
const BOX = { width: 960, height: 240, left: 58, right: 14, top: 14, bottom: 28 };

const scaled = (lag) => Math.log10(1 + Math.max(0, lag));

// The largest lag of each job over time. The scale is logarithmic: a copy begins with a lag of millions and ends with none.
export function lagChart(series, threshold) {
  const points = series.flatMap((each) => each.points);
  const [from, to] = [Math.min(...points.map((p) => p.at)), Math.max(...points.map((p) => p.at))];
  const most = Math.max(10, threshold, ...points.map((p) => p.lag));
  const x = (at) => BOX.left + ((at - from) / Math.max(1, to - from)) * (BOX.width - BOX.left - BOX.right);
  const y = (lag) => BOX.height - BOX.bottom - (scaled(lag) / scaled(most)) * (BOX.height - BOX.top - BOX.bottom);
  const marks = Array.from({ length: Math.ceil(Math.log10(most)) + 1 }, (_, i) => 10 ** i).filter((v) => v <= most);
  const named = series.map((each) => each.name).join(", ");
  const label = `Largest lag per partition from ${clock(from)} to ${clock(to)}, of ${named}. The gate opens at ${whole(threshold)}.`;
  const line = (each) => each.points.map((p, i) => `${i ? "L" : "M"}${x(p.at).toFixed(1)} ${y(p.lag).toFixed(1)}`).join("");
  const picture = svg("svg", { viewBox: `0 0 ${BOX.width} ${BOX.height}`, role: "img", "aria-label": label, class: "chart" },
    [0, ...marks].map((value) => [
      svg("line", { x1: BOX.left, x2: BOX.width - BOX.right, y1: y(value), y2: y(value), class: "gridline" }),
      svg("text", { x: BOX.left - 8, y: y(value) + 4, class: "tick end" }, short(value))]),
    [0, 0.25, 0.5, 0.75, 1].map((share) => svg("text", { x: x(from + share * (to - from)), y: BOX.height - 8,
      class: `tick ${share === 0 ? "" : share === 1 ? "end" : "middle"}` }, clock(from + share * (to - from)))),
    svg("line", { x1: BOX.left, x2: BOX.width - BOX.right, y1: y(threshold), y2: y(threshold), class: "threshold" }),
    svg("text", { x: BOX.left + 6, y: y(threshold) - 6, class: "tick threshold-text" }, `gate opens at ${whole(threshold)}`),
    series.map((each, index) => [
      svg("path", { d: line(each), class: `line ${PALETTE[index % PALETTE.length]}` }),
      svg("circle", { cx: x(each.points.at(-1).at), cy: y(each.points.at(-1).lag), r: 3.5, class: `dot ${PALETTE[index % PALETTE.length]}` })]));
  const legend = el("ul", { class: "legend" }, series.map((each, index) =>
    el("li", {}, el("span", { class: `swatch ${PALETTE[index % PALETTE.length]}` }), `${each.name}: ${whole(each.points.at(-1).lag)} now`)));
  return [el("div", { class: "scroll" }, picture), legend];
}

// Rows are partitions or groups of partitions, columns are readings. It is a canvas, because it may have thousands of cells.
export function heatMap({ rows, samples, threshold: gate }, threshold, warming) {
  const canvas = el("canvas", { class: "heat", role: "img",
    "aria-label": `Lags of ${rows.length} rows of partitions in ${samples.length} readings. The table below has the newest.` });
  const tip = el("output", { class: "tip" }, "Rows are partitions, columns are readings. Point at a cell to see its lag.");
  const cell = Math.max(4, Math.min(18, Math.floor(340 / rows.length)));
  canvas.width = Math.max(1, samples.length);
  canvas.height = rows.length;
  canvas.style.height = `${Math.max(24, cell * rows.length)}px`;
  paint(canvas, samples, threshold);
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const column = Math.min(samples.length - 1, Math.floor(((event.clientX - box.left) / box.width) * samples.length));
    const row = Math.min(rows.length - 1, Math.floor(((event.clientY - box.top) / box.height) * rows.length));
    const sample = samples[column];
    if (sample && rows[row]) tip.textContent = `${clock(sample.at_ms)} · ${nameOf(rows[row])} · ${described(sample.worst[row], warming ? gate : null)}`;
  });
  const axis = el("p", { class: "axis" }, el("span", {}, clock(samples[0].at_ms)), el("span", {}, clock(samples.at(-1).at_ms)));
  const scale = el("p", { class: "scale" }, "within the threshold ", ...["heat-0", "heat-1", "heat-2", "heat-3", "heat-4"].map((name) =>
    el("span", { class: `swatch ${name}` })), " far beyond it ", el("span", { class: "swatch heat-none" }), " not begun");
  return [canvas, axis, tip, scale];
}

export const nameOf = (row) => `${row.topic} ${row.first === row.last ? row.first : `${row.first}–${row.last}`}`;
const described = (lag, gate) => (lag === NOT_BEGUN ? "not begun" : `lag ${whole(lag)}${gate !== null && lag > gate ? ", holds the gate" : ""}`);

function paint(canvas, samples, threshold) {
  const context = canvas.getContext("2d");
  const colors = [0, 1, 2, 3, 4].map((i) => color(`heat-${i}`));
  const none = color("heat-none");
  samples.forEach((sample, column) => sample.worst.forEach((lag, row) => {
    context.fillStyle = lag === NOT_BEGUN ? none : colors[heat(lag, threshold)];
    context.fillRect(column, row, 1, 1);
  }));
}

function heat(lag, threshold) {
  if (lag <= threshold) return lag <= threshold / 10 ? 0 : 1;
  return lag <= 10 * Math.max(1, threshold) ? 2 : lag <= 100 * Math.max(1, threshold) ? 3 : 4;
}

export function stackedBar(parts, total) {
  const label = parts.map((part) => `${part.meaning} ${duration(part.seconds)}`).join(", ");
  return el("div", { class: "stack", role: "img", "aria-label": `Pause of ${duration(total)}: ${label}` }, parts.map((part, index) => {
    const piece = el("div", { class: `piece ${PALETTE[index % PALETTE.length]}`, title: `${part.meaning}: ${duration(part.seconds)}` },
      part.seconds / total > 0.08 ? part.name.replace("_", " ") : "");
    piece.style.flexGrow = Math.max(part.seconds / total, 0.002);
    return piece;
  }));
}

export const paletteOf = (index) => PALETTE[index % PALETTE.length];

// Entries per partition. If there are more partitions than pixels, the chart shows the fullest of those that share a pixel.
export function bars(counts, most, name) {
  const canvas = el("canvas", { class: "bars", role: "img",
    "aria-label": `${counts.length} partitions. The fullest has ${whole(Math.max(0, ...counts))} entries.` });
  const [width, height] = [560, 110];
  Object.assign(canvas, { width: width * 2, height: height * 2 });
  const context = canvas.getContext("2d");
  context.scale(2, 2);
  context.fillStyle = color(name);
  const step = width / counts.length;
  const gap = step > 6 ? 2 : step > 3 ? 1 : 0;
  counts.forEach((count, index) => {
    const tall = most ? (count / most) * (height - 2) : 0;
    context.fillRect(index * step, height - tall, Math.max(1, step - gap), tall);
  });
  return canvas;
}
