// Tables: plain tables, and tables with pages for data that may have thousands of rows.

import { el, whole } from "./dom.js";

const PAGE = 15;

export function table(caption, header, rows, options = {}) {
  const numeric = new Set(options.numeric ?? []);
  const narrow = new Set(options.narrow ?? []);
  const kind = (index) => (numeric.has(index) ? "number" : narrow.has(index) ? "narrow" : null);
  const cell = (tag, content, index) => el(tag, { class: kind(index), scope: tag === "th" ? "col" : null }, content);
  return el(
    "div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el("table", {}, el("caption", { class: options.shown ? null : "hidden" }, caption),
      el("thead", {}, el("tr", {}, header.map((each, index) => cell("th", each, index)))),
      el("tbody", {}, rows.map((row) => el("tr", {}, row.map((each, index) => cell("td", each, index)))))),
  );
}

// `rowAt(index)` makes one row, so that only the rows of the visible page are made.
export function paged(caption, header, count, rowAt, options = {}) {
  let page = Math.min(options.state?.page ?? 0, Math.max(0, Math.ceil(count / PAGE) - 1));
  const holder = el("div", { class: "paged" });
  const last = Math.max(0, Math.ceil(count / PAGE) - 1);

  function show(next) {
    page = Math.max(0, Math.min(last, next));
    if (options.state) options.state.page = page;
    const first = page * PAGE;
    const rows = Array.from({ length: Math.min(PAGE, count - first) }, (_, i) => rowAt(first + i));
    holder.replaceChildren(table(caption, header, rows, options));
    if (last > 0) holder.append(pager(first));
  }

  function pager(first) {
    const button = (text, label, to, off) => el("button", { type: "button", "aria-label": label, disabled: off, onclick: () => show(to) }, text);
    return el("nav", { class: "pager", "aria-label": `Pages of: ${caption}` },
      button("«", "First page", 0, page === 0), button("‹", "Previous page", page - 1, page === 0),
      el("span", {}, `${whole(first + 1)}–${whole(Math.min(count, first + PAGE))} of ${whole(count)}`),
      button("›", "Next page", page + 1, page === last), button("»", "Last page", last, page === last));
  }

  show(page);
  return holder;
}

export function asTable(made) {
  return el("details", {}, el("summary", {}, "As a table"), made);
}

export function choice(label, options, chosen, onchange) {
  return el("label", { class: "choice" }, label, " ",
    el("select", { onchange: (event) => onchange(event.target.value) },
      options.map((each) => el("option", { value: each, selected: each === chosen }, each))));
}
